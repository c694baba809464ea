//! Seals: files beside a result that verify it. `result.json` describes the result and its inputs,
//! `BLAKE3SUMS` has the hash of each file.

use crate::files::{check_schema, parse_sealed, write_atomic, write_sealed};
use crate::{open_file, read_file, Error, Hash, IoContext, Key, RelativePath, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Version of `result.json`.
pub const RESULT_SCHEMA: &str = "kerntune-result/1";
/// Name of the file that describes a result.
pub const RESULT_FILE: &str = "result.json";
/// Name of the file with the hash of each file of a result, in the format of `b3sum --check`.
pub const SUMS_FILE: &str = "BLAKE3SUMS";

/// Description of a result. It contains its own hash, so every change is detected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    schema: String,
    /// Kind of result, such as `kernels` or `profiles`.
    pub kind: String,
    /// Id of the result: that of the key, or a given one for results that name themselves.
    pub id: String,
    /// Version of kerntune that made the result.
    pub kerntune: String,
    /// Time of completion, in seconds since 1970.
    pub made: u64,
    /// Kind of result and version of its key's fields.
    pub rule: String,
    /// Hash of the code that computed it; empty if `rule` has the version.
    pub code: String,
    /// Fields of the key: names and values.
    pub key: Vec<(String, String)>,
    /// Other names of the result. Only this field may change later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Top-level directories that are not sealed; their users check them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loose: Vec<String>,
    /// Number of sealed files.
    pub files: u64,
    /// Total size of the sealed files, in bytes.
    pub bytes: u64,
    /// BLAKE3 hash of `BLAKE3SUMS`.
    pub sums: String,
    /// BLAKE3 hash over path and target of each symbolic link; empty if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub links: String,
}

