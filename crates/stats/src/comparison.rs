//! Comparison of a tuned kernel's results with a base kernel's, row by row.

use crate::overall_gain::{OverallGain, RowUnits};
use crate::paper::Improvement;
use crate::sample::{common_level, mean, median, std_dev};
use crate::set::{JoinedResults, JoinedRow};
use crate::shift::LocationShift;
use crate::verdict::{RowEvidence, RowVerdict, VerdictReason};
use crate::warmup::{self, WarmUp, WarmUpState};
use crate::{
    schedule, Bootstrap, Error, Interval, MannWhitney, MeasuredKernel, PValueCorrection, Ratio, RatioMethod,
    Result, RowDirection, Sample, VariationLevel,
};
use serde::{Deserialize, Serialize};

/// Schema of a comparison as JSON.
pub const SCHEMA: &str = "kerntune-bench-comparison/2";

/// Fewest units of the base kernel that can be split into an A/A pair.
const MIN_UNITS_TO_SPLIT: usize = 4;

/// Options of a comparison of timed results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ComparisonOptions {
    /// Confidence of each interval, 0.5 to 0.9999.
    pub confidence: f64,
    /// Smallest difference that matters, relative: 0.01 is one per cent.
    pub min_effect: f64,
    /// Correction of p-values for the number of rows.
    pub correction: PValueCorrection,
    /// Method of intervals and p-values.
    pub method: RatioMethod,
    /// Replicates and seed for [`RatioMethod::Bootstrap`].
    pub bootstrap: Bootstrap,
}

impl Default for ComparisonOptions {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            min_effect: 0.01,
            correction: PValueCorrection::Holm,
            method: RatioMethod::Student,
            bootstrap: Bootstrap::default(),
        }
    }
}

/// Result of a comparison of timed results, as `kerntune bench compare --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedComparison {
    /// Format and version of this object, [`SCHEMA`].
    pub schema: String,
    /// Options of the comparison.
    pub options: ComparisonOptions,
    /// Machine on which both kernels were measured.
    pub machine: String,
    /// Results of the base kernel.
    pub base: KernelFiles,
    /// Results of the tuned kernel.
    pub tuned: KernelFiles,
    /// Second measurement of the base kernel for the A/A pairs, if there is one.
    pub again: Option<KernelFiles>,
    /// Compared rows, in the order of the base kernel's files.
    pub rows: Vec<TimedRow>,
    /// Mean gain over all rows; `None` where rows cannot be averaged.
    #[serde(default)]
    pub together: Option<OverallGain>,
    /// Rows that were not compared.
    pub left_out: Vec<UncomparedRow>,
}

/// Kernels and file names of one side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelFiles {
    /// Measured kernels; several are builds of one source.
    pub kernels: Vec<MeasuredKernel>,
    /// Names of the result files.
    pub files: Vec<String>,
}

/// Comparison of one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedRow {
    /// Name of the row's suite.
    pub suite: String,
    /// Name of the row in its suite.
    pub row: String,
    /// Unit of `base`, `tuned`, medians and standard deviations.
    pub unit: String,
    /// Direction in which values improve.
    pub better: RowDirection,
    /// Level whose units are the compared values: their means vary independently.
    pub level: VariationLevel,
    /// Number of units of the base and of the tuned kernel.
    pub units: [usize; 2],
    /// Iterations that were left out as warm-up.
    pub warm_up: WarmUp,
    /// Mean of the base kernel's units.
    pub base: f64,
    /// Mean of the tuned kernel's units.
    pub tuned: f64,
    /// Medians of the base and the tuned kernel's units.
    pub medians: [f64; 2],
    /// Standard deviations of the base and the tuned kernel's units.
    pub std_devs: [f64; 2],
    /// Change of the mean, 100 · (tuned / base − 1).
    pub change_percent: f64,
    /// Lower end of the interval of the change, in per cent.
    pub low_percent: f64,
    /// Upper end of the interval of the change, in per cent; `None` (`null`) if unbounded.
    pub high_percent: Option<f64>,
    /// Method by which this row's interval was computed.
    pub method: RatioMethod,
    /// P-value of the change: probability of one at least this large if the kernels do not differ.
    pub p: f64,
    /// `p`, corrected for the number of rows.
    pub p_adjusted: f64,
    /// P-value of the hypothesis that the change is at least as large as the minimum effect.
    pub p_not_equivalent: f64,
    /// P-value of the Mann-Whitney test of the same values.
    pub u_test_p: f64,
    /// Verdict on the row.
    pub verdict: RowVerdict,
    /// Reason of the verdict.
    pub because: VerdictReason,
    /// Base kernel against itself; `None` if there are too few measurements of it.
    pub aa: Option<AaComparison>,
    /// Figures in the form of the papers' tables.
    pub paper: Improvement,
    /// Remarks that readers of the row need.
    pub notes: Vec<String>,
}

