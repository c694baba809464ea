//! Survey of a work directory: sizes and ages of entries, their users, and candidates for deletion.

use crate::dir::{discard, is_removed, partial_of};
use crate::vouched::{check_files, FileHashes};
use crate::{read_sealed, IoContext, Lock, Result, Seal, WorkDir};
use rustix::io::Errno;
use rustix::process::{test_kill_process, Pid};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Kinds that are not results: plans of tunings, which name results, and timed runs.
const PLANS: &str = "tunes";
const PLAN: &str = "plan.json";
const RUNS: &str = "timings";
/// The only kind whose unfinished results are resumed; all others begin anew.
const RESUMED: &str = "kernels";

/// Reason why an entry can be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalReason {
    /// An interrupted deletion.
    HalfDeleted,
    /// A file whose writer was killed.
    HalfWritten,
    /// An unfinished result. The same command would resume it.
    Unfinished,
    /// An unfinished result of which nothing would be used again: a run that failed or was
    /// interrupted.
    FailedRun,
    /// Not sealed: made by an older version of kerntune, which this one cannot read.
    NoResult,
    /// Not as it was sealed; holds the difference.
    Damaged(String),
}

/// One entry of a work directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreEntry {
    /// Kind of the entry, such as `kernels` or `profiles`.
    pub kind: String,
    /// Name within the kind: the id of a result.
    pub name: String,
    /// Path of the entry.
    pub path: PathBuf,
    /// Bytes on disk.
    pub bytes: u64,
    /// Time since it was last written or used ([`crate::note_use`]).
    pub age: Duration,
    /// Reason why it can be deleted; `None` for a result that this version of kerntune reads.
    pub reason: Option<RemovalReason>,
    /// True if a process works in it now.
    pub in_use: bool,
    /// Hash of the code that computed it, from its key.
    pub code: String,
    /// Results made of it, and its names.
    pub kept_by: Vec<String>,
}

/// All entries of a work directory, by kind and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreSurvey {
    /// The entries.
    pub found: Vec<StoreEntry>,
}

/// Examines every entry. With `thorough` it hashes every file of every result, which takes as long
/// as reading them. `on_progress` is called before each entry.
///
/// # Errors
/// A directory that cannot be listed.
pub fn survey(work: &WorkDir, thorough: bool, on_progress: &mut dyn FnMut(&Path)) -> Result<StoreSurvey> {
    let mut found = Vec::new();
    let mut seals: BTreeMap<(String, String), Seal> = BTreeMap::new();
    for kind in work.kind_dirs()? {
        let directory = work.root().join(&kind);
        for entry in fs::read_dir(&directory).at("list", &directory)? {
            crate::interrupt::check()?;
            let path = entry.at("list", &directory)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(kept) = EntryState::of(&kind, &name, &path) else { continue };
            on_progress(&path);
            let mut reason = kept.reason(&kind, &name);
            if let (None, Some(seal), true) = (&reason, &kept.seal, thorough) {
                reason = seal.check(&path).err().map(|error| RemovalReason::Damaged(error.to_string()));
            }
            if reason.is_none() && kind == PLANS && thorough {
                reason = check_plan(&path).err().map(|error| RemovalReason::Damaged(error.to_string()));
            }
            let lock = directory.join(format!(".{}.lock", partial_of(&name).unwrap_or(&name)));
            let in_use = lock.is_file() && Lock::try_take(&lock)?.is_none();
            let (bytes, age) = size(&path);
            let code = kept.seal.as_ref().map(|seal| seal.code.clone()).unwrap_or_default();
            found.push(StoreEntry {
                kind: kind.clone(),
                name: name.clone(),
                path,
                bytes,
                age,
                reason,
                in_use,
                code,
                kept_by: Vec::new(),
            });
            if let Some(seal) = kept.seal {
                seals.insert((kind.clone(), name), seal);
            }
        }
    }
    let users = users(work, &seals);
    for entry in &mut found {
        if let Some(users) = users.get(&entry.name) {
            entry.kept_by = users.iter().cloned().collect();
        }
    }
    found.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    Ok(StoreSurvey { found })
}

