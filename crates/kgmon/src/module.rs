//! Building, loading and unloading the module, and reasons that it cannot be loaded.

use crate::{Error, Result};
use kerntune_kernel::{Kernel, KernelHeaders, ModuleSource};
use kerntune_work::{Progress, WorkDir};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../embedded/kernel/kgmon/", $name)))),*]
    };
}

/// Source files of the module, compiled into this program.
pub const SOURCE: ModuleSource = ModuleSource {
    name: "kgmon",
    files: files![
        "Makefile",
        "counting.c",
        "entry.S",
        "fail.c",
        "format.h",
        "kgmon.h",
        "main.c",
        "modules.c",
        "sample.c",
        "sentinel.c",
        "session.c",
        "sites.c",
        "snapshot.c",
        "table.c",
    ],
};

/// Builds the module for the running kernel against its headers, unless the work directory has it
/// already.
///
/// # Errors
/// [`kerntune_kernel::Error::NoHeaders`]; a kernel without a function tracer; a failed build.
pub fn build(work: &WorkDir, progress: &dyn Progress) -> Result<PathBuf> {
    let headers = KernelHeaders::of_running()?;
    if !headers.has("CONFIG_FUNCTION_TRACER=y") || !headers.has("CONFIG_DYNAMIC_FTRACE=y") {
        return Err(Error::NoFunctionTracer);
    }
    Ok(kerntune_kernel::build_module_for(work, &headers, &SOURCE, progress)?)
}

/// Returns the module for the running kernel, installed by a package or else built.
///
/// # Errors
/// The errors of [`build`].
pub fn find_or_build(work: &WorkDir, progress: &dyn Progress) -> Result<PathBuf> {
    match installed() {
        Some(path) => Ok(path),
        None => build(work, progress),
    }
}

/// Returns the module that a package (DKMS) or `make modules_install` installed for the running
/// kernel. `None` if there is none, or if it is compressed.
pub fn installed() -> Option<PathBuf> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let top = Path::new("/lib/modules").join(release);
    ["updates/dkms", "updates", "extra"]
        .map(|folder| top.join(folder).join("kgmon.ko"))
        .into_iter()
        .find(|path| path.is_file())
}

/// Builds the module for a kernel of the work directory, whose objects must have been kept.
///
/// # Errors
/// [`kerntune_kernel::Error::NoObjects`]; a kernel without modules; a failed build.
pub fn build_for(work: &WorkDir, kernel: &Kernel, progress: &dyn Progress) -> Result<PathBuf> {
    Ok(kerntune_kernel::build_module(work, kernel, &SOURCE, progress)?)
}

/// Returns the first known reason that the running kernel would refuse the module, whether or not
/// it can be built. Checked in this order: not root, lockdown, no modules, enforced signatures, no
/// function tracer.
pub fn obstacle() -> Option<Error> {
    let root = rustix::process::geteuid().is_root();
    obstacle_below(Path::new("/"), root)
}

fn obstacle_below(top: &Path, root: bool) -> Option<Error> {
    let read = |path: &str| fs::read_to_string(top.join(path)).ok();
    let is = |path: &str, value: &str| read(path).is_some_and(|text| text.trim() == value);
    if !root {
        return Some(Error::NotRoot);
    }
    let lockdown = read("sys/kernel/security/lockdown").unwrap_or_default();
    if let Some(mode) = lockdown.split('[').nth(1).and_then(|rest| rest.split(']').next()) {
        if mode != "none" {
            return Some(Error::LockedDown { mode: mode.to_string() });
        }
    }
    if read("proc/modules").is_none() {
        return Some(Error::NoModules { reason: "it was built without them (CONFIG_MODULES)" });
    }
    if is("proc/sys/kernel/modules_disabled", "1") {
        return Some(Error::NoModules {
            reason: "that was switched off until the next boot (kernel.modules_disabled is 1)",
        });
    }
    if is("sys/module/module/parameters/sig_enforce", "Y") {
        return Some(Error::SignatureEnforced);
    }
    // This sysctl exists only if functions can be traced dynamically.
    if read("proc/sys/kernel/ftrace_enabled").is_none() {
        return Some(Error::NoFunctionTracer);
    }
    if is("proc/sys/kernel/ftrace_enabled", "0") {
        return Some(Error::Refused {
            command: "start".into(),
            said: "ftrace is switched off: `sysctl kernel.ftrace_enabled=1`".into(),
        });
    }
    None
}

