//! Summary of a comparison in sentences.

use crate::{number, CodeScope, Comparison, Metric, MetricRow, UnequalUserCode, CONFIDENCE, TOTAL};
use std::fmt;

/// Direction of the kernel's figures, over all operations and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverallChange {
    /// Some figures are lower, none is higher.
    Lower,
    /// Some figures are higher, none is lower.
    Higher,
    /// Some figures are lower and some higher.
    Mixed,
    /// No figure changed by more than the A/A difference.
    Unchanged,
}

/// Summary of a comparison. `Display` writes the sentences in one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Direction over all rows.
    pub outcome: OverallChange,
    /// Number of compared operations.
    pub operations: usize,
    /// Operations with a lower path length, the largest change first.
    pub lower: Vec<MetricRow>,
    /// Operations with a higher path length, the largest change first.
    pub higher: Vec<MetricRow>,
    /// Rows of the total.
    pub totals: Vec<MetricRow>,
    /// User code of the total, if it ran differently, and the number of runs of each kernel.
    other_work: Option<(UnequalUserCode, usize)>,
    warnings: Vec<String>,
}

impl Verdict {
    /// Summarizes a comparison.
    pub fn new(comparison: &Comparison) -> Self {
        let of_kernel = |row: &&MetricRow| row.metric.code_scope() == CodeScope::Kernel;
        let any = |test: fn(&MetricRow) -> bool| comparison.rows.iter().filter(of_kernel).any(test);
        let outcome = match (any(MetricRow::is_lower), any(MetricRow::is_higher)) {
            (true, false) => OverallChange::Lower,
            (false, true) => OverallChange::Higher,
            (true, true) => OverallChange::Mixed,
            (false, false) => OverallChange::Unchanged,
        };
        let paths = |test: fn(&MetricRow) -> bool| {
            let of =
                |row: &&MetricRow| row.metric == Metric::PathLength && row.operation != TOTAL && test(row);
            let mut rows: Vec<MetricRow> = comparison.rows.iter().filter(of).cloned().collect();
            // No operation has a path length of 0, so each has a change.
            rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
            rows
        };
        Self {
            outcome,
            operations: comparison.operations().count(),
            lower: paths(MetricRow::is_lower),
            higher: paths(MetricRow::is_higher),
            totals: comparison.rows.iter().filter(|row| row.operation == TOTAL).cloned().collect(),
            other_work: comparison
                .unequal_user_code(TOTAL)
                .map(|of| (of.clone(), comparison.runs * comparison.seeds)),
            warnings: warnings(comparison),
        }
    }

    /// Returns the sentences, the most important first: [`Verdict::whole`], [`Verdict::headline`],
    /// [`Verdict::total`], [`Verdict::warnings`].
    pub fn sentences(&self) -> Vec<String> {
        let rest = self.total().into_iter().chain(self.warnings.iter().cloned());
        self.whole().into_iter().chain([self.headline()]).chain(rest).collect()
    }

    /// Describes the change of the whole path and of the cache misses of user code. If user code
    /// ran differently, it names the kernel's share in the change of the whole path. `None` if
    /// nothing changed or user code was not counted.
    pub fn whole(&self) -> Option<String> {
        let of = |whose| -> Vec<&MetricRow> {
            self.totals.iter().filter(|row| row.metric.code_scope() == whose).collect()
        };
        let (whole, user) = (of(CodeScope::Whole), of(CodeScope::User));
        if let Some((unequal, runs)) = &self.other_work {
            return Some(other_work(unequal, *runs, &whole));
        }
        if whole.is_empty()
            || (self.outcome == OverallChange::Unchanged && whole.iter().all(|row| row.within_noise()))
        {
            return None;
        }
        let phrases =
            |rows: &[&MetricRow]| rows.iter().copied().map(total_phrase).collect::<Vec<_>>().join(", ");
        Some(format!("Whole path (kernel and user): {}; of user code: {}.", phrases(&whole), phrases(&user)))
    }

    /// Describes the change of path lengths, or states that nothing changed.
    pub fn headline(&self) -> String {
        match self.outcome {
            OverallChange::Unchanged => {
                format!("No change beyond the A/A difference ({} compared).", count(self.operations))
            }
            _ => self.path_sentence(),
        }
    }

    /// Describes the change of the totals; `None` if nothing changed.
    pub fn total(&self) -> Option<String> {
        let of_kernel = self.totals.iter().filter(|row| row.metric.code_scope() == CodeScope::Kernel);
        let totals: Vec<_> = of_kernel.map(total_phrase).collect();
        if self.outcome == OverallChange::Unchanged || totals.is_empty() {
            return None;
        }
        Some(format!("In total: {}.", totals.join(", ")))
    }

