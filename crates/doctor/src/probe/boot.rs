//! Accelerators, proved by booting.
//!
//! A device node proves nothing, and neither does a boot sector: there are machines whose
//! `/dev/kvm` runs sixteen-bit code and then hangs in the first page of a kernel.

use crate::host::{Ending, Host, Ran};
use crate::{Ability, Check, Group, Options};
use kerntune_isa::{Guest, Isa};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The program that boots.
pub(crate) const QEMU: &str = Guest::NAMES.qemu;
/// The check's name.
const KVM: &str = "kvm";

/// A distribution's kernel takes 5 s on TCG on an idle machine; a lean one 2 s.
const TCG_SECONDS: u64 = 12;
/// Real virtualisation boots any kernel in less than a second.
const KVM_SECONDS: u64 = 6;

/// What is booted.
enum Witness {
    Kernel(PathBuf),
    /// No kernel is at hand.
    BootSector,
}

impl Witness {
    /// The given kernel, else the newest one in /boot that we may read.
    fn choose(host: &dyn Host, given: Option<&Path>) -> Self {
        if let Some(kernel) = given {
            return Witness::Kernel(kernel.to_owned());
        }
        let is_kernel = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
                && host.is_readable(path)
        };
        host.list(Path::new("/boot"))
            .into_iter()
            .rfind(is_kernel)
            .map_or(Witness::BootSector, Witness::Kernel)
    }
}

/// How far a boot came.
#[derive(Debug, PartialEq, Eq)]
enum Boot {
    /// A kernel came up to the search for its root.
    Kernel(String),
    /// The boot sector ran, which says little.
    Sector,
    /// A kernel spoke, but was not up in time.
    Slow(String),
    /// It did not work.
    Failed(String),
}

/// Whether TCG boots.
pub(crate) fn tcg(host: &dyn Host, options: &Options) -> Check {
    let check = Check::of(Group::Machines, "tcg", "the machine emulator: exact runs", &[Ability::Emulator]);
    match boot(host, options, "tcg", TCG_SECONDS) {
        Boot::Kernel(what) => check.ok(what),
        Boot::Sector => check.ok("ran a boot sector (no kernel image was at hand)"),
        Boot::Slow(what) => check.limited(what, "try again when the machine is less busy"),
        Boot::Failed(what) => {
            check.missing(what, "`make setup` in kerntune's source installs QEMU 9.2 or later")
        }
    }
}

/// Whether KVM boots.
pub(crate) fn kvm(host: &dyn Host, options: &Options) -> Vec<Check> {
    let check = Check::of(Group::Machines, KVM, "the machine kvm: timed runs", &[Ability::Kvm]);
    vec![match boot(host, options, "kvm", KVM_SECONDS) {
        Boot::Kernel(what) => check.ok(what),
        Boot::Sector => check.limited(
            "ran only a boot sector, as no kernel image was at hand: that does not prove that a kernel runs",
            "`kerntune kernel build`, so that a kernel can be booted",
        ),
        Boot::Slow(what) => check.limited(what, "use the emulator, which needs no KVM"),
        Boot::Failed(what) => {
            let fix = kvm_fix(&what);
            check.missing(what, fix)
        }
    }]
}

fn kvm_fix(what: &str) -> &'static str {
    if what.contains("Permission denied") {
        "adduser $USER kvm, then log in again"
    } else if what.contains("No such file") || what.contains("KVM kernel module") {
        "modprobe kvm_intel || modprobe kvm_amd; in a virtual machine: allow nested virtualisation"
    } else if what.ends_with("is missing") {
        "apt-get install qemu-system-x86"
    } else {
        "nothing on this machine: use the emulator, which needs no KVM"
    }
}

fn boot(host: &dyn Host, options: &Options, accelerator: &str, seconds: u64) -> Boot {
    if host.find(QEMU).is_none() {
        return Boot::Failed(format!("{QEMU} is missing"));
    }
    match Witness::choose(host, options.kernel.as_deref()) {
        Witness::Kernel(kernel) => boot_kernel(host, &kernel, accelerator, seconds),
        Witness::BootSector => boot_sector(host, accelerator, seconds),
    }
}