/// Comparison of the base kernel with itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AaComparison {
    /// Origin of the A/A pair.
    pub kind: AaKind,
    /// Number of units on both sides.
    pub units: [usize; 2],
    /// Measured change, in per cent, of a kernel that did not change.
    pub change_percent: f64,
    /// Lower end of the interval of the change, in per cent.
    pub low_percent: f64,
    /// Upper end of the interval of the change, in per cent; `None` (`null`) if unbounded.
    pub high_percent: Option<f64>,
    /// P-value of the change.
    pub p: f64,
    /// `p`, corrected for the number of rows.
    pub p_adjusted: f64,
    /// True if the two sides differ significantly, so that the measurement is not sound.
    pub differs: bool,
}

/// Origin of an A/A pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AaKind {
    /// A second measurement of the base kernel.
    Again,
    /// The base kernel's own units, dealt out in the order ABBA BAAB.
    Split,
}

/// Row that is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncomparedRow {
    /// Name of the row's suite.
    pub suite: String,
    /// Name of the row in its suite.
    pub row: String,
    /// Reason, as a sentence.
    pub why: String,
}

impl ComparisonOptions {
    fn check(&self) -> Result<()> {
        let ComparisonOptions { confidence, min_effect, .. } = *self;
        if !(0.5..=0.9999).contains(&confidence) {
            let rule = "a confidence is 0.5 (50 %) to 0.9999";
            return Err(Error::Option { option: "confidence", value: confidence, rule });
        }
        if !(0.0..1.0).contains(&min_effect) {
            let rule = "a minimum effect is at least 0 and below 1 (100 %)";
            return Err(Error::Option { option: "minimum effect", value: min_effect, rule });
        }
        Ok(())
    }

    /// Returns the ratio of the units of `level`. Falls back to Student's interval where the chosen
    /// method does not allow so few or so many units.
    pub fn ratio(&self, base: &Sample, tuned: &Sample, level: VariationLevel) -> Result<Ratio> {
        let is_in_range =
            |sample: &Sample| (Bootstrap::MIN_UNITS..=Bootstrap::MAX_UNITS).contains(&sample.count(level));
        if self.method == RatioMethod::Bootstrap && is_in_range(base) && is_in_range(tuned) {
            return self.bootstrap.ratio(base, tuned, level);
        }
        let counts = [base, tuned].map(|sample| sample.count(level));
        if self.method == RatioMethod::HodgesLehmann && LocationShift::is_applicable(counts) {
            return Ratio::from_all_pairs(&base.means(level), &tuned.means(level));
        }
        Ratio::new(&base.means(level), &tuned.means(level))
    }
}

impl TimedComparison {
    /// Compares every row that both kernels have. `again` is a second measurement of the base
    /// kernel, for the A/A pairs.
    pub fn new(
        base: &JoinedResults,
        tuned: &JoinedResults,
        again: Option<&JoinedResults>,
        options: &ComparisonOptions,
    ) -> Result<Self> {
        options.check()?;
        base.check_same_machine(tuned)?;
        if let Some(again) = again {
            base.check_same_machine(again)?;
            again.check_same_kernel(base)?;
        }
        let (mut rows, mut units, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for row in &base.rows {
            let Some(other) = tuned.row(&row.suite, &row.row) else {
                left_out.push(UncomparedRow::new(row, "only the base kernel has it"));
                continue;
            };
            row.check_same_as(other)?;
            let again = again.map(|again| again.row(&row.suite, &row.row));
            if let Some(Some(again)) = again {
                row.check_same_as(again)?;
            }
            match compare(row, other, again, options) {
                Ok((row, of_row)) => {
                    rows.push(row);
                    units.push(of_row);
                }
                Err(error) => left_out.push(UncomparedRow::new(row, &error.to_string())),
            }
        }
        if rows.is_empty() {
            return Err(match left_out.iter().find(|row| tuned.row(&row.suite, &row.row).is_some()) {
                Some(row) => Error::NothingComparable { row: row.name(), why: row.why.clone() },
                None => Error::NothingInCommon { base: names(base), tuned: names(tuned) },
            });
        }
        let only_tuned = tuned.rows.iter().filter(|row| base.row(&row.suite, &row.row).is_none());
        left_out.extend(only_tuned.map(|row| UncomparedRow::new(row, "only the tuned kernel has it")));
        correct(&mut rows, options);
        Ok(Self {
            schema: SCHEMA.into(),
            options: *options,
            machine: base.machine.clone(),
            base: KernelFiles::new(base),
            tuned: KernelFiles::new(tuned),
            again: again.map(KernelFiles::new),
            together: OverallGain::new(&units, options.confidence, options.method),
            rows,
            left_out,
        })
    }

    /// Returns the number of rows with this verdict.
    pub fn count(&self, verdict: RowVerdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// Serializes the comparison as JSON, with a final newline.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a comparison has no keys that are not text");
        text + "\n"
    }
}

impl KernelFiles {
    fn new(set: &JoinedResults) -> Self {
        Self { kernels: set.kernels.clone(), files: set.origins.clone() }
    }
}

impl UncomparedRow {
    fn new(row: &JoinedRow, why: &str) -> Self {
        Self { suite: row.suite.clone(), row: row.row.clone(), why: why.into() }
    }

