//! QEMU as a program: what a guest has on every machine that is one.

use crate::emulator::RunRequest;
use crate::watch::{watch, Watched};
use crate::{cpu, results, Error, Result};
use kerntune_guest::{boot_options, PORT_NAME};
use kerntune_work::{IoContext, Job, JobEnd, Progress};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program.
const QEMU: &str = "qemu-system-x86_64";
/// What every guest kernel is told: console, no address randomisation, die on panic.
pub(crate) const COMMAND_LINE: &str = "console=ttyS0 panic=-1 nokaslr norandmaps";

/// The first line of what it says of its version.
pub(crate) fn version() -> Result<String> {
    let mut command = Command::new(QEMU);
    command.arg("--version");
    let (_, version) = Job::new(command).output()?;
    Ok(version.lines().next().unwrap_or_default().to_string())
}

/// QEMU, on one CPU of the host if one is given.
pub(crate) fn program(cpu: Option<u32>) -> Command {
    cpu::program(cpu, Path::new(QEMU))
}

/// A PC without any device but those added.
pub(crate) fn bare(command: &mut Command) {
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
}

/// Memory, kernel and initial RAM disk, the lines out, and the port for results. `more` is for the kernel, `port` what the
/// port's device is told besides.
pub(crate) fn guest(command: &mut Command, request: &RunRequest, directory: &Path, more: &str, port: &str) {
    let file = |name: &str| format!("file:{}", escape(&directory.join(name)));
    command.args(["-m", &request.memory_mb.to_string()]);
    command.arg("-kernel").arg(request.kernel.bzimage());
    command.arg("-initrd").arg(request.initramfs);
    let options = boot_options(request.run, request.collect);
    let words = [COMMAND_LINE, more, &options, request.append];
    let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
    command.args(["-append", &words.join(" ")]);
    command.args(["-serial", &file("console.log"), "-serial", &file("out-serial.tar")]);
    command.args(["-device", &format!("virtio-serial-pci{port}")]);
    command.args(["-chardev", &format!("file,id=out,path={}", escape(&directory.join("out.tar")))]);
    command.args(["-device", &format!("virtserialport,chardev=out,name={PORT_NAME}")]);
}

/// Runs a guest to its end and unpacks its results below `guest` of the directory. `refused` looks first at how QEMU ended, with
/// its last words.
pub(crate) fn run(
    command: Command,
    request: &RunRequest,
    directory: &Path,
    progress: &dyn Progress,
    refused: impl Fn(&JobEnd, &str) -> Result<()>,
) -> Result<(Watched, PathBuf)> {
    let mut said = Vec::new();
    let limits = request.limits();
    let watched = watch(Job::new(command), &limits, &directory.join("console.log"), progress, |line| {
        said.push(line.to_string());
        true
    })?;
    let guest_files = directory.join("guest");
    let archive = archive(directory);
    let message = said.iter().rev().take(5).rev().cloned().collect::<Vec<_>>().join("; ");
    refused(&watched.end, &message)?;
    watched
        .judge(&limits, |end| died(end, message))
        .map_err(|error| error.with_last_words(&archive, &guest_files))?;
    results::unpack(&archive, &guest_files)?;
    fs::remove_file(&archive).at("remove", &archive)?;
    Ok((watched, guest_files))
}

/// The file in which the results arrived: the virtio port, or the second serial port of a kernel without virtio
/// consoles.
fn archive(directory: &Path) -> PathBuf {
    let virtio = directory.join("out.tar");
    let serial = directory.join("out-serial.tar");
    let length = |path: &Path| fs::metadata(path).map(|m| m.len()).unwrap_or(0);
    if length(&virtio) == 0 && length(&serial) > 0 {
        serial
    } else {
        virtio
    }
}

/// QEMU's option syntax doubles commas.
pub(crate) fn escape(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// QEMU, if it ended as it should not.
fn died(end: &JobEnd, message: String) -> Option<Error> {
    let JobEnd::Exited(status) = end else { return None };
    (!status.success()).then(|| Error::Qemu { status: status.to_string(), message })
}
