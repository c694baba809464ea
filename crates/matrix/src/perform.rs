//! Computes tasks.

use crate::figures::{bytes, BuiltKernel, CommandOutput, RunCounters};
use crate::trust::Trust;
use crate::{inputs, materials, pack, Error, MatrixPlan, Result, Store, Task, TaskKind};
use kerntune_compare::Measurement;
use kerntune_kernel::Kernel;
use kerntune_machine::Machine;
use kerntune_profile::Profile;
use kerntune_tune::model::{self, Model};
use kerntune_tune::optimize::{optimize, OptimizeRequest};
use kerntune_tune::record::{record, CaptureOptions, RecordRequest, Repetition};
use kerntune_tune::{Recipe, Session, TuningSettings};
use kerntune_work::{Id, Progress, WorkDir};
use std::path::Path;

/// Runs a kerntune command with these arguments in the given directory and returns its output.
pub type RunCommand = dyn Fn(&[String], &Path) -> Result<String> + Send + Sync;

/// Work directory, machine and progress with which a worker computes tasks.
pub struct TaskEnvironment<'a> {
    /// Work directory: caches results, and has a directory for each task.
    pub work: &'a WorkDir,
    /// Opens the machine that kernels run on.
    pub machine: &'a (dyn Fn() -> kerntune_machine::Result<Box<dyn Machine>> + Send + Sync),
    /// Runs kerntune commands.
    pub command: &'a RunCommand,
    /// Receives progress messages.
    pub progress: &'a dyn Progress,
}

impl<'a> TaskEnvironment<'a> {
    pub(crate) fn session(&self) -> Result<Session<'a>> {
        let machine = (self.machine)().map_err(kerntune_tune::Error::from)?;
        Ok(Session::with(machine, self.work, self.progress)?)
    }

    /// Returns the names of the task's inputs that differ on this machine.
    pub(crate) fn differences(&self, plan: &MatrixPlan, task: &Task) -> Result<Vec<String>> {
        Ok(inputs::differences(&task.inputs, &inputs::determine(plan, &self.session()?, &task.kind)?))
    }

    /// Computes a task's result. The results that it needs must be in the store.
    pub(crate) fn perform(
        &self,
        plan: &MatrixPlan,
        store: &dyn Store,
        task: &Task,
        trust: Trust,
    ) -> Result<Vec<u8>> {
        let session = self.session()?;
        match &task.kind {
            TaskKind::Build { .. } => {
                let request = materials::request(plan, self.work, &task.kind)?;
                let request = request.ok_or(Error::Unknown { what: "task", name: task.id.to_string() })?;
                let kernel = kerntune_kernel::build(self.work, &request, self.progress)?;
                built(store, &task.id, &kernel)
            }
            TaskKind::Tune { kernel: of, recipe, compiler: _, workload } => {
                let mut kernel = materials::own_kernel((self.work, self.progress), plan, store, of)?;
                if let Some(source) = materials::commit_of(plan, self.work, of)? {
                    // On the machine that built it, the commit's files had another path.
                    kernel.manifest.source.origin = source.to_string();
                }
                let recipe: Recipe = recipe.parse()?;
                let (workload, model) = (plan.workload(workload)?, model_of(plan)?);
                let settings = TuningSettings::new(&model);
                let request = OptimizeRequest { workload: &workload, recipe, settings, jobs: None };
                let optimized = optimize(&session, kernel, &request)?;
                // A kernel without a valid proof is not measured.
                optimized.proof.verdict().map_err(kerntune_tune::Error::from)?;
                built(store, &task.id, &optimized.tuned)
            }
            TaskKind::Measure { kernel, workload, run } => {
                let kernel = match trust.confirm {
                    true => materials::own_kernel((self.work, self.progress), plan, store, kernel)?,
                    false => materials::kernel(store, self.work, kernel)?,
                };
                let (workload, model) = (plan.workload(workload)?, model_of(plan)?);
                // Sums alone take half the time of a recording with events.
                let capture = CaptureOptions { functions: false, edges: true };
                let (repeat, model) = (Repetition::Number(0), Some(&model));
                let request =
                    RecordRequest { kernel: &kernel, workload: &workload, run, capture, model, repeat };
                let recorded = record(&session, &request)?;
                let measurement = Measurement::from_profile(&Profile::load(&recorded.path)?)?;
                let content = kernel.content()?;
                Ok(bytes(&RunCounters::new(&task.id, content, &workload.name, run, &plan.model, measurement)))
            }
            TaskKind::Command { arguments, kernels, files, cores: _ } => {
                for kernel in kernels {
                    materials::named_kernel(store, self.work, kernel)?;
                }
                let directory = materials::scratch(plan, self.work, &task.id, files)?;
                let output = (self.command)(arguments, &directory)?;
                Ok(bytes(&CommandOutput::new(&task.id, output)))
            }
        }
    }
}

/// Puts a kernel into the store and returns the task's result.
fn built(store: &dyn Store, task: &Id, kernel: &Kernel) -> Result<Vec<u8>> {
    pack::send(store, kernel)?;
    Ok(bytes(&BuiltKernel::new(task, kernel.manifest.id.parse()?, kernel.content()?)))
}

/// Returns the plan's model, which must be one that this version of kerntune has.
fn model_of(plan: &MatrixPlan) -> Result<Model> {
    let known = model::find(&plan.model).ok().filter(|model| model.text == plan.model_text);
    known.ok_or_else(|| {
        Error::Plan(format!(
            "this version of kerntune lacks the model {}, or has another one of that name",
            plan.model
        ))
    })
}