    /// Returns `suite/row`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.suite, self.row)
    }
}

impl TimedRow {
    /// Returns `suite/row`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.suite, self.row)
    }
}

/// Lists the first few rows, for a message.
fn names(set: &JoinedResults) -> String {
    const MAX_NAMED: usize = 5;
    let mut names: Vec<String> = set.rows.iter().take(MAX_NAMED).map(JoinedRow::name).collect();
    if set.rows.len() > MAX_NAMED {
        names.push(format!("and {} more", set.rows.len() - MAX_NAMED));
    }
    names.join(", ")
}

/// Compares one row; the verdict does not yet take other rows into account. `again`: the row of the
/// second measurement of the base kernel, where `Some(None)` means that it lacks the row.
fn compare(
    base: &JoinedRow,
    tuned: &JoinedRow,
    again: Option<Option<&JoinedRow>>,
    options: &ComparisonOptions,
) -> Result<(TimedRow, RowUnits)> {
    let mut runs = base.sample.runs();
    runs.extend(tuned.sample.runs());
    let warm_up = warmup::detect(&runs, base.better, options.min_effect / 2.0);
    let steady = |row: &JoinedRow| row.sample.without_first(warm_up.left_out);
    let (a, b) = (steady(base), steady(tuned));
    let level = common_level(&a, &b).ok_or(Error::TooFew { units: 1 })?;
    let (base_units, tuned_units) = (a.means(level), b.means(level));
    let ratio = options.ratio(&a, &b, level)?;
    let change = PercentChange::of(&ratio, options.confidence);
    let u_test = MannWhitney::new(&base_units, &tuned_units);
    let aa = match again {
        Some(again) => again.and_then(|again| aa_again(&a, &steady(again), options)),
        None => aa_split(&a, level, options),
    };
    let row = TimedRow {
        suite: base.suite.clone(),
        row: base.row.clone(),
        unit: base.unit.clone(),
        better: base.better,
        level,
        units: [base_units.len(), tuned_units.len()],
        warm_up,
        base: mean(&base_units),
        tuned: mean(&tuned_units),
        medians: [median(&base_units), median(&tuned_units)],
        std_devs: [std_dev(&base_units), std_dev(&tuned_units)],
        change_percent: change.change,
        low_percent: change.low,
        high_percent: change.high,
        method: ratio.method(),
        p: ratio.p_different(),
        p_adjusted: ratio.p_different(),
        p_not_equivalent: ratio.p_not_equivalent(options.min_effect),
        u_test_p: u_test.p,
        verdict: RowVerdict::Inconclusive,
        because: VerdictReason::Interval,
        aa,
        paper: Improvement::new(&base_units, &tuned_units, base.better),
        notes: notes(&a, &b, level, &ratio, warm_up),
    };
    let units = RowUnits {
        files: [base.origin.clone(), tuned.origin.clone()],
        better: base.better,
        level,
        base: base_units,
        tuned: tuned_units,
        again: again.flatten().map(|again| steady(again).means(level)),
    };
    Ok((row, units))
}

/// A ratio and its interval as a change in per cent.
struct PercentChange {
    change: f64,
    low: f64,
    high: Option<f64>,
}

impl PercentChange {
    fn of(ratio: &Ratio, confidence: f64) -> Self {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let Interval { low, high } = ratio.interval(confidence);
        let high = Some(percent(high)).filter(|high| high.is_finite());
        Self { change: percent(ratio.estimate()), low: percent(low), high }
    }
}

fn aa_again(base: &Sample, again: &Sample, options: &ComparisonOptions) -> Option<AaComparison> {
    aa(AaKind::Again, base, again, common_level(base, again)?, options)
}

fn aa_split(base: &Sample, level: VariationLevel, options: &ComparisonOptions) -> Option<AaComparison> {
    let units = base.count(level);
    if units < MIN_UNITS_TO_SPLIT {
        return None;
    }
    let dealt: Vec<usize> = schedule::mirrored(2, units.div_ceil(4)).collect();
    let part = |arm: usize| base.only(level, |at| dealt[at] == arm);
    aa(AaKind::Split, &part(0)?, &part(1)?, level, options)
}

