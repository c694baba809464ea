//! Search for the best recipe: each one is carried out, measured against one base kernel, and
//! checked on workloads that it was not tuned for.

use crate::dry_run::DryRun;
use crate::engine::StepName;
use crate::measuring::compare::{
    compare, dry_run_measured, from_recordings, measured_request, CompareEffort,
};
use crate::recipe_parts::settings::TuningSettings;
use crate::runs::model::Model;
use crate::runs::record::{record_all, RecordedProfile};
use crate::tuning::cross::{changes, score};
use crate::tuning::tune::{tune, TuneRequest};
use crate::{Error, Recipe, Result, Session};
use kerntune_compare::{Comparison, Metric, TOTAL};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_work::interrupt;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// Kernel, workloads, recipes and limits of the search.
#[derive(Debug)]
pub struct AutoRequest<'a> {
    /// Request of the base kernel, with the compiler that all are compared with.
    pub build: &'a BuildRequest,
    /// Workload that the kernels are tuned for.
    pub workload: &'a Workload,
    /// Workloads that the best kernel must not harm.
    pub held_out: &'a [Workload],
    /// Recipes to try, in this order. Upstream baselines are compared with and never chosen.
    pub recipes: &'a [Recipe],
    /// Settings of all tunings. Options are for the recipes that know them.
    pub settings: TuningSettings<'a>,
    /// Time after which no recipe is started.
    pub budget: Option<Duration>,
}

/// A kernel with its figures.
#[derive(Debug, Clone, Serialize)]
pub struct CandidateKernel {
    /// Id of the kernel.
    pub kernel: String,
    /// Label of the kernel.
    pub label: String,
    /// Compiler as requested.
    pub cc: String,
    /// Compiler with its version.
    pub compiler: String,
    /// Recipe of the kernel; `None` for a base kernel.
    pub recipe: Option<Recipe>,
    /// Sums of the workload in the order of [`Metric::COUNTED`].
    pub totals: [f64; 4],
    /// Changes of the sums against the common base kernel, in percent.
    pub changes: [f64; 4],
    /// Changes of the sums against the base kernel of the same compiler, in percent.
    pub changes_same_compiler: [f64; 4],
    /// Model cycles of the whole workload; `None` if the model has no costs.
    pub model_cycles: Option<f64>,
    /// Change of the cycles against the common base kernel, in percent.
    pub cycles_change: Option<f64>,
    /// Change of the cycles against the base kernel of the same compiler, in percent.
    pub cycles_change_same_compiler: Option<f64>,
    /// Score by which the best kernel is chosen, less is better: the ratio of model cycles to those
    /// of the base kernel; without cycles, the geometric mean of the four ratios.
    pub score: f64,
    /// Figures of each operation.
    pub operations: Vec<OperationFigures>,
    /// Bytes of code.
    pub text_bytes: u64,
    /// Bytes of the image.
    pub image_bytes: u64,
    /// Build time in seconds of this kernel and its compiler's base kernel, whenever they were
    /// built. Kernels in between (instrumented, movable) do not count.
    pub build_seconds: f64,
}

/// Figures of one operation on one kernel.
#[derive(Debug, Clone, Serialize)]
pub struct OperationFigures {
    /// Name of the operation.
    pub operation: String,
    /// Figures per operation, in the order of [`Metric::COUNTED`].
    pub figures: [f64; 4],
    /// Model cycles per operation.
    pub model_cycles: Option<f64>,
    /// Changes of the figures against the base kernel of the same compiler, in percent.
    pub changes_same_compiler: [f64; 4],
}

/// Comparison of the best kernel with an upstream baseline.
#[derive(Debug, Clone, Serialize)]
pub struct UpstreamComparison {
    /// Upstream baseline.
    pub recipe: Recipe,
    /// Changes of the sums from its kernel to the best one in percent, in the order of
    /// [`Metric::COUNTED`].
    pub changes: [f64; 4],
    /// Change of model cycles in percent.
    pub cycles_change: Option<f64>,
    /// True if the best kernel's score is better.
    pub beaten: bool,
}

/// A recipe that gave no kernel.
#[derive(Debug, Clone, Serialize)]
pub struct FailedRecipe {
    /// Recipe that failed.
    pub recipe: Recipe,
    /// Reason for the failure.
    pub because: String,
}

