//! Source of a kernel: where it comes from, and a hash of its contents.

use crate::inputs::built_in_place::{check_clean, clean_copy};
use crate::inputs::release;
use crate::{tools, Error, Result};
use kerntune_work::{checked, find_program, ContentHash, IoContext, Job, Key, Progress, WorkDir};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// Kind of result in the work directory.
pub(crate) const SOURCES: &str = "sources";

/// Begin of the origin of a kernel that was imported as shipped, without a source. Its release
/// follows.
pub(crate) const SHIPPED: &str = "shipped:";

/// Kernel source as the user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelSource {
    /// Debian's package `linux-source-X`, written `debian:X`.
    Debian(String),
    /// Source tree, used in place.
    Directory(PathBuf),
    /// `.tar.xz`, `.tar.gz`, `.tar.zst` or `.tar.bz2` with one tree in it.
    Tarball(PathBuf),
}

const TARBALL_ENDINGS: &[(&str, &str, &str)] = &[
    (".tar.xz", "xz", "xz-utils"),
    (".tar.gz", "gzip", "gzip"),
    (".tgz", "gzip", "gzip"),
    (".tar.zst", "zstd", "zstd"),
    (".tar.bz2", "bzip2", "bzip2"),
];

impl FromStr for KernelSource {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let bad = |reason: &str| Error::BadSource { given: given.to_string(), reason: reason.to_string() };
        if let Some(version) = given.strip_prefix("debian:") {
            let plain = !version.is_empty() && version.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
            return plain
                .then(|| KernelSource::Debian(version.to_string()))
                .ok_or_else(|| bad("after debian: comes a version such as 6.12"));
        }
        if let Some(release) = given.strip_prefix(SHIPPED) {
            return Err(Error::NoSource { release: release.to_owned() });
        }
        let path = PathBuf::from(given);
        if path.is_dir() {
            Ok(KernelSource::Directory(path))
        } else if !path.exists() {
            Err(bad("there is no such file or directory"))
        } else if TARBALL_ENDINGS.iter().any(|(ending, ..)| given.ends_with(ending)) {
            Ok(KernelSource::Tarball(path))
        } else {
            Err(bad("the file has none of the known endings"))
        }
    }
}

impl KernelSource {
    /// Returns the archive that the source is unpacked from; `None` for a directory.
    pub fn tarball(&self) -> Option<PathBuf> {
        match self {
            KernelSource::Debian(version) => {
                Some(PathBuf::from(format!("/usr/src/linux-source-{version}.tar.xz")))
            }
            KernelSource::Tarball(path) => Some(path.clone()),
            KernelSource::Directory(_) => None,
        }
    }
}

impl fmt::Display for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelSource::Debian(version) => write!(f, "debian:{version}"),
            KernelSource::Directory(path) | KernelSource::Tarball(path) => path.display().fmt(f),
        }
    }
}

/// Source tree that exists, is clean, and whose contents have a hash.
#[derive(Debug, Clone)]
pub struct ImportedSource {
    origin: KernelSource,
    dir: PathBuf,
    hash: String,
    version: String,
    /// Hash of the source with the same configurations: this one, or the one that was patched.
    configured_as: String,
    /// The tree is a copy in the work directory: patched, or of one that was built in place.
    is_copy: bool,
}

impl ImportedSource {
    /// Makes the source available: tarballs are unpacked once into `sources/<hash>` of the work
    /// directory, directories are used in place.
    ///
    /// A directory in which a kernel was built is copied without what the build made.
    ///
    /// A directory's hash covers its git commit and every uncommitted change; without git it covers
    /// all file names, sizes and modification times.
    pub fn import(work: &WorkDir, source: &KernelSource, progress: &dyn Progress) -> Result<Self> {
        let (dir, hash) = match source {
            KernelSource::Directory(path) => {
                let dir = path.canonicalize().at("open source directory", path)?;
                // Checked before the whole directory is hashed: it may be no kernel's.
                read_version(&dir)?;
                if check_clean(&dir).is_err() {
                    tools::plain_path(&dir)?;
                    let (copy, hash) = clean_copy(work, SOURCES, &dir, progress)?;
                    let version = read_version(&copy)?;
                    let configured_as = hash.clone();
                    return Ok(Self {
                        origin: source.clone(),
                        dir: copy,
                        hash,
                        version,
                        configured_as,
                        is_copy: true,
                    });
                }
                let hash = hash_directory(&dir)?;
                (dir, hash)
            }
            KernelSource::Debian(_) | KernelSource::Tarball(_) => unpack(work, &archive(source)?, progress)?,
        };
        tools::plain_path(&dir)?;
        let version = read_version(&dir)?;
        check_clean(&dir)?;
        let configured_as = hash.clone();
        Ok(Self { origin: source.clone(), dir, hash, version, configured_as, is_copy: false })
    }

