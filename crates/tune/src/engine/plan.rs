//! The plan of a tuning: its steps, their status and their results.

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

/// Kind of plans in the work directory.
pub const KIND: &str = "tunes";
const FILE: &str = "plan.json";
const SCHEMA: &str = "kerntune-plan/3";

/// Status of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepStatus {
    /// Not done yet.
    Todo,
    /// Done in an earlier call; holds the directory of the result.
    Found(PathBuf),
    /// Done in this call; holds the directory of the result and the time.
    Made(PathBuf, Duration),
    /// Begun in an earlier call that was stopped, and completed in this one; holds the time of this
    /// call.
    Resumed(PathBuf, Duration),
}

/// A step and its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepProgress {
    /// Name of the step.
    pub name: StepName,
    /// Status of the step.
    pub state: StepStatus,
}

/// Contents of a plan's file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredPlan {
    schema: String,
    /// Descriptions of the tuning: source, workload, recipe and model.
    about: Vec<String>,
    /// Results of finished steps by name, relative to the work directory.
    results: BTreeMap<String, RelativePath>,
    /// Key of each result.
    keys: BTreeMap<String, String>,
    /// Steps that were begun and have not ended.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    begun: BTreeSet<String>,
    /// Hashes of the plan's own files: comparison, proof, report, image.
    #[serde(default, skip_serializing_if = "FileHashes::is_empty")]
    files: FileHashes,
}

/// A plan in the work directory.
#[derive(Debug)]
pub struct TuningPlan {
    steps: Vec<StepName>,
    work: WorkDir,
    directory: PathBuf,
    ledger: StoredPlan,
    made: BTreeMap<&'static str, StepRun>,
}

/// A step that this call carries out.
#[derive(Debug, Clone, Copy)]
struct StepRun {
    took: Duration,
    /// True if an earlier call began it.
    resumed: bool,
}

/// Returns the directories of all plans that can be read, by id. Plans are not sealed results;
/// their own file has the hashes.
fn directories(work: &WorkDir) -> Result<Vec<PathBuf>> {
    let directory = work.root().join(KIND);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.at("list", &directory)?,
    };
    let is_plan = |dir: &PathBuf| read_sealed::<StoredPlan>(&dir.join(FILE)).is_ok();
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_plan).collect();
    found.sort();
    Ok(found)
}

/// A tuning that made a kernel.
#[derive(Debug)]
pub struct StoredTuning {
    /// Directory of the plan and its files.
    pub directory: PathBuf,
    files: FileHashes,
}

impl StoredTuning {
    /// Returns the path of one of its files after a check of the hash. `None` for tunings by an
    /// older kerntune, which have no hashes.
    ///
    /// # Errors
    /// A file that was changed or deleted.
    pub fn file(&self, name: &str) -> Result<Option<PathBuf>> {
        let Some((name, hash)) = self.files.get_key_value(name) else { return Ok(None) };
        check_files(&self.directory, &FileHashes::from([(name.clone(), hash.clone())]))?;
        Ok(Some(self.directory.join(name)))
    }
}

/// Returns the tunings that made the kernel with this id.
///
/// # Errors
/// A directory that cannot be listed.
pub fn tunings_of(work: &WorkDir, kernel: &str) -> Result<Vec<StoredTuning>> {
    let of = |directory: PathBuf| {
        let ledger: StoredPlan = read_sealed(&directory.join(FILE)).ok()?;
        let (kind, id) = kind_and_id(ledger.results.get(TUNED_KERNEL)?)?;
        (kind == "kernels" && id == kernel).then_some(StoredTuning { directory, files: ledger.files })
    };
    Ok(directories(work)?.into_iter().filter_map(of).collect())
}

/// Step whose result is the tuned kernel.
const TUNED_KERNEL: &str = "tuned-kernel";

/// Records the hash of a file that was just written into a plan's directory.
///
/// # Errors
/// A plan or a file that cannot be read.
pub fn vouch(directory: &Path, name: &str) -> Result<()> {
    let mut ledger: StoredPlan = read_sealed(&directory.join(FILE))?;
    ledger.files.extend(hash_files(directory, &[name])?);
    Ok(write_sealed(&directory.join(FILE), &ledger)?)
}

impl TuningPlan {
    /// Opens the plan `id` of these steps, new or existing. Nothing is written before the first
    /// step begins.
    pub fn open(work: &WorkDir, id: &str, steps: Vec<StepName>, about: Vec<String>) -> Result<Self> {
        let directory = work.kind_dir(KIND)?.join(id);
        // A plan caches where results are. An unreadable plan is started anew and finds the results
        // by their keys.
        let kept =
            read_sealed(&directory.join(FILE)).ok().filter(|ledger: &StoredPlan| ledger.schema == SCHEMA);
        let ledger = kept.unwrap_or_default();
        let ledger = StoredPlan { schema: SCHEMA.into(), about, ..ledger };
        Ok(Self { steps, work: work.clone(), directory, ledger, made: BTreeMap::new() })
    }

    /// Returns the plan's directory: plan, comparison, report, tuned image.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns all steps and their status.
    pub fn steps(&self) -> Vec<StepProgress> {
        let state = |name: StepName| match (self.result(name), self.made.get(name.as_str())) {
            (Some(path), Some(StepRun { took, resumed: false })) => StepStatus::Made(path, *took),
            (Some(path), Some(StepRun { took, resumed: true })) => StepStatus::Resumed(path, *took),
            (Some(path), None) => StepStatus::Found(path),
            (None, _) => StepStatus::Todo,
        };
        self.steps.iter().map(|&name| StepProgress { name, state: state(name) }).collect()
    }

