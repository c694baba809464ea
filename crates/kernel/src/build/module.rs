//! Kernel modules of kerntune, built out of tree: against a kernel with kept objects, or against
//! the headers of the running kernel.

use crate::link::borrowed::BorrowedObjects;
use crate::make::build_tree::BuildTree;
use crate::make::diagnose::diagnose;
use crate::make::kbuild::{make_args, Kbuild};
use crate::make::object_cache::ObjectCache;
use crate::make::object_flags::make_flags;
use crate::{tools, Compiler, Error, Kernel, Result};
use kerntune_work::{hash_file, IoContext, Job, JobEnd, Key, Progress, WorkDir};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Kind of result in the work directory.
const KIND: &str = "modules";

/// Name and files of a module, among them a `Makefile` for Kbuild.
#[derive(Debug, Clone, Copy)]
pub struct ModuleSource {
    /// Name of the module; the result is `NAME.ko`.
    pub name: &'static str,
    /// Names and contents of the source files.
    pub files: &'static [(&'static str, &'static str)],
}

impl ModuleSource {
    fn key(&self) -> Key {
        let named = Key::new("module/1", "").field("module", self.name);
        self.files.iter().fold(named, |key, (name, text)| key.field("file", name).field("text", text))
    }

    fn write(&self, to: &Path) -> Result<()> {
        fs::create_dir_all(to).at("create", to)?;
        for (name, text) in self.files {
            let path = to.join(name);
            fs::write(&path, text).at("write", &path)?;
        }
        Ok(())
    }

    fn file(&self) -> String {
        format!("{}.ko", self.name)
    }
}

/// Headers that a distribution installs to build modules for a kernel:
/// `/lib/modules/RELEASE/build`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelHeaders {
    /// Release of the kernel, as in `uname -r`.
    pub release: String,
    dir: PathBuf,
    config: String,
}

impl KernelHeaders {
    /// Finds the headers of the running kernel.
    ///
    /// # Errors
    /// [`Error::NoHeaders`] if they are missing or belong to another kernel.
    pub fn of_running() -> Result<Self> {
        const RELEASE: &str = "/proc/sys/kernel/osrelease";
        let release = fs::read_to_string(RELEASE).at("read", RELEASE)?;
        Self::below(Path::new("/lib/modules"), release.trim())
    }

    /// Finds the headers of a release below a directory such as `/lib/modules`.
    ///
    /// # Errors
    /// Those of [`KernelHeaders::of_running`].
    pub fn below(modules: &Path, release: &str) -> Result<Self> {
        let dir = modules.join(release).join("build");
        let missing =
            |reason: String| Error::NoHeaders { release: release.to_string(), dir: dir.clone(), reason };
        if !dir.is_dir() {
            return Err(missing("it is not there".into()));
        }
        for file in ["Makefile", "Module.symvers", "include/config/auto.conf"] {
            if !dir.join(file).is_file() {
                return Err(missing(format!("{file} is missing in it")));
            }
        }
        if let Some(built_for) = release_of(&dir).filter(|built_for| built_for != release) {
            return Err(missing(format!("it is of the kernel {built_for}")));
        }
        let path = dir.join("include/config/auto.conf");
        let config = fs::read_to_string(&path).at("read", &path)?;
        Ok(Self { release: release.to_string(), dir, config })
    }

    /// Checks whether the kernel was configured with `line`, such as `CONFIG_FUNCTION_TRACER=y`.
    pub fn has(&self, line: &str) -> bool {
        self.config.lines().any(|has| has == line)
    }
}

/// Returns the release of the kernel that headers are of: the one that modules get. Debian 12 has the
/// upstream version in `kernel.release`.
fn release_of(dir: &Path) -> Option<String> {
    let header = fs::read_to_string(dir.join("include/generated/utsrelease.h")).unwrap_or_default();
    let defined = header.lines().find_map(|line| line.strip_prefix("#define UTS_RELEASE "));
    if let Some(release) = defined {
        return Some(release.trim().trim_matches('"').into());
    }
    let release = fs::read_to_string(dir.join("include/config/kernel.release")).ok()?;
    Some(release.trim().into())
}