impl StoreSurvey {
    /// Returns the indices in [`found`](Self::found) of complete results that were not used for
    /// `patience`, and of which no result was made that was used since.
    pub fn unused(&self, patience: Duration) -> BTreeSet<usize> {
        let at: BTreeMap<String, usize> = (0..)
            .zip(&self.found)
            .map(|(at, entry)| (format!("{}/{}", entry.kind, entry.name), at))
            .collect();
        let makers = self.found.iter().enumerate().flat_map(|(made_of, entry)| {
            let users = entry.kept_by.iter().filter_map(|user| at.get(user));
            users.map(move |user| (*user, made_of))
        });
        let mut made_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (user, used) in makers {
            made_of.entry(user).or_default().push(used);
        }
        let mut open: Vec<usize> = (0..self.found.len())
            .filter(|at| self.found[*at].in_use || self.found[*at].age < patience)
            .collect();
        let mut needed = BTreeSet::new();
        while let Some(at) = open.pop() {
            if needed.insert(at) {
                open.extend(made_of.get(&at).into_iter().flatten());
            }
        }
        (0..self.found.len()).filter(|at| self.found[*at].reason.is_none() && !needed.contains(at)).collect()
    }

    /// Deletes an entry unless a process works in it. Returns whether it was deleted.
    ///
    /// # Errors
    /// An entry that cannot be deleted.
    pub fn delete(work: &WorkDir, entry: &StoreEntry) -> Result<bool> {
        if entry.in_use {
            return Ok(false);
        }
        match &entry.reason {
            Some(RemovalReason::HalfDeleted) => discard(&entry.path)?,
            Some(RemovalReason::HalfWritten) => fs::remove_file(&entry.path).at("remove", &entry.path)?,
            Some(RemovalReason::Unfinished | RemovalReason::FailedRun) => {
                let lock =
                    entry.path.with_file_name(format!(".{}.lock", partial_of(&entry.name).unwrap_or("")));
                let Some(_lock) = Lock::try_take(&lock)? else { return Ok(false) };
                discard(&entry.path)?;
            }
            _ => return work.remove(&entry.kind, &entry.name),
        }
        Ok(true)
    }
}

/// Seal of an entry, or the reason why it has none.
struct EntryState {
    seal: Option<Seal>,
    error: Option<crate::Error>,
    reason: Option<RemovalReason>,
}

impl EntryState {
    /// Examines an entry; `None` if it is neither a result nor left over: free locks, notes,
    /// ccache's files.
    fn of(kind: &str, name: &str, path: &Path) -> Option<Self> {
        let because = |reason| Some(Self { seal: None, error: None, reason: Some(reason) });
        if is_removed(name) {
            because(RemovalReason::HalfDeleted)
        } else if is_half_written(name) {
            because(RemovalReason::HalfWritten)
        } else if kind.starts_with('.') || name.starts_with('.') || !path.is_dir() {
            None
        } else if partial_of(name).is_some() || kind == RUNS {
            because(if kind == RESUMED { RemovalReason::Unfinished } else { RemovalReason::FailedRun })
        } else if kind == PLANS {
            let reason = match read_sealed::<serde_json::Value>(&path.join(PLAN)) {
                Ok(_) => None,
                Err(crate::Error::Seal { .. }) => {
                    Some(RemovalReason::Damaged(format!("{PLAN} is not the file that was written")))
                }
                Err(_) => Some(RemovalReason::NoResult),
            };
            Some(Self { seal: None, error: None, reason })
        } else {
            match Seal::read(path) {
                Ok(seal) => Some(Self { seal: Some(seal), error: None, reason: None }),
                Err(error) => Some(Self { seal: None, error: Some(error), reason: None }),
            }
        }
    }

    fn reason(&self, kind: &str, name: &str) -> Option<RemovalReason> {
        match (&self.reason, &self.seal, &self.error) {
            (Some(reason), ..) => Some(reason.clone()),
            (None, Some(seal), _) if seal.kind == kind && seal.id == name => None,
            (None, Some(seal), _) => Some(RemovalReason::Damaged(format!("it is {}/{}", seal.kind, seal.id))),
            (None, None, Some(crate::Error::NotAResult { .. } | crate::Error::Schema { .. })) => {
                Some(RemovalReason::NoResult)
            }
            (None, None, None) => None,
            (None, None, error) => {
                Some(RemovalReason::Damaged(error.as_ref().map(ToString::to_string).unwrap_or_default()))
            }
        }
    }
}

