//! End of a measurement by the width of its intervals: `--until-width`.
//!
//! Looking at an interval repeatedly and stopping at will would make it invalid if the goal were a
//! finding. Here the criterion is the interval's *width*, which does not depend on its position:
//! fixed-width sequential estimation (Chow and Robbins, "On the asymptotic theory of fixed-width
//! sequential confidence intervals for the mean", Annals of Mathematical Statistics 36(2), 1965).
//! It still costs some coverage, since stopping is more likely when the spread is underestimated by
//! chance. Two rules limit this: there are at least [`MIN_UNITS`] units of each kernel, and the
//! interval has to be narrow at two checks in a row. `docs/statistics.md` has the remaining
//! coverage.

use crate::{Interval, Ratio};

/// Fewest units of each kernel after which a measurement may end by its width.
pub const MIN_UNITS: usize = 6;
/// Number of consecutive checks that have to find every interval narrow.
const CONFIRMATIONS: u32 = 2;

/// Stop rule with its state. Check once after each whole block of the [schedule](crate::schedule),
/// never within one.
#[derive(Debug, Clone, PartialEq)]
pub struct StopRule {
    width: f64,
    confidence: f64,
    narrow: u32,
}

/// Widest interval found by a check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WidestRow {
    /// Width relative to the estimate: 0.01 is one per cent from end to end.
    pub width: f64,
    /// Units of the kernel that has fewer.
    pub units: usize,
    /// Estimated number of units of each kernel that the target needs: the width shrinks with the
    /// square root of their number.
    pub needed: usize,
}

/// Decision of a check: go on or stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StopDecision {
    /// Measure another block.
    Continue(WidestRow),
    /// Stop: every row's interval is narrow enough.
    Narrow(WidestRow),
    /// Stop: the budget is used up; intervals may be wide.
    OutOfBudget(WidestRow),
}

impl StopRule {
    /// Creates a rule that stops when every interval of this confidence is at most `width` wide,
    /// relative to its estimate.
    pub fn at_width(width: f64, confidence: f64) -> Self {
        Self { width, confidence, narrow: 0 }
    }

    /// Checks all rows, each given as its ratio and the units of the kernel that has fewer.
    /// `budget_left` tells whether another whole block fits into the budget.
    pub fn check(&mut self, rows: &[(Ratio, usize)], budget_left: bool) -> StopDecision {
        let width = |ratio: &Ratio| {
            let Interval { low, high } = ratio.interval(self.confidence);
            (high - low) / ratio.estimate()
        };
        let units = rows.iter().map(|(_, units)| *units).min().unwrap_or(0);
        let widest = rows.iter().map(|(ratio, _)| width(ratio)).fold(0.0, f64::max);
        let times = (widest / self.width).powi(2).max(1.0);
        let needed = ((units as f64 * times).ceil() as usize).max(MIN_UNITS);
        let widest_row = WidestRow { width: widest, units, needed };
        let is_narrow = !rows.is_empty() && units >= MIN_UNITS && widest <= self.width;
        self.narrow = if is_narrow { self.narrow + 1 } else { 0 };
        match () {
            () if self.narrow >= CONFIRMATIONS => StopDecision::Narrow(widest_row),
            () if !budget_left => StopDecision::OutOfBudget(widest_row),
            () => StopDecision::Continue(widest_row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(spread: f64, units: usize) -> (Ratio, usize) {
        let values: Vec<f64> =
            (0..units).map(|at| if at % 2 == 0 { 100.0 } else { 100.0 + spread }).collect();
        (Ratio::new(&values, &values).unwrap(), units)
    }

    #[test]
    fn it_ends_at_the_second_narrow_look_in_a_row() {
        let mut stop = StopRule::at_width(0.02, 0.95);
        assert!(matches!(stop.check(&[row(0.1, 4)], true), StopDecision::Continue(_)), "too few units");
        assert!(
            matches!(stop.check(&[row(0.1, 6)], true), StopDecision::Continue(_)),
            "narrow for the first time"
        );
        assert!(
            matches!(stop.check(&[row(0.1, 8), row(9.0, 8)], true), StopDecision::Continue(_)),
            "one row is wide"
        );
        assert!(
            matches!(stop.check(&[row(0.1, 10)], true), StopDecision::Continue(_)),
            "narrow for the first time again"
        );
        assert!(matches!(stop.check(&[row(0.1, 12)], false), StopDecision::Narrow(_)));
    }

    #[test]
    fn it_ends_with_the_budget_and_says_what_it_would_have_taken() {
        let mut stop = StopRule::at_width(0.01, 0.95);
        let StopDecision::OutOfBudget(seen) = stop.check(&[row(4.0, 10)], false) else { panic!() };
        assert!(seen.width > 0.03 && seen.units == 10 && seen.needed > 90, "{seen:?}");
        assert!(matches!(stop.check(&[], true), StopDecision::Continue(_)), "nothing was measured yet");
    }
}
