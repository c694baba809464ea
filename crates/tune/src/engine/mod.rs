//! What carries out the steps of a tuning: each is a value that names all that it reads, made once for the same
//! inputs and the same code, and taken up again where it was stopped.
//!
//! Start from [`Step`] (what is to be made, of what), [`Artifact`] (what comes of it) and [`Engine::run`].

mod plan;
mod step;

pub use plan::{tunings_of, vouch, Plan, State, StepState};
pub use step::{Artifact, Directory, Step, StepName};

use crate::together::together;
use crate::{Result, Session};
use kerntune_work::Key;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What hears of each step as it begins, with its result if it was made before.
pub type Tell<'a> = dyn Fn(StepName, Option<&Path>) + 'a;

/// Carries out steps and notes in a plan where their results are.
pub struct Engine<'a> {
    session: &'a Session<'a>,
    plan: RefCell<Plan>,
    tell: &'a Tell<'a>,
}

impl<'a> Engine<'a> {
    /// Goes on with `plan`.
    pub fn new(session: &'a Session<'a>, plan: Plan, tell: &'a Tell<'a>) -> Self {
        Self { session, plan: RefCell::new(plan), tell }
    }

    /// Where it works, and who is told.
    pub fn session(&self) -> &'a Session<'a> {
        self.session
    }

    /// The result of a step: found if the plan has one of the same inputs, every file of it as it was written; made
    /// otherwise.
    ///
    /// # Errors
    /// Those of the step.
    pub fn run<S: Step>(&self, step: &S) -> Result<S::Output> {
        match self.begin(step)? {
            Some(found) => Ok(found),
            None => self.end(step, timed(self.session, step)?),
        }
    }

    /// The same of steps that do not need each other: those that are not there are made as many at once as this machine carries
    /// guests with `memory_mb` MiB.
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
        let made = together(self.session, memory_mb, &missing, |session, step| timed(session, *step))?;
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

    /// What names the step's result. Other code may make something else of the same inputs.
    fn key<S: Step>(&self, step: &S) -> Result<String> {
        let key = Key::new("step/1", crate::CODE).field("step", step.name().as_str());
        Ok(step.inputs(key.field("machine", &self.session.machine_id), self.session)?.id())
    }

    /// What the plan has of a step. If it has nothing, the step is noted as begun.
    fn begin<S: Step>(&self, step: &S) -> Result<Option<S::Output>> {
        let name = step.name();
        let found = self.plan.borrow().found(name, &self.key(step)?);
        (self.tell)(name, found.as_deref());
        match found {
            Some(directory) => S::Output::load(&directory).map(Some),
            None => self.plan.borrow_mut().begin(name).map(|()| None),
        }
    }

    /// Notes that a step was made. Objects that it found to be excluded are among its inputs from now on.
    fn end<S: Step>(&self, step: &S, (output, took): (S::Output, Duration)) -> Result<S::Output> {
        self.plan.borrow_mut().end(step.name(), self.key(step)?, output.directory(), took)?;
        Ok(output)
    }

    /// Its own files are about to be written.
    ///
    /// # Errors
    /// A plan that cannot be written.
    pub fn forget_files(&self) -> Result<()> {
        self.plan.borrow_mut().forget_files()
    }

    /// Notes what these files of its directory are, which were just written: who reads one checks that it still is.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn vouch_for(&self, names: &[&str]) -> Result<()> {
        self.plan.borrow_mut().vouch_for(names)
    }

    /// The plan's own directory: plan, comparison, report, tuned image.
    pub fn directory(&self) -> PathBuf {
        self.plan.borrow().directory().to_owned()
    }

    /// All steps and how far they are.
    pub fn steps(&self) -> Vec<StepState> {
        self.plan.borrow().steps()
    }
}

/// A step's result, and how long it took to make.
fn timed<S: Step>(session: &Session, step: &S) -> Result<(S::Output, Duration)> {
    let started = Instant::now();
    Ok((step.make(session)?, started.elapsed()))
}
