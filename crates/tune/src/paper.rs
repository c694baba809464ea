//! The experiments of a paper, carried out: a kernel tuned for each of its workloads, measured against its base.

use crate::base::with_needs;
use crate::compare::{at_moments, compare, labels, measure, Effort};
use crate::engine::{State as StepState, StepName};
use crate::model::Model;
use crate::part::RecipeOptions;
use crate::record::Recorded;
use crate::tune::{tune, TuneRequest, Tuned};
use crate::{Recipe, Result, Session};
use kerntune_compare::{Comparison, Measurement};
use kerntune_guest::Workload;
use kerntune_kernel::BuildRequest;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_paper::{Calls, Experiment, Measured, Outcome, Paper, Source, State};
use kerntune_profile::Profile;
use kerntune_work::interrupt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Which paper, and how.
#[derive(Debug)]
pub struct PaperRequest<'a> {
    /// The paper to be repeated.
    pub paper: &'a Paper,
    /// Only the experiments of these workloads; all if empty.
    pub only: &'a [String],
    /// Where workloads are looked for before those that are shipped.
    pub workloads: &'a [PathBuf],
    /// What the base kernels are built from.
    pub build: &'a BuildRequest,
    /// What tunes the kernels.
    pub recipe: Recipe,
    /// What only some recipes know.
    pub options: RecipeOptions,
    /// The front-end model of the measurements.
    pub model: &'a Model,
    /// Runs of each kernel, begun at as many moments.
    pub runs: u32,
    /// After this time no experiment is begun that is not there already.
    pub budget: Option<Duration>,
    /// What all leave out.
    pub exclusions: &'a Exclusions,
}

/// What hears of progress: the experiment's workload, the step, and its result if it was there already.
pub type OnProgress<'a> = dyn Fn(&str, StepName, Option<&Path>) + 'a;

/// Carries out every experiment that time allows. One that fails is told in the result; what was made before is found
/// again, so that it can be stopped and gone on with.
///
/// # Errors
/// An interrupt.
pub fn paper(session: &Session, request: &PaperRequest, on_progress: &OnProgress) -> Result<Outcome> {
    let PaperRequest { paper, only, recipe, model, .. } = *request;
    let started = Instant::now();
    let mut outcome = Outcome::new(paper, recipe.name(), crate::record::MACHINE, &model.name);
    for experiment in &paper.experiments {
        if !only.is_empty() && !only.contains(&experiment.workload) {
            continue;
        }
        let time_is_up = request.budget.is_some_and(|budget| started.elapsed() > budget);
        let state =
            carry_out(session, request, experiment, time_is_up, on_progress).unwrap_or_else(|error| {
                let because = error.to_string();
                State::NotMade { because }
            });
        interrupt::check()?;
        outcome.add(experiment, state);
    }
    Ok(outcome)
}

fn carry_out(
    session: &Session,
    request: &PaperRequest,
    experiment: &Experiment,
    time_is_up: bool,
    on_progress: &OnProgress,
) -> Result<State> {
    let PaperRequest { recipe, options, model, exclusions, runs: of_each, .. } = *request;
    let workload = Workload::find(&experiment.workload, request.workloads)?;
    let build = &with_needs(request.build.clone(), [&workload]);
    let request =
        TuneRequest { build, workload: &workload, recipe, options, model, object_flags: &[], exclusions };
    if time_is_up
        && !request.plan(session)?.steps().iter().all(|step| matches!(step.state, StepState::Found(_)))
    {
        return Ok(State::NotMade { because: "the time was up".into() });
    }
    let tuned = tune(session, &request, &|step, found| on_progress(&experiment.workload, step, found))?;
    let functions = experiment.rows.iter().any(|row| matches!(row.source, Source::Function { .. }));
    let runs = if functions { Some(profiles(session, &tuned, &workload, model)?) } else { None };
    let calls = |function: &str| {
        let [base, again, tuned] = runs.as_ref()?.each_ref().map(|run| Calls::of(run, function));
        Some([base?, again?, tuned?])
    };
    if let Some(cpu) = experiment.untuned_cpu {
        let comparison = beside_untuned(session, &tuned, &workload, model, of_each, cpu)?;
        return Ok(State::Measured(Box::new(Measured::new(experiment, &comparison, &calls))));
    }
    if of_each <= 1 {
        return Ok(State::Measured(Box::new(Measured::new(experiment, &tuned.comparison, &calls))));
    }
    let effort = Effort { runs: of_each, ..Effort::default() };
    let several = compare(session, &tuned.base, &tuned.tuned, &workload, model, effort)?;
    Ok(State::Measured(Box::new(Measured::new(experiment, &several.comparison, &calls))))
}

/// The recordings of the base kernel, of the base kernel again and of the tuned kernel.
fn profiles(session: &Session, tuned: &Tuned, workload: &Workload, model: &Model) -> Result<[Profile; 3]> {
    let again = measure(session, &tuned.base, workload, model, 1)?;
    Ok([Profile::load(&tuned.before.path)?, Profile::load(&again.path)?, Profile::load(&tuned.after.path)?])
}

/// The base kernel on both of two hosts, and the tuned kernel on one of them: on all CPUs but that one.
fn beside_untuned(
    session: &Session,
    tuned: &Tuned,
    workload: &Workload,
    model: &Model,
    runs: u32,
    cpu: u32,
) -> Result<Comparison> {
    let runs = 0..runs.max(1);
    let of = |kernel, runs| at_moments(session, kernel, workload, model, runs);
    let load = |recorded: &Recorded| Profile::load(&recorded.path);
    let (mut of_base, mut of_tuned) = (Vec::new(), Vec::new());
    for (base, with) in of(&tuned.base, runs.clone())?.iter().zip(&of(&tuned.tuned, runs)?) {
        let base = load(base)?;
        of_base.push(Measurement::from_profile(&base)?);
        of_tuned.push(Measurement::of_two_hosts(&load(with)?, &base, cpu)?);
    }
    let again = measure(session, &tuned.base, workload, model, 1)?.measurement()?;
    let labels = labels([&tuned.base, &tuned.tuned], workload, model);
    Ok(Comparison::of_runs(&[of_base], &again, &[of_tuned], labels)?)
}
