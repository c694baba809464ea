//! The engine that carries out the steps of a tuning. A step is a value that names everything that
//! it reads. It is made once for the same inputs and the same code, and resumed if it was stopped.
//!
//! Start from [`Step`] (inputs and work), [`Artifact`] (the result) and [`Engine::run`].

mod plan;
mod step;

pub use plan::{tunings_of, vouch, StepProgress, StepStatus, TuningPlan};
pub use step::{Artifact, ResultDirectory, Step, StepName};

use crate::parallel::run_parallel;
use crate::{Result, Session};
use kerntune_work::Key;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Callback at the beginning of each step, with its result if it exists.
pub type OnStep<'a> = dyn Fn(StepName, Option<&Path>) + 'a;

/// Carries out steps and records their results in a plan.
pub struct Engine<'a> {
    session: &'a Session<'a>,
    plan: RefCell<TuningPlan>,
    on_step: &'a OnStep<'a>,
}

impl<'a> Engine<'a> {
    /// Creates an engine that continues `plan`.
    pub fn new(session: &'a Session<'a>, plan: TuningPlan, on_step: &'a OnStep<'a>) -> Self {
        Self { session, plan: RefCell::new(plan), on_step }
    }

    /// Returns the session: work directory, machine and progress.
    pub fn session(&self) -> &'a Session<'a> {
        self.session
    }

    /// Returns the result of a step: from the plan, if inputs and every file are unchanged;
    /// otherwise it is made.
    ///
    /// # Errors
    /// Those of the step.
    pub fn run<S: Step>(&self, step: &S) -> Result<S::Output> {
        match self.begin(step)? {
            Some(found) => Ok(found),
            None => self.end(step, timed(self.session, step)?),
        }
    }

    /// Runs independent steps. As many run at a time as this host can hold guests with `memory_mb`
    /// MiB.
    ///
    /// # Errors
    /// Those of the first step that fails.
    pub fn run_all<S: Step<Output: Send> + Sync, const N: usize>(
        &self,
        memory_mb: u32,
        steps: [S; N],
    ) -> Result<[S::Output; N]> {
        let mut found = Vec::new();
        for step in &steps {
            found.push(self.begin(step)?);
        }
        let missing: Vec<&S> =
            steps.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(step, _)| step).collect();
        let made = run_parallel(self.session, memory_mb, &missing, |session, step| timed(session, *step))?;
        let mut made = made.into_iter();
        let mut outputs = Vec::new();
        for (step, found) in steps.iter().zip(found) {
            outputs.extend(match found {
                Some(found) => Some(found),
                None => made.next().map(|made| self.end(step, made)).transpose()?,
            });
        }
        Ok(outputs.try_into().unwrap_or_else(|_| unreachable!("a step is found or made")))
    }

    /// Returns the key of the step's result: its inputs, the machine and this code.
    fn key<S: Step>(&self, step: &S) -> Result<String> {
        let key = Key::new("step/1", crate::CODE).field("step", step.name().as_str());
        Ok(step.inputs(key.field("machine", &self.session.machine_id), self.session)?.id())
    }

    /// Returns the plan's result of a step. If there is none, the plan records that the step has
    /// begun.
    fn begin<S: Step>(&self, step: &S) -> Result<Option<S::Output>> {
        let name = step.name();
        let found = self.plan.borrow().found(name, &self.key(step)?);
        (self.on_step)(name, found.as_deref());
        match found {
            Some(directory) => S::Output::load(&directory).map(Some),
            None => self.plan.borrow_mut().begin(name).map(|()| None),
        }
    }

    /// Records the step's result. The key is computed again, since exclusions that the step found
    /// are now among its inputs.
    fn end<S: Step>(&self, step: &S, (output, took): (S::Output, Duration)) -> Result<S::Output> {
        self.plan.borrow_mut().end(step.name(), self.key(step)?, output.directory(), took)?;
        Ok(output)
    }

    /// Drops the hashes of the plan's own files, which are about to be written.
    ///
    /// # Errors
    /// A plan that cannot be written.
    pub fn forget_files(&self) -> Result<()> {
        self.plan.borrow_mut().forget_files()
    }

    /// Records the hashes of files of the plan's directory that were just written. Readers check
    /// them.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn vouch_for(&self, names: &[&str]) -> Result<()> {
        self.plan.borrow_mut().vouch_for(names)
    }

    /// Returns the plan's directory: plan, comparison, report, tuned image.
    pub fn directory(&self) -> PathBuf {
        self.plan.borrow().directory().to_owned()
    }

    /// Returns all steps and their status.
    pub fn steps(&self) -> Vec<StepProgress> {
        self.plan.borrow().steps()
    }
}

/// Makes a step's result and measures the time.
fn timed<S: Step>(session: &Session, step: &S) -> Result<(S::Output, Duration)> {
    let started = Instant::now();
    Ok((step.make(session)?, started.elapsed()))
}
