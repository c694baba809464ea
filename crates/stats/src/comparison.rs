//! A tuned kernel's results against a base kernel's, row by row.

use crate::paper::Improvement;
use crate::sample::{common_level, mean, median, std_dev};
use crate::set::{Set, SetRow};
use crate::shift::Shift;
use crate::together::{Together, Units};
use crate::verdict::{Because, Evidence, Verdict};
use crate::warmup::{self, State, WarmUp};
use crate::{
    schedule, Better, Bootstrap, Correction, Error, Interval, Kernel, Level, MannWhitney, Method, Ratio,
    Result, Sample,
};
use serde::{Deserialize, Serialize};

/// What a comparison calls itself as JSON.
pub const SCHEMA: &str = "kerntune-bench-comparison/1";

/// The fewest units that can be split into a pair.
const LEAST_TO_SPLIT: usize = 4;

/// How to compare.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Of each interval, 0.5 to 0.9999.
    pub confidence: f64,
    /// A difference up to this is of no account: 0.01 is one per cent.
    pub min_effect: f64,
    /// For the number of rows.
    pub correction: Correction,
    /// How intervals are made.
    pub method: Method,
    /// With which random numbers, if that is by bootstrap.
    pub bootstrap: Bootstrap,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            min_effect: 0.01,
            correction: Correction::Holm,
            method: Method::Student,
            bootstrap: Bootstrap::default(),
        }
    }
}

/// The result, which is also what `--json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// How it was compared.
    pub options: Options,
    /// Where both were measured.
    pub machine: String,
    /// The base kernel.
    pub base: SetOf,
    /// The tuned kernel.
    pub tuned: SetOf,
    /// The base kernel measured again, if it was.
    pub again: Option<SetOf>,
    /// In the order of the base kernel's files.
    pub rows: Vec<Row>,
    /// All rows together, where they can be.
    #[serde(default)]
    pub together: Option<Together>,
    /// What could not be compared.
    pub left_out: Vec<LeftOut>,
}

/// Files of one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetOf {
    /// The kernels; more than one are builds of one.
    pub kernels: Vec<Kernel>,
    /// The files.
    pub files: Vec<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its suite.
    pub suite: String,
    /// Its name there.
    pub row: String,
    /// Of `base`, `tuned` and standard deviations.
    pub unit: String,
    /// Which values are good.
    pub better: Better,
    /// What varies: the means of units of this level are the values that are compared.
    pub level: Level,
    /// How many of them there are of the base and of the tuned kernel.
    pub units: [usize; 2],
    /// Iterations that were left out.
    pub warm_up: WarmUp,
    /// Mean of the base kernel's units.
    pub base: f64,
    /// Mean of the tuned kernel's units.
    pub tuned: f64,
    /// Their medians.
    pub medians: [f64; 2],
    /// Their standard deviations.
    pub std_devs: [f64; 2],
    /// (tuned / base − 1), per cent.
    pub change_percent: f64,
    /// Its interval, per cent; `null` where it has no upper end.
    pub low_percent: f64,
    /// See `low_percent`.
    pub high_percent: Option<f64>,
    /// How the interval was made.
    pub method: Method,
    /// That a change like this is chance.
    pub p: f64,
    /// The same, corrected for the number of rows.
    pub p_adjusted: f64,
    /// That the change is not smaller than the minimum effect.
    pub p_not_equivalent: f64,
    /// Mann and Whitney's test of the same values.
    pub u_test_p: f64,
    /// What it comes to.
    pub verdict: Verdict,
    /// Why.
    pub because: Because,
    /// The base kernel against itself; `None` if it was measured too seldom for that.
    pub aa: Option<Aa>,
    /// The figures of the papers' tables.
    pub paper: Improvement,
    /// What else is to be known.
    pub notes: Vec<String>,
}

/// The base kernel against itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Aa {
    /// Of what it was made.
    pub kind: AaKind,
    /// Units of both sides.
    pub units: [usize; 2],
    /// The change that is none, per cent.
    pub change_percent: f64,
    /// Its interval, per cent; `null` where it has no upper end.
    pub low_percent: f64,
    /// See `low_percent`.
    pub high_percent: Option<f64>,
    /// That a change like this is chance.
    pub p: f64,
    /// The same, corrected for the number of rows.
    pub p_adjusted: f64,
    /// Whether it differs after all.
    pub differs: bool,
}

/// What an A/A pair is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AaKind {
    /// A second measurement of the base kernel.
    Again,
    /// The base kernel's own units, dealt out in the order ABBA BAAB.
    Split,
}

