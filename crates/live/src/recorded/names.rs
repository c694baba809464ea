//! Names of the kernel that ran while a file was recorded.

use super::PerfDataRequest;
use crate::{Error, Result};
use kerntune_convert::perf_data::PerfFile;
use kerntune_kernel::{running_build_id, Kernel};
use kerntune_profile::KernelId;
use kerntune_symbols::{ImagePlace, RunningKernel};
use kerntune_work::{open_file, WorkDir};
use std::io::Read;
use std::path::Path;

/// Maximum size of a list of symbols, in bytes; a kernel's has some 10 MiB.
const LIST_MAX: u64 = 256 << 20;

/// Functions of the kernel that ran, and the kernel in the work directory.
#[derive(Debug, Clone)]
pub struct RecordedNames {
    /// Functions, with the origin of their names.
    pub running: RunningKernel,
    /// The kernel as the work directory names it; `None` if it does not have it.
    pub kernel: Option<KernelId>,
}

impl RecordedNames {
    /// Names for a recording of programs alone.
    pub(super) fn without_kernel(file: &PerfFile) -> Self {
        let mut names = Self { running: RunningKernel::default(), kernel: None };
        names.take_from(file);
        names.running.notes.push("the kernel was not sampled (`:u`)".into());
        names
    }

    /// Takes release and build id of the file, which are those of the kernel that ran.
    fn take_from(&mut self, file: &PerfFile) {
        let running = &mut self.running;
        running.build_id = file.kernel_build_id.clone().or(running.build_id.take());
        if let Some(release) = file.release.clone() {
            running.release = release;
        }
        if running.release.is_empty() {
            running.release = "unknown".into();
        }
    }
}

/// Finds names: in the kernel or the list that the user gave, on this machine if it runs the same
/// kernel, or in a kernel of the work directory with the same build id.
pub(super) fn find(work: &WorkDir, file: &PerfFile, request: &PerfDataRequest<'_>) -> Result<RecordedNames> {
    let refuse = |reason: String| Error::Recorded { path: request.file.to_owned(), reason };
    if let Some(arch) = file.arch.as_deref().filter(|arch| *arch != "x86_64") {
        return Err(refuse(format!(
            "it is of a machine with {arch} CPUs, and kerntune knows kernels of x86_64"
        )));
    }
    let place = file.kernel_place.as_ref().map(|place| (place.symbol.as_str(), place.address));
    let recorded = file.kernel_build_id.as_deref();
    let mut names = if let Some(kernel) = request.kernel {
        check(file, kernel).map_err(refuse)?;
        of_kernel(kernel, place)?
    } else if let Some(list) = request.symbols {
        let mut running = RunningKernel::of_list(&read_list(list)?, &list.display().to_string(), place)?;
        running.notes.push(format!(
            "{} has no build id: that it is of the kernel that was recorded is what you say",
            list.display()
        ));
        RecordedNames { running, kernel: None }
    } else if recorded.is_some() && running_build_id().as_deref() == recorded {
        let (mut running, own) = RunningKernel::find_in(work)?;
        running.sources.push("the kernel of this machine has the build id that was recorded".into());
        running.place_at(place);
        RecordedNames { running, kernel: own.as_ref().map(kernel_id) }
    } else if recorded.is_none() && is_this_boot(file)? {
        let (mut running, own) = RunningKernel::find_in(work)?;
        running.notes.push(
            "it has no build id of the kernel (perf writes none with -z and through a pipe): that it is this machine's kernel is \
             by the names of machine and release, and by the kernel's address"
                .into(),
        );
        RecordedNames { running, kernel: own.as_ref().map(kernel_id) }
    } else {
        let is_it =
            |kernel: &Kernel| kernel.build_id().is_ok_and(|id| id.is_some() && id.as_deref() == recorded);
        match kerntune_kernel::list(work)?.iter().find(|kernel| is_it(kernel)) {
            Some(kernel) => of_kernel(kernel, place)?,
            None => return Err(refuse(other_kernel(file))),
        }
    };
    names.take_from(file);
    Ok(names)
}

/// Returns true if machine, release and the kernel's place in memory are those of this machine now.
fn is_this_boot(file: &PerfFile) -> Result<bool> {
    let own = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let same = |recorded: &Option<String>, name: &str| recorded.as_deref() == Some(own(name).trim());
    if !same(&file.hostname, "hostname") || !same(&file.release, "osrelease") {
        return Ok(false);
    }
    let Some(place) = &file.kernel_place else { return Ok(false) };
    let running = RunningKernel::find(&[])?;
    Ok(running.anchors.iter().any(|(symbol, address)| *symbol == place.symbol && *address == place.address))
}

fn of_kernel(kernel: &Kernel, place: Option<ImagePlace<'_>>) -> Result<RecordedNames> {
    Ok(RecordedNames { running: RunningKernel::of_kernel(kernel, place)?, kernel: Some(kernel_id(kernel)) })
}

fn kernel_id(kernel: &Kernel) -> KernelId {
    let of = &kernel.manifest;
    KernelId { id: of.id.clone(), label: of.label.clone(), version: of.version.clone() }
}

/// Checks that a kernel is the one that was recorded.
fn check(file: &PerfFile, kernel: &Kernel) -> std::result::Result<(), String> {
    let label = &kernel.manifest.label;
    let own = kernel.build_id().map_err(|error| error.to_string())?;
    match (&file.kernel_build_id, own) {
        (Some(recorded), Some(own)) if *recorded == own => Ok(()),
        (Some(recorded), Some(own)) => Err(format!(
            "it was recorded on a kernel with build id {recorded}, and kernel {label} has {own}: name the kernel that ran, or \
             record on this one"
        )),
        (recorded, own) => {
            let lacks = if recorded.is_none() { "it has no build id of the kernel".to_owned() } else { format!("kernel {label} has no build id") };
            let _ = own;
            Err(format!(
                "{lacks}, so that nothing shows that kernel {label} is the one that ran: record without --no-buildid, or give \
                 a list of its symbols with --symbols FILE"
            ))
        }
    }
}

fn other_kernel(file: &PerfFile) -> String {
    let unknown = || "unknown".to_owned();
    format!(
        "it was recorded on machine {}, Linux {}, build id {}; this machine runs Linux {}, build id {}, and the work directory has no \
         kernel with that id. Give the kernel with --kernel K, or a list of its symbols with --symbols FILE: its System.map, or a copy of \
         that machine's /proc/kallsyms that root made",
        file.hostname.clone().unwrap_or_else(unknown),
        file.release.clone().unwrap_or_else(unknown),
        file.kernel_build_id.clone().unwrap_or_else(unknown),
        std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        running_build_id().unwrap_or_else(unknown),
    )
}

fn read_list(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open_file(path).and_then(|file| file.take(LIST_MAX).read_to_end(&mut bytes));
    read.map_err(Error::io("read", path))?;
    Ok(bytes)
}
