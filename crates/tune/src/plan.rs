//! The plan of a tuning: its steps, which of them are done, and where their results are.

use crate::Result;
use kerntune_work::{read_sealed, write_sealed, IoContext, WorkDir};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where plans are in the work directory.
pub const ROOM: &str = "tunes";
const FILE: &str = "plan.json";
const SCHEMA: &str = "kerntune-plan/2";

/// The steps of all recipes. Which of them a recipe has, and in which order, its file in `recipes/` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepName {
    /// Packs the workload into a guest image.
    Image,
    /// Builds the kernel that is to be tuned.
    BaseKernel,
    /// Builds the same kernel with the compiler's counters in it.
    InstrumentedKernel,
    /// Runs the training on the instrumented kernel.
    Training,
    /// Records the training on the base kernel.
    RecordTraining,
    /// Makes what the compiler or optimizer reads of what was counted.
    Profile,
    /// Builds a kernel with the profile and a map of its blocks.
    MappedKernel,
    /// Records the training on that kernel, with the counts of its blocks.
    RecordMapped,
    /// Orders the blocks of each function.
    Blocks,
    /// Builds a kernel with each function in a section of its own.
    MovableKernel,
    /// Records the training on that kernel.
    RecordMovable,
    /// Orders its functions by their calls.
    Order,
    /// Makes the kernel that the tuning is for.
    TunedKernel,
    /// Compares what the tuned and the base kernel answer to the functional checks.
    Check,
    /// Measures the base kernel.
    MeasureBase,
    /// Measures the base kernel a second time (A/A).
    MeasureBaseAgain,
    /// Measures the tuned kernel.
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
    /// Ended in this call, which took so long; begun in an earlier one that was stopped.
    Resumed(PathBuf, Duration),
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
    /// Steps that were begun and have not ended.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    begun: BTreeSet<StepName>,
}

/// A plan in the work directory.
#[derive(Debug)]
pub struct Plan {
    steps: Vec<StepName>,
    work: WorkDir,
    directory: PathBuf,
    ledger: Ledger,
    made: BTreeMap<StepName, Made>,
}

/// How a step was made in this call.
#[derive(Debug, Clone, Copy)]
struct Made {
    took: Duration,
    /// An earlier call began it.
    resumed: bool,
}

/// The directories of all plans that can be read, by id. They are no results: nothing but their own file vouches for them.
pub(crate) fn directories(work: &WorkDir) -> Result<Vec<PathBuf>> {
    let room = work.root().join(ROOM);
    let entries = match fs::read_dir(&room) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.at("list", &room)?,
    };
    let is_plan = |dir: &PathBuf| read_sealed::<Ledger>(&dir.join(FILE)).is_ok();
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_plan).collect();
    found.sort();
    Ok(found)
}

impl Plan {
    /// Opens the plan `id` of these steps, new or taken up again. Nothing is written before the first step
    /// begins.
    pub fn open(work: &WorkDir, id: &str, steps: Vec<StepName>, about: Vec<String>) -> Result<Self> {
        let directory = work.room(ROOM)?.join(id);
        // A plan is a cache of where results are; one that cannot be read is begun anew, and finds the results by
        // their keys.
        let kept = read_sealed(&directory.join(FILE)).ok().filter(|ledger: &Ledger| ledger.schema == SCHEMA);
        let ledger = kept.unwrap_or_default();
        let ledger = Ledger { schema: SCHEMA.into(), about, ..ledger };
        Ok(Self { steps, work: work.clone(), directory, ledger, made: BTreeMap::new() })
    }

    /// The plan's own directory: plan, comparison, report, tuned image.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// All steps and how far they are.
    pub fn steps(&self) -> Vec<Step> {
        let state = |name| match (self.result(name), self.made.get(&name)) {
            (Some(path), Some(Made { took, resumed: false })) => State::Made(path, *took),
            (Some(path), Some(Made { took, resumed: true })) => State::Resumed(path, *took),
            (Some(path), None) => State::Found(path),
            (None, _) => State::Todo,
        };
        self.steps.iter().map(|&name| Step { name, state: state(name) }).collect()
    }

    /// A step's result, if it is there.
    fn result(&self, name: StepName) -> Option<PathBuf> {
        let relative = self.ledger.results.get(&name)?;
        let mut parts = relative.components().map(|part| part.as_os_str().to_string_lossy());
        let (kind, id) = (parts.next()?, parts.next()?);
        let path = self.work.root().join(relative);
        (self.work.find(&kind, &id).is_some() && path.is_dir()).then_some(path)
    }

