//! QEMU's command line and life cycle, shared by all machines that use it.

use crate::boot::{self, BootStops};
use crate::request::RunRequest;
use crate::watch::{watch, WatchedRun};
use crate::{cpu, drivers, results, Error, Result};
use kerntune_guest::{boot_options, Disk, DiskKind, PORT_NAME};
use kerntune_isa::{GuestIsa, Isa};
use kerntune_kernel::Kernel;
use kerntune_work::{ContentHash, IoContext, Job, JobEnd, Progress};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Name of the program.
const QEMU: &str = GuestIsa::NAMES.qemu;
/// File of the firmware that QEMU boots a PC with.
const FIRMWARE: &str = "bios-256k.bin";
/// Beginning of the line with QEMU's version.
const VERSION: &str = "QEMU emulator version ";

/// Variable with the path of another firmware than QEMU's own.
const FIRMWARE_VARIABLE: &str = "KERNTUNE_FIRMWARE";

/// Program in `PATH` that emulates, and the firmware that it boots.
#[derive(Debug)]
pub(crate) struct InstalledQemu {
    /// Line with the version.
    pub version: String,
    pub firmware: PathBuf,
    /// Hash of the firmware. A kernel starts when its firmware is done, so another one shifts the
    /// timers' interrupts against what they interrupt.
    pub firmware_hash: String,
}

/// Returns QEMU and its firmware, found once.
///
/// # Errors
/// No QEMU, or no firmware.
pub(crate) fn installed() -> Result<&'static InstalledQemu> {
    static FOUND: OnceLock<InstalledQemu> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let version = version()?;
    let firmware = match std::env::var_os(FIRMWARE_VARIABLE) {
        Some(path) => std::path::absolute(&path).at("find", Path::new(&path))?,
        None => firmware_of(Path::new(QEMU))?,
    };
    let firmware_hash = ContentHash::new("firmware/1").file("content", &firmware)?.finish();
    Ok(FOUND.get_or_init(|| InstalledQemu { version, firmware, firmware_hash }))
}

/// Returns the firmware in the first of QEMU's directories that has one, as QEMU does.
fn firmware_of(program: &Path) -> Result<PathBuf> {
    let (_, directories) = said(program, &["-L", "help"])?;
    let found = directories.lines().map(|line| Path::new(line).join(FIRMWARE)).find(|path| path.is_file());
    found.ok_or_else(|| Error::NoFirmware {
        file: FIRMWARE,
        looked: directories.lines().collect::<Vec<_>>().join(", "),
    })
}

/// Returns the line with QEMU's version.
pub(crate) fn version() -> Result<String> {
    version_of(Path::new(QEMU))
}

fn version_of(program: &Path) -> Result<String> {
    let (out, said) = said(program, &["--version"])?;
    // Occasional warnings must not become part of a result's key.
    let line = said.lines().find(|line| line.starts_with(VERSION)).filter(|_| out.status.success());
    line.map(|line| line.trim_end().to_string()).ok_or_else(|| Error::Qemu {
        status: out.status.to_string(),
        message: format!(
            "`{} --version` does not say its version: {}",
            program.display(),
            String::from_utf8_lossy(&out.stderr).trim()
        ),
    })
}

/// Returns how a program ended, and its output.
fn said(program: &Path, arguments: &[&str]) -> Result<(Output, String)> {
    let out =
        Command::new(program).args(arguments).env("LC_ALL", "C").output().map_err(|source| {
            kerntune_work::Error::Spawn { program: program.display().to_string(), source }
        })?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Ok((out, text))
}

/// Command for QEMU, pinned to a CPU of the host if one is given.
pub(crate) fn program(cpu: Option<u32>) -> Command {
    cpu::program(cpu, Path::new(QEMU))
}

/// Option that leaves out self-tests of ciphers, which kernels of distributions carry out beside the
/// first seconds of a workload. Kernels that were built here keep their command line, and so their
/// figures.
const NO_CIPHER_TESTS: &str = "cryptomgr.notests";

/// Returns the command line of every guest kernel: console, no address randomization, die on panic.
pub(crate) fn command_line() -> String {
    format!("console={} panic=-1 nokaslr norandmaps", GuestIsa::SERIAL)
}

/// Configures a PC without default devices.
pub(crate) fn bare(command: &mut Command) {
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
}

