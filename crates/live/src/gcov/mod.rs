//! Counters of a running instrumented kernel: reset, and collection into a directory.
//!
//! The kernel shows them below `gcov` of debugfs, those of loaded modules too (and, as the kernel
//! keeps them, those of modules that were loaded before). debugfs is read without mounting it
//! anywhere, so the system stays as it is. Another machine is asked through `ssh`
//! ([`GcovMachine::Ssh`]), and nothing is installed there.

mod archive;
mod local;
mod manifest;
mod remote;

pub use archive::read_archive;
pub use manifest::{GcovManifest, ModuleFiles, GCOV_MANIFEST};

use crate::{Error, Result};
use kerntune_profile::rfc3339;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// Largest size of all counters together, in bytes. An instrumented kernel with all modules of a
/// distribution has about 200 MiB.
const MAX_BYTES: u64 = 1 << 30;
/// Largest number of counter files.
const MAX_FILES: usize = 200_000;

/// Machine whose kernel counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GcovMachine {
    /// This machine.
    Here,
    /// A machine that `ssh` reaches without asking for a password: `user@machine`, or a name of
    /// `ssh_config`.
    Ssh {
        /// Name of the machine.
        host: String,
        /// Values of `ssh -o`.
        options: Vec<String>,
    },
}

impl GcovMachine {
    /// Checks the argument of `--host`; `options` are values of `ssh -o`.
    ///
    /// # Errors
    /// A name that `ssh` would take for an option, or with characters that no name has.
    pub fn ssh(name: &str, options: &[String]) -> Result<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "@.-_:%[]".contains(c);
        if name.is_empty() || name.starts_with('-') || !name.chars().all(fits) {
            return Err(Error::Gcov(format!("--host {name:?} is no name of a machine: give user@machine")));
        }
        Ok(Self::Ssh { host: name.into(), options: options.to_vec() })
    }
}

/// Facts about the machine that counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountingKernel {
    /// Content of `/proc/sys/kernel/osrelease`.
    pub release: String,
    /// Content of `/sys/kernel/notes`.
    pub notes: Vec<u8>,
    /// Content of `/proc/modules`.
    pub modules: String,
}

/// Sets all counters to 0, and forgets those of modules that are no longer loaded.
///
/// # Errors
/// No instrumented kernel, no root, a machine that is not reached.
pub fn reset_gcov(machine: &GcovMachine) -> Result<()> {
    match machine {
        GcovMachine::Here => local::reset(),
        GcovMachine::Ssh { host, options } => remote::reset((host, options)),
    }
}

/// Collects all counters into the new directory `out`: `gcov/PATH.gcda` as the kernel names them, and
/// the manifest [`GCOV_MANIFEST`]. The directory appears complete, or not at all.
///
/// `build_id` reads the build id from the content of `/sys/kernel/notes`.
///
/// # Errors
/// As [`reset_gcov`]; a directory that exists; names that are no relative paths of counters.
pub fn collect_gcov(
    machine: &GcovMachine,
    out: &Path,
    build_id: impl Fn(&[u8]) -> Option<String>,
) -> Result<GcovManifest> {
    if out.symlink_metadata().is_ok() {
        return Err(Error::Gcov(format!("{} exists: give a new directory with -o", out.display())));
    }
    let mut name = out.file_name().map(ToOwned::to_owned).unwrap_or_default();
    if name.is_empty() {
        return Err(Error::Gcov(format!("{} is no name of a directory: give one with -o", out.display())));
    }
    name.push(format!(".partial-{}", std::process::id()));
    let partial = PartialDirectory(out.with_file_name(name));
    fs::create_dir_all(&partial.0).map_err(Error::io("create", &partial.0))?;
    let top = partial.0.join("gcov");
    let mut sink = CounterSink { top: top.clone(), files: Vec::new(), bytes: 0 };
    let kernel = match machine {
        GcovMachine::Here => local::collect(&mut sink)?,
        GcovMachine::Ssh { host, options } => remote::collect((host, options), &mut sink)?,
    };
    if sink.files.is_empty() {
        return Err(Error::Gcov(
            "the kernel shows no counters: no object of it is instrumented (CONFIG_GCOV_PROFILE_ALL)".into(),
        ));
    }
    let manifest = GcovManifest {
        schema: manifest::SCHEMA.into(),
        host: match machine {
            GcovMachine::Here => None,
            GcovMachine::Ssh { host, .. } => Some(host.clone()),
        },
        release: kernel.release.trim().to_owned(),
        build_id: build_id(&kernel.notes),
        collected: rfc3339(SystemTime::now()),
        files: sink.files.len() as u64,
        bytes: sink.bytes,
        modules: ModuleFiles::of(&kernel.modules, &sink.files),
    };
    manifest.write(&partial.0)?;
    fs::rename(&partial.0, out).map_err(Error::io("rename to", out))?;
    std::mem::forget(partial);
    Ok(manifest)
}

/// Directory that is removed unless it was renamed.
struct PartialDirectory(PathBuf);

impl Drop for PartialDirectory {
    fn drop(&mut self) {
        // What cannot be removed is named .partial, and no command reads it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Receives counter files, checks their names and sizes, and writes them.
pub(crate) struct CounterSink {
    top: PathBuf,
    files: Vec<PathBuf>,
    bytes: u64,
}

impl CounterSink {
    /// Writes the file `name`, a path below `gcov` of debugfs.
    pub fn add(&mut self, name: &Path, bytes: &[u8]) -> Result<()> {
        let name = checked_name(name)?;
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.files.len() >= MAX_FILES || self.bytes > MAX_BYTES {
            return Err(Error::Gcov(format!(
                "there are more than {MAX_FILES} counter files or {MAX_BYTES} bytes of them: this is no kernel's gcov"
            )));
        }
        let path = self.top.join(&name);
        let parent = path.parent().unwrap_or(&self.top);
        fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        fs::write(&path, bytes).map_err(Error::io("write", &path))?;
        self.files.push(name);
        Ok(())
    }
}

/// Returns a relative path without `.` and `..` that ends in `.gcda`.
fn checked_name(name: &Path) -> Result<PathBuf> {
    let refuse = || {
        Error::Gcov(format!(
            "the kernel's counters have a file named {:?}, which is no relative path to a .gcda file",
            name.display().to_string()
        ))
    };
    let mut clean = PathBuf::new();
    for part in name.components() {
        match part {
            Component::Normal(part) => clean.push(part),
            Component::CurDir => {}
            _ => return Err(refuse()),
        }
    }
    match clean.extension().is_some_and(|end| end == "gcda") {
        true => Ok(clean),
        false => Err(refuse()),
    }
}

#[cfg(test)]
mod tests;