/// Checks the files beside a plan against its hashes.
fn check_plan(directory: &Path) -> Result<()> {
    #[derive(serde::Deserialize)]
    struct PlanFiles {
        #[serde(default)]
        files: FileHashes,
    }
    check_files(directory, &read_sealed::<PlanFiles>(&directory.join(PLAN))?.files)
}

/// Returns whether `name` is `.NAME.PID`, a temporary file of [`crate::write_atomic`], of a process
/// that has ended.
fn is_half_written(name: &str) -> bool {
    let Some((_, process)) = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.')) else {
        return false;
    };
    // A process of another user cannot be signaled, and exists.
    let process = process.parse().ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) == Err(Errno::SRCH))
}

/// Returns for each id the results that were made of it and its names.
fn users(work: &WorkDir, seals: &BTreeMap<(String, String), Seal>) -> BTreeMap<String, BTreeSet<String>> {
    let ids: BTreeSet<&str> = seals.keys().map(|(_, id)| id.as_str()).collect();
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |id: &str, user: String| {
        users.entry(id.to_owned()).or_default().insert(user);
    };
    for ((kind, id), seal) in seals {
        for (_, value) in &seal.key {
            if ids.contains(value.as_str()) && value != id {
                add(value, format!("{kind}/{id}"));
            }
        }
        for name in &seal.names {
            add(id, format!("the name {name}"));
        }
    }
    // Plans name results by path.
    let plans = work.root().join(PLANS);
    for entry in fs::read_dir(plans).into_iter().flatten().flatten() {
        let Ok(text) = fs::read_to_string(entry.path().join(PLAN)) else { continue };
        for id in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| ids.contains(word)) {
            add(id, format!("tunes/{}", entry.file_name().to_string_lossy()));
        }
    }
    users
}

/// Returns the bytes on disk below a path. Hard links count once.
pub fn bytes_on_disk(path: &Path) -> u64 {
    size(path).0
}

