//! The plan of a tuning: its steps, which of them are done, and where their results are.

use crate::Result;
use kerntune_work::{write_json, IoContext, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where plans are in the work directory.
pub const ROOM: &str = "tunes";
const FILE: &str = "plan.json";
const SCHEMA: &str = "kerntune-plan/1";

/// The steps of all recipes. Which of them a recipe has, and in which order, its file in `recipes/` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    Image,
    BaseKernel,
    InstrumentedKernel,
    Training,
    RecordTraining,
    Profile,
    MappedKernel,
    RecordMapped,
    Blocks,
    MovableKernel,
    RecordMovable,
    Order,
    TunedKernel,
    Check,
    MeasureBase,
    MeasureBaseAgain,
    MeasureTuned,
}

impl StepName {
    /// What is done, for people.
    pub fn about(self) -> &'static str {
        match self {
            StepName::Image => "pack the workload into a guest image",
            StepName::BaseKernel => "build the base kernel",
            StepName::InstrumentedKernel => "build the instrumented kernel",
            StepName::Training => "run the training on the instrumented kernel",
            StepName::RecordTraining => "record the training on the base kernel",
            StepName::Profile => "turn what was counted into a profile",
            StepName::MappedKernel => "build a kernel with it that says where its blocks are",
            StepName::RecordMapped => "record the training on that kernel, block by block",
            StepName::Blocks => "put the blocks of each function in order",
            StepName::MovableKernel => "build the kernel whose functions can be moved",
            StepName::RecordMovable => "record the training on that kernel",
            StepName::Order => "order its functions by who calls whom",
            StepName::TunedKernel => "build the tuned kernel with the profile",
            StepName::Check => "check that the tuned kernel does what the base kernel does",
            StepName::MeasureBase => "measure the base kernel",
            StepName::MeasureBaseAgain => "measure the base kernel again (A/A)",
            StepName::MeasureTuned => "measure the tuned kernel",
        }
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about())
    }
}

/// How far a step is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Still to be done.
    Todo,
    /// Done in an earlier call; the result is there.
    Found(PathBuf),
    /// Done in this call.
    Made(PathBuf, Duration),
}

/// A step and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub name: StepName,
    /// How far.
    pub state: State,
}

/// What is on disk of a plan.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ledger {
    schema: String,
    /// What the plan is for, in words.
    about: Vec<String>,
    /// Results of finished steps, relative to the work directory.
    results: BTreeMap<StepName, PathBuf>,
}

/// A plan in the work directory.
#[derive(Debug)]
pub struct Plan {
    steps: Vec<StepName>,
    root: PathBuf,
    directory: PathBuf,
    ledger: Ledger,
    made: BTreeMap<StepName, Duration>,
}

impl Plan {
    /// Opens the plan `id` of these steps, new or taken up again. Nothing is written before the first step
    /// ends.
    pub fn open(work: &WorkDir, id: &str, steps: Vec<StepName>, about: Vec<String>) -> Result<Self> {
        let directory = work.room(ROOM)?.join(id);
        let ledger = match fs::read(directory.join(FILE)) {
            // A plan is a cache of where results are; one that cannot be read is begun anew,
            // and finds the results by their content.
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(_) => Ledger::default(),
        };
        let ledger = Ledger { schema: SCHEMA.into(), about, results: ledger.results };
        Ok(Self { steps, root: work.root().to_owned(), directory, ledger, made: BTreeMap::new() })
    }

    /// The plan's own directory: plan, comparison, report, tuned image.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All steps and how far they are.
    pub fn steps(&self) -> Vec<Step> {
        let state = |name| match (self.result(name), self.made.get(&name)) {
            (Some(path), Some(took)) => State::Made(path, *took),
            (Some(path), None) => State::Found(path),
            (None, _) => State::Todo,
        };
        self.steps.iter().map(|&name| Step { name, state: state(name) }).collect()
    }

    /// A step's result, if it is there.
    fn result(&self, name: StepName) -> Option<PathBuf> {
        let path = self.root.join(self.ledger.results.get(&name)?);
        path.is_dir().then_some(path)
    }

    /// Makes a step, or finds that it was made. `make` returns the result's directory.
    pub fn step(
        &mut self,
        name: StepName,
        tell: &dyn Fn(StepName, Option<&Path>),
        make: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<PathBuf> {
        if let Some(path) = self.result(name) {
            tell(name, Some(&path));
            return Ok(path);
        }
        tell(name, None);
        let started = Instant::now();
        let path = make()?;
        self.made.insert(name, started.elapsed());
        let relative = path.strip_prefix(&self.root).unwrap_or(&path).to_owned();
        self.ledger.results.insert(name, relative);
        fs::create_dir_all(&self.directory).at("create", &self.directory)?;
        write_json(&self.directory.join(FILE), &self.ledger)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<StepName> {
        vec![StepName::Image, StepName::BaseKernel]
    }

    #[test]
    fn a_step_is_made_once_and_again_when_its_result_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let result = work.room("kernels").unwrap().join("abc");
        let make = |plan: &mut Plan| {
            let mut made = false;
            let path = plan.step(StepName::BaseKernel, &|_, _| {}, || {
                made = true;
                fs::create_dir_all(&result).unwrap();
                Ok(result.clone())
            });
            assert_eq!(path.unwrap(), result);
            made
        };
        let mut plan = Plan::open(&work, "p", steps(), Vec::new()).unwrap();
        assert!(make(&mut plan));
        let mut again = Plan::open(&work, "p", steps(), Vec::new()).unwrap();
        assert!(!make(&mut again));
        assert_eq!(again.steps()[1].state, State::Found(result.clone()));
        fs::remove_dir_all(&result).unwrap();
        assert_eq!(again.steps()[1].state, State::Todo);
        assert!(make(&mut again));
    }

    #[test]
    fn a_damaged_plan_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        fs::create_dir_all(dir.path().join("tunes/p")).unwrap();
        fs::write(dir.path().join("tunes/p/plan.json"), "{\"results\":").unwrap();
        let plan = Plan::open(&work, "p", steps(), Vec::new()).unwrap();
        assert!(plan.steps().iter().all(|step| step.state == State::Todo));
    }
}