    /// Whether every file of a step's result is as it was written.
    fn is_sound(&self, name: StepName) -> bool {
        let parts = |path: &PathBuf| {
            let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
            Some((parts.next()?, parts.next()?))
        };
        let found = self.ledger.results.get(&name).and_then(parts);
        found.is_some_and(|(kind, id)| self.work.sound(&kind, &id).is_some())
    }

    /// Makes a step, or finds that it was made. `make` returns the result's directory.
    pub fn step(
        &mut self,
        name: StepName,
        tell: &dyn Fn(StepName, Option<&Path>),
        make: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<PathBuf> {
        if let Some(path) = self.result(name).filter(|_| self.is_sound(name)) {
            tell(name, Some(&path));
            return Ok(path);
        }
        tell(name, None);
        let started = Instant::now();
        let resumed = !self.ledger.begun.insert(name);
        self.write()?;
        let path = make()?;
        self.made.insert(name, Made { took: started.elapsed(), resumed });
        let relative = path.strip_prefix(self.work.root()).unwrap_or(&path).to_owned();
        self.ledger.results.insert(name, relative);
        self.ledger.begun.remove(&name);
        self.write()?;
        Ok(path)
    }

    fn write(&self) -> Result<()> {
        fs::create_dir_all(&self.directory).at("create", &self.directory)?;
        Ok(write_sealed(&self.directory.join(FILE), &self.ledger)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_work::Key;

    fn steps() -> Vec<StepName> {
        vec![StepName::Image, StepName::BaseKernel]
    }

    #[test]
    fn a_step_is_made_once_and_again_when_its_result_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let key = Key::new("test/1", "");
        let result = work.root().join("kernels").join(key.id());
        let make = |plan: &mut Plan| {
            let mut made = false;
            let path = plan.step(StepName::BaseKernel, &|_, _| {}, || {
                made = true;
                let staged = work.stage("kernels", &key)?;
                fs::write(staged.path().join("vmlinux"), "image").unwrap();
                Ok(staged.publish()?)
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
        // A result that is not what it was is made again, and never handed on.
        fs::write(result.join("vmlinux"), "another").unwrap();
        assert!(make(&mut again) && !make(&mut again));
    }

    #[test]
    fn a_plan_that_names_another_result_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let put = |name: &str| {
            let staged = work.stage("kernels", &Key::new("test/1", "").field("name", name)).unwrap();
            fs::write(staged.path().join("vmlinux"), name).unwrap();
            staged.publish().unwrap()
        };
        let (right, wrong) = (put("right"), put("wrong"));
        let mut plan = Plan::open(&work, "p", steps(), Vec::new()).unwrap();
        plan.step(StepName::BaseKernel, &|_, _| {}, || Ok(right.clone())).unwrap();
        let path = dir.path().join("tunes/p/plan.json");
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap().replace(&name(&right), &name(&wrong));
        fs::write(&path, text).unwrap();
        let plan = Plan::open(&work, "p", steps(), Vec::new()).unwrap();
        assert!(plan.steps().iter().all(|step| step.state == State::Todo));
    }

    #[test]
    fn a_step_that_was_stopped_is_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let staged = work.stage("kernels", &Key::new("test/1", "")).unwrap();
        fs::write(staged.path().join("vmlinux"), "image").unwrap();
        let result = staged.publish().unwrap();
        let open = || Plan::open(&work, "p", steps(), Vec::new()).unwrap();
        let stopped = || Err(kerntune_work::Error::Interrupted.into());
        open().step(StepName::Image, &|_, _| {}, stopped).unwrap_err();
        let mut plan = open();
        assert_eq!(plan.steps()[0].state, State::Todo);
        for name in steps() {
            plan.step(name, &|_, _| {}, || Ok(result.clone())).unwrap();
        }
        let states = plan.steps();
        assert!(matches!(&states[0].state, State::Resumed(path, _) if *path == result), "{states:?}");
        assert!(matches!(&states[1].state, State::Made(path, _) if *path == result), "{states:?}");
        // Once it has ended it is as any other.
        assert_eq!(open().steps()[0].state, State::Found(result));
    }

    #[test]
    fn plans_are_listed_without_what_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        assert!(directories(&work).unwrap().is_empty());
        for id in ["q", "p"] {
            let stopped = || Err(kerntune_work::Error::Interrupted.into());
            Plan::open(&work, id, steps(), Vec::new())
                .unwrap()
                .step(StepName::Image, &|_, _| {}, stopped)
                .unwrap_err();
        }
        fs::create_dir(dir.path().join("tunes/empty")).unwrap();
        let names = ["p", "q"].map(|id| dir.path().join("tunes").join(id));
        assert_eq!(directories(&work).unwrap(), names);
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
