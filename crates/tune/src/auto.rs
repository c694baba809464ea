//! The best of all recipes for a workload: each is carried out, measured against one base kernel, and held against
//! workloads that it was not tuned for.

use crate::compare::{compare, from_recordings, measured, Effort};
use crate::cross::{changes, score};
use crate::engine::StepName;
use crate::model::Model;
use crate::part::RecipeOptions;
use crate::record::{record_all, Recorded};
use crate::tune::{tune, TuneRequest};
use crate::{Error, Recipe, Result, Session};
use kerntune_compare::{Comparison, Metric, TOTAL};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel, ObjectFlags};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_work::interrupt;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// What to try, for what.
#[derive(Debug)]
pub struct AutoRequest<'a> {
    /// What the base kernel is built from, by the compiler that all are compared with.
    pub build: &'a BuildRequest,
    /// What the kernel is tuned for.
    pub workload: &'a Workload,
    /// What the best one must not harm.
    pub held_out: &'a [Workload],
    /// The front-end model of the measurements.
    pub model: &'a Model,
    /// What is tried, in this order; upstream baselines are compared with and never the best.
    pub recipes: &'a [Recipe],
    /// For the recipes that know them.
    pub options: RecipeOptions,
    /// After this time nothing new is begun.
    pub budget: Option<Duration>,
    /// What is different for single objects of tuned kernels.
    pub object_flags: &'a [ObjectFlags],
    /// What all recipes leave out.
    pub exclusions: &'a Exclusions,
}

/// One kernel that was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The kernel's id.
    pub kernel: String,
    /// The label.
    pub label: String,
    /// The compiler as it was asked for.
    pub cc: String,
    /// The same with its version.
    pub compiler: String,
    /// What tuned it; None for a base kernel.
    pub recipe: Option<Recipe>,
    /// The workload's sums in the order of [`Metric::COUNTED`].
    pub totals: [f64; 4],
    /// Their changes against the base kernel that all are compared with, percent.
    pub changes: [f64; 4],
    /// The same against the same compiler's base kernel.
    pub changes_same_compiler: [f64; 4],
    /// Model cycles of all of the workload, if the model knows what events cost.
    pub model_cycles: Option<f64>,
    /// Their change against the base kernel that all are compared with, percent.
    pub cycles_change: Option<f64>,
    /// The same against the same compiler's base kernel.
    pub cycles_change_same_compiler: Option<f64>,
    /// What the best is chosen by, less is better: the ratio of the model cycles to the base kernel's; without these
    /// the geometric mean of the four ratios.
    pub score: f64,
    /// Each operation.
    pub operations: Vec<OperationFigures>,
    /// Bytes of code.
    pub text_bytes: u64,
    /// Bytes of the image.
    pub image_bytes: u64,
    /// Seconds in which its compiler's base kernel and it itself were built, whenever that was; kernels in between
    /// (instrumented, movable) are not in it.
    pub build_seconds: f64,
}

/// One operation on one kernel.
#[derive(Debug, Clone, Serialize)]
pub struct OperationFigures {
    /// Its name.
    pub operation: String,
    /// Per operation, in the order of [`Metric::COUNTED`].
    pub figures: [f64; 4],
    /// Model cycles per operation.
    pub model_cycles: Option<f64>,
    /// Changes of the figures against the same compiler's base kernel, percent.
    pub changes_same_compiler: [f64; 4],
}

/// The best kernel against an upstream baseline.
#[derive(Debug, Clone, Serialize)]
pub struct AgainstStock {
    /// Which way.
    pub recipe: Recipe,
    /// Changes of the sums from its kernel to the best one in percent, in the order of [`Metric::COUNTED`].
    pub changes: [f64; 4],
    /// Likewise of model cycles.
    pub cycles_change: Option<f64>,
    /// Whether the best kernel's score is better.
    pub beaten: bool,
}

/// What came of a recipe that no kernel came of.
#[derive(Debug, Clone, Serialize)]
pub struct NotMade {
    /// Which.
    pub recipe: Recipe,
    /// Why.
    pub because: String,
}

/// What the best kernel does to another workload.
#[derive(Debug, Clone, Serialize)]
pub struct HeldOut {
    /// Its name.
    pub workload: String,
    /// Changes of its sums against the base kernel in percent, in the order of [`Metric::COUNTED`].
    pub changes: [f64; 4],
    /// Operations that became longer by more than [`HARM`] percent, with their change.
    pub harmed: Vec<(String, f64)>,
}

/// A path length that grew by more than this many percent is harm.
pub const HARM: f64 = 0.5;

