//! Changes, tried: each alone, all but one, and together, on a kernel of their own, against one base kernel.
//!
//! On the exact machine a change is worth what it takes from the path, to the instruction. What several are worth together is
//! measured and not added up: `joint - sum` says by how much they get in each other's way, or help each other.

mod change;
mod judge;
mod keep;

pub use change::{parse, Change, MOST};
pub use judge::{Set, Verdict};
pub use keep::keep;

use crate::compare::{from_recordings, measure};
use crate::model::Model;
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
    /// With the changes.
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
    /// The profile of the measured run.
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
    /// What is not told from nothing: the A/A difference and [a ten-thousandth](DEAF) of the figure.
    pub noise: f64,
    /// One for each change, in their order.
    pub judged: Vec<Judged>,
    /// The sum of all differences alone; none if one is missing.
    pub sum: Option<f64>,
    /// The difference of all together.
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
    let before = measure(session, &base, workload, model, 0)?;
    let again = measure(session, &base, workload, model, 1)?;
    let answers = selftest(session, &base)?;
    let own = from_recordings([&base, &base], [&before, &again, &before], workload, model)?;
    let row = own.row(operation, metric).ok_or_else(|| no_row(&own, operation, metric))?;
    let (base_figure, aa, unit) = (row.base, row.base_again - row.base, row.unit.clone());
    let noise = aa.abs() + base_figure * DEAF;
    let bench = Bench {
        session,
        request,
        tell,
        base: &base,
        before: &before,
        again: &again,
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
    let joint = difference(all)?;
    let mut last = Vec::new();
    for place in 0..count {
        let others = if count > 1 { difference(all.without(place))? } else { Some(0.0) };
        last.push(joint.zip(others).map(|(joint, others)| joint - others));
    }
    let interplay = |place: usize| -> Option<f64> {
        let by: f64 = last[place]? - alone[place]?;
        (by.abs() > noise).then_some(by)
    };
    let pairs = pairs(
        &(0..count).filter(|&place| interplay(place).is_some()).collect::<Vec<_>>(),
        noise,
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
    before: &'a Recorded,
    again: &'a Recorded,
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
        let Self { session, base, before, again, .. } = *self;
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
        let (kernel, recorded) = match recipe {
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
        let comparison = from_recordings([base, &kernel], [before, again, &recorded], &workload, model)?;
        tried.profile = Some(recorded.path);
        let row = comparison.row(operation, metric).ok_or_else(|| no_row(&comparison, operation, metric))?;
        tried.difference = Some(row.tuned - row.base);
        tried.figures = comparison.rows.iter().filter(|row| row.operation == operation).map(figure).collect();
        tried.harmed = comparison
            .operations()
            .filter_map(|name| Some((name, comparison.row(name, Metric::PathLength)?.change_percent?)))
            .filter(|(_, change)| *change > crate::auto::HARM)
            .map(|(name, change)| (name.to_owned(), change))
            .collect();
        Ok(())
    }
}

fn figure(row: &Row) -> Figure {
    Figure {
        metric: row.metric,
        unit: row.unit.clone(),
        model: row.model,
        base: row.base,
        with: row.tuned,
        change_percent: row.change_percent,
    }
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
