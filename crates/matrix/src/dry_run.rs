//! Dry run of a plan: its tasks as steps, with those that the store has results of.

use crate::{states, MatrixPlan, Result, SourceRef, Store, Task, TaskKind, TaskProgress};
use kerntune_kernel::{preview, BuildRequest};
use kerntune_tune::dry_run::{DryRun, StepEstimate};
use kerntune_tune::Recipe;
use std::path::PathBuf;

/// Adds the tasks of a plan to a dry run.
///
/// # Errors
/// A store that does not answer.
pub fn dry_run(dry: &mut DryRun, plan: &MatrixPlan, store: &dyn Store) -> Result<()> {
    for (task, state) in plan.tasks.iter().zip(states(plan, store)?) {
        let result = (state.progress == TaskProgress::Done).then(|| PathBuf::from(store.url()));
        let step = match &task.kind {
            TaskKind::Build { .. } => "kernel",
            TaskKind::Tune { .. } => "tune",
            TaskKind::Measure { .. } => "record",
            TaskKind::Command { .. } => "command",
        };
        dry.add(step, &*task.title, result.as_deref(), |dry| estimate(dry, plan, task));
    }
    Ok(())
}

/// Estimates a task; `None` if its inputs are not on this machine, or if it is a command.
fn estimate(dry: &DryRun, plan: &MatrixPlan, task: &Task) -> Option<StepEstimate> {
    match &task.kind {
        TaskKind::Build { source, set, compiler, kcflags, .. } => {
            let source = match source {
                SourceRef::Named(name) => name.clone(),
                SourceRef::Commit { tree, .. } => tree.clone(),
            };
            let mut request = BuildRequest::new(source.parse().ok()?, "matrix");
            request.extra.clone_from(set);
            request.kcflags.clone_from(kcflags);
            request.compiler = compiler.parse().ok()?;
            Some(preview(dry.session().work, &request).ok()?.into())
        }
        TaskKind::Tune { recipe, workload, kernel: _, compiler: _ } => {
            let recipe: Recipe = recipe.parse().ok()?;
            let built = task.needs.iter().find_map(|id| plan.tasks.iter().find(|other| other.id == *id))?;
            let one = estimate(dry, plan, built)?;
            let builds = recipe.steps().into_iter().filter(|step| recipe.compiles(*step)).count() as u64;
            // The base kernel is the task that this one needs.
            let builds = builds.saturating_sub(1);
            let training = dry.of_runs(&plan.workload(workload).ok()?, "training", 1);
            Some(StepEstimate {
                objects: one.objects.map(|objects| objects * builds),
                runs: training.runs,
                minutes: one
                    .minutes
                    .map(|minutes| minutes * builds as f64 + training.minutes.unwrap_or_default()),
                ..one
            })
        }
        TaskKind::Measure { workload, run, .. } => Some(dry.of_runs(&plan.workload(workload).ok()?, run, 1)),
        TaskKind::Command { .. } => None,
    }
}
