//! Trial of changes: each alone, all but one, and all together, each on its own kernel, compared
//! with one base kernel.
//!
//! On the exact machine the gain of a change is exact to the instruction. The joint gain of several
//! changes is measured, not summed up: `joint - sum` shows how much they hinder or help each other.
//!
//! An exact figure is not always the effect of the change: where several processes wait for each
//! other, a run that starts later takes another path. So the base kernel first runs with several
//! start offsets (`start_offset`). If its figure depends on them, each set runs as often, means are
//! compared, and the noise is that of the means.

mod change;
mod judge;
mod keep;

pub use change::{parse, TrialChange, MAX_CHANGES};
pub use judge::{ChangeSet, ChangeVerdict};
pub use keep::keep;

use crate::dry_run::DryRun;
use crate::measuring::compare::{dry_run_measured, from_recordings, measure, measure_at_offsets};
use crate::measuring::start_offset;
use crate::recipe_parts::settings::TuningSettings;
use crate::runs::model::Model;
use crate::runs::record::RecordedProfile;
use crate::runs::selftest::{require_same_answers, selftest, SelfTest};
use crate::tuning::tune::{tune, TuneRequest};
use crate::{Error, Recipe, Result, Session};
use kerntune_compare::{Comparison, Metric, MetricRow, TOTAL};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_work::interrupt;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Format and version of the result in JSON.
pub const SCHEMA: &str = "kerntune-try/1";

/// Noise between equal kernels, relative to the base figure: deferred kernel work falls into this
/// operation or the next one.
const RELATIVE_NOISE_FLOOR: f64 = 1e-4;

/// Number of runs of the base kernel, with different start offsets, that show whether its figure
/// depends on them.
pub const PROBE_RUNS: u32 = 3;

/// Kernel, workload, changes and figure of a trial.
#[derive(Debug)]
pub struct TrialRequest<'a> {
    /// Request of the base kernel.
    pub build: &'a BuildRequest,
    /// Workload to run.
    pub workload: &'a Workload,
    /// Changes, in the order in which they are applied.
    pub changes: &'a [TrialChange],
    /// Front-end model of the measurements.
    pub model: &'a Model,
    /// Metric by which changes are judged.
    pub metric: Metric,
    /// Operation whose metric is judged; [`TOTAL`] for all.
    pub operation: &'a str,
    /// Number of runs of each set if the figure depends on the start offset; at least
    /// [`PROBE_RUNS`].
    pub runs: u32,
    /// True to measure only each change alone and the kept ones together, and not all but one.
    pub alone: bool,
    /// Time after which no new set is started.
    pub budget: Option<Duration>,
}

/// One figure of a set of changes.
#[derive(Debug, Clone, Serialize)]
pub struct TrialFigure {
    /// Metric of the figure.
    pub metric: Metric,
    /// Unit of `base` and `with`.
    pub unit: String,
    /// True if a model computed it.
    pub model: bool,
    /// Value on the base kernel; the mean of several runs.
    pub base: f64,
    /// Value with the changes; the mean of several runs.
    pub with: f64,
    /// Change in percent; `None` if the base value is 0.
    pub change_percent: Option<f64>,
}

/// Result of a set of changes.
#[derive(Debug, Clone, Serialize)]
pub struct TriedSet {
    /// Names of the changes.
    pub changes: Vec<String>,
    /// Id of the kernel; `None` if it could not be built.
    pub kernel: Option<String>,
    /// Profile of the measured run, the first of several.
    pub profile: Option<PathBuf>,
    /// Every metric of the judged operation.
    pub figures: Vec<TrialFigure>,
    /// Judged figure minus that of the base kernel.
    pub difference: Option<f64>,
    /// Operations whose path grew by more than [`HARM`](crate::tuning::auto::HARM) percent, with their
    /// change.
    pub harmed: Vec<(String, f64)>,
    /// Reason why the set cannot be used: it was not built, did not run, or failed a check.
    pub because: Option<String>,
}

/// Result of one change: alone, among the others, and the verdict.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedChange {
    /// Name of the change.
    pub change: String,
    /// Description of the change in the file.
    pub about: String,
    /// Judged figure with this change alone, minus that of the base kernel.
    pub alone: Option<f64>,
    /// Judged figure with all changes minus that with all others: what this one adds to them.
    pub last: Option<f64>,
    /// `last - alone` if larger than the noise: positive if the gain shrinks beside the others,
    /// negative if it grows.
    pub interplay: Option<f64>,
    /// Verdict on the change.
    pub verdict: ChangeVerdict,
}