/// Effect of the best kernel on another workload.
#[derive(Debug, Clone, Serialize)]
pub struct HeldOutResult {
    /// Name of the workload.
    pub workload: String,
    /// Changes of its sums against the base kernel in percent, in the order of [`Metric::COUNTED`].
    pub changes: [f64; 4],
    /// Operations whose path grew by more than [`HARM`] percent, with their change.
    pub harmed: Vec<(String, f64)>,
}

/// Growth of a path length, in percent, above which a kernel counts as harmful.
pub const HARM: f64 = 0.5;

/// Result of the search.
#[derive(Debug, Serialize)]
pub struct AutoResult {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// Name of the workload that the kernels were tuned for.
    pub workload: String,
    /// Measured kernels: the base kernel first, the others by score, best first.
    pub measured: Vec<CandidateKernel>,
    /// Recipes that gave no kernel.
    pub not_made: Vec<FailedRecipe>,
    /// Id of the best kernel; `None` if none is better than the base kernel.
    pub best: Option<String>,
    /// The best kernel against each upstream baseline that was tried.
    pub against_stock: Vec<UpstreamComparison>,
    /// Effects of the best kernel on the other workloads.
    pub held_out: Vec<HeldOutResult>,
}

/// Callback at each step with the recipe, the step, and its result if it exists.
pub type OnRecipeStep<'a> = dyn Fn(Recipe, StepName, Option<&Path>) + 'a;

/// Adds the steps of [`auto`] to a dry run. Steps of a recipe that one before it has as well are
/// there once. Of a recipe that this machine cannot carry out there is the reason.
///
/// # Errors
/// Those of the base kernel; an image that cannot be made.
pub fn dry_run(dry: &mut DryRun, request: &AutoRequest) -> Result<()> {
    let AutoRequest { build: asked, workload, held_out, recipes, settings, .. } = *request;
    let base = dry.kernel("build the base kernel", asked)?;
    let both = (workload, settings.model);
    dry_run_measured(dry, format!("run {} on the base kernel (A/A)", workload.name), base.as_ref(), both, 2)?;
    for &recipe in recipes {
        let own = recipe.build_for(asked);
        let mut alone = DryRun::new(dry.session());
        match tune_request(request, recipe, &own).dry_run(&mut alone) {
            Ok(()) => dry.append(&recipe.to_string(), alone),
            Err(error) => dry.add("recipe", format!("{recipe}: not here: {error}"), None, |_| None),
        }
    }
    for other in held_out {
        dry.runs(format!("run {} on the base kernel and the best one", other.name), other, "measured", 3);
    }
    Ok(())
}

fn tune_request<'a>(request: &AutoRequest<'a>, recipe: Recipe, build: &'a BuildRequest) -> TuneRequest<'a> {
    let options = recipe.known(request.settings.options);
    let settings = TuningSettings { options, ..request.settings };
    TuneRequest { build, workload: request.workload, recipe, settings }
}

/// Carries out every recipe that time and tools allow. A recipe that fails is reported in the
/// result. Earlier results are used again.
///
/// # Errors
/// Those of the base kernel and its measurement; an interrupt.
pub fn auto(session: &Session, request: &AutoRequest, on_step: &OnRecipeStep) -> Result<AutoResult> {
    let AutoRequest { build: asked, workload, held_out, recipes, settings, budget } = *request;
    let model = settings.model;
    let started = Instant::now();
    let base = build(session.work, asked, session.progress)?;
    let both = record_all(session, &[0, 1].map(|repeat| measured_request(&base, workload, model, repeat)))?;
    let reference = BaseReference { base: &base, before: &both[0], again: &both[1], workload, model };
    let own = reference.against(&base, reference.again)?;
    let mut measured = vec![measured_kernel(&base, None, &own, &own, base.manifest.build_seconds)];
    let (mut not_made, mut kernels) = (Vec::new(), Vec::new());
    for &recipe in recipes {
        if budget.is_some_and(|budget| started.elapsed() > budget) {
            not_made.push(FailedRecipe { recipe, because: "the time was up".into() });
            continue;
        }
        let own = recipe.build_for(asked);
        let request = tune_request(request, recipe, &own);
        let tuned = match tune(session, &request, &|step, found| on_step(recipe, step, found)) {
            Ok(tuned) => tuned,
            Err(error) => {
                interrupt::check()?;
                not_made.push(FailedRecipe { recipe, because: error.to_string() });
                continue;
            }
        };
        let own_base = tuned.base.manifest.build_seconds;
        if tuned.base.manifest.compiler != base.manifest.compiler
            && !measured.iter().any(|line| line.kernel == tuned.base.manifest.id)
        {
            let comparison = reference.against(&tuned.base, &tuned.before)?;
            measured.push(measured_kernel(&tuned.base, None, &comparison, &comparison, own_base));
        }
        let comparison = reference.against(&tuned.tuned, &tuned.after)?;
        let seconds = own_base + tuned.tuned.manifest.build_seconds;
        measured.push(measured_kernel(&tuned.tuned, Some(recipe), &comparison, &tuned.comparison, seconds));
        kernels.push(tuned.tuned);
    }
    measured[1..].sort_by(|a, b| a.score.total_cmp(&b.score));
    let best = best_of(&measured[1..]);
    let against_stock = best.map(|best| compare_with_upstream(best, &measured[1..])).unwrap_or_default();
    let best = best.map(|line| line.kernel.clone());
    let best_kernel = kernels.iter().find(|kernel| Some(&kernel.manifest.id) == best.as_ref());
    let held_out = match best_kernel {
        Some(best) => {
            held_out.iter().map(|other| check_held_out(session, &base, best, other, model)).collect()
        }
        None => Ok(Vec::new()),
    };
    Ok(AutoResult {
        schema: "kerntune-auto/1",
        workload: workload.name.clone(),
        measured,
        not_made,
        best,
        against_stock,
        held_out: held_out?,
    })
}