impl Seal {
    /// Reads the seal of the result in `dir`.
    ///
    /// # Errors
    /// [`Error::NotAResult`] if there is none; [`Error::Seal`] if it was changed.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(RESULT_FILE);
        let bytes = match read_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NotAResult { dir: dir.to_owned() })
            }
            other => other.at("read", &path)?,
        };
        check_schema(parse_sealed(&bytes, &path)?, &path, RESULT_SCHEMA)
    }

    /// Seals the directory as it is now. Files that are hard links to those of `original`, another
    /// result, get its hashes.
    pub(crate) fn make(
        dir: &Path,
        kind: &str,
        id: &str,
        key: &Key,
        loose: &[String],
        names: Vec<String>,
        original: Option<&Path>,
    ) -> Result<Self> {
        let original = original.map(LinkedOriginal::read).transpose()?;
        let content = DirectoryContent::of(dir, loose, original.as_ref())?;
        let sums = content.sums();
        let path = dir.join(SUMS_FILE);
        // Never in place: a directory may consist of links to another result's files.
        write_atomic(&path, sums.as_bytes())?;
        let seal = Self {
            schema: RESULT_SCHEMA.into(),
            kind: kind.into(),
            id: id.into(),
            kerntune: env!("CARGO_PKG_VERSION").into(),
            made: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            rule: key.rule().into(),
            code: key.code().into(),
            key: key.fields().to_vec(),
            names,
            loose: loose.to_vec(),
            files: content.files.len() as u64,
            bytes: content.bytes,
            sums: blake3::hash(sums.as_bytes()).to_hex().to_string(),
            links: content.links(),
        };
        write_sealed(&dir.join(RESULT_FILE), &seal)?;
        Ok(seal)
    }

    /// Returns the key of the result.
    pub fn key(&self) -> Key {
        Key::kept(self.rule.clone(), self.code.clone(), self.key.clone())
    }

    /// Adds a name to the result in `dir`.
    pub(crate) fn add_name(mut self, dir: &Path, name: &str) -> Result<()> {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
            write_sealed(&dir.join(RESULT_FILE), &self)?;
        }
        Ok(())
    }

    /// Reads the hashes of the files of the result in `dir`, by path relative to it.
    ///
    /// # Errors
    /// [`Error::Changed`] if the list was changed, or a line is not a hash and a path below `dir`.
    pub fn sums(&self, dir: &Path) -> Result<BTreeMap<RelativePath, Hash>> {
        let path = dir.join(SUMS_FILE);
        let changed = |what: String| Error::Changed { dir: dir.to_owned(), what };
        let text = match read_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(changed(format!("{SUMS_FILE} is missing")))
            }
            other => other.at("read", &path)?,
        };
        if blake3::hash(&text).to_hex().as_str() != self.sums {
            return Err(changed(format!("{SUMS_FILE} is not the list that was written")));
        }
        let text = String::from_utf8(text).map_err(|_| changed(format!("{SUMS_FILE} is not UTF-8")))?;
        text.lines()
            .map(|line| {
                let odd = || changed(format!("`{}` is no line of {SUMS_FILE}", line.escape_debug()));
                let (hash, path) = line.split_once("  ").ok_or_else(odd)?;
                Ok((path.parse().map_err(|_| odd())?, hash.parse().map_err(|_| odd())?))
            })
            .collect()
    }

    /// Hashes and checks every file of the result in `dir`.
    ///
    /// # Errors
    /// [`Error::Changed`] with the first file that is missing, was added, or was changed.
    pub fn check(&self, dir: &Path) -> Result<()> {
        let expected = self.sums(dir)?;
        let changed = |what: String| Error::Changed { dir: dir.to_owned(), what };
        let found = DirectoryContent::of(dir, &self.loose, None)?;
        for (path, hash) in &expected {
            match found.files.get(path) {
                None => return Err(changed(format!("{path} is missing"))),
                Some(other) if other != hash => {
                    return Err(changed(format!("{path} is not the file that was written")))
                }
                Some(_) => {}
            }
        }
        if let Some(path) = found.files.keys().find(|path| !expected.contains_key(path.as_str())) {
            return Err(changed(format!("{path} was added")));
        }
        if found.links() != self.links {
            return Err(changed("its symbolic links are others".into()));
        }
        Ok(())
    }

    /// Hashes and checks some files of the result in `dir`; a path that ends with `/` means
    /// everything below it.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_files(&self, dir: &Path, wanted: &[&str]) -> Result<()> {
        let changed = |what: String| Error::Changed { dir: dir.to_owned(), what };
        let sums = self.sums(dir)?;
        for wanted in wanted {
            let mut any = false;
            let is_wanted =
                |path: &str| path == *wanted || (wanted.ends_with('/') && path.starts_with(wanted));
            for (path, hash) in sums.iter().filter(|(path, _)| is_wanted(path)) {
                any = true;
                let file = dir.join(path);
                if !file.is_file() {
                    return Err(changed(format!("{path} is missing")));
                }
                if *hash != digest(&file)? {
                    return Err(changed(format!("{path} is not the file that was written")));
                }
            }
            if !any && !wanted.ends_with('/') {
                return Err(changed(format!("{wanted} is missing")));
            }
        }
        Ok(())
    }
}

/// Seals a directory that a work directory did not make, as a result of `kind` that names itself.
/// Its directories `loose` are not sealed.
///
/// # Errors
/// Files that cannot be read or written.
pub fn seal(dir: &Path, kind: &str, id: &str, loose: &[&str]) -> Result<()> {
    let loose: Vec<String> = loose.iter().map(ToString::to_string).collect();
    Seal::make(dir, kind, id, &Key::new("named-by-itself/1", ""), &loose, Vec::new(), None).map(drop)
}

/// Hashes and links of a directory.
#[derive(Default)]
struct DirectoryContent {
    files: BTreeMap<RelativePath, Hash>,
    links: BTreeMap<RelativePath, String>,
    bytes: u64,
}

/// A result whose files another one shares by hard links, with its hashes. Hashing these files
/// again would accept damage since they were sealed.
struct LinkedOriginal<'a> {
    dir: &'a Path,
    sums: BTreeMap<RelativePath, Hash>,
}

impl<'a> LinkedOriginal<'a> {
    fn read(dir: &'a Path) -> Result<Self> {
        Ok(Self { dir, sums: Seal::read(dir)?.sums(dir)? })
    }

    /// Returns the hash of the file `name` if `found` is the same file.
    fn hash(&self, name: &RelativePath, found: &fs::Metadata) -> Option<&Hash> {
        let hash = self.sums.get(name)?;
        let own = self.dir.join(name).symlink_metadata().ok()?;
        ((own.dev(), own.ino()) == (found.dev(), found.ino())).then_some(hash)
    }
}