/// Returns true if the module is loaded.
pub fn is_loaded() -> bool {
    Path::new("/sys/module/kgmon").is_dir()
}

/// Loads a built module into the running kernel. Does nothing if it is already loaded.
///
/// # Errors
/// An [`obstacle`]; [`Error::Load`] with the kernel's reason.
pub fn load(module: &Path) -> Result<()> {
    if is_loaded() {
        return Ok(());
    }
    if let Some(error) = obstacle() {
        return Err(error);
    }
    let io = |action| move |source| Error::Io { action, path: module.to_owned(), source };
    let file = File::open(module).map_err(io("open"))?;
    let text =
        text_of_kernel()?.map_or(String::new(), |(start, end)| format!("text_start={start} text_end={end}"));
    let parameters = CString::new(text).unwrap_or_default();
    rustix::system::finit_module(&file, &parameters, 0).map_err(|errno| {
        let hint = match errno {
            rustix::io::Errno::NOEXEC => "; it was built for another kernel, or by another compiler",
            rustix::io::Errno::NOENT => {
                "; this kernel lacks a function that the module calls (`dmesg` names it)"
            }
            rustix::io::Errno::KEYREJECTED | rustix::io::Errno::NOKEY => {
                "; the kernel wants it signed by a key that it trusts"
            }
            rustix::io::Errno::PERM => "; lockdown, or a container without CAP_SYS_MODULE",
            _ => "",
        };
        Error::Load { module: module.to_owned(), source: errno.into(), hint }
    })
}

/// Unloads the module from the running kernel; counting stops first. Does nothing if it is not
/// loaded.
///
/// # Errors
/// [`Error::Unload`], for example while a process has the device open.
pub fn unload() -> Result<()> {
    // O_NONBLOCK of delete_module(2): do not wait.
    let flags = 0o4000;
    match rustix::system::delete_module(c"kgmon", flags) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(errno) => {
            let hint = match errno {
                rustix::io::Errno::AGAIN => "; somebody has /dev/kgmon open",
                rustix::io::Errno::PERM => "; only root may",
                _ => "",
            };
            Err(Error::Unload { source: errno.into(), hint })
        }
    }
}

/// Returns begin and end of the running kernel's code; `None` if the kernel hides them.
fn text_of_kernel() -> Result<Option<(u64, u64)>> {
    const PATH: &str = "/proc/kallsyms";
    let io = |action| move |source| Error::Io { action, path: PATH.into(), source };
    let file = match File::open(PATH) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io("open")(error)),
    };
    let (mut start, mut end) = (None, None);
    for line in BufReader::new(file).lines() {
        let line = line.map_err(io("read"))?;
        let mut words = line.split_whitespace();
        let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        match words.nth(1) {
            Some("_stext") => start = address,
            Some("_etext") => end = address,
            _ => {}
        }
        if let (Some(start), Some(end)) = (start, end) {
            return Ok((start < end).then_some((start, end)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(top: &Path, path: &str, text: &str) {
        let path = top.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn each_obstacle_is_named_in_its_turn() {
        let dir = tempfile::tempdir().unwrap();
        let said = |root| obstacle_below(dir.path(), root).map_or(String::new(), |error| error.to_string());
        assert!(said(false).contains("as root"));
        assert!(said(true).contains("CONFIG_MODULES"));
        put(dir.path(), "proc/modules", "");
        assert!(said(true).contains("CONFIG_FUNCTION_TRACER"));
        put(dir.path(), "proc/sys/kernel/ftrace_enabled", "0\n");
        assert!(said(true).contains("kernel.ftrace_enabled=1"));
        put(dir.path(), "proc/sys/kernel/ftrace_enabled", "1\n");
        assert_eq!(said(true), "");
        put(dir.path(), "sys/module/module/parameters/sig_enforce", "Y\n");
        assert!(said(true).contains("sig_enforce"));
        put(dir.path(), "proc/sys/kernel/modules_disabled", "1\n");
        assert!(said(true).contains("modules_disabled"));
        put(dir.path(), "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
        assert!(said(true).contains("locked down (integrity)"));
        put(dir.path(), "sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
        assert!(said(true).contains("modules_disabled"));
    }

    #[test]
    fn every_file_of_the_module_is_carried() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../embedded/kernel/kgmon");
        let mut there: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name == "Makefile" || [".c", ".h", ".S"].iter().any(|end| name.ends_with(end)))
            .collect();
        there.sort();
        assert_eq!(SOURCE.files.iter().map(|(name, _)| *name).collect::<Vec<_>>(), there);
    }
}