/// Everything that was found out.
#[derive(Debug, Serialize)]
pub struct Auto {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// What the kernels were tuned for.
    pub workload: String,
    /// The base kernel first, the best first among the others.
    pub measured: Vec<Measured>,
    /// Recipes that no kernel came of.
    pub not_made: Vec<NotMade>,
    /// Id of the best kernel; None if none is better than the base kernel.
    pub best: Option<String>,
    /// The best one against each upstream baseline that was tried.
    pub against_stock: Vec<AgainstStock>,
    /// What the best one does to the others.
    pub held_out: Vec<HeldOut>,
}

/// What hears of progress: the recipe, the step, and its result if it was there already.
pub type Tell<'a> = dyn Fn(Recipe, StepName, Option<&Path>) + 'a;

/// Carries out every recipe that time and tools allow. A recipe that fails is told in the result; what was made
/// before is found again.
///
/// # Errors
/// Those of the base kernel and of its measurement; an interrupt.
pub fn auto(session: &Session, request: &AutoRequest, tell: &Tell) -> Result<Auto> {
    let AutoRequest { build: asked, workload, held_out, model, recipes, options, budget, .. } = *request;
    let AutoRequest { object_flags, exclusions, .. } = *request;
    let started = Instant::now();
    let base = build(session.work, asked, session.progress)?;
    let both = record_all(session, &[0, 1].map(|repeat| measured(&base, workload, model, repeat)))?;
    let reference = Reference { base: &base, before: &both[0], again: &both[1], workload, model };
    let own = reference.against(&base, reference.again)?;
    let mut measured = vec![line(&base, None, &own, &own, base.manifest.build_seconds)];
    let (mut not_made, mut kernels) = (Vec::new(), Vec::new());
    for &recipe in recipes {
        if budget.is_some_and(|budget| started.elapsed() > budget) {
            not_made.push(NotMade { recipe, because: "the time was up".into() });
            continue;
        }
        let mut own = asked.clone();
        if recipe.check_compiler(&own.compiler).is_err() {
            own.compiler = recipe.default_compiler();
        }
        let options = recipe.known(options);
        let request = TuneRequest { build: &own, workload, recipe, options, model, object_flags, exclusions };
        let tuned = match tune(session, &request, &|step, found| tell(recipe, step, found)) {
            Ok(tuned) => tuned,
            Err(error) => {
                interrupt::check()?;
                not_made.push(NotMade { recipe, because: error.to_string() });
                continue;
            }
        };
        let own_base = tuned.base.manifest.build_seconds;
        if tuned.base.manifest.compiler != base.manifest.compiler
            && !measured.iter().any(|line| line.kernel == tuned.base.manifest.id)
        {
            let comparison = reference.against(&tuned.base, &tuned.before)?;
            measured.push(line(&tuned.base, None, &comparison, &comparison, own_base));
        }
        let comparison = reference.against(&tuned.tuned, &tuned.after)?;
        let seconds = own_base + tuned.tuned.manifest.build_seconds;
        measured.push(line(&tuned.tuned, Some(recipe), &comparison, &tuned.comparison, seconds));
        kernels.push(tuned.tuned);
    }
    measured[1..].sort_by(|a, b| a.score.total_cmp(&b.score));
    let best = best_of(&measured[1..]);
    let against_stock = best.map(|best| against_stock(best, &measured[1..])).unwrap_or_default();
    let best = best.map(|line| line.kernel.clone());
    let best_kernel = kernels.iter().find(|kernel| Some(&kernel.manifest.id) == best.as_ref());
    let held_out = match best_kernel {
        Some(best) => held_out.iter().map(|other| harm(session, &base, best, other, model)).collect(),
        None => Ok(Vec::new()),
    };
    Ok(Auto {
        schema: "kerntune-auto/1",
        workload: workload.name.clone(),
        measured,
        not_made,
        best,
        against_stock,
        held_out: held_out?,
    })
}

/// The first of our own recipes, if it is better than the base kernel; `sorted` is by score.
fn best_of(sorted: &[Measured]) -> Option<&Measured> {
    let own = |line: &&Measured| line.recipe.is_some_and(|recipe| !recipe.is_stock());
    sorted.iter().find(own).filter(|line| line.score < 1.0)
}

fn against_stock(best: &Measured, others: &[Measured]) -> Vec<AgainstStock> {
    let percent = |from: f64, to: f64| if from == 0.0 { 0.0 } else { 100.0 * (to - from) / from };
    let against = |other: &Measured| {
        let recipe = other.recipe.filter(|recipe| recipe.is_stock())?;
        Some(AgainstStock {
            recipe,
            changes: [0, 1, 2, 3].map(|at| percent(other.totals[at], best.totals[at])),
            cycles_change: other.model_cycles.zip(best.model_cycles).map(|(from, to)| percent(from, to)),
            beaten: best.score < other.score,
        })
    };
    others.iter().filter_map(against).collect()
}