/// Two changes whose gains do not add up.
#[derive(Debug, Clone, Serialize)]
pub struct ChangePair {
    /// Names of the changes.
    pub changes: [String; 2],
    /// Sum of their differences, each alone.
    pub sum: f64,
    /// Difference of both together.
    pub joint: f64,
}

/// Result of a trial.
#[derive(Debug, Serialize)]
pub struct TrialResult {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// Name of the workload.
    pub workload: String,
    /// Id of the base kernel.
    pub base: String,
    /// Metric by which changes are judged.
    pub metric: Metric,
    /// Operation whose metric is judged.
    pub operation: String,
    /// Unit of the judged figure.
    pub unit: String,
    /// Judged figure of the base kernel.
    pub base_figure: f64,
    /// A/A difference: the base kernel's second run minus its first.
    pub aa: f64,
    /// Number of runs of each set with different start offsets; 1 if they make no difference.
    pub runs: u32,
    /// Standard deviation of the base kernel's figure among its runs.
    pub spread: f64,
    /// Noise threshold: the A/A difference plus, for one run, [a
    /// ten-thousandth](RELATIVE_NOISE_FLOOR) of the figure, or, for several runs, the bound on the
    /// difference of two means in 99 of 100 cases (Student's t).
    pub noise: f64,
    /// One result for each change, in their order.
    pub judged: Vec<JudgedChange>,
    /// Sum of the differences of all changes alone; `None` if one is missing.
    pub sum: Option<f64>,
    /// Difference of all changes together; `None` if it was not requested.
    pub joint: Option<f64>,
    /// Pairs that do not add up, among the changes that interplay.
    pub pairs: Vec<ChangePair>,
    /// Names of the kept changes, in their order.
    pub kept: Vec<String>,
    /// Difference of the kept changes together.
    pub kept_difference: Option<f64>,
    /// Every set that was tried.
    pub tried: Vec<TriedSet>,
    /// True if time was up before every requested set was measured.
    pub time_was_up: bool,
}

/// Callback at the beginning of each set, with the names of its changes.
pub type OnSet<'a> = dyn Fn(&[&str]) + 'a;

