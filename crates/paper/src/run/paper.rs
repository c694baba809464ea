//! Experiments of a paper: a kernel is tuned for each of its workloads and measured against its
//! base kernel.

use super::Result;
use crate::{CallTimes, Experiment, ExperimentResult, ExperimentState, Paper, PaperOutcome, RowSource};
use kerntune_compare::{Comparison, Measurement};
use kerntune_guest::Workload;
use kerntune_kernel::BuildRequest;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_profile::Profile;
use kerntune_tune::base::with_needs;
use kerntune_tune::compare::{compare, labels, measure, measure_at_offsets, CompareEffort};
use kerntune_tune::dry_run::DryRun;
use kerntune_tune::model::Model;
use kerntune_tune::record::RecordedProfile;
use kerntune_tune::{
    tune, Recipe, RecipeOptions, Session, StepName, StepStatus, TuneRequest, TuneResult, TuningSettings,
};
use kerntune_work::interrupt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Paper, recipe and limits of its experiments.
#[derive(Debug)]
pub struct PaperRequest<'a> {
    /// Paper to repeat.
    pub paper: &'a Paper,
    /// Workloads whose experiments to run; all if empty.
    pub only: &'a [String],
    /// Directories to search for workloads before those that are shipped.
    pub workloads: &'a [PathBuf],
    /// Request of the base kernels.
    pub build: &'a BuildRequest,
    /// Recipe that tunes the kernels.
    pub recipe: Recipe,
    /// Options of the recipe.
    pub options: RecipeOptions,
    /// Front-end model of the measurements.
    pub model: &'a Model,
    /// Number of runs of each kernel, each with another start offset.
    pub runs: u32,
    /// Time after which no experiment is started; experiments with existing results still count.
    pub budget: Option<Duration>,
    /// Objects that all kernels leave out.
    pub exclusions: &'a Exclusions,
}

/// Callback at each step with the experiment's workload, the step, and its result if it exists.
pub type OnProgress<'a> = dyn Fn(&str, StepName, Option<&Path>) + 'a;

/// Carries out every experiment that time allows. An experiment that fails is reported in the
/// result. Earlier results are used again, so the command can be stopped and resumed.
///
/// # Errors
/// An interrupt.
pub fn paper(session: &Session, request: &PaperRequest, on_progress: &OnProgress) -> Result<PaperOutcome> {
    let PaperRequest { paper, only, recipe, model, .. } = *request;
    let started = Instant::now();
    let mut outcome = PaperOutcome::new(paper, recipe.name(), kerntune_tune::record::MACHINE, &model.name);
    for experiment in &paper.experiments {
        if !only.is_empty() && !only.contains(&experiment.workload) {
            continue;
        }
        let time_is_up = request.budget.is_some_and(|budget| started.elapsed() > budget);
        let state =
            carry_out(session, request, experiment, time_is_up, on_progress).unwrap_or_else(|error| {
                let because = error.to_string();
                ExperimentState::NotMade { because }
            });
        interrupt::check()?;
        outcome.add(experiment, state);
    }
    Ok(outcome)
}

/// Adds the steps of every experiment.
///
/// # Errors
/// Those of the real run before it makes anything.
pub fn dry_run(dry: &mut DryRun, request: &PaperRequest) -> Result<()> {
    let PaperRequest { paper, only, build, recipe, options, model, exclusions, runs, .. } = *request;
    let experiments = paper.experiments.iter();
    for experiment in experiments.filter(|one| only.is_empty() || only.contains(&one.workload)) {
        let workload = Workload::find(&experiment.workload, request.workloads)?;
        let build = &with_needs(build.clone(), [&workload]);
        let settings = TuningSettings { options, exclusions, ..TuningSettings::new(model) };
        let mut steps = DryRun::new(dry.session());
        TuneRequest { build, workload: &workload, recipe, settings }.dry_run(&mut steps)?;
        if runs > 1 {
            steps.runs("run both kernels from more starts", &workload, "measured", 2 * (runs - 1));
        }
        dry.append(&experiment.workload, steps);
    }
    Ok(())
}

