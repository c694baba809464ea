//! What a task does.

use crate::figures::{bytes, Built, Figures, Said};
use crate::trust::Trust;
use crate::{inputs, materials, pack, Error, Plan, Result, Store, Task, What};
use kerntune_compare::Measurement;
use kerntune_kernel::Kernel;
use kerntune_machine::Machine;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_profile::Profile;
use kerntune_tune::model::{self, Model};
use kerntune_tune::optimize::{optimize, OptimizeRequest};
use kerntune_tune::record::{record, Capture, RecordRequest, Repeat};
use kerntune_tune::{Recipe, Session};
use kerntune_work::{Id, Progress, WorkDir};
use std::path::Path;

/// Runs a command of kerntune with these arguments in a directory that is the task's own; what it prints.
pub type RunCommand = dyn Fn(&[String], &Path) -> Result<String> + Send + Sync;

/// Where tasks are computed.
pub struct Place<'a> {
    /// What is kept here, and where tasks work: each in a directory of its own.
    pub work: &'a WorkDir,
    /// The machine that kernels run on.
    pub machine: &'a (dyn Fn() -> kerntune_machine::Result<Box<dyn Machine>> + Send + Sync),
    /// Runs commands.
    pub command: &'a RunCommand,
    /// Who is told of progress.
    pub progress: &'a dyn Progress,
}

impl<'a> Place<'a> {
    pub(crate) fn session(&self) -> Result<Session<'a>> {
        let machine = (self.machine)().map_err(kerntune_tune::Error::from)?;
        Ok(Session::with(machine, self.work, self.progress)?)
    }

    /// Inputs of a task that are others here.
    pub(crate) fn differences(&self, plan: &Plan, task: &Task) -> Result<Vec<String>> {
        Ok(inputs::differences(&task.inputs, &inputs::of(plan, &self.session()?, &task.what)?))
    }

    /// Computes a task's result. What it needs is in the store.
    pub(crate) fn perform(
        &self,
        plan: &Plan,
        store: &dyn Store,
        task: &Task,
        trust: Trust,
    ) -> Result<Vec<u8>> {
        let session = self.session()?;
        match &task.what {
            What::Build { .. } => {
                let request = materials::request(plan, self.work, &task.what)?;
                let request = request.ok_or(Error::Unknown { what: "task", name: task.id.to_string() })?;
                let kernel = kerntune_kernel::build(self.work, &request, self.progress)?;
                built(store, &task.id, &kernel)
            }
            What::Tune { kernel: of, recipe, workload } => {
                let mut kernel = materials::own_kernel((self.work, self.progress), plan, store, of)?;
                if let Some(source) = materials::commit_of(plan, self.work, of)? {
                    // Where it was built the commit's files were elsewhere.
                    kernel.manifest.source.origin = source.to_string();
                }
                let recipe: Recipe = recipe.parse()?;
                let (workload, model) = (plan.workload(workload)?, model_of(plan)?);
                let request = OptimizeRequest {
                    workload: &workload,
                    also: &[],
                    recipe,
                    options: Default::default(),
                    model: &model,
                    given: None,
                    exclusions: &Exclusions::default(),
                    jobs: None,
                };
                let optimized = optimize(&session, kernel, &request)?;
                // No kernel is measured that was not proved.
                optimized.proof.verdict().map_err(kerntune_tune::Error::from)?;
                built(store, &task.id, &optimized.tuned)
            }
            What::Measure { kernel, workload, run } => {
                let kernel = match trust.confirm {
                    true => materials::own_kernel((self.work, self.progress), plan, store, kernel)?,
                    false => materials::kernel(store, self.work, kernel)?,
                };
                let (workload, model) = (plan.workload(workload)?, model_of(plan)?);
                // Sums alone take half the time of a recording with events.
                let capture = Capture { functions: false, edges: true };
                let (repeat, model) = (Repeat::Number(0), Some(&model));
                let request =
                    RecordRequest { kernel: &kernel, workload: &workload, run, capture, model, repeat };
                let recorded = record(&session, &request)?;
                let measurement = Measurement::from_profile(&Profile::load(&recorded.path)?)?;
                let content = kernel.content()?;
                Ok(bytes(&Figures::new(&task.id, content, &workload.name, run, &plan.model, measurement)))
            }
            What::Command { arguments, kernels, files, cores: _ } => {
                for kernel in kernels {
                    materials::named_kernel(store, self.work, kernel)?;
                }
                let directory = materials::scratch(plan, self.work, &task.id, files)?;
                let output = (self.command)(arguments, &directory)?;
                Ok(bytes(&Said::new(&task.id, output)))
            }
        }
    }
}

/// Puts a kernel into the store, and says which it is.
fn built(store: &dyn Store, task: &Id, kernel: &Kernel) -> Result<Vec<u8>> {
    pack::send(store, kernel)?;
    Ok(bytes(&Built::new(task, kernel.manifest.id.parse()?, kernel.content()?)))
}

/// The plan's model; it was in a file of its own, perhaps, where the plan was made.
fn model_of(plan: &Plan) -> Result<Model> {
    let known = model::find(&plan.model).ok().filter(|model| model.text == plan.model_text);
    known.ok_or_else(|| {
        Error::Plan(format!(
            "the model {} is none that comes with kerntune, or another one there",
            plan.model
        ))
    })
}
