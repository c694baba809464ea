//! Changes, tried: each alone, all but one, and together, on a kernel of their own, against one base kernel.
//!
//! On the exact machine a change is worth what it takes from the path, to the instruction. What several are worth together is
//! measured and not added up: `joint - sum` says by how much they get in each other's way, or help each other.
//!
//! That the machine repeats does not say that a figure is the change's: where several processes wait for each other, a run that
//! begins a moment later takes another path. So the base kernel runs at several moments first (`moment`), and where its figure
//! depends on them, each set runs as often, means are compared, and the noise is that of the means.

mod change;
mod judge;
mod keep;

pub use change::{parse, Change, MOST};
pub use judge::{Set, Verdict};
pub use keep::keep;

use crate::compare::{at_moments, from_recordings, measure};
use crate::model::Model;
use crate::moment;
use crate::record::Recorded;
use crate::selftest::{agree, selftest, SelfTest};
use crate::tune::{tune, TuneRequest};
use crate::{Error, Recipe, Result, Session};
use kerntune_compare::{Comparison, Metric, Row, TOTAL};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_work::interrupt;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Format and version of the result in JSON.
pub const SCHEMA: &str = "kerntune-try/1";

/// Parts of the base figure that two different kernels may differ by without anything being changed: what the kernel puts off
/// falls into this operation or the next one.
const DEAF: f64 = 1e-4;

/// Moments at which the base kernel runs to see whether its figure depends on them.
pub const LOOKS: u32 = 3;

/// What to try, on what.
#[derive(Debug)]
pub struct TrialRequest<'a> {
    /// What the base kernel is built from.
    pub build: &'a BuildRequest,
    /// What runs.
    pub workload: &'a Workload,
    /// The changes, in the order in which they are applied.
    pub changes: &'a [Change],
    /// The front-end model of the measurements.
    pub model: &'a Model,
    /// By which figure changes are judged.
    pub metric: Metric,
    /// Of which operation; [`TOTAL`] for all.
    pub operation: &'a str,
    /// Runs of each set where the figure depends on when they begin: [`LOOKS`] at least.
    pub runs: u32,
    /// Whether only each alone is asked for, and those that bring something together: nothing is said of what each adds to
    /// all others.
    pub alone: bool,
    /// After this time nothing new is begun.
    pub budget: Option<Duration>,
}

/// One figure of a set of changes.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// What was counted.
    pub metric: Metric,
    /// Unit of `base` and `with`.
    pub unit: String,
    /// Whether it is of a model.
    pub model: bool,
    /// Of the base kernel.
    pub base: f64,
    /// With the changes. Both are means if there are several runs.
    pub with: f64,
    /// In percent; none where the base figure is 0.
    pub change_percent: Option<f64>,
}

/// What a set of changes came to.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// Their names.
    pub changes: Vec<String>,
    /// The kernel's id; none if it could not be had.
    pub kernel: Option<String>,
    /// The profile of the measured run, the first of several.
    pub profile: Option<PathBuf>,
    /// Every metric of the operation that is judged.
    pub figures: Vec<Figure>,
    /// The judged figure less the base kernel's.
    pub difference: Option<f64>,
    /// Operations whose path grew by more than [`HARM`](crate::auto::HARM) percent, with their change.
    pub harmed: Vec<(String, f64)>,
    /// Why it cannot be used: it was not built, did not run, or does not do all that the base kernel does.
    pub because: Option<String>,
}

/// One change by itself, among the others, and what becomes of it.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// Its name.
    pub change: String,
    /// What it is for, as the file says.
    pub about: String,
    /// The judged figure with it alone, less the base kernel's.
    pub alone: Option<f64>,
    /// The judged figure with all less that with all others: what it adds to them.
    pub last: Option<f64>,
    /// `last - alone`, if that is more than the noise: it gets in the way of others (the gain shrinks, positive) or helps them.
    pub interplay: Option<f64>,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// Two changes that do not add up.
#[derive(Debug, Clone, Serialize)]
pub struct Pair {
    /// Their names.
    pub changes: [String; 2],
    /// The sum of their differences, each alone.
    pub sum: f64,
    /// The difference of both together.
    pub joint: f64,
}