    /// Returns one sentence for each kind of work that was not compared, or was not equal.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn path_sentence(&self) -> String {
        let (lower, higher) = (self.lower.len(), self.higher.len());
        if lower + higher == 0 {
            return format!(
                "Path length: no change beyond the A/A difference ({} compared).",
                count(self.operations)
            );
        }
        let mut parts = Vec::new();
        for (word, rows) in [("lower", &self.lower), ("higher", &self.higher)] {
            let (Some(max), Some(min)) = (rows.first(), rows.last()) else { continue };
            let range = match rows.len() {
                1 => named(max),
                _ => format!("from {} to {}", named(min), named(max)),
            };
            let of = if parts.is_empty() { format!(" of {}", count(self.operations)) } else { String::new() };
            parts.push(format!("{word} in {}{of} ({range})", rows.len()));
        }
        match self.operations - (lower + higher).min(self.operations) {
            0 => {}
            same => parts.push(format!("no change beyond the A/A difference in {same}")),
        }
        format!("Path length: {}.", parts.join(", "))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.sentences().join(" "))
    }
}

/// Describes the remaining certainties if user code ran differently.
fn other_work(unequal: &UnequalUserCode, runs: usize, whole: &[&MetricRow]) -> String {
    let percent = |value: f64, digits| format!("{} %", number::change(value, digits));
    let change = unequal.change_percent.map_or("more".into(), |change| percent(change, 1));
    let spread = match (unequal.interval_percent, runs) {
        (Some([low, high]), runs) => format!(
            "more than it differs by itself ({runs} runs of each, {:.0} %: {} to {})",
            100.0 * CONFIDENCE,
            number::change(low, 1),
            percent(high, 1)
        ),
        (None, 1) => "and one run of each does not say how far it differs by itself (--runs)".into(),
        (None, runs) => format!("in all of {runs} runs of each"),
    };
    let own = unequal.kernel_share_percent.map_or(String::new(), |share| {
        format!(": of it, the kernel's own instructions account for {}", percent(share, 2))
    });
    let phrases: Vec<String> = whole.iter().copied().map(total_phrase).collect();
    let whole = if phrases.is_empty() { String::new() } else { format!(" ({})", phrases.join(", ")) };
    format!(
        "The runs did not do the same work: user code executed {change} instructions on the tuned kernel, {spread}. The whole \
         path{whole} is therefore not the kernel's{own}. The kernel's own figures follow."
    )
}

fn size(row: &MetricRow) -> f64 {
    row.change_percent.map_or(f64::INFINITY, f64::abs)
}

fn change(row: &MetricRow) -> String {
    match row.change_percent {
        Some(percent) => format!("{} %", number::change(percent, 1)),
        None => format!("from 0 to {}", number::figure(row.tuned)),
    }
}

fn named(row: &MetricRow) -> String {
    format!("{} {}", row.operation, change(row))
}

fn count(operations: usize) -> String {
    match operations {
        1 => "1 operation".into(),
        _ => format!("{operations} operations"),
    }
}

fn total_phrase(row: &MetricRow) -> String {
    let what = match row.metric {
        Metric::PathLength => "kernel instructions",
        // The sentence says whose figure it is.
        metric => metric.title().trim_start_matches("whole ").trim_start_matches("user "),
    };
    let star = if row.within_noise() { "*" } else { "" };
    let model = if row.model && !what.contains("model") { " (model)" } else { "" };
    format!("{what}{model} {}{star}", change(row))
}

fn warnings(comparison: &Comparison) -> Vec<String> {
    let mut out = Vec::new();
    for missing in &comparison.missing {
        let runs: Vec<_> = missing.runs.iter().map(|run| format!("the {run} run")).collect();
        out.push(format!("Not compared: {}, which {} did not do.", missing.operation, runs.join(" and ")));
    }
    for work in &comparison.unequal_work {
        out.push(format!(
            "{} was done {} times by the base run, {} by its repetition and {} by the tuned run: the totals are \
             not of equal work.",
            work.operation,
            number::grouped(work.base),
            number::grouped(work.base_again),
            number::grouped(work.tuned),
        ));
    }
    let mut other: Vec<&UnequalUserCode> =
        comparison.unequal_user_code.iter().filter(|of| of.operation != TOTAL).collect();
    if !other.is_empty() {
        let size = |of: &UnequalUserCode| of.change_percent.map_or(f64::INFINITY, f64::abs);
        other.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let named = other.iter().take(MAX_NAMED).map(|of| match of.change_percent {
            Some(change) => format!("{} {} %", of.operation, number::change(change, 1)),
            None => format!("{} from 0", of.operation),
        });
        let more = if other.len() > MAX_NAMED { ", …" } else { "" };
        out.push(format!(
            "User code ran differently in {} ({}{more}): their whole paths (~) are not the kernel's alone.",
            count(other.len()),
            named.collect::<Vec<_>>().join(", "),
        ));
    }
    out
}