/// What every kernel is compared with.
struct Reference<'a> {
    base: &'a Kernel,
    before: &'a Recorded,
    again: &'a Recorded,
    workload: &'a Workload,
    model: &'a Model,
}

impl Reference<'_> {
    fn against(&self, kernel: &Kernel, recorded: &Recorded) -> Result<Comparison, Error> {
        let recordings = [self.before, self.again, recorded];
        from_recordings([self.base, kernel], recordings, self.workload, self.model)
    }
}

fn line(
    kernel: &Kernel,
    recipe: Option<Recipe>,
    comparison: &Comparison,
    same_compiler: &Comparison,
    build_seconds: f64,
) -> Measured {
    let manifest = &kernel.manifest;
    let total = |metric| comparison.row(TOTAL, metric);
    Measured {
        kernel: manifest.id.clone(),
        label: manifest.label.clone(),
        cc: manifest.cc.clone(),
        compiler: manifest.compiler.version.clone(),
        recipe,
        totals: Metric::COUNTED.map(|metric| total(metric).map_or(0.0, |row| row.tuned)),
        changes: changes(comparison),
        changes_same_compiler: changes(same_compiler),
        model_cycles: total(Metric::ModelCycles).map(|row| row.tuned),
        cycles_change: cycles_change(comparison),
        cycles_change_same_compiler: cycles_change(same_compiler),
        score: score(comparison),
        operations: same_compiler.operations().map(|name| operation(name, same_compiler)).collect(),
        text_bytes: manifest.text_bytes,
        image_bytes: manifest.image_bytes,
        build_seconds,
    }
}

fn cycles_change(comparison: &Comparison) -> Option<f64> {
    comparison.row(TOTAL, Metric::ModelCycles).and_then(|row| row.change_percent)
}

fn operation(name: &str, comparison: &Comparison) -> OperationFigures {
    let row = |metric| comparison.row(name, metric);
    let change = |metric| row(metric).and_then(|row| row.change_percent).unwrap_or_default();
    OperationFigures {
        operation: name.to_string(),
        figures: Metric::COUNTED.map(|metric| row(metric).map_or(0.0, |row| row.tuned)),
        model_cycles: row(Metric::ModelCycles).map(|row| row.tuned),
        changes_same_compiler: Metric::COUNTED.map(change),
    }
}

fn harm(
    session: &Session,
    base: &Kernel,
    best: &Kernel,
    workload: &Workload,
    model: &Model,
) -> Result<HeldOut> {
    let comparison = compare(session, base, best, workload, model, Effort::default())?.comparison;
    let harmed = comparison.operations().filter_map(|operation| {
        let change = comparison.row(operation, Metric::PathLength)?.change_percent?;
        (change > HARM).then(|| (operation.to_string(), change))
    });
    let harmed = harmed.collect();
    Ok(HeldOut { workload: workload.name.clone(), changes: changes(&comparison), harmed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(name: &str) -> Option<Recipe> {
        name.parse().ok()
    }

    fn kernel(recipe: Option<Recipe>, cycles: f64) -> Measured {
        Measured {
            kernel: format!("{recipe:?}"),
            label: String::new(),
            cc: String::new(),
            compiler: String::new(),
            recipe,
            totals: [cycles, 10.0, 5.0, 0.0],
            changes: [0.0; 4],
            changes_same_compiler: [0.0; 4],
            model_cycles: Some(cycles),
            cycles_change: None,
            cycles_change_same_compiler: None,
            score: cycles / 100.0,
            operations: Vec::new(),
            text_bytes: 0,
            image_bytes: 0,
            build_seconds: 0.0,
        }
    }

    #[test]
    fn the_best_is_one_of_ours_and_is_held_against_the_others() {
        let lines = [
            kernel(recipe("stock-autofdo"), 70.0),
            kernel(recipe("gcc-pgo"), 80.0),
            kernel(None, 95.0),
            kernel(recipe("stock-gcov"), 100.0),
        ];
        let best = best_of(&lines).unwrap();
        assert_eq!(best.recipe, recipe("gcc-pgo"));
        let against = against_stock(best, &lines);
        assert_eq!(against.iter().map(|a| a.beaten).collect::<Vec<_>>(), [false, true]);
        assert_eq!((against[1].changes, against[1].cycles_change), ([-20.0, 0.0, 0.0, 0.0], Some(-20.0)));
        assert!(best_of(&lines[2..]).is_none() && best_of(&[kernel(recipe("layout"), 100.0)]).is_none());
    }
}