    /// Returns a source's version. A dry run does not unpack an archive for it.
    ///
    /// # Errors
    /// As [`import`](Self::import).
    pub fn version_of(work: &WorkDir, source: &KernelSource, progress: &dyn Progress) -> Result<String> {
        work.take_missing();
        match Self::import(work, source, progress) {
            Err(_) if work.take_missing() => packed_version(&archive(source)?),
            imported => Ok(imported?.version),
        }
    }

    /// Switches to a patched copy of the tree in the work directory. `reconfigured`: the patches
    /// may affect Kconfig.
    pub(crate) fn in_copy(self, dir: PathBuf, hash: String, reconfigured: bool) -> Result<Self> {
        let version = read_version(&dir)?;
        let configured_as = if reconfigured { hash.clone() } else { self.configured_as };
        Ok(Self { dir, hash, version, configured_as, is_copy: true, ..self })
    }

    /// Returns the top of the tree, absolute. Builds never write into it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the hash over the contents, 16 hex digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the [`hash`](Self::hash) of the source whose configurations this one shares.
    pub(crate) fn configured_as(&self) -> &str {
        &self.configured_as
    }

    /// Returns VERSION.PATCHLEVEL.SUBLEVEL and EXTRAVERSION of the Makefile, such as `6.12.117` or
    /// `7.0.0-rc3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the source as the user named it.
    pub fn origin(&self) -> &KernelSource {
        &self.origin
    }

    /// Checks that all files of a source in the work directory are as they were unpacked or
    /// patched. Reads all of them.
    pub(crate) fn check(&self, work: &WorkDir) -> Result<()> {
        if self.is_in(work) {
            checked(&self.dir, &[])?;
        }
        Ok(())
    }

    /// Checks whether the tree is a result in the work directory.
    pub(crate) fn is_in(&self, work: &WorkDir) -> bool {
        work.find(SOURCES, &self.hash).is_some_and(|dir| dir == self.dir)
    }