/// Tries the changes. A set that cannot be built, run or trusted is reported in the result. Earlier
/// results are used again.
///
/// # Errors
/// Those of the base kernel and its measurement; an unknown recipe; an interrupt.
pub fn trial(session: &Session, request: &TrialRequest, on_set: &OnSet) -> Result<TrialResult> {
    let TrialRequest { build: asked, workload, changes, model, metric, operation, .. } = *request;
    for change in changes {
        change.recipe.as_deref().map(str::parse::<Recipe>).transpose()?;
    }
    let base = build(session.work, asked, session.progress)?;
    let again = measure(session, &base, workload, model, 1)?;
    let mut before = measure_at_offsets(session, &base, workload, model, 0..PROBE_RUNS)?;
    let answers = selftest(session, &base)?;
    let figures = |before: &[RecordedProfile]| -> Result<Vec<Comparison>> {
        before
            .iter()
            .map(|run| from_recordings([&base, &base], [run, &again, run], workload, model))
            .collect()
    };
    let mut own = figures(&before)?;
    let row = |own: &Comparison| match own.row(operation, metric) {
        Some(row) => Ok((row.base, row.base_again, row.unit.clone())),
        None => Err(no_row(own, operation, metric)),
    };
    let values = |own: &[Comparison]| own.iter().map(|own| Ok(row(own)?.0)).collect::<Result<Vec<f64>>>();
    let (first, second, unit) = row(&own[0])?;
    let aa = second - first;
    let mut seen = values(&own)?;
    let runs = match start_offset::range(&seen) <= first * RELATIVE_NOISE_FLOOR {
        true => 1,
        false => request.runs.max(PROBE_RUNS),
    };
    if runs > PROBE_RUNS {
        let more = measure_at_offsets(session, &base, workload, model, PROBE_RUNS..runs)?;
        own.extend(figures(&more)?);
        before.extend(more);
        seen = values(&own)?;
    }
    let spread = kerntune_stats::std_dev(&seen);
    let (base_figure, noise) = match runs {
        1 => (first, aa.abs() + first * RELATIVE_NOISE_FLOOR),
        _ => (kerntune_stats::mean(&seen), aa.abs() + start_offset::noise(&seen, runs)),
    };
    // Interplay is computed from four figures, a difference from two.
    let noise_of_four = if runs == 1 { noise } else { noise * 2f64.sqrt() };
    let bench = SetRunner {
        session,
        request,
        on_set,
        base: &base,
        before: &before,
        own: &own,
        runs,
        answers: &answers,
        started: Instant::now(),
        tried: RefCell::default(),
        time_was_up: RefCell::new(false),
    };

    let count = changes.len();
    let all = ChangeSet::first(count);
    let difference = |set: ChangeSet| -> Result<Option<f64>> {
        Ok(if set.count() == 0 { Some(0.0) } else { bench.of(set)?.difference })
    };
    // Single changes come first, so that an interrupted trial has them.
    let alone: Vec<_> = (0..count).map(|place| difference(ChangeSet::one(place))).collect::<Result<_>>()?;
    let (mut joint, mut last) = (None, vec![None; count]);
    if !request.alone {
        joint = difference(all)?;
        for (place, last) in last.iter_mut().enumerate() {
            let others = if count > 1 { difference(all.without(place))? } else { Some(0.0) };
            *last = joint.zip(others).map(|(joint, others)| joint - others);
        }
    }
    let interplay = |place: usize| -> Option<f64> {
        let by: f64 = last[place]? - alone[place]?;
        (by.abs() > noise_of_four).then_some(by)
    };
    let pairs = pairs(
        &(0..count).filter(|&place| interplay(place).is_some()).collect::<Vec<_>>(),
        noise_of_four,
        &alone,
        &difference,
    )?;
    let figure = |set: ChangeSet| -> Result<Option<f64>> { Ok(difference(set)?.map(|by| base_figure + by)) };
    let (kept, verdicts) = judge::choose(count, base_figure, noise, figure)?;
    let kept_difference = difference(kept)?;

    let name = |place: usize| changes[place].name.clone();
    let judged = changes.iter().zip(verdicts).enumerate().map(|(place, (change, verdict))| JudgedChange {
        change: change.name.clone(),
        about: change.about.clone(),
        alone: alone[place],
        last: last[place],
        interplay: interplay(place),
        verdict,
    });
    let judged = judged.collect();
    let pairs = pairs
        .into_iter()
        .map(|(places, sum, joint)| ChangePair { changes: places.map(name), sum, joint })
        .collect();
    let time_was_up = *bench.time_was_up.borrow();
    let tried = bench.tried.into_inner().into_values().map(|tried| TriedSet::clone(&tried)).collect();
    Ok(TrialResult {
        schema: SCHEMA,
        workload: workload.name.clone(),
        base: base.manifest.id.clone(),
        metric,
        operation: operation.to_owned(),
        unit,
        base_figure,
        aa,
        runs,
        spread,
        noise,
        judged,
        sum: alone.iter().copied().sum(),
        joint,
        pairs,
        kept: kept.places().map(name).collect(),
        kept_difference,
        tried,
        time_was_up,
    })
}