fn aa(
    kind: AaKind,
    one: &Sample,
    other: &Sample,
    level: VariationLevel,
    options: &ComparisonOptions,
) -> Option<AaComparison> {
    let ratio = options.ratio(one, other, level).ok()?;
    let change = PercentChange::of(&ratio, options.confidence);
    Some(AaComparison {
        kind,
        units: [one.count(level), other.count(level)],
        change_percent: change.change,
        low_percent: change.low,
        high_percent: change.high,
        p: ratio.p_different(),
        p_adjusted: ratio.p_different(),
        differs: false,
    })
}

fn notes(
    base: &Sample,
    tuned: &Sample,
    level: VariationLevel,
    ratio: &Ratio,
    warm_up: WarmUp,
) -> Vec<String> {
    let mut notes = Vec::new();
    for above in VariationLevel::ALL.into_iter().filter(|above| *above < level) {
        let counts = [base.count(above), tuned.count(above)];
        if counts.iter().any(|count| *count > 1) {
            notes.push(format!(
                "base has {} and tuned {}: what differs between them is not in the interval, which is of {}",
                above.count(counts[0]),
                above.count(counts[1]),
                level.plural(),
            ));
            break;
        }
    }
    if ratio.method() != RatioMethod::HodgesLehmann
        && [base, tuned].iter().all(|side| has_slow_units(&side.means(level)))
    {
        notes.push(format!(
            "some {} are far from most, of both kernels, as if others had used the machine: `--interval hodges-lehmann` bears that",
            level.plural()
        ));
    }
    if ratio.standard_error() == 0.0 {
        notes.push("no value differs from another of its kernel: exact, or the clock is too coarse".into());
    }
    let left_out = match warm_up.left_out {
        1 => "the first iteration of each run is left out".into(),
        count => format!("the first {count} iterations of each run are left out"),
    };
    match warm_up.state {
        WarmUpState::NotJudged | WarmUpState::Steady => {}
        WarmUpState::WarmUp => notes.push(format!("warm-up: {left_out}")),
        WarmUpState::SlowDown => notes.push(format!("better at first: {left_out}")),
        WarmUpState::Unsteady => {
            notes.push("no steady state: the level still changes in the second half of the runs".into());
        }
    }
    notes
}

/// Checks whether a few outliers make the spread: the standard deviation is several times the
/// spread of the middle units (median absolute deviation, scaled so that both are equal for normal
/// values).
fn has_slow_units(units: &[f64]) -> bool {
    const MIN_UNITS: usize = 12;
    const SPREAD_FACTOR: f64 = 3.0;
    /// Standard deviation of a normal distribution, in median absolute deviations.
    const MAD_TO_SIGMA: f64 = 1.4826;
    let middle = median(units);
    let distances: Vec<f64> = units.iter().map(|unit| (unit - middle).abs()).collect();
    let spread = MAD_TO_SIGMA * median(&distances);
    units.len() >= MIN_UNITS && spread > 0.0 && std_dev(units) > SPREAD_FACTOR * spread
}

/// Corrects p-values for the number of rows, and sets the verdicts.
fn correct(rows: &mut [TimedRow], options: &ComparisonOptions) {
    let alpha = 1.0 - options.confidence;
    let of_aa: Vec<f64> = rows.iter().filter_map(|row| row.aa.map(|aa| aa.p)).collect();
    let adjusted_aa = options.correction.adjust(&of_aa);
    for (aa, p) in rows.iter_mut().filter_map(|row| row.aa.as_mut()).zip(adjusted_aa) {
        aa.p_adjusted = p;
        aa.differs = p <= alpha;
    }
    let adjusted = options.correction.adjust(&rows.iter().map(|row| row.p).collect::<Vec<_>>());
    for (row, p_adjusted) in rows.iter_mut().zip(adjusted) {
        let evidence = RowEvidence {
            p: row.p,
            p_adjusted,
            p_not_equivalent: row.p_not_equivalent,
            better: (row.change_percent < 0.0) == (row.better == RowDirection::Lower),
            aa_differs: row.aa.is_some_and(|aa| aa.differs),
        };
        row.p_adjusted = p_adjusted;
        (row.verdict, row.because) = evidence.verdict(alpha);
        let min = MannWhitney::min_p(row.units[0], row.units[1]);
        let found = matches!(row.verdict, RowVerdict::Faster | RowVerdict::Slower);
        if found && row.u_test_p > alpha && min <= alpha {
            row.notes.push(format!("the U-test does not see the difference (p = {:.3})", row.u_test_p));
        }
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