    /// Checks that a source used in place has not changed since it was imported.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        match &self.origin {
            KernelSource::Directory(_) if !self.is_copy && hash_directory(&self.dir)? != self.hash => {
                Err(Error::SourceChanged { dir: self.dir.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the path of a source's archive, which for Debian's sources must exist.
fn archive(source: &KernelSource) -> Result<PathBuf> {
    let path = source.tarball().unwrap_or_default();
    match source {
        KernelSource::Debian(version) if !path.is_file() => {
            let installed = installed(path.parent().unwrap_or(Path::new("/usr/src")));
            Err(Error::NoDebianSource { version: version.clone(), path, installed })
        }
        _ => Ok(path),
    }
}

/// Returns the installed versions of Debian's sources, in order.
pub(crate) fn installed(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let version = |name: &str| Some(name.strip_prefix("linux-source-")?.strip_suffix(".tar.xz")?.to_owned());
    let mut found: Vec<String> =
        entries.filter_map(|entry| version(&entry.file_name().to_string_lossy())).collect();
    let numbers =
        |text: &str| -> Vec<u64> { text.split('.').map(|part| part.parse().unwrap_or(0)).collect() };
    found.sort_by_key(|version| numbers(version));
    found
}

/// Checks a source, reading only the first lines of its Makefile. Returns the version of a tree,
/// `None` for an archive.
///
/// # Errors
/// A source that does not exist; a directory that is no kernel source.
pub(crate) fn check_in_place(source: &KernelSource) -> Result<Option<String>> {
    let KernelSource::Directory(path) = source else {
        let path = archive(source)?;
        fs::metadata(&path).at("open", &path)?;
        return Ok(None);
    };
    let dir = path.canonicalize().at("open source directory", path)?;
    tools::plain_path(&dir)?;
    Ok(Some(read_version(&dir)?))
}

fn unpack(work: &WorkDir, tarball: &Path, progress: &dyn Progress) -> Result<(PathBuf, String)> {
    let tarball = tarball.canonicalize().at("open", tarball)?;
    let name = tarball.to_string_lossy();
    let Some((_, program, package)) = TARBALL_ENDINGS.iter().find(|(ending, ..)| name.ends_with(ending))
    else {
        return Err(Error::Unpack { tarball: tarball.clone(), message: "unknown kind of archive".into() });
    };
    let key = Key::new("source-tarball/2", "").file("tarball", &tarball)?;
    let hash = key.id();
    if let Some(dir) = work.find(SOURCES, &hash) {
        return Ok((dir, hash));
    }
    tools::require(&[("tar", "tar"), (program, package)])?;
    let staged = work.stage(SOURCES, &key)?;
    if let Some(dir) = staged.already() {
        return Ok((dir, hash));
    }
    staged.clear()?;
    progress.begin(&format!("unpack {}", tarball.display()), None);
    let mut command = Command::new("tar");
    command
        .args(["--extract", "--verbose", "--strip-components=1", "--no-same-owner", "--use-compress-program"])
        .arg(format!("{program} -d"))
        .arg("--file")
        .arg(&tarball)
        .arg("--directory")
        .arg(staged.path())
        .env("LC_ALL", "C");
    let (mut files, mut complaint) = (0u64, None);
    let end = Job::new(command).run(
        |line| {
            if line.starts_with("tar: ") || line.starts_with(program) {
                complaint.get_or_insert_with(|| line.to_string());
            } else {
                files += 1;
                if files % 256 == 0 {
                    progress.at(files);
                }
            }
            true
        },
        || true,
    );
    progress.end();
    if !end?.success() {
        let message = complaint.unwrap_or_else(|| "tar gave no reason".to_string());
        return Err(Error::Unpack { tarball, message });
    }
    // Checked before it is published: an archive of something else must not be cached as a source.
    read_version(staged.path())?;
    Ok((staged.publish()?, hash))
}

/// Reads the version from the top Makefile's first assignments.
fn read_version(dir: &Path) -> Result<String> {
    let bad = |reason: String| Error::NotKernelTree { dir: dir.to_owned(), reason };
    let missing = |name: &&str| !dir.join(name).is_file();
    let missing: Vec<&str> = ["Makefile", "Kconfig"].into_iter().filter(missing).collect();
    if !missing.is_empty() {
        return Err(bad(format!("no {}", missing.join("/"))));
    }
    let text = fs::read(dir.join("Makefile")).map_err(|e| bad(format!("its Makefile: {e}")))?;
    version_in(&String::from_utf8_lossy(&text)).map_or_else(
        || Err(bad("its Makefile has no VERSION, PATCHLEVEL and SUBLEVEL".into())),
        |version| release::check(&version, "").map(|()| version),
    )
}

/// Reads the version of the archive of a kernel's source, which is not unpacked.
fn packed_version(tarball: &Path) -> Result<String> {
    let refuse = |message: String| Error::Unpack { tarball: tarball.to_owned(), message };
    let name = tarball.to_string_lossy();
    let ending = TARBALL_ENDINGS.iter().find(|(ending, ..)| name.ends_with(ending));
    let (_, program, package) = ending.ok_or_else(|| refuse("unknown kind of archive".into()))?;
    tools::require(&[("tar", "tar"), (program, package)])?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--to-stdout", "--occurrence=1", "--wildcards", "--no-wildcards-match-slash"]);
    tar.arg("--use-compress-program")
        .arg(format!("{program} -d"))
        .arg("--file")
        .arg(tarball)
        .arg("*/Makefile");
    let out = tar.output().at("read", tarball)?;
    let version = version_in(&String::from_utf8_lossy(&out.stdout));
    let version = version.ok_or_else(|| refuse("its Makefile has no version".into()))?;
    release::check(&version, "").map(|()| version)
}

/// Returns the version in the Makefile of a kernel's source.
fn version_in(makefile: &str) -> Option<String> {
    let value = |name: &str| {
        makefile.lines().take(20).find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim().to_string())
        })
    };
    let (version, patch_level, sub_level) = (value("VERSION")?, value("PATCHLEVEL")?, value("SUBLEVEL")?);
    Some(format!("{version}.{patch_level}.{sub_level}{}", value("EXTRAVERSION").unwrap_or_default()))
}

fn hash_directory(dir: &Path) -> Result<String> {
    if dir.join(".git").exists() && find_program("git", &[]).is_some() {
        if let Some(hash) = hash_git(dir)? {
            return Ok(hash);
        }
    }
    let mut entries = Vec::new();
    list_tree(dir, dir, &mut entries)?;
    entries.sort();
    Ok(ContentHash::new("source-tree/1").field("files", entries.join("\n")).finish())
}

/// Hashes the commit, the difference to it, and the contents of untracked files. `None` if git
/// fails (no commit yet, tree of another owner …).
fn hash_git(dir: &Path) -> Result<Option<String>> {
    let git = |args: &[&str]| -> Result<Option<Vec<u8>>> {
        let out = kerntune_work::git(dir)?
            .args(args)
            .output()
            .map_err(|source| kerntune_work::Error::Spawn { program: "git".into(), source })?;
        Ok(out.status.success().then_some(out.stdout))
    };
    let (Some(head), Some(diff), Some(untracked)) = (
        git(&["rev-parse", "HEAD"])?,
        git(&["diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv"])?,
        git(&["ls-files", "-z", "--others", "--exclude-standard"])?,
    ) else {
        return Ok(None);
    };
    let mut hash = ContentHash::new("source-git/1").field("head", head).field("diff", diff);
    for name in String::from_utf8_lossy(&untracked).split('\0').filter(|n| !n.is_empty()) {
        let path = dir.join(name);
        if path.is_file() {
            hash = hash.field("name", name).file("content", &path)?;
        }
    }
    Ok(Some(hash.finish()))
}

fn list_tree(top: &Path, dir: &Path, entries: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(dir).at("list", dir)? {
        let path = entry.at("list", dir)?.path();
        let meta = path.symlink_metadata().at("look at", &path)?;
        if meta.is_dir() {
            if path.file_name().is_some_and(|n| n != ".git") {
                list_tree(top, &path, entries)?;
            }
        } else {
            let name = path.strip_prefix(top).unwrap_or(&path).display();
            entries.push(format!("{name}\t{}\t{}.{:09}", meta.len(), meta.mtime(), meta.mtime_nsec()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_work::NoProgress;

    /// Smallest tree that passes for a kernel.
    fn tree(dir: &Path) {
        fs::create_dir_all(dir.join("kernel")).unwrap();
        let head = "# SPDX-License-Identifier: GPL-2.0\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n";
        fs::write(dir.join("Makefile"), head).unwrap();
        fs::write(dir.join("Kconfig"), "").unwrap();
        fs::write(dir.join("kernel/fork.c"), "int x;\n").unwrap();
    }

    #[test]
    fn sources_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let tarball = dir.path().join("linux-6.1.tar.xz");
        fs::write(&tarball, "").unwrap();
        assert_eq!("debian:6.12".parse::<KernelSource>().unwrap(), KernelSource::Debian("6.12".into()));
        assert_eq!(
            dir.path().to_str().unwrap().parse::<KernelSource>().unwrap(),
            KernelSource::Directory(dir.path().into())
        );
        assert_eq!(
            tarball.to_str().unwrap().parse::<KernelSource>().unwrap(),
            KernelSource::Tarball(tarball)
        );
        assert!("debian:../x".parse::<KernelSource>().unwrap_err().to_string().contains("6.12"));
        assert!("/no/such".parse::<KernelSource>().unwrap_err().to_string().contains("no such file"));
        assert!("/etc/passwd".parse::<KernelSource>().unwrap_err().to_string().contains("endings"));
    }

    #[test]
    fn sources_that_are_installed_are_listed_by_their_versions() {
        let dir = tempfile::tempdir().unwrap();
        for name in
            ["linux-source-6.12.tar.xz", "linux-source-6.1.tar.xz", "linux-config-6.1", "linux-source-7.3"]
        {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(installed(dir.path()), ["6.1", "6.12"]);
        assert!(installed(&dir.path().join("none")).is_empty());
    }

    #[test]
    fn an_absent_debian_package_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let error =
            ImportedSource::import(&work, &KernelSource::Debian("1.0".into()), &NoProgress).unwrap_err();
        assert!(error.to_string().contains(&crate::install_advice(&["linux-source-1.0".into()])), "{error}");
    }

    #[test]
    fn a_tarball_is_unpacked_once() {
        let dir = tempfile::tempdir().unwrap();
        tree(&dir.path().join("linux-6.12"));
        let tarball = dir.path().join("l.tar.gz");
        let made = Command::new("tar")
            .args(["-czf", tarball.to_str().unwrap(), "-C", dir.path().to_str().unwrap(), "linux-6.12"])
            .status()
            .unwrap();
        assert!(made.success());
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let source = KernelSource::Tarball(tarball.clone());
        let dry = WorkDir::open_for_dry_run(work.root()).unwrap();
        assert_eq!(ImportedSource::version_of(&dry, &source, &NoProgress).unwrap(), "6.12.117");
        assert!(work.list("sources").unwrap().is_empty());
        let first = ImportedSource::import(&work, &source, &NoProgress).unwrap();
        assert_eq!(first.version(), "6.12.117");
        assert!(first.dir().join("kernel/fork.c").is_file());
        let again = ImportedSource::import(&work, &source, &NoProgress).unwrap();
        assert_eq!((first.dir(), first.hash()), (again.dir(), again.hash()));
        assert_eq!(work.list("sources").unwrap().len(), 1);
    }

    #[test]
    fn a_truncated_tarball_is_refused_and_not_cached() {
        let dir = tempfile::tempdir().unwrap();
        let tarball = dir.path().join("l.tar.gz");
        fs::write(&tarball, [0x1f, 0x8b, 8, 0, 0]).unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let error = ImportedSource::import(&work, &KernelSource::Tarball(tarball), &NoProgress).unwrap_err();
        assert!(error.to_string().contains("cannot unpack"), "{error}");
        assert!(work.list("sources").unwrap().is_empty());
    }

    #[test]
    fn a_tree_that_was_built_in_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("src");
        tree(&top);
        fs::write(top.join(".config"), "").unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let error = ImportedSource::import(&work, &KernelSource::Directory(top), &NoProgress).unwrap_err();
        assert!(error.to_string().contains("mrproper"), "{error}");
    }

    #[test]
    fn a_change_in_a_directory_changes_its_hash_with_and_without_git() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("src");
        tree(&top);
        let plain = hash_directory(&top).unwrap();
        fs::write(top.join("kernel/fork.c"), "int longer;\n").unwrap();
        assert_ne!(hash_directory(&top).unwrap(), plain);

        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.arg("-C").arg(&top).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
            assert!(command.output().unwrap().status.success(), "{args:?}");
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "x"]);
        let committed = hash_directory(&top).unwrap();
        fs::write(top.join("kernel/fork.c"), "int other!;\n").unwrap();
        let edited = hash_directory(&top).unwrap();
        fs::write(top.join("kernel/new.c"), "").unwrap();
        let added = hash_directory(&top).unwrap();
        assert!(committed != edited && edited != added);
    }

    #[test]
    fn something_else_is_not_a_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let source = KernelSource::Directory(dir.path().to_owned());
        assert!(matches!(
            ImportedSource::import(&work, &source, &NoProgress),
            Err(Error::NotKernelTree { .. })
        ));
    }
}