/// MiB of a guest's memory, with that of its disk.
pub(crate) fn memory_mb(request: &RunRequest) -> u32 {
    request.demands.memory_mb + request.demands.disk.map_or(0, Disk::memory_mb)
}

/// Adds memory, kernel, initial RAM disk, consoles, and the port for results. `more` goes onto the
/// kernel's command line, `port` to the port's device.
pub(crate) fn guest(
    command: &mut Command,
    kernel: &Kernel,
    request: &RunRequest,
    directory: &Path,
    more: &str,
    port: &str,
) {
    let disk = request.demands.disk;
    command.args(["-m", &memory_mb(request).to_string()]);
    if let Some(path) = host_file(request, directory) {
        let drive = format!("file={},format=raw,if=none,id=disk", escape(&path));
        command.args(["-drive", &drive, "-device", &format!("virtio-blk-pci,drive=disk{port}")]);
    }
    command.arg("-kernel").arg(kernel.image());
    command.arg("-initrd").arg(request.initramfs);
    let options = boot_options(request.run, request.collect, request.demands.cpus);
    let of_disk = disk.map(Disk::kernel_options).unwrap_or_default();
    let of_kernel = if kernel.manifest.source.is_shipped() { NO_CIPHER_TESTS } else { "" };
    let words = [&command_line(), more, of_kernel, &options, &of_disk, request.demands.append];
    let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
    command.args(["-append", &words.join(" ")]);
    // With named options, because the short form `file:PATH` cannot contain a comma.
    for (id, name) in [("console", "console.log"), ("serial", "out-serial.tar"), ("out", "out.tar")] {
        command.args(["-chardev", &format!("file,id={id},path={}", escape(&directory.join(name)))]);
    }
    command.args(["-serial", "chardev:console", "-serial", "chardev:serial"]);
    command.args(["-device", &format!("virtio-serial-pci{port}")]);
    command.args(["-device", &format!("virtserialport,chardev=out,name={PORT_NAME}")]);
}

/// Clock of an emulated guest: an instruction takes a nanosecond, and time in which all CPUs are
/// idle is skipped.
///
/// With a disk on the host idle time is not skipped: while the host is busy with a request, minutes
/// would pass in the guest, and all time limits there would expire.
pub(crate) fn clock(request: &RunRequest) -> &'static str {
    match request.demands.disk.is_some_and(|disk| disk.kind == DiskKind::Virtio) {
        true => "shift=0,sleep=on",
        false => "shift=0,sleep=off",
    }
}

/// Returns the host file of the guest's disk, if it has a disk of that kind.
fn host_file(request: &RunRequest, directory: &Path) -> Option<PathBuf> {
    let disk = request.demands.disk.filter(|disk| disk.kind == DiskKind::Virtio);
    disk.map(|_| directory.join("disk.img"))
}

/// Checks that the kernel has mitigations if the CPU needs them.
fn mitigates(request: &RunRequest) -> Result<()> {
    let (Some(cpu), Some(kernel)) = (request.demands.mitigations, request.kernel) else { return Ok(()) };
    let config = kernel.config();
    let config = fs::read_to_string(&config).at("read", &config)?;
    // The second name is that of kernels before 6.9.
    let names = ["CONFIG_CPU_MITIGATIONS=y", "CONFIG_SPECULATION_MITIGATIONS=y"];
    match config.lines().any(|line| names.contains(&line)) {
        true => Ok(()),
        false => {
            let (kernel, cpu) = (kernel.manifest.label.clone(), cpu.to_owned());
            Err(Error::NoMitigations { kernel, cpu })
        }
    }
}