/// Everything that was found out.
#[derive(Debug, Serialize)]
pub struct Trial {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// What ran.
    pub workload: String,
    /// The kernel that all are held against.
    pub base: String,
    /// The figure by which changes are judged.
    pub metric: Metric,
    /// Of which operation.
    pub operation: String,
    /// Its unit.
    pub unit: String,
    /// The base kernel's.
    pub base_figure: f64,
    /// The base kernel's second run less its first.
    pub aa: f64,
    /// Runs of each set, begun at other moments: 1 where that makes no difference.
    pub runs: u32,
    /// Standard deviation of the base kernel's figure among its runs.
    pub spread: f64,
    /// What is not told from nothing: the A/A difference, and [a ten-thousandth](DEAF) of the figure or, of several runs, what
    /// two means differ by at most in 99 of 100 cases (Student's t).
    pub noise: f64,
    /// One for each change, in their order.
    pub judged: Vec<Judged>,
    /// The sum of all differences alone; none if one is missing.
    pub sum: Option<f64>,
    /// The difference of all together; none if it was not asked for.
    pub joint: Option<f64>,
    /// Pairs that do not add up, if more than two changes interplay or there are but two.
    pub pairs: Vec<Pair>,
    /// The names of those that are kept, in their order.
    pub kept: Vec<String>,
    /// The difference of those together.
    pub kept_difference: Option<f64>,
    /// Every set that was measured, or could not be.
    pub tried: Vec<Tried>,
    /// Whether the time was up before all that was asked for was measured.
    pub time_was_up: bool,
}

/// What hears of each set as it is begun: the names.
pub type Tell<'a> = dyn Fn(&[&str]) + 'a;

