//! The plan of a tuning: its steps, which of them are done, and where their results are.

use super::StepName;
use crate::Result;
use kerntune_work::{
    check_files, hash_files, note_use, read_sealed, write_sealed, FileHashes, IoContext, RelativePath,
    WorkDir,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where plans are in the work directory.
pub const ROOM: &str = "tunes";
const FILE: &str = "plan.json";
const SCHEMA: &str = "kerntune-plan/3";

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
pub struct StepState {
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
    /// Results of finished steps by name, relative to the work directory.
    results: BTreeMap<String, RelativePath>,
    /// What each was made from.
    keys: BTreeMap<String, String>,
    /// Steps that were begun and have not ended.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    begun: BTreeSet<String>,
    /// Hashes of the plan's own files: what came of it, for people and packages.
    #[serde(default, skip_serializing_if = "FileHashes::is_empty")]
    files: FileHashes,
}

/// A plan in the work directory.
#[derive(Debug)]
pub struct Plan {
    steps: Vec<StepName>,
    work: WorkDir,
    directory: PathBuf,
    ledger: Ledger,
    made: BTreeMap<&'static str, Made>,
}

/// How a step was made in this call.
#[derive(Debug, Clone, Copy)]
struct Made {
    took: Duration,
    /// An earlier call began it.
    resumed: bool,
}

/// The directories of all plans that can be read, by id. They are no results: their own file vouches for them.
fn directories(work: &WorkDir) -> Result<Vec<PathBuf>> {
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

/// A tuning that made a kernel.
#[derive(Debug)]
pub struct Tuning {
    /// Where its files are.
    pub directory: PathBuf,
    files: FileHashes,
}

impl Tuning {
    /// One of its files, as it was written. None of a tuning by an older kerntune, which has no hashes.
    ///
    /// # Errors
    /// A file that is another by now, or gone.
    pub fn file(&self, name: &str) -> Result<Option<PathBuf>> {
        let Some((name, hash)) = self.files.get_key_value(name) else { return Ok(None) };
        check_files(&self.directory, &FileHashes::from([(name.clone(), hash.clone())]))?;
        Ok(Some(self.directory.join(name)))
    }
}

/// The tunings that made this kernel.
///
/// # Errors
/// A directory that cannot be listed.
pub fn tunings_of(work: &WorkDir, kernel: &str) -> Result<Vec<Tuning>> {
    let of = |directory: PathBuf| {
        let ledger: Ledger = read_sealed(&directory.join(FILE)).ok()?;
        let (kind, id) = kind_and_id(ledger.results.get(TUNED_KERNEL)?)?;
        (kind == "kernels" && id == kernel).then_some(Tuning { directory, files: ledger.files })
    };
    Ok(directories(work)?.into_iter().filter_map(of).collect())
}

/// The step whose result a tuning is for.
const TUNED_KERNEL: &str = "tuned-kernel";

/// Notes what a file of a plan is that was just written beside it.
///
/// # Errors
/// A plan or a file that cannot be read.
pub fn vouch(directory: &Path, name: &str) -> Result<()> {
    let mut ledger: Ledger = read_sealed(&directory.join(FILE))?;
    ledger.files.extend(hash_files(directory, &[name])?);
    Ok(write_sealed(&directory.join(FILE), &ledger)?)
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
    pub fn steps(&self) -> Vec<StepState> {
        let state = |name: StepName| match (self.result(name), self.made.get(name.as_str())) {
            (Some(path), Some(Made { took, resumed: false })) => State::Made(path, *took),
            (Some(path), Some(Made { took, resumed: true })) => State::Resumed(path, *took),
            (Some(path), None) => State::Found(path),
            (None, _) => State::Todo,
        };
        self.steps.iter().map(|&name| StepState { name, state: state(name) }).collect()
    }

    /// A step's result, if it is there.
    fn result(&self, name: StepName) -> Option<PathBuf> {
        let relative = self.ledger.results.get(name.as_str())?;
        let (kind, id) = kind_and_id(relative)?;
        let path = self.work.root().join(relative);
        (self.work.find(&kind, &id).is_some() && path.is_dir()).then_some(path)
    }

    /// The result that a step of this key had, if every file of it is as it was written.
    pub(super) fn found(&self, name: StepName, key: &str) -> Option<PathBuf> {
        let path = self.result(name)?;
        let (kind, id) = kind_and_id(self.ledger.results.get(name.as_str())?)?;
        let same = self.ledger.keys.get(name.as_str()).is_some_and(|made_from| made_from == key);
        let sound = same && self.work.sound(&kind, &id).is_some();
        sound.then(|| {
            note_use(&self.directory.join(FILE));
            path
        })
    }

    /// A step begins to be made.
    pub(super) fn begin(&mut self, name: StepName) -> Result<()> {
        let resumed = !self.ledger.begun.insert(name.as_str().to_owned());
        self.made.insert(name.as_str(), Made { took: Duration::ZERO, resumed });
        self.write()
    }

    /// It was made, of the inputs that `key` names.
    pub(super) fn end(&mut self, name: StepName, key: String, result: &Path, took: Duration) -> Result<()> {
        let named = name.as_str();
        if let Some(made) = self.made.get_mut(named) {
            made.took = took;
        }
        let relative =
            result.strip_prefix(self.work.root()).ok().and_then(|path| path.to_str()?.parse().ok());
        match relative {
            Some(relative) => drop(self.ledger.results.insert(named.to_owned(), relative)),
            // A result elsewhere is nothing that a later call could find.
            None => drop(self.ledger.results.remove(named)),
        }
        self.ledger.keys.insert(named.to_owned(), key);
        self.ledger.begun.remove(named);
        self.write()
    }

    /// Its own files are about to be written: whoever is stopped in between leaves none that is taken for another.
    pub(super) fn forget_files(&mut self) -> Result<()> {
        self.ledger.files.clear();
        self.write()
    }

    /// Notes what these files are, which were just written.
    pub(super) fn vouch_for(&mut self, names: &[&str]) -> Result<()> {
        self.ledger.files.extend(hash_files(&self.directory, names)?);
        self.write()
    }

    fn write(&self) -> Result<()> {
        fs::create_dir_all(&self.directory).at("create", &self.directory)?;
        Ok(write_sealed(&self.directory.join(FILE), &self.ledger)?)
    }
}

/// The first two parts of a result's path.
fn kind_and_id(relative: &RelativePath) -> Option<(String, String)> {
    let mut parts = relative.as_str().split('/').map(str::to_owned);
    Some((parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_work::Key;

    const IMAGE: StepName = StepName::new("image", "packs");
    const KERNEL: StepName = StepName::new("base-kernel", "builds");

    fn steps() -> Vec<StepName> {
        vec![IMAGE, KERNEL]
    }

    /// Makes a step, or finds that it was made.
    fn step(
        plan: &mut Plan,
        name: StepName,
        key: &str,
        make: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<PathBuf> {
        if let Some(path) = plan.found(name, key) {
            return Ok(path);
        }
        plan.begin(name)?;
        let path = make()?;
        plan.end(name, key.into(), &path, Duration::from_secs(1))?;
        Ok(path)
    }

    #[test]
    fn a_step_is_made_once_and_again_when_its_result_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let key = Key::new("test/1", "");
        let result = work.root().join("kernels").join(key.id());
        let make = |plan: &mut Plan| {
            let mut made = false;
            let path = step(plan, KERNEL, "k", || {
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
        // Neither is one that was made of something else.
        assert!(again.found(KERNEL, "k").is_some() && again.found(KERNEL, "other").is_none());
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
        step(&mut plan, KERNEL, "k", || Ok(right.clone())).unwrap();
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
        step(&mut open(), IMAGE, "i", stopped).unwrap_err();
        let mut plan = open();
        assert_eq!(plan.steps()[0].state, State::Todo);
        for name in steps() {
            step(&mut plan, name, "k", || Ok(result.clone())).unwrap();
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
            let mut plan = Plan::open(&work, id, steps(), Vec::new()).unwrap();
            step(&mut plan, IMAGE, "i", stopped).unwrap_err();
        }
        fs::create_dir(dir.path().join("tunes/empty")).unwrap();
        let names = ["p", "q"].map(|id| dir.path().join("tunes").join(id));
        assert_eq!(directories(&work).unwrap(), names);
    }

    #[test]
    fn a_plan_vouches_for_its_files_and_names_its_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let staged = work.stage("kernels", &Key::new("test/1", "")).unwrap();
        fs::write(staged.path().join("vmlinux"), "image").unwrap();
        let result = staged.publish().unwrap();
        let id = result.file_name().unwrap().to_string_lossy().into_owned();
        let tuned = StepName::new(TUNED_KERNEL, "builds");
        let mut plan = Plan::open(&work, "p", vec![tuned], Vec::new()).unwrap();
        step(&mut plan, tuned, "k", || Ok(result.clone())).unwrap();
        assert!(tunings_of(&work, "another").unwrap().is_empty());
        let tuning = || tunings_of(&work, &id).unwrap().remove(0);
        let path = plan.directory().join("comparison.json");
        fs::write(&path, "-5.8").unwrap();
        assert_eq!(tuning().file("comparison.json").unwrap(), None, "of an older kerntune");
        plan.vouch_for(&["comparison.json"]).unwrap();
        assert_eq!(tuning().file("comparison.json").unwrap().as_deref(), Some(&*path));
        fs::write(plan.directory().join("report.html"), "page").unwrap();
        vouch(plan.directory(), "report.html").unwrap();
        assert!(tuning().file("report.html").unwrap().is_some());
        let states = |at: usize| {
            let seen = kerntune_work::survey(&work, true, &mut |_| {}).unwrap();
            seen.found.into_iter().filter(|found| found.kind == "tunes").nth(at).unwrap().reason
        };
        assert_eq!(states(0), None);
        fs::write(&path, "-5.9").unwrap();
        let error = tuning().file("comparison.json").unwrap_err().to_string();
        assert!(error.contains("comparison.json is not the file that was written"), "{error}");
        let reason = format!("{:?}", states(0));
        assert!(reason.contains("Damaged") && reason.contains("comparison.json"), "{reason}");
        plan.forget_files().unwrap();
        assert_eq!((states(0), tuning().file("comparison.json").unwrap()), (None, None));
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
