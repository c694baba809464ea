//! What carries out the steps of a tuning: each is a value that names all that it reads, made once for the same
//! inputs and the same code, and taken up again where it was stopped.
//!
//! Start from [`Step`] (what is to be made, of what), [`Artifact`] (what comes of it) and [`Engine::run`].

mod plan;
mod step;

pub use plan::{directories, Plan, State, StepState};
pub use step::{Artifact, Directory, Step, StepName};

use crate::{Result, Session};
use kerntune_work::Key;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

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
        let name = step.name();
        // Other code may make something else of the same inputs.
        let key = || -> Result<String> {
            let key = Key::new("step/1", crate::CODE).field("step", name.as_str());
            Ok(step.inputs(key.field("machine", &self.session.machine_id), self.session)?.id())
        };
        let found = self.plan.borrow().found(name, &key()?);
        if let Some(directory) = found {
            (self.tell)(name, Some(&directory));
            return S::Output::load(&directory);
        }
        (self.tell)(name, None);
        let started = Instant::now();
        self.plan.borrow_mut().begin(name)?;
        let output = step.make(self.session)?;
        // Objects that a step found to be excluded are among its inputs from now on.
        self.plan.borrow_mut().end(name, key()?, output.directory(), started.elapsed())?;
        Ok(output)
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