/// Adds the steps of [`trial`] to a dry run: the base kernel, each change alone, and, unless that is
/// all, all of them and all but one. Sets of changes that are tried for the verdict are not known
/// yet; nor is whether a figure depends on the start of a run.
///
/// # Errors
/// Those of [`trial`] before it builds anything.
pub fn dry_run(dry: &mut DryRun, request: &TrialRequest) -> Result<()> {
    let TrialRequest { build: asked, workload, changes, model, alone, .. } = *request;
    let base = dry.kernel("build the base kernel", asked)?;
    let what = format!("run {} on the base kernel (A/A, and from {PROBE_RUNS} starts)", workload.name);
    dry_run_measured(dry, what, base.as_ref(), (workload, model), 1 + PROBE_RUNS)?;
    dry.selftests("run the functional checks on the base kernel", &[base.as_ref()])?;
    let all: Vec<&TrialChange> = changes.iter().collect();
    let mut sets: Vec<Vec<&TrialChange>> = all.iter().map(|change| vec![*change]).collect();
    if !alone && all.len() > 1 {
        sets.push(all.clone());
        if all.len() > 2 {
            sets.extend((0..all.len()).map(|at| [&all[..at], &all[at + 1..]].concat()));
        }
    }
    for set in &sets {
        let name = match &set[..] {
            [one] => one.name.clone(),
            several if several.len() == all.len() => "all together".into(),
            several => {
                let without = all.iter().find(|change| !several.contains(change));
                format!("all but {}", without.map(|change| change.name.as_str()).unwrap_or_default())
            }
        };
        let (build, workload) = with_changes(request, set);
        let recipe = set.iter().find_map(|change| change.recipe.as_deref()).map(str::parse::<Recipe>);
        match recipe.transpose()? {
            Some(recipe) => {
                let mut own = DryRun::new(dry.session());
                let settings = TuningSettings::new(model);
                let build = &recipe.build_for(&build);
                TuneRequest { build, workload: &workload, recipe, settings }.dry_run(&mut own)?;
                dry.append(&name, own);
            }
            None => {
                let is_of_kernel = set.iter().any(|change| change.is_of_kernel());
                let kernel = match is_of_kernel {
                    true => dry.kernel(format!("{name}: build the kernel"), &build)?,
                    false => base.clone(),
                };
                if is_of_kernel {
                    dry.selftests(format!("{name}: run the functional checks"), &[kernel.as_ref()])?;
                }
                let what = format!("{name}: run {}", workload.name);
                dry_run_measured(dry, what, kernel.as_ref(), (&workload, model), 1)?;
            }
        }
    }
    Ok(())
}

/// Returns the pairs of `places` whose gains do not add up: indices, sum and joint difference.
fn pairs(
    places: &[usize],
    noise: f64,
    alone: &[Option<f64>],
    mut difference: impl FnMut(ChangeSet) -> Result<Option<f64>>,
) -> Result<Vec<([usize; 2], f64, f64)>> {
    let mut found = Vec::new();
    for (at, &one) in places.iter().enumerate() {
        for &other in &places[at + 1..] {
            let (Some(a), Some(b)) = (alone[one], alone[other]) else { continue };
            let Some(joint) = difference(ChangeSet(ChangeSet::one(one).0 | ChangeSet::one(other).0))? else {
                continue;
            };
            if (joint - a - b).abs() > noise {
                found.push(([one, other], a + b, joint));
            }
        }
    }
    Ok(found)
}

fn no_row(comparison: &Comparison, operation: &str, metric: Metric) -> Error {
    let known = comparison.operations().chain([TOTAL]).map(String::from).collect();
    Error::NoFigure { operation: operation.to_owned(), metric: metric.title().to_owned(), known }
}

/// Measures sets of changes, each once.
struct SetRunner<'a> {
    session: &'a Session<'a>,
    request: &'a TrialRequest<'a>,
    on_set: &'a OnSet<'a>,
    base: &'a Kernel,
    /// Runs of the base kernel, and their comparisons with themselves (`own`).
    before: &'a [RecordedProfile],
    own: &'a [Comparison],
    /// Number of runs of each set.
    runs: u32,
    answers: &'a SelfTest,
    started: Instant,
    tried: RefCell<BTreeMap<ChangeSet, Rc<TriedSet>>>,
    time_was_up: RefCell<bool>,
}