    /// Returns a step's result, if it exists.
    fn result(&self, name: StepName) -> Option<PathBuf> {
        let relative = self.ledger.results.get(name.as_str())?;
        let (kind, id) = kind_and_id(relative)?;
        let path = self.work.root().join(relative);
        (self.work.find(&kind, &id).is_some() && path.is_dir()).then_some(path)
    }

    /// Returns a step's result if it has this key and every file is unchanged.
    pub(super) fn found(&self, name: StepName, key: &str) -> Option<PathBuf> {
        let path = self.result(name)?;
        let (kind, id) = kind_and_id(self.ledger.results.get(name.as_str())?)?;
        let same = self.ledger.keys.get(name.as_str()).is_some_and(|made_from| made_from == key);
        let sound = same && self.work.find_verified(&kind, &id).is_some();
        sound.then(|| {
            note_use(&self.directory.join(FILE));
            path
        })
    }

    /// Records that a step has begun.
    pub(super) fn begin(&mut self, name: StepName) -> Result<()> {
        let resumed = !self.ledger.begun.insert(name.as_str().to_owned());
        self.made.insert(name.as_str(), StepRun { took: Duration::ZERO, resumed });
        self.write()
    }

    /// Records the result of a step and its key.
    pub(super) fn end(&mut self, name: StepName, key: String, result: &Path, took: Duration) -> Result<()> {
        let named = name.as_str();
        if let Some(made) = self.made.get_mut(named) {
            made.took = took;
        }
        let relative =
            result.strip_prefix(self.work.root()).ok().and_then(|path| path.to_str()?.parse().ok());
        match relative {
            Some(relative) => drop(self.ledger.results.insert(named.to_owned(), relative)),
            // A later call could not find a result outside the work directory.
            None => drop(self.ledger.results.remove(named)),
        }
        self.ledger.keys.insert(named.to_owned(), key);
        self.ledger.begun.remove(named);
        self.write()
    }

    /// Drops the hashes of the plan's own files before they are written: after an interrupt no file
    /// is mistaken for another.
    pub(super) fn forget_files(&mut self) -> Result<()> {
        self.ledger.files.clear();
        self.write()
    }

    /// Records the hashes of files that were just written.
    pub(super) fn vouch_for(&mut self, names: &[&str]) -> Result<()> {
        self.ledger.files.extend(hash_files(&self.directory, names)?);
        self.write()
    }

    fn write(&self) -> Result<()> {
        fs::create_dir_all(&self.directory).at("create", &self.directory)?;
        Ok(write_sealed(&self.directory.join(FILE), &self.ledger)?)
    }
}

/// Returns the first two components of a result's path.
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

    /// Makes a step, or finds its result.
    fn step(
        plan: &mut TuningPlan,
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
        let make = |plan: &mut TuningPlan| {
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
        let mut plan = TuningPlan::open(&work, "p", steps(), Vec::new()).unwrap();
        assert!(make(&mut plan));
        let mut again = TuningPlan::open(&work, "p", steps(), Vec::new()).unwrap();
        assert!(!make(&mut again));
        assert_eq!(again.steps()[1].state, StepStatus::Found(result.clone()));
        fs::remove_dir_all(&result).unwrap();
        assert_eq!(again.steps()[1].state, StepStatus::Todo);
        assert!(make(&mut again));
        // A changed result is made again, and never returned.
        fs::write(result.join("vmlinux"), "another").unwrap();
        assert!(make(&mut again) && !make(&mut again));
        // The same holds for a result with another key.
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
        let mut plan = TuningPlan::open(&work, "p", steps(), Vec::new()).unwrap();
        step(&mut plan, KERNEL, "k", || Ok(right.clone())).unwrap();
        let path = dir.path().join("tunes/p/plan.json");
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap().replace(&name(&right), &name(&wrong));
        fs::write(&path, text).unwrap();
        let plan = TuningPlan::open(&work, "p", steps(), Vec::new()).unwrap();
        assert!(plan.steps().iter().all(|step| step.state == StepStatus::Todo));
    }

    #[test]
    fn a_step_that_was_stopped_is_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let staged = work.stage("kernels", &Key::new("test/1", "")).unwrap();
        fs::write(staged.path().join("vmlinux"), "image").unwrap();
        let result = staged.publish().unwrap();
        let open = || TuningPlan::open(&work, "p", steps(), Vec::new()).unwrap();
        let stopped = || Err(kerntune_work::Error::Interrupted.into());
        step(&mut open(), IMAGE, "i", stopped).unwrap_err();
        let mut plan = open();
        assert_eq!(plan.steps()[0].state, StepStatus::Todo);
        for name in steps() {
            step(&mut plan, name, "k", || Ok(result.clone())).unwrap();
        }
        let states = plan.steps();
        assert!(matches!(&states[0].state, StepStatus::Resumed(path, _) if *path == result), "{states:?}");
        assert!(matches!(&states[1].state, StepStatus::Made(path, _) if *path == result), "{states:?}");
        // Once it has ended it is like any other step.
        assert_eq!(open().steps()[0].state, StepStatus::Found(result));
    }

    #[test]
    fn plans_are_listed_without_what_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        assert!(directories(&work).unwrap().is_empty());
        for id in ["q", "p"] {
            let stopped = || Err(kerntune_work::Error::Interrupted.into());
            let mut plan = TuningPlan::open(&work, id, steps(), Vec::new()).unwrap();
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
        let mut plan = TuningPlan::open(&work, "p", vec![tuned], Vec::new()).unwrap();
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
        let plan = TuningPlan::open(&work, "p", steps(), Vec::new()).unwrap();
        assert!(plan.steps().iter().all(|step| step.state == StepStatus::Todo));
    }
}