/// Most operations named in a sentence.
const MAX_NAMED: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ComparisonLabels, Measurement, RegionFigures};

    fn run(regions: &[(&str, u64, u64)]) -> Measurement {
        Measurement::from_regions(regions.iter().map(|&(name, instructions, branches)| RegionFigures {
            name,
            depth: 0,
            closed: true,
            operations: 100,
            counts: Metric::COUNTED.into_iter().zip([instructions, branches, 10, 0]).collect(),
            events: Default::default(),
            whole_events: Default::default(),
        }))
        .unwrap()
    }

    fn verdict(base: &[(&str, u64, u64)], tuned: &[(&str, u64, u64)]) -> Verdict {
        let base = run(base);
        Verdict::new(&Comparison::new(&base, &base, &run(tuned), ComparisonLabels::default()).unwrap())
    }

    #[test]
    fn best_worst_and_totals() {
        let verdict = verdict(
            &[("a", 1000, 100), ("b", 1000, 100), ("c", 1000, 100), ("d", 500, 50)],
            &[("a", 900, 90), ("b", 950, 90), ("c", 1020, 80), ("d", 500, 50)],
        );
        assert_eq!(verdict.outcome, OverallChange::Mixed);
        assert_eq!(
            verdict.sentences(),
            [
                "Path length: lower in 2 of 4 operations (from b -5.0 % to a -10.0 %), higher in 1 (c +2.0 %), no \
                 change beyond the A/A difference in 1.",
                "In total: kernel instructions -3.7 %, taken branches -11.4 %, L1I misses (model) 0.0 %*, iTLB misses \
                 (model) 0.0 %*.",
            ]
        );
    }

    #[test]
    fn nothing_changed() {
        let verdict = verdict(&[("a", 1000, 100)], &[("a", 1000, 100)]);
        assert_eq!(verdict.outcome, OverallChange::Unchanged);
        assert_eq!(verdict.to_string(), "No change beyond the A/A difference (1 operation compared).");
    }

    #[test]
    fn the_whole_path_is_said_first() {
        let run = |kernel: u64, user_l1i: u64| {
            let region = kerntune_profile::RegionStats {
                name: "get".into(),
                operations: 10,
                kernel_instructions: kerntune_profile::Instructions(kernel),
                user_instructions: kerntune_profile::Instructions(3000),
                kernel_taken_branches: 100,
                user_l1i_misses: user_l1i,
                ..region()
            };
            let counts =
                Metric::all().iter().filter_map(|metric| Some((*metric, metric.of(&region)?))).collect();
            Measurement::from_regions([RegionFigures {
                name: "get",
                depth: 0,
                closed: true,
                operations: 10,
                counts,
                events: Default::default(),
                whole_events: Default::default(),
            }])
            .unwrap()
        };
        let (base, tuned) = (run(1000, 50), run(900, 40));
        let sentences =
            Verdict::new(&Comparison::new(&base, &base, &tuned, ComparisonLabels::default()).unwrap())
                .sentences();
        // A further figure of user code adds a part at the end.
        assert!(
            sentences[0].starts_with(
                "Whole path (kernel and user): instructions -2.5 %, taken branches 0.0 %*, L1I misses (model) -20.0 %, \
                 iTLB misses (model) 0.0 %*; of user code: instructions 0.0 %*, L1I misses (model) -20.0 %, iTLB misses \
                 (model) 0.0 %*"
            ),
            "{sentences:?}"
        );
        assert_eq!(
            sentences[1..],
            [
                "Path length: lower in 1 of 1 operation (get -10.0 %).",
                "In total: kernel instructions -10.0 %, taken branches 0.0 %*, L1I misses (model) 0.0 %*, iTLB misses \
                 (model) 0.0 %*.",
            ]
        );
    }

    fn region() -> kerntune_profile::RegionStats {
        let (none, zero) = (kerntune_profile::Instructions(0), kerntune_profile::Ticks(0));
        kerntune_profile::RegionStats {
            begin_ticks: zero,
            elapsed_ticks: zero,
            busy_ticks: zero,
            idle_ticks: zero,
            user_ticks: zero,
            unattributed_ticks: zero,
            kernel_instructions: none,
            user_instructions: none,
            ..kerntune_profile::RegionStats::default()
        }
    }

    #[test]
    fn only_branches_changed() {
        let verdict = verdict(&[("a", 1000, 100)], &[("a", 1000, 50)]);
        assert_eq!(verdict.outcome, OverallChange::Lower);
        assert!(verdict
            .to_string()
            .starts_with("Path length: no change beyond the A/A difference (1 operation compared). In"));
    }

    #[test]
    fn what_is_missing_is_said() {
        let verdict = verdict(&[("a", 1000, 100), ("b", 1, 1)], &[("a", 900, 90)]);
        let sentences = verdict.sentences();
        assert_eq!(sentences.last().unwrap(), "Not compared: b, which the tuned run did not do.");
    }
}