/// Returns the first of our own recipes if it is better than the base kernel. `sorted` is ordered
/// by score.
fn best_of(sorted: &[CandidateKernel]) -> Option<&CandidateKernel> {
    let own = |line: &&CandidateKernel| line.recipe.is_some_and(|recipe| !recipe.is_upstream());
    sorted.iter().find(own).filter(|line| line.score < 1.0)
}

fn compare_with_upstream(best: &CandidateKernel, others: &[CandidateKernel]) -> Vec<UpstreamComparison> {
    let percent = |from: f64, to: f64| if from == 0.0 { 0.0 } else { 100.0 * (to - from) / from };
    let against = |other: &CandidateKernel| {
        let recipe = other.recipe.filter(|recipe| recipe.is_upstream())?;
        Some(UpstreamComparison {
            recipe,
            changes: [0, 1, 2, 3].map(|at| percent(other.totals[at], best.totals[at])),
            cycles_change: other.model_cycles.zip(best.model_cycles).map(|(from, to)| percent(from, to)),
            beaten: best.score < other.score,
        })
    };
    others.iter().filter_map(against).collect()
}

/// Base kernel and its recordings, with which every kernel is compared.
struct BaseReference<'a> {
    base: &'a Kernel,
    before: &'a RecordedProfile,
    again: &'a RecordedProfile,
    workload: &'a Workload,
    model: &'a Model,
}

impl BaseReference<'_> {
    fn against(&self, kernel: &Kernel, recorded: &RecordedProfile) -> Result<Comparison, Error> {
        let recordings = [self.before, self.again, recorded];
        from_recordings([self.base, kernel], recordings, self.workload, self.model)
    }
}

fn measured_kernel(
    kernel: &Kernel,
    recipe: Option<Recipe>,
    comparison: &Comparison,
    same_compiler: &Comparison,
    build_seconds: f64,
) -> CandidateKernel {
    let manifest = &kernel.manifest;
    let total = |metric| comparison.row(TOTAL, metric);
    CandidateKernel {
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

fn check_held_out(
    session: &Session,
    base: &Kernel,
    best: &Kernel,
    workload: &Workload,
    model: &Model,
) -> Result<HeldOutResult> {
    let comparison = compare(session, base, best, workload, model, CompareEffort::default())?.comparison;
    let harmed = comparison.operations().filter_map(|operation| {
        let change = comparison.row(operation, Metric::PathLength)?.change_percent?;
        (change > HARM).then(|| (operation.to_string(), change))
    });
    let harmed = harmed.collect();
    Ok(HeldOutResult { workload: workload.name.clone(), changes: changes(&comparison), harmed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(name: &str) -> Option<Recipe> {
        name.parse().ok()
    }

    fn kernel(recipe: Option<Recipe>, cycles: f64) -> CandidateKernel {
        CandidateKernel {
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
        let against = compare_with_upstream(best, &lines);
        assert_eq!(against.iter().map(|a| a.beaten).collect::<Vec<_>>(), [false, true]);
        assert_eq!((against[1].changes, against[1].cycles_change), ([-20.0, 0.0, 0.0, 0.0], Some(-20.0)));
        assert!(best_of(&lines[2..]).is_none() && best_of(&[kernel(recipe("layout"), 100.0)]).is_none());
    }
}