/// Tries all of it. A set that cannot be built, run or trusted is told in the result. What was made before is found again.
///
/// # Errors
/// Those of the base kernel and its measurement; a recipe that is none; an interrupt.
pub fn trial(session: &Session, request: &TrialRequest, tell: &Tell) -> Result<Trial> {
    let TrialRequest { build: asked, workload, changes, model, metric, operation, .. } = *request;
    for change in changes {
        change.recipe.as_deref().map(str::parse::<Recipe>).transpose()?;
    }
    let base = build(session.work, asked, session.progress)?;
    let again = measure(session, &base, workload, model, 1)?;
    let mut before = at_moments(session, &base, workload, model, 0..LOOKS)?;
    let answers = selftest(session, &base)?;
    let figures = |before: &[Recorded]| -> Result<Vec<Comparison>> {
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
    let runs = match moment::range(&seen) <= first * DEAF {
        true => 1,
        false => request.runs.max(LOOKS),
    };
    if runs > LOOKS {
        let more = at_moments(session, &base, workload, model, LOOKS..runs)?;
        own.extend(figures(&more)?);
        before.extend(more);
        seen = values(&own)?;
    }
    let spread = kerntune_stats::std_dev(&seen);
    let (base_figure, noise) = match runs {
        1 => (first, aa.abs() + first * DEAF),
        _ => (kerntune_stats::mean(&seen), aa.abs() + moment::noise(&seen, runs)),
    };
    // Interplay is of four figures, a difference of two.
    let noise_of_four = if runs == 1 { noise } else { noise * 2f64.sqrt() };
    let bench = Bench {
        session,
        request,
        tell,
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
    let all = Set::first(count);
    let difference = |set: Set| -> Result<Option<f64>> {
        Ok(if set.count() == 0 { Some(0.0) } else { bench.of(set)?.difference })
    };
    // Each alone before any together: whoever stops it early knows that.
    let alone: Vec<_> = (0..count).map(|place| difference(Set::one(place))).collect::<Result<_>>()?;
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
    let figure = |set: Set| -> Result<Option<f64>> { Ok(difference(set)?.map(|by| base_figure + by)) };
    let (kept, verdicts) = judge::choose(count, base_figure, noise, figure)?;
    let kept_difference = difference(kept)?;

    let name = |place: usize| changes[place].name.clone();
    let judged = changes.iter().zip(verdicts).enumerate().map(|(place, (change, verdict))| Judged {
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
        .map(|(places, sum, joint)| Pair { changes: places.map(name), sum, joint })
        .collect();
    let time_was_up = *bench.time_was_up.borrow();
    let tried = bench.tried.into_inner().into_values().map(|tried| Tried::clone(&tried)).collect();
    Ok(Trial {
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

/// Which two of those that interplay do not add up: places, sum and joint difference.
fn pairs(
    places: &[usize],
    noise: f64,
    alone: &[Option<f64>],
    mut difference: impl FnMut(Set) -> Result<Option<f64>>,
) -> Result<Vec<([usize; 2], f64, f64)>> {
    let mut found = Vec::new();
    for (at, &one) in places.iter().enumerate() {
        for &other in &places[at + 1..] {
            let (Some(a), Some(b)) = (alone[one], alone[other]) else { continue };
            let Some(joint) = difference(Set(Set::one(one).0 | Set::one(other).0))? else { continue };
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

/// What measures sets of changes, each once.
struct Bench<'a> {
    session: &'a Session<'a>,
    request: &'a TrialRequest<'a>,
    tell: &'a Tell<'a>,
    base: &'a Kernel,
    /// The base kernel's runs, and what they are beside themselves.
    before: &'a [Recorded],
    own: &'a [Comparison],
    /// Runs of each set.
    runs: u32,
    answers: &'a SelfTest,
    started: Instant,
    tried: RefCell<BTreeMap<Set, Rc<Tried>>>,
    time_was_up: RefCell<bool>,
}

impl Bench<'_> {
    fn of(&self, set: Set) -> Result<Rc<Tried>> {
        if let Some(known) = self.tried.borrow().get(&set) {
            return Ok(known.clone());
        }
        let changes: Vec<&Change> =
            set.places().filter_map(|place| self.request.changes.get(place)).collect();
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        let mut tried = Tried {
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
            (self.tell)(&names);
            if let Err(error) = self.measure(&changes, &mut tried) {
                interrupt::check()?;
                tried.because = Some(error.to_string());
            }
        }
        let tried = Rc::new(tried);
        self.tried.borrow_mut().insert(set, tried.clone());
        Ok(tried)
    }

    fn measure(&self, changes: &[&Change], tried: &mut Tried) -> Result<()> {
        let Self { session, base, before, runs, .. } = *self;
        let TrialRequest { model, metric, operation, .. } = *self.request;
        let (mut request, mut workload) = (self.request.build.clone(), self.request.workload.clone());
        for change in changes {
            change.apply_to_build(&mut request);
            change.apply_to_workload(&mut workload);
        }
        let mut recipes = changes.iter().filter_map(|change| change.recipe.as_deref());
        let recipe = recipes.next().map(str::parse::<Recipe>).transpose()?;
        if recipes.next().is_some() {
            return Err(Error::TwoRecipes);
        }
        if changes.iter().any(|change| change.is_of_kernel()) {
            request.label = label(&request.label, changes);
        }
        let (kernel, first) = match recipe {
            None => {
                let kernel = build(session.work, &request, session.progress)?;
                let recorded = measure(session, &kernel, &workload, model, 0)?;
                (kernel, recorded)
            }
            Some(recipe) => {
                if recipe.check_compiler(&request.compiler).is_err() {
                    request.compiler = recipe.default_compiler();
                }
                let exclusions = Exclusions::default();
                let (options, object_flags) = (Default::default(), &[][..]);
                let asked = TuneRequest {
                    build: &request,
                    workload: &workload,
                    recipe,
                    options,
                    model,
                    object_flags,
                    exclusions: &exclusions,
                };
                let tuned = tune(session, &asked, &|_, _| {})?;
                (tuned.tuned, tuned.after)
            }
        };
        let label = &kernel.manifest.label;
        tried.kernel = Some(kernel.manifest.id.clone());
        if kernel.manifest.id != base.manifest.id {
            agree(self.answers, &selftest(session, &kernel)?, label)?;
        }
        tried.profile = Some(first.path.clone());
        let mut with = vec![first];
        with.extend(at_moments(session, &kernel, &workload, model, 1..runs)?);
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
            let noise = 100.0 * moment::noise(&own.collect::<Vec<f64>>(), runs) / path.base;
            (change > crate::auto::HARM.max(noise)).then_some(change)
        };
        let name = |name: &str| Some((name.to_owned(), harmed(name)?));
        tried.harmed = first.operations().filter_map(name).collect();
        Ok(())
    }
}

/// A figure of several runs: means. None where one does not have it.
fn mean(comparisons: &[Comparison], operation: &str, metric: Metric) -> Option<Figure> {
    let rows: Vec<&Row> =
        comparisons.iter().map(|of| of.row(operation, metric)).collect::<Option<Vec<&Row>>>()?;
    let mean =
        |of: fn(&Row) -> f64| kerntune_stats::mean(&rows.iter().map(|row| of(row)).collect::<Vec<f64>>());
    let (first, base, with) = (rows.first()?, mean(|row| row.base), mean(|row| row.tuned));
    let change_percent = (base != 0.0).then(|| 100.0 * (with / base - 1.0));
    Some(Figure { metric, unit: first.unit.clone(), model: first.model, base, with, change_percent })
}

/// What to list a kernel under that has these changes.
fn label(base: &str, changes: &[&Change]) -> String {
    let of_kernel: Vec<&str> =
        changes.iter().filter(|change| change.is_of_kernel()).map(|change| change.name.as_str()).collect();
    match &of_kernel[..] {
        [one] => format!("{base}-with-{one}"),
        several => format!("{base}-with-{}-changes", several.len()),
    }
}