/// The options that both share: nothing but a CPU, memory and what is named after them.
fn bare(accelerator: &str) -> Vec<String> {
    let machine = format!("pc,accel={accelerator}");
    [QEMU, "-machine", &machine, "-cpu", "max", "-m", "512", "-nodefaults", "-no-user-config"]
        .into_iter()
        .chain(["-display", "none", "-no-reboot"])
        .map(String::from)
        .collect()
}

fn run(host: &dyn Host, argv: &[String], seconds: u64, up: impl Fn(&str) -> bool) -> Result<Ran, Boot> {
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    host.run(&argv, Duration::from_secs(seconds), &mut |line| !up(line))
        .map_err(|e| Boot::Failed(e.to_string()))
}

fn boot_kernel(host: &dyn Host, kernel: &Path, accelerator: &str, seconds: u64) -> Boot {
    let mut argv = bare(accelerator);
    let kernel = std::path::absolute(kernel).unwrap_or_else(|_| kernel.to_owned()).display().to_string();
    let append = "console=ttyS0 earlyprintk=ttyS0 panic=-1 nokaslr";
    argv.extend(["-serial", "stdio", "-kernel", &kernel, "-append", append].map(String::from));
    match run(host, &argv, seconds, is_up) {
        Ok(ran) => judge(&kernel, &ran, seconds),
        Err(failed) => failed,
    }
}

/// Whether the kernel is done with itself and looks for a root, which it was not given.
fn is_up(line: &str) -> bool {
    ["Unable to mount root fs", "Cannot open root device", "as init process", "No working init found"]
        .iter()
        .any(|words| line.contains(words))
}

/// What a kernel's console says about how far it came.
fn judge(kernel: &str, ran: &Ran, seconds: u64) -> Boot {
    let release = ran.output.lines().find_map(|line| {
        let (_, after) = line.split_once("Linux version ")?;
        after.split_whitespace().next()
    });
    let last = ran.last_line().unwrap_or("nothing");
    match (release, &ran.ending) {
        (Some(release), _) if ran.output.lines().any(is_up) => {
            Boot::Kernel(format!("booted Linux {release} ({kernel})"))
        }
        (Some(release), Ending::TimedOut) => {
            Boot::Slow(format!("Linux {release} was not up after {seconds} s; its last line: {last}"))
        }
        (Some(release), _) => Boot::Failed(format!("Linux {release} ended early; its last line: {last}")),
        (None, Ending::TimedOut) => {
            Boot::Failed(format!("started, but {kernel} printed nothing within {seconds} s"))
        }
        (None, _) => Boot::Failed(format!("did not start: {}", reason_of_qemu(last))),
    }
}

/// Its message without its name.
fn reason_of_qemu(line: &str) -> &str {
    line.strip_prefix(QEMU).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(line)
}