/// Returns the bytes on disk below a path, and the age of the newest file. Hard links count once.
fn size(path: &Path) -> (u64, Duration) {
    use std::os::unix::fs::MetadataExt;
    let (mut bytes, mut newest) = (0, SystemTime::UNIX_EPOCH);
    let mut linked = HashSet::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.is_dir() || meta.nlink() == 1 || linked.insert((meta.dev(), meta.ino())) {
            bytes += meta.blocks() * 512;
        }
        newest = newest.max(meta.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    (bytes, SystemTime::now().duration_since(newest).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    fn put(work: &WorkDir, kind: &str, key: &Key) -> PathBuf {
        let staged = work.stage(kind, key).unwrap();
        fs::write(staged.path().join("file"), "text").unwrap();
        staged.publish().unwrap()
    }

    #[test]
    fn what_can_go_and_what_keeps_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let kernel = Key::new("kernel/4", "").field("source", "s");
        let kernel_path = put(&work, "kernels", &kernel);
        work.add_name("kernels", &kernel.id(), "base").unwrap();
        let profile = Key::new("recording/2", "c").field("kernel", kernel.id());
        let profile_path = put(&work, "profiles", &profile);
        let old = dir.path().join("profiles/0123456789abcdef");
        fs::create_dir(&old).unwrap();
        let half = work.stage("profiles", &Key::new("x/1", "")).unwrap();
        fs::write(half.path().join("f"), "").unwrap();
        fs::create_dir(dir.path().join("kernels/aa11.partial")).unwrap();
        let gone = dir.path().join("profiles/.removed-aa.1-0");
        fs::create_dir(&gone).unwrap();
        fs::write(dir.path().join("profiles/.notes.json.4194305"), "").unwrap();
        fs::create_dir_all(dir.path().join(".ccache2/0")).unwrap();
        fs::write(dir.path().join(".ccache2/.through.sh.4194305"), "").unwrap();

        let of = |survey: &StoreSurvey, name: &str| {
            survey.found.iter().find(|found| found.name.contains(name)).unwrap().clone()
        };
        let seen = survey(&work, false, &mut |_| {}).unwrap();
        assert_eq!(of(&seen, &kernel.id()).reason, None);
        let users = of(&seen, &kernel.id()).kept_by;
        assert_eq!(users, [format!("profiles/{}", profile.id()), "the name base".to_owned()]);
        assert_eq!(of(&seen, "0123456789abcdef").reason, Some(RemovalReason::NoResult));
        assert_eq!(of(&seen, ".removed-aa").reason, Some(RemovalReason::HalfDeleted));
        assert_eq!(of(&seen, ".notes.json").reason, Some(RemovalReason::HalfWritten));
        assert_eq!(of(&seen, ".through.sh").reason, Some(RemovalReason::HalfWritten));
        assert!(seen.found.iter().all(|found| found.kind != ".ccache2" || found.name.starts_with('.')));
        assert_eq!(of(&seen, "aa11.partial").reason, Some(RemovalReason::Unfinished));
        let failed = of(&seen, &Key::new("x/1", "").id());
        assert!(failed.reason == Some(RemovalReason::FailedRun) && failed.in_use);
        assert!(!StoreSurvey::delete(&work, &failed).unwrap());
        drop(half);

        fs::write(profile_path.join("file"), "tex!").unwrap();
        let seen = survey(&work, true, &mut |_| {}).unwrap();
        assert!(matches!(of(&seen, &profile.id()).reason, Some(RemovalReason::Damaged(_))));
        for entry in seen.found.iter().filter(|entry| entry.reason.is_some()) {
            assert!(StoreSurvey::delete(&work, entry).unwrap(), "{entry:?}");
        }
        let left = survey(&work, true, &mut |_| {}).unwrap();
        assert_eq!(left.found.len(), 1);
        assert_eq!(left.found[0].path, kernel_path);
    }

    #[test]
    fn a_file_of_two_names_takes_its_room_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("vmlinux"), vec![1; 1 << 20]).unwrap();
        let (once, _) = size(dir.path());
        fs::create_dir(dir.path().join("build")).unwrap();
        fs::hard_link(dir.path().join("vmlinux"), dir.path().join("build/vmlinux")).unwrap();
        let (twice, _) = size(dir.path());
        assert!(once >= 1 << 20 && twice - once < 1 << 16, "{once} {twice}");
    }

    /// Sets the modification time of everything below to this age.
    fn age(path: &Path, age: Duration) {
        for entry in fs::read_dir(path).unwrap().flatten() {
            let time = SystemTime::now() - age;
            fs::File::open(entry.path()).unwrap().set_modified(time).unwrap();
            fs::File::open(path).unwrap().set_modified(time).unwrap();
        }
    }

    #[test]
    fn what_was_not_used_and_nothing_made_of_it_can_go() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let key = |name: &str, of: &Key| Key::new("made/1", "").field("name", name).field("of", of.id());
        let source = Key::new("source/1", "");
        let [kernel, other] = ["kernel", "other"].map(|name| key(name, &source));
        let [old, new] = ["old", "new"].map(|name| key(name, &kernel));
        let paths = [&source, &kernel, &other, &old, &new].map(|key| put(&work, "made", key));
        const DAY: Duration = Duration::from_secs(86_400);
        let unused = |patience: Duration| -> BTreeSet<String> {
            let seen = survey(&work, false, &mut |_| {}).unwrap();
            seen.unused(patience).into_iter().map(|at| seen.found[at].name.clone()).collect()
        };
        let ids = |keys: &[&Key]| keys.iter().map(|key| key.id()).collect::<BTreeSet<_>>();
        assert_eq!(unused(DAY), ids(&[]));
        for path in &paths {
            age(path, 3 * DAY);
        }
        assert_eq!(unused(DAY), ids(&[&source, &kernel, &other, &old, &new]));
        assert_eq!(unused(4 * DAY), ids(&[]));
        // Checking all files is a use; listing is not.
        assert_eq!(work.list("made").unwrap().len(), 5);
        crate::checked(&paths[3], &["file"]).unwrap();
        assert_eq!(unused(DAY), ids(&[&source, &kernel, &other, &old, &new]));
        crate::checked(&paths[4], &[]).unwrap();
        assert_eq!(unused(DAY), ids(&[&other, &old]));
        work.find_verified("made", &other.id()).unwrap();
        assert_eq!(unused(DAY), ids(&[&old]));
    }
}