/// Runs a guest to its end and unpacks its results below `guest` of the directory. `refused` first
/// checks QEMU's exit status and last message. `stops` are made during boot.
pub(crate) fn run(
    command: Command,
    stops: Option<BootStops>,
    request: &RunRequest,
    directory: &Path,
    progress: &dyn Progress,
    refused: impl Fn(&JobEnd, &str) -> Result<()>,
) -> Result<(WatchedRun, PathBuf)> {
    if let Some(kernel) = request.kernel {
        drivers::check(kernel, &request.demands)?;
    }
    mitigates(request)?;
    let disk = host_file(request, directory);
    if let (Some(path), Some(of)) = (&disk, request.demands.disk) {
        let file = fs::File::create(path).at("create", path)?;
        file.set_len(u64::from(of.size_mb) << 20).at("make room in", path)?;
    }
    let mut said = Vec::new();
    let limits = request.limits();
    let (job, booting) = match stops.map(BootStops::start) {
        Some((stdin, booting)) => (Job::new(command).stdin(stdin.into()), Some(booting)),
        None => (Job::new(command), None),
    };
    let watched = watch(job, &limits, &directory.join("console.log"), progress, |line| {
        said.push(line.to_string());
        true
    });
    booting.map_or(Ok(()), boot::finish)?;
    let watched = watched?;
    if let Some(path) = disk {
        fs::remove_file(&path).at("remove", &path)?;
    }
    let guest_files = directory.join("guest");
    let archive = archive(directory);
    let message = said.iter().rev().take(5).rev().cloned().collect::<Vec<_>>().join("; ");
    refused(&watched.end, &message)?;
    watched
        .judge(&limits, |end| died(end, message))
        .map_err(|error| error.with_guest_logs(&archive, &guest_files))?;
    results::unpack(&archive, &guest_files)?;
    fs::remove_file(&archive).at("remove", &archive)?;
    Ok((watched, guest_files))
}

/// Returns the file of the results: from the virtio port, or from the second serial port of a
/// kernel without virtio consoles.
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

/// Doubles commas, as QEMU's option syntax requires.
pub(crate) fn escape(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Returns an error if QEMU ended abnormally.
fn died(end: &JobEnd, message: String) -> Option<Error> {
    let JobEnd::Exited(status) = end else { return None };
    (!status.success()).then(|| Error::Qemu { status: status.to_string(), message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Creates a program from a script.
    fn says(dir: &tempfile::TempDir, script: &str) -> PathBuf {
        let path = dir.path().join("qemu");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn the_version_is_the_line_that_says_it_whatever_is_around() {
        let dir = tempfile::tempdir().unwrap();
        let version = "QEMU emulator version 10.0.2 (Debian 1:10.0.2)";
        let loud = says(
            &dir,
            &format!("echo 'warning: x' >&2; echo 'warning: y'; echo '{version}'; echo 'Copyright'"),
        );
        assert_eq!(version_of(&loud).unwrap(), version);
        for bad in [
            "echo 'libfoo.so: cannot open' >&2; exit 127",
            "echo nothing",
            &format!("echo '{version}'; exit 1"),
        ] {
            let error = version_of(&says(&dir, bad)).unwrap_err().to_string();
            assert!(error.contains("does not say its version"), "{error}");
        }
        assert!(version_of(Path::new("/no/qemu")).unwrap_err().to_string().contains("/no/qemu"));
    }

    #[test]
    fn the_firmware_is_the_first_in_the_directories_of_qemu() {
        let dir = tempfile::tempdir().unwrap();
        let [none, first, second] = ["none", "first", "second"].map(|name| dir.path().join(name));
        for place in [&first, &second] {
            fs::create_dir(place).unwrap();
            fs::write(place.join(FIRMWARE), "").unwrap();
        }
        let lists = |places: &[&PathBuf]| {
            let lines: Vec<_> = places.iter().map(|place| format!("echo '{}'", place.display())).collect();
            firmware_of(&says(&dir, &format!("[ \"$*\" = '-L help' ] || exit 1\n{}", lines.join("\n"))))
        };
        assert_eq!(lists(&[&none, &first, &second]).unwrap(), first.join(FIRMWARE));
        let error = lists(&[&none]).unwrap_err().to_string();
        assert!(error.contains(&none.display().to_string()) && error.contains(FIRMWARE_VARIABLE), "{error}");
    }

    #[test]
    fn a_comma_in_a_path_is_doubled_and_never_in_the_short_form() {
        let kernel = crate::test_program::kernel(kerntune_kernel::Arch::X86_64);
        let mut command = Command::new(QEMU);
        let request = RunRequest::new(&kernel, Path::new("/a,b=c/image"), "measured");
        guest(&mut command, &kernel, &request, Path::new("/a,b=c/run"), "", "");
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let paths: Vec<_> = words.iter().filter(|word| word.contains("/run/")).collect();
        assert_eq!(paths.len(), 3, "{words:?}");
        assert!(paths.iter().all(|word| word.contains(",path=/a,,b=c/run/")), "{words:?}");
        // These two options need no escaping.
        assert!(words.contains(&"/a,b=c/image".to_string()), "{words:?}");
    }
}