impl SetRunner<'_> {
    fn of(&self, set: ChangeSet) -> Result<Rc<TriedSet>> {
        if let Some(known) = self.tried.borrow().get(&set) {
            return Ok(known.clone());
        }
        let changes: Vec<&TrialChange> =
            set.places().filter_map(|place| self.request.changes.get(place)).collect();
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        let mut tried = TriedSet {
            changes: names.iter().copied().map(String::from).collect(),
            kernel: None,
            profile: None,
            figures: Vec::new(),
            difference: None,
            harmed: Vec::new(),
            because: None,
        };
        if self.request.budget.is_some_and(|budget| self.started.elapsed() > budget) {
            self.time_was_up.replace(true);
            tried.because = Some("the time was up".into());
        } else {
            (self.on_set)(&names);
            if let Err(error) = self.measure(&changes, &mut tried) {
                interrupt::check()?;
                tried.because = Some(error.to_string());
            }
        }
        let tried = Rc::new(tried);
        self.tried.borrow_mut().insert(set, tried.clone());
        Ok(tried)
    }

    fn measure(&self, changes: &[&TrialChange], tried: &mut TriedSet) -> Result<()> {
        let Self { session, base, before, runs, .. } = *self;
        let TrialRequest { model, metric, operation, .. } = *self.request;
        let (request, workload) = with_changes(self.request, changes);
        let mut recipes = changes.iter().filter_map(|change| change.recipe.as_deref());
        let recipe = recipes.next().map(str::parse::<Recipe>).transpose()?;
        if recipes.next().is_some() {
            return Err(Error::TwoRecipes);
        }
        let (kernel, first) = match recipe {
            None => {
                let kernel = build(session.work, &request, session.progress)?;
                let recorded = measure(session, &kernel, &workload, model, 0)?;
                (kernel, recorded)
            }
            Some(recipe) => {
                let settings = TuningSettings::new(model);
                let build = &recipe.build_for(&request);
                let asked = TuneRequest { build, workload: &workload, recipe, settings };
                let tuned = tune(session, &asked, &|_, _| {})?;
                (tuned.tuned, tuned.after)
            }
        };
        let label = &kernel.manifest.label;
        tried.kernel = Some(kernel.manifest.id.clone());
        if kernel.manifest.id != base.manifest.id {
            require_same_answers(self.answers, &selftest(session, &kernel)?, label)?;
        }
        tried.profile = Some(first.path.clone());
        let mut with = vec![first];
        with.extend(measure_at_offsets(session, &kernel, &workload, model, 1..runs)?);
        let comparisons = before
            .iter()
            .zip(&with)
            .map(|(before, with)| from_recordings([base, &kernel], [before, before, with], &workload, model))
            .collect::<Result<Vec<Comparison>>>()?;
        let [first, ..] = &comparisons[..] else { return Ok(()) };
        let judged = mean(&comparisons, operation, metric).ok_or_else(|| no_row(first, operation, metric))?;
        tried.difference = Some(judged.with - judged.base);
        tried.figures = Metric::all().iter().filter_map(|of| mean(&comparisons, operation, *of)).collect();
        let harmed = |name: &str| -> Option<f64> {
            let path = mean(&comparisons, name, Metric::PathLength)?;
            let change = path.change_percent?;
            let own = self.own.iter().filter_map(|own| Some(own.row(name, Metric::PathLength)?.base));
            let noise = 100.0 * start_offset::noise(&own.collect::<Vec<f64>>(), runs) / path.base;
            (change > crate::tuning::auto::HARM.max(noise)).then_some(change)
        };
        let name = |name: &str| Some((name.to_owned(), harmed(name)?));
        tried.harmed = first.operations().filter_map(name).collect();
        Ok(())
    }
}

/// Returns the request of the base kernel and the workload with these changes.
fn with_changes(request: &TrialRequest, changes: &[&TrialChange]) -> (BuildRequest, Workload) {
    let (mut build, mut workload) = (request.build.clone(), request.workload.clone());
    for change in changes {
        change.apply_to_build(&mut build);
        change.apply_to_workload(&mut workload);
    }
    if changes.iter().any(|change| change.is_of_kernel()) {
        build.label = label(&build.label, changes);
    }
    (build, workload)
}

/// Returns the mean of a metric over several runs; `None` if a run lacks it.
fn mean(comparisons: &[Comparison], operation: &str, metric: Metric) -> Option<TrialFigure> {
    let rows: Vec<&MetricRow> =
        comparisons.iter().map(|of| of.row(operation, metric)).collect::<Option<Vec<&MetricRow>>>()?;
    let mean = |of: fn(&MetricRow) -> f64| {
        kerntune_stats::mean(&rows.iter().map(|row| of(row)).collect::<Vec<f64>>())
    };
    let (first, base, with) = (rows.first()?, mean(|row| row.base), mean(|row| row.tuned));
    let change_percent = (base != 0.0).then(|| 100.0 * (with / base - 1.0));
    Some(TrialFigure { metric, unit: first.unit.clone(), model: first.model, base, with, change_percent })
}

/// Returns the label of a kernel with these changes.
fn label(base: &str, changes: &[&TrialChange]) -> String {
    let of_kernel: Vec<&str> =
        changes.iter().filter(|change| change.is_of_kernel()).map(|change| change.name.as_str()).collect();
    match &of_kernel[..] {
        [one] => format!("{base}-with-{one}"),
        several => format!("{base}-with-{}-changes", several.len()),
    }
}
