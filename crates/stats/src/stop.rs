//! Until when to measure: `--until-width`.
//!
//! Looking at an interval again and again and stopping when it suits would make it wrong if what one waits for is a
//! finding. Here it is the interval's *width*, which does not depend on where it lies: fixed-width
//! sequential estimation (Chow and Robbins, "On the asymptotic theory of fixed-width sequential confidence
//! intervals for the mean", Annals of Mathematical Statistics 36(2), 1965). That still costs some coverage, as it
//! stops rather when the spread is underestimated by chance. Two rules keep this small: there are at least
//! [`LEAST`] units of each kernel, and the interval has to be narrow at two looks in a row. `docs/statistics.md` has the
//! coverage that remains.

use crate::{Interval, Ratio};

/// The fewest units of each kernel with which a measurement may end by its width.
pub const LEAST: usize = 6;
/// How many looks in a row have to find it narrow.
const CONFIRM: u32 = 2;

/// What is waited for, and what was seen so far. Look once after each whole block of the
/// [schedule](crate::schedule), never within one.
#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    width: f64,
    confidence: f64,
    narrow: u32,
}

/// What is known of the widest row at a look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// The widest interval, relative to its estimate: 0.01 is one per cent from end to end.
    pub width: f64,
    /// Units of the kernel that has fewer.
    pub units: usize,
    /// Roughly how many units of each kernel it takes, by the spread seen so far: the width shrinks with the
    /// square root of their number.
    pub needed: usize,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Measure another block.
    GoOn(Look),
    /// Every row's interval is narrow enough.
    Narrow(Look),
    /// The budget is used up; the intervals are as they are.
    OutOfBudget(Look),
}

impl Stop {
    /// Until every interval of this confidence is at most `width` wide, relative to its estimate.
    pub fn at_width(width: f64, confidence: f64) -> Self {
        Self { width, confidence, narrow: 0 }
    }

    /// One look at all rows, each with its ratio and the units of the kernel that has fewer. `budget_left` says
    /// whether another whole block fits into the budget.
    pub fn look(&mut self, rows: &[(Ratio, usize)], budget_left: bool) -> Decision {
        let width = |ratio: &Ratio| {
            let Interval { low, high } = ratio.interval(self.confidence);
            (high - low) / ratio.estimate()
        };
        let units = rows.iter().map(|(_, units)| *units).min().unwrap_or(0);
        let widest = rows.iter().map(|(ratio, _)| width(ratio)).fold(0.0, f64::max);
        let times = (widest / self.width).powi(2).max(1.0);
        let needed = ((units as f64 * times).ceil() as usize).max(LEAST);
        let look = Look { width: widest, units, needed };
        let is_narrow = !rows.is_empty() && units >= LEAST && widest <= self.width;
        self.narrow = if is_narrow { self.narrow + 1 } else { 0 };
        match () {
            () if self.narrow >= CONFIRM => Decision::Narrow(look),
            () if !budget_left => Decision::OutOfBudget(look),
            () => Decision::GoOn(look),
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
        let mut stop = Stop::at_width(0.02, 0.95);
        assert!(matches!(stop.look(&[row(0.1, 4)], true), Decision::GoOn(_)), "too few units");
        assert!(matches!(stop.look(&[row(0.1, 6)], true), Decision::GoOn(_)), "narrow for the first time");
        assert!(matches!(stop.look(&[row(0.1, 8), row(9.0, 8)], true), Decision::GoOn(_)), "one row is wide");
        assert!(
            matches!(stop.look(&[row(0.1, 10)], true), Decision::GoOn(_)),
            "narrow for the first time again"
        );
        assert!(matches!(stop.look(&[row(0.1, 12)], false), Decision::Narrow(_)));
    }

    #[test]
    fn it_ends_with_the_budget_and_says_what_it_would_have_taken() {
        let mut stop = Stop::at_width(0.01, 0.95);
        let Decision::OutOfBudget(look) = stop.look(&[row(4.0, 10)], false) else { panic!() };
        assert!(look.width > 0.03 && look.units == 10 && look.needed > 90, "{look:?}");
        assert!(matches!(stop.look(&[], true), Decision::GoOn(_)), "nothing was measured yet");
    }
}