/// Builds a module against a kernel with kept objects, or returns the one that was built before.
///
/// # Errors
/// [`Error::NoObjects`]; a configuration without modules; failed builds, with the first error of
/// the log.
pub fn build_module(
    work: &WorkDir,
    kernel: &Kernel,
    source: &ModuleSource,
    progress: &dyn Progress,
) -> Result<PathBuf> {
    let of = &kernel.manifest;
    let config = fs::read_to_string(kernel.config()).at("read", kernel.config())?;
    if !config.lines().any(|line| line == "CONFIG_MODULES=y") {
        return Err(Error::ConfigRefused {
            problems: vec![format!("kernel {} ({}) has no modules: CONFIG_MODULES=y", of.label, of.id)],
        });
    }
    let key = source.key().field("kernel", &of.id).field("images", kernel.content()?);
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        return Ok(dir.join(source.file()));
    }
    staged.clear()?;
    let from = staged.path().join("source");
    source.write(&from)?;
    let objects = BorrowedObjects::borrow(work, kernel)?;
    let tree = BuildTree::of(objects.partial());
    let compiler: Compiler = of.cc.parse()?;
    let log = staged.path().join("build.log");
    let cache = ObjectCache::of(work);
    let kbuild = Kbuild {
        tree: &tree,
        arch: of.arch,
        compiler: &compiler,
        make_vars: &of.make_vars,
        log: log.clone(),
        cache: cache.as_ref(),
    };
    let flags = make_flags(&of.flags(), &of.object_flags, &of.object_groups);
    let what = format!("build {} for {} {}", source.file(), of.label, of.version);
    kbuild.make(&what, &make_args(None, &flags, &["modules_prepare"]), None, progress)?;
    let (exported, all) = (objects.build().join("vmlinux.symvers"), objects.build().join("Module.symvers"));
    if !all.is_file() {
        // Kbuild writes it with the kernel's own modules, which were not built.
        fs::copy(&exported, &all).at("copy", &exported)?;
    }
    let mut args = make_args(None, &flags, &["modules"]);
    args.push(format!("M={}", from.display()));
    kbuild.make(&what, &args, None, progress)?;
    drop(objects);
    publish(staged, source, &from)
}

/// Builds a module against the headers of an installed kernel, or returns the one that was built
/// before.
///
/// # Errors
/// Missing tools; failed builds, with the first error of the log.
pub fn build_module_for(
    work: &WorkDir,
    headers: &KernelHeaders,
    source: &ModuleSource,
    progress: &dyn Progress,
) -> Result<PathBuf> {
    tools::require(&[("make", "make"), ("ld", "binutils")])?;
    let mut key = source.key().field("release", &headers.release);
    for file in ["Module.symvers", "include/config/auto.conf"] {
        key = key.field(file, hash_file(&headers.dir.join(file))?);
    }
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        return Ok(dir.join(source.file()));
    }
    staged.clear()?;
    let from = staged.path().join("source");
    source.write(&from)?;
    tools::plain_path(&from)?;
    let mut command = Command::new("make");
    tools::pin_environment(&mut command);
    command.arg("-C").arg(&headers.dir).arg(format!("M={}", from.display())).arg("modules");
    let what = format!("build {} for {}", source.file(), headers.release);
    progress.begin(&what, None);
    let mut said = String::new();
    let end = Job::new(command).run(
        |line| {
            said.push_str(line);
            said.push('\n');
            true
        },
        || true,
    );
    progress.end();
    let log = staged.path().join("build.log");
    fs::write(&log, &said).at("write", &log)?;
    match end? {
        JobEnd::Exited(status) if status.success() => publish(staged, source, &from),
        _ => {
            let found = diagnose(&said);
            Err(Error::Make { step: what, first: found.first, hint: found.hint, log })
        }
    }
}

fn publish(staged: kerntune_work::StagedResult, source: &ModuleSource, from: &Path) -> Result<PathBuf> {
    let (made, to) = (from.join(source.file()), staged.path().join(source.file()));
    fs::rename(&made, &to).at("rename", &made)?;
    fs::remove_dir_all(from).at("remove", from)?;
    Ok(staged.publish()?.join(source.file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_are_missing_or_of_another_kernel_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let below = |release: &str| KernelHeaders::below(dir.path(), release);
        let said = below("6.1.0-1").unwrap_err().to_string();
        assert!(said.contains("6.1.0-1") && said.contains("apt-get install linux-headers-6.1.0-1"), "{said}");
        let build = dir.path().join("6.1.0-1/build");
        fs::create_dir_all(build.join("include/config")).unwrap();
        assert!(below("6.1.0-1").unwrap_err().to_string().contains("Makefile is missing"));
        fs::write(build.join("Makefile"), "").unwrap();
        fs::write(build.join("Module.symvers"), "").unwrap();
        fs::write(build.join("include/config/auto.conf"), "CONFIG_FUNCTION_TRACER=y\n").unwrap();
        let headers = below("6.1.0-1").unwrap();
        assert!(headers.has("CONFIG_FUNCTION_TRACER=y") && !headers.has("CONFIG_FUNCTION"));
        fs::write(build.join("include/config/kernel.release"), "6.1.0-2\n").unwrap();
        assert!(below("6.1.0-1").unwrap_err().to_string().contains("of the kernel 6.1.0-2"));
        // As Debian 12's: the upstream version there, and the release in the header.
        fs::create_dir_all(build.join("include/generated")).unwrap();
        fs::write(build.join("include/generated/utsrelease.h"), "#define UTS_RELEASE \"6.1.0-1\"\n").unwrap();
        below("6.1.0-1").unwrap();
    }
}
