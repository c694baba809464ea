//! The engine that carries out the steps of a tuning. A step is a function of its inputs. It is
//! made once for the same inputs and the same code, and resumed if it was stopped.
//!
//! Start from [`Engine::run`], [`StepInput`] (inputs) and [`Artifact`] (the result).

mod plan;
mod step;

pub use plan::{tunings_of, vouch, StepProgress, StepStatus, TuningPlan};
pub use step::{Artifact, MakeResult, ResultDirectory, StepInput, StepName};

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

    /// Returns the result of step `name`: from the plan, if inputs and every file are unchanged;
    /// otherwise `make` makes it.
    ///
    /// # Errors
    /// Those of the step.
    pub fn run<I: StepInput + Copy, O: Artifact>(
        &self,
        name: StepName,
        inputs: I,
        make: MakeResult<I, O>,
    ) -> Result<O> {
        match self.begin(name, inputs)? {
            Some(found) => Ok(found),
            None => self.end(name, inputs, timed(self.session, inputs, make)?),
        }
    }

    /// Runs independent steps, each with its name and inputs. As many run at a time as this host
    /// can hold guests with `memory_mb` MiB.
    ///
    /// # Errors
    /// Those of the first step that fails.
    pub fn run_all<I: StepInput + Copy + Sync, O: Artifact + Send, const N: usize>(
        &self,
        memory_mb: u32,
        steps: [(StepName, I); N],
        make: MakeResult<I, O>,
    ) -> Result<[O; N]> {
        let mut found = Vec::new();
        for (name, inputs) in steps {
            found.push(self.begin(name, inputs)?);
        }
        let missing: Vec<I> = steps
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.is_none())
            .map(|((_, inputs), _)| *inputs)
            .collect();
        let made =
            run_parallel(self.session, memory_mb, &missing, |session, inputs| timed(session, *inputs, make))?;
        let mut made = made.into_iter();
        let mut outputs = Vec::new();
        for ((name, inputs), found) in steps.into_iter().zip(found) {
            outputs.extend(match found {
                Some(found) => Some(found),
                None => made.next().map(|made| self.end(name, inputs, made)).transpose()?,
            });
        }
        Ok(outputs.try_into().unwrap_or_else(|_| unreachable!("a step is found or made")))
    }

    /// Returns the key of a step's result: its name, its inputs, the machine and this code.
    fn key(&self, name: StepName, inputs: impl StepInput) -> Result<String> {
        let key = Key::new("step/1", crate::CODE).field("step", name.as_str());
        Ok(inputs.add_to(key.field("machine", &self.session.machine_id), self.session)?.id())
    }

    /// Returns the plan's result of a step. If there is none, the plan records that the step has
    /// begun.
    fn begin<O: Artifact>(&self, name: StepName, inputs: impl StepInput) -> Result<Option<O>> {
        let found = self.plan.borrow().found(name, &self.key(name, inputs)?);
        (self.on_step)(name, found.as_deref());
        match found {
            Some(directory) => O::load(&directory).map(Some),
            None => self.plan.borrow_mut().begin(name).map(|()| None),
        }
    }

    /// Records the step's result. The key is computed again, since exclusions that the step found
    /// are now among its inputs.
    fn end<O: Artifact>(
        &self,
        name: StepName,
        inputs: impl StepInput,
        (output, took): (O, Duration),
    ) -> Result<O> {
        self.plan.borrow_mut().end(name, self.key(name, inputs)?, output.directory(), took)?;
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
fn timed<I, O>(session: &Session, inputs: I, make: MakeResult<I, O>) -> Result<(O, Duration)> {
    let started = Instant::now();
    Ok((make(session, inputs)?, started.elapsed()))
}