fn carry_out(
    session: &Session,
    request: &PaperRequest,
    experiment: &Experiment,
    time_is_up: bool,
    on_progress: &OnProgress,
) -> Result<ExperimentState> {
    let PaperRequest { recipe, options, model, exclusions, runs: of_each, .. } = *request;
    let workload = Workload::find(&experiment.workload, request.workloads)?;
    let build = &with_needs(request.build.clone(), [&workload]);
    let settings = TuningSettings { options, exclusions, ..TuningSettings::new(model) };
    let request = TuneRequest { build, workload: &workload, recipe, settings };
    if time_is_up
        && !request.plan(session)?.steps().iter().all(|step| matches!(step.state, StepStatus::Found(_)))
    {
        return Ok(ExperimentState::NotMade { because: "the time was up".into() });
    }
    let tuned = tune(session, &request, &|step, found| on_progress(&experiment.workload, step, found))?;
    let functions = experiment.rows.iter().any(|row| matches!(row.source, RowSource::Function { .. }));
    let runs = if functions { Some(profiles(session, &tuned, &workload, model)?) } else { None };
    let calls = |function: &str| {
        let [base, again, tuned] = runs.as_ref()?.each_ref().map(|run| CallTimes::of(run, function));
        Some([base?, again?, tuned?])
    };
    if let Some(cpu) = experiment.untuned_cpu {
        let comparison = compare_beside_untuned(session, &tuned, &workload, model, of_each, cpu)?;
        return Ok(ExperimentState::Measured(Box::new(ExperimentResult::new(
            experiment,
            &comparison,
            &calls,
        ))));
    }
    if of_each <= 1 {
        return Ok(ExperimentState::Measured(Box::new(ExperimentResult::new(
            experiment,
            &tuned.comparison,
            &calls,
        ))));
    }
    let effort = CompareEffort { runs: of_each, ..CompareEffort::default() };
    let several = compare(session, &tuned.base, &tuned.tuned, &workload, model, effort)?;
    Ok(ExperimentState::Measured(Box::new(ExperimentResult::new(experiment, &several.comparison, &calls))))
}

/// Loads the recordings of the base kernel, of the base kernel again and of the tuned kernel.
fn profiles(
    session: &Session,
    tuned: &TuneResult,
    workload: &Workload,
    model: &Model,
) -> Result<[Profile; 3]> {
    let again = measure(session, &tuned.base, workload, model, 1)?;
    Ok([Profile::load(&tuned.before.path)?, Profile::load(&again.path)?, Profile::load(&tuned.after.path)?])
}

/// Compares two runs with two hosts each: the base kernel on both hosts, and the tuned kernel on
/// one of them. `cpu` is the host that keeps the base kernel.
fn compare_beside_untuned(
    session: &Session,
    tuned: &TuneResult,
    workload: &Workload,
    model: &Model,
    runs: u32,
    cpu: u32,
) -> Result<Comparison> {
    let runs = 0..runs.max(1);
    let of = |kernel, runs| measure_at_offsets(session, kernel, workload, model, runs);
    let load = |recorded: &RecordedProfile| Profile::load(&recorded.path);
    let (mut of_base, mut of_tuned) = (Vec::new(), Vec::new());
    for (base, with) in of(&tuned.base, runs.clone())?.iter().zip(&of(&tuned.tuned, runs)?) {
        let base = load(base)?;
        of_base.push(Measurement::from_profile(&base)?);
        of_tuned.push(Measurement::from_two_hosts(&load(with)?, &base, cpu)?);
    }
    let again = measure(session, &tuned.base, workload, model, 1)?.measurement()?;
    let labels = labels([&tuned.base, &tuned.tuned], workload, model);
    Ok(Comparison::from_runs(&[of_base], &again, &[of_tuned], labels)?)
}