/// A row that is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its suite.
    pub suite: String,
    /// Its name there.
    pub row: String,
    /// Why not.
    pub why: String,
}

impl Options {
    fn check(&self) -> Result<()> {
        let Options { confidence, min_effect, .. } = *self;
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

    /// The ratio of the units of `level`, by the method that so many units allow.
    pub fn ratio(&self, base: &Sample, tuned: &Sample, level: Level) -> Result<Ratio> {
        let of_use = |sample: &Sample| (Bootstrap::LEAST..=Bootstrap::MOST).contains(&sample.count(level));
        if self.method == Method::Bootstrap && of_use(base) && of_use(tuned) {
            return self.bootstrap.ratio(base, tuned, level);
        }
        let counts = [base, tuned].map(|sample| sample.count(level));
        if self.method == Method::HodgesLehmann && Shift::is_of_use(counts) {
            return Ratio::of_pairs(&base.means(level), &tuned.means(level));
        }
        Ratio::new(&base.means(level), &tuned.means(level))
    }
}

impl Comparison {
    /// Compares every row that both have. `again`: the base kernel measured once more, for the A/A pair.
    pub fn new(base: &Set, tuned: &Set, again: Option<&Set>, options: &Options) -> Result<Self> {
        options.check()?;
        base.check_same_machine(tuned)?;
        if let Some(again) = again {
            base.check_same_machine(again)?;
            again.check_same_kernel(base)?;
        }
        let (mut rows, mut units, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for row in &base.rows {
            let Some(other) = tuned.row(&row.suite, &row.row) else {
                left_out.push(LeftOut::new(row, "only the base kernel has it"));
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
                Err(error) => left_out.push(LeftOut::new(row, &error.to_string())),
            }
        }
        if rows.is_empty() {
            return Err(match left_out.iter().find(|row| tuned.row(&row.suite, &row.row).is_some()) {
                Some(row) => Error::NothingComparable { row: row.name(), why: row.why.clone() },
                None => Error::NothingInCommon { base: names(base), tuned: names(tuned) },
            });
        }
        let only_tuned = tuned.rows.iter().filter(|row| base.row(&row.suite, &row.row).is_none());
        left_out.extend(only_tuned.map(|row| LeftOut::new(row, "only the tuned kernel has it")));
        correct(&mut rows, options);
        Ok(Self {
            schema: SCHEMA.into(),
            options: *options,
            machine: base.machine.clone(),
            base: SetOf::new(base),
            tuned: SetOf::new(tuned),
            again: again.map(SetOf::new),
            together: Together::new(&units, options.confidence, options.method),
            rows,
            left_out,
        })
    }

    /// How many rows came to this.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// As JSON, with a newline at its end.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a comparison has no keys that are not text");
        text + "\n"
    }
}

impl SetOf {
    fn new(set: &Set) -> Self {
        Self { kernels: set.kernels.clone(), files: set.origins.clone() }
    }
}

impl LeftOut {
    fn new(row: &SetRow, why: &str) -> Self {
        Self { suite: row.suite.clone(), row: row.row.clone(), why: why.into() }
    }

    /// `suite/row`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.suite, self.row)
    }
}

impl Row {
    /// `suite/row`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.suite, self.row)
    }
}

/// The first few, for a message.
fn names(set: &Set) -> String {
    const MOST: usize = 5;
    let mut names: Vec<String> = set.rows.iter().take(MOST).map(SetRow::name).collect();
    if set.rows.len() > MOST {
        names.push(format!("and {} more", set.rows.len() - MOST));
    }
    names.join(", ")
}

/// One row; its verdict is still that of the row alone. `again`: of the second measurement, which may lack the row.
fn compare(
    base: &SetRow,
    tuned: &SetRow,
    again: Option<Option<&SetRow>>,
    options: &Options,
) -> Result<(Row, Units)> {
    let mut runs = base.sample.runs();
    runs.extend(tuned.sample.runs());
    let warm_up = warmup::judge(&runs, base.better, options.min_effect / 2.0);
    let steady = |row: &SetRow| row.sample.without_first(warm_up.left_out);
    let (a, b) = (steady(base), steady(tuned));
    let level = common_level(&a, &b).ok_or(Error::TooFew { units: 1 })?;
    let (base_units, tuned_units) = (a.means(level), b.means(level));
    let ratio = options.ratio(&a, &b, level)?;
    let change = Percent::of(&ratio, options.confidence);
    let u_test = MannWhitney::new(&base_units, &tuned_units);
    let aa = match again {
        Some(again) => again.and_then(|again| aa_again(&a, &steady(again), options)),
        None => aa_split(&a, level, options),
    };
    let row = Row {
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
        verdict: Verdict::Inconclusive,
        because: Because::Interval,
        aa,
        paper: Improvement::new(&base_units, &tuned_units, base.better),
        notes: notes(&a, &b, level, &ratio, warm_up),
    };
    let units = Units {
        files: [base.origin.clone(), tuned.origin.clone()],
        better: base.better,
        level,
        base: base_units,
        tuned: tuned_units,
        again: again.flatten().map(|again| steady(again).means(level)),
    };
    Ok((row, units))
}