fn boot_sector(host: &dyn Host, accelerator: &str, seconds: u64) -> Boot {
    let file = match write_boot_sector() {
        Ok(file) => file,
        Err(error) => return Boot::Failed(format!("cannot write a boot sector: {error}")),
    };
    let mut argv = bare(accelerator);
    // A comma would end the option; QEMU reads two as one.
    let path = file.path().display().to_string().replace(',', ",,");
    let drive = format!("file={path},format=raw,if=ide,snapshot=on");
    argv.extend(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", "-drive", &drive].map(String::from));
    match run(host, &argv, seconds, |_| false) {
        Ok(ran) if ran.ending == Ending::Exited(Guest::BOOT_SECTOR.1) => Boot::Sector,
        Ok(ran) if ran.ending == Ending::TimedOut => {
            Boot::Failed(format!("a boot sector of four instructions did not end within {seconds} s"))
        }
        Ok(ran) => {
            let last = ran.last_line().unwrap_or("the boot sector did not run");
            Boot::Failed(format!("did not start: {}", reason_of_qemu(last)))
        }
        Err(failed) => failed,
    }
}

fn write_boot_sector() -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(&Guest::BOOT_SECTOR.0)?;
    file.flush()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::Status;

    const UP: &str = "[    0.000000] Linux version 6.12.117 (kerntune@kerntune) (gcc 12.2.0)\n\
        [    1.9] /dev/root: Can't open blockdev\n\
        [    1.9] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n";

    fn options() -> Options {
        Options { kernel: Some("/k/bzImage".into()), ..Options::default() }
    }

    fn the_kvm(host: TestHost, options: &Options) -> Check {
        kvm(&host, options).remove(0)
    }

    #[test]
    fn a_kernel_that_looks_for_its_root_has_booted() {
        let host = TestHost::default().program(QEMU).answer("accel=tcg -kernel", 0, UP);
        let check = tcg(&host, &options());
        assert_eq!((check.status, check.fix), (Status::Ok, None));
        assert_eq!(check.found, "booted Linux 6.12.117 (/k/bzImage)");
    }

    #[test]
    fn a_kvm_that_stays_silent_is_missing_with_what_happened() {
        let warning = "qemu-system-x86_64: warning: host doesn't support requested feature\n";
        let host = TestHost::default().program(QEMU).hang("accel=kvm", warning);
        let check = the_kvm(host, &options());
        assert_eq!(check.status, Status::Missing);
        assert_eq!(check.found, "started, but /k/bzImage printed nothing within 6 s");
        assert!(check.fix.unwrap().contains("emulator"));
    }

    #[test]
    fn reasons_of_qemu_are_passed_on_with_what_mends_them() {
        let denied = "Could not access KVM kernel module: Permission denied\n\
            qemu-system-x86_64: failed to initialize kvm: Permission denied\n";
        let check = the_kvm(TestHost::default().program(QEMU).answer("kvm", 1, denied), &options());
        assert!(check.fix.unwrap().contains("adduser"));
        let absent = "Could not access KVM kernel module: No such file or directory\n";
        let check = the_kvm(TestHost::default().program(QEMU).answer("kvm", 1, absent), &options());
        assert!(check.fix.unwrap().contains("modprobe"));
        // Seen on a virtual machine whose KVM lacks registers of the CPU that it shows.
        let assertion =
            "qemu-system-x86_64: target/i386/kvm/kvm.c:3849: kvm_buf_set_msrs: Assertion failed.\n";
        let check = the_kvm(TestHost::default().program(QEMU).answer("kvm", 134, assertion), &options());
        assert_eq!(
            check.found,
            "did not start: target/i386/kvm/kvm.c:3849: kvm_buf_set_msrs: Assertion failed."
        );
        assert!(check.fix.unwrap().contains("use the emulator"));
    }

    #[test]
    fn a_slow_or_dying_kernel_is_told_apart() {
        let spoke = "Linux version 6.1.0-40-amd64 (debian)\nCalibrating delay loop...\n";
        let slow = TestHost::default().program(QEMU).hang("tcg", spoke);
        assert_eq!(tcg(&slow, &options()).status, Status::Limited);
        let dead = TestHost::default().program(QEMU).answer("tcg", 0, spoke);
        assert!(tcg(&dead, &options()).found.contains("ended early; its last line: Calibrating"));
    }

    #[test]
    fn without_a_kernel_a_boot_sector_proves_tcg_but_not_kvm() {
        let host = || TestHost::default().program(QEMU).answer("isa-debug-exit", 85, "");
        assert_eq!(tcg(&host(), &Options::default()).status, Status::Ok);
        let check = the_kvm(host(), &Options::default());
        assert_eq!(check.status, Status::Limited);
        assert!(check.found.contains("no kernel image"));
    }

    #[test]
    fn the_newest_readable_kernel_of_boot_is_taken() {
        let host = TestHost::default()
            .program(QEMU)
            .file("/boot/vmlinuz-6.1.0-40-amd64", "")
            .file("/boot/config-6.1.0-40-amd64", "")
            .refused("/boot/vmlinuz-6.12", std::io::ErrorKind::PermissionDenied)
            .answer("-kernel /boot/vmlinuz-6.1.0-40-amd64", 0, UP);
        assert_eq!(tcg(&host, &Options::default()).status, Status::Ok);
    }

    #[test]
    fn without_qemu_nothing_boots() {
        assert_eq!(tcg(&TestHost::default(), &options()).found, "qemu-system-x86_64 is missing");
    }
}