impl DirectoryContent {
    fn of(dir: &Path, loose: &[String], original: Option<&LinkedOriginal>) -> Result<Self> {
        let mut content = Self::default();
        let (mut paths, mut open) = (Vec::new(), vec![dir.to_owned()]);
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).at("list", &directory)? {
                let entry = entry.at("list", &directory)?;
                let path = entry.path();
                let odd = |what: String| Error::Changed { dir: dir.to_owned(), what };
                let name: RelativePath = relative(dir, &path).map_err(odd)?;
                let kind = entry.file_type().at("look at", &path)?;
                if name == RESULT_FILE || name == SUMS_FILE || loose.iter().any(|loose| name == **loose) {
                    continue;
                } else if kind.is_dir() {
                    open.push(path);
                } else if kind.is_symlink() {
                    let target = fs::read_link(&path).at("read", &path)?;
                    let target = target.to_str().filter(|target| !target.contains(char::is_control));
                    let target = target
                        .ok_or_else(|| odd(format!("{name} links to a name that is not plain text")))?;
                    content.links.insert(name, target.to_owned());
                } else if kind.is_file() {
                    let found = entry.metadata().at("look at", &path)?;
                    content.bytes += found.len();
                    match original.and_then(|original| original.hash(&name, &found)) {
                        Some(hash) => {
                            content.files.insert(name, hash.clone());
                        }
                        None => paths.push((name, path)),
                    }
                } else {
                    return Err(odd(format!("{name} is neither file, directory nor symbolic link")));
                }
            }
        }
        content.files.append(&mut hash_all(paths)?);
        Ok(content)
    }

    fn sums(&self) -> String {
        self.files.iter().map(|(path, hash)| format!("{hash}  {path}\n")).collect()
    }

    fn links(&self) -> String {
        if self.links.is_empty() {
            return String::new();
        }
        let text: String = self.links.iter().map(|(path, target)| format!("{path}\0{target}\n")).collect();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}

/// Returns the path of a file below `dir`. Each path is one line of [`SUMS_FILE`], so it must be
/// unambiguous plain text.
fn relative(dir: &Path, path: &Path) -> Result<RelativePath, String> {
    let name = path.strip_prefix(dir).unwrap_or(path);
    let plain = name.to_str().and_then(|name| name.parse().ok());
    plain.ok_or_else(|| {
        format!("the file name `{}` is not plain text", name.display().to_string().escape_debug())
    })
}

/// Hashes files on all processors.
fn hash_all(paths: Vec<(RelativePath, PathBuf)>) -> Result<BTreeMap<RelativePath, Hash>> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let share = paths.len().div_ceil(workers).max(64);
    let hash = |(name, path): &(RelativePath, PathBuf)| Ok((name.clone(), digest(path)?));
    std::thread::scope(|scope| {
        let running: Vec<_> = paths
            .chunks(share)
            .map(|share| scope.spawn(move || share.iter().map(hash).collect::<Result<Vec<_>>>()))
            .collect();
        let mut all = BTreeMap::new();
        for worker in running {
            // Pass a worker's panic on.
            all.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

/// Identity of a file's content: device, inode, size, and change time, which no program can set.
type FileState = (u64, u64, u64, i64, i64);

/// Returns the BLAKE3 hash of a file, 64 hex digits. An unchanged file that this process hashed
/// before is not read again.
///
/// # Errors
/// A file that cannot be read.
pub fn hash_file(path: &Path) -> Result<String> {
    digest(path).map(String::from)
}

pub(crate) fn digest(path: &Path) -> Result<Hash> {
    static KNOWN: OnceLock<Mutex<HashMap<PathBuf, (FileState, Hash)>>> = OnceLock::new();
    let file = open_file(path).at("read", path)?;
    let m = file.metadata().at("look at", path)?;
    let state = (m.dev(), m.ino(), m.len(), m.ctime(), m.ctime_nsec());
    // The map stays valid even if a thread panicked while it held the lock.
    let known = || KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, hash)) = known().get(path).filter(|(then, _)| *then == state) {
        return Ok(hash.clone());
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).at("read", path)?;
    let hash = Hash::from(hasher.finalize());
    // Small files are faster to hash than to remember: a source tree has ninety thousand.
    if m.len() > 64 << 10 {
        known().insert(path.to_owned(), (state, hash.clone()));
    }
    Ok(hash)
}