/// A ratio as a change, per cent.
struct Percent {
    change: f64,
    low: f64,
    high: Option<f64>,
}

impl Percent {
    fn of(ratio: &Ratio, confidence: f64) -> Self {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let Interval { low, high } = ratio.interval(confidence);
        let high = Some(percent(high)).filter(|high| high.is_finite());
        Self { change: percent(ratio.estimate()), low: percent(low), high }
    }
}

fn aa_again(base: &Sample, again: &Sample, options: &Options) -> Option<Aa> {
    aa(AaKind::Again, base, again, common_level(base, again)?, options)
}

fn aa_split(base: &Sample, level: Level, options: &Options) -> Option<Aa> {
    let units = base.count(level);
    if units < LEAST_TO_SPLIT {
        return None;
    }
    let dealt: Vec<usize> = schedule::mirrored(2, units.div_ceil(4)).collect();
    let part = |arm: usize| base.only(level, |at| dealt[at] == arm);
    aa(AaKind::Split, &part(0)?, &part(1)?, level, options)
}

fn aa(kind: AaKind, one: &Sample, other: &Sample, level: Level, options: &Options) -> Option<Aa> {
    let ratio = options.ratio(one, other, level).ok()?;
    let change = Percent::of(&ratio, options.confidence);
    Some(Aa {
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

fn notes(base: &Sample, tuned: &Sample, level: Level, ratio: &Ratio, warm_up: WarmUp) -> Vec<String> {
    let mut notes = Vec::new();
    for above in Level::ALL.into_iter().filter(|above| *above < level) {
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
    if ratio.method() != Method::HodgesLehmann
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
        State::NotJudged | State::Steady => {}
        State::WarmUp => notes.push(format!("warm-up: {left_out}")),
        State::SlowDown => notes.push(format!("better at first: {left_out}")),
        State::Unsteady => {
            notes.push("no steady state: the level still changes in the second half of the runs".into());
        }
    }
    notes
}

/// Whether the spread is that of a few units: the standard deviation is several times what the middle of the units has. Of normal
/// values it is the same.
fn has_slow_units(units: &[f64]) -> bool {
    const LEAST: usize = 12;
    const TIMES: f64 = 3.0;
    /// Of normal values, the standard deviation by the median of the distances from the median.
    const NORMAL: f64 = 1.4826;
    let middle = median(units);
    let distances: Vec<f64> = units.iter().map(|unit| (unit - middle).abs()).collect();
    let spread = NORMAL * median(&distances);
    units.len() >= LEAST && spread > 0.0 && std_dev(units) > TIMES * spread
}

/// What all rows together do to each.
fn correct(rows: &mut [Row], options: &Options) {
    let alpha = 1.0 - options.confidence;
    let of_aa: Vec<f64> = rows.iter().filter_map(|row| row.aa.map(|aa| aa.p)).collect();
    let adjusted_aa = options.correction.adjust(&of_aa);
    for (aa, p) in rows.iter_mut().filter_map(|row| row.aa.as_mut()).zip(adjusted_aa) {
        aa.p_adjusted = p;
        aa.differs = p <= alpha;
    }
    let adjusted = options.correction.adjust(&rows.iter().map(|row| row.p).collect::<Vec<_>>());
    for (row, p_adjusted) in rows.iter_mut().zip(adjusted) {
        let evidence = Evidence {
            p: row.p,
            p_adjusted,
            p_not_equivalent: row.p_not_equivalent,
            better: (row.change_percent < 0.0) == (row.better == Better::Lower),
            aa_differs: row.aa.is_some_and(|aa| aa.differs),
        };
        row.p_adjusted = p_adjusted;
        (row.verdict, row.because) = evidence.verdict(alpha);
        let least = MannWhitney::least_p(row.units[0], row.units[1]);
        let found = matches!(row.verdict, Verdict::Faster | Verdict::Slower);
        if found && row.u_test_p > alpha && least <= alpha {
            row.notes.push(format!("the U-test does not see the difference (p = {:.3})", row.u_test_p));
        }
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
