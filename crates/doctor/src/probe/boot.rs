//! Checks of the accelerators TCG and KVM, by booting a kernel.
//!
//! A device node proves nothing, and neither does a boot sector: on some machines `/dev/kvm` runs
//! programs, and emulates the kernel's code a thousand times slower. So a guest of a few loops
//! shows what KVM does before a kernel boots.

use crate::host::{ProbeHost, ProgramEnd, ProgramRun};
use crate::{Ability, CheckGroup, ExamineOptions, HostCheck};
use kerntune_isa::{GuestIsa, Isa};
use kerntune_machine::{examine_kvm, speed_image, KvmVerdict, SpeedAttempt, SPEED_LIMIT};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The QEMU program.
pub(crate) const QEMU: &str = GuestIsa::NAMES.qemu;
/// CPU model with all features: with KVM those of the host's CPU.
const MAX: &str = "max";
/// Name of the check for KVM.
const KVM: &str = "kvm";

/// Time limit on TCG. A distribution's kernel needs 5 s on an idle machine, a small one 2 s.
const TCG_SECONDS: u64 = 12;
/// Time limit on KVM. Working virtualization boots any kernel in less than a second.
const KVM_SECONDS: u64 = 6;

/// Image to boot.
enum BootImage {
    Kernel(PathBuf),
    /// Boot sector, if no kernel is available.
    BootSector,
}

impl BootImage {
    /// Chooses the given kernel, or else the newest readable one in /boot.
    fn choose(host: &dyn ProbeHost, given: Option<&Path>) -> Self {
        if let Some(kernel) = given {
            return BootImage::Kernel(kernel.to_owned());
        }
        let is_kernel = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
                && host.is_readable(path)
        };
        host.list(Path::new("/boot"))
            .into_iter()
            .rfind(is_kernel)
            .map_or(BootImage::BootSector, BootImage::Kernel)
    }
}

/// Result of a boot.
#[derive(Debug, PartialEq, Eq)]
enum BootOutcome {
    /// The kernel came up to the search for its root file system; with a description.
    Kernel(String),
    /// The boot sector ran, which proves little.
    Sector,
    /// The kernel printed messages, but did not come up in time.
    Slow(String),
    /// The boot failed, with the reason.
    Failed(String),
}

/// Checks whether TCG boots.
pub(crate) fn tcg(host: &dyn ProbeHost, options: &ExamineOptions) -> HostCheck {
    let check =
        HostCheck::of(CheckGroup::Machines, "tcg", "the machine emulator: exact runs", &[Ability::Emulator]);
    match boot(host, options, ["tcg", MAX], TCG_SECONDS) {
        BootOutcome::Kernel(what) => check.ok(what),
        BootOutcome::Sector => check.ok("ran a boot sector (no kernel image was at hand)"),
        BootOutcome::Slow(what) => check.limited(what, "try again when the machine is less busy"),
        BootOutcome::Failed(what) => {
            check.missing(what, "`make setup` in kerntune's source installs QEMU 9.2 or later")
        }
    }
}

/// Checks whether KVM boots.
pub(crate) fn kvm(host: &dyn ProbeHost, options: &ExamineOptions) -> Vec<HostCheck> {
    let check = HostCheck::of(CheckGroup::Machines, KVM, "the machine kvm: timed runs", &[Ability::Kvm]);
    let cpu_model = match examine_speed(host) {
        Ok(KvmVerdict::Native { cpu_model, .. }) => cpu_model,
        Ok(refused) => {
            let what = refused.refusal().unwrap_or_default();
            let fix = kvm_fix(&what);
            return vec![check.missing(with_hint(host, &refused, what), fix)];
        }
        Err(what) => {
            let fix = kvm_fix(&what);
            return vec![check.missing(what, fix)];
        }
    };
    vec![match boot(host, options, ["kvm", &cpu_model], KVM_SECONDS) {
        BootOutcome::Kernel(what) if cpu_model != MAX => check.ok(format!("{what}; CPU model {cpu_model}")),
        BootOutcome::Kernel(what) => check.ok(what),
        BootOutcome::Sector => check.limited(
            "ran only a boot sector, as no kernel image was at hand: that does not prove that a kernel runs",
            "`kerntune kernel build`, so that a kernel can be booted",
        ),
        BootOutcome::Slow(what) => check.limited(what, "use the emulator, which needs no KVM"),
        BootOutcome::Failed(what) => {
            let fix = kvm_fix(&what);
            check.missing(what, fix)
        }
    }]
}

/// Runs the small guest that shows how fast a kernel's code is.
fn examine_speed(host: &dyn ProbeHost) -> Result<KvmVerdict, String> {
    if host.find(QEMU).is_none() {
        return Err(format!("{QEMU} is missing"));
    }
    let image = write_image(&speed_image()).map_err(|error| format!("cannot write an image: {error}"))?;
    examine_kvm(image.path(), |argv| {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let (began, mut lines) = (Instant::now(), Vec::new());
        let ran = host.run(&argv, SPEED_LIMIT, &mut |line| {
            lines.push((line.to_string(), began.elapsed()));
            true
        });
        let status = match ran.map_err(|error| error.to_string())?.ending {
            ProgramEnd::Exited(status) => Some(status),
            ProgramEnd::TimedOut => None,
            ProgramEnd::Stopped => return Err("interrupted".into()),
        };
        Ok(SpeedAttempt { lines, status })
    })
}

/// Adds that the CPU shows no hardware virtualization, where that explains an emulation.
fn with_hint(host: &dyn ProbeHost, verdict: &KvmVerdict, what: String) -> String {
    let flags = host.text("/proc/cpuinfo").unwrap_or_default();
    let has = flags.split_whitespace().any(|word| ["vmx", "svm"].contains(&word));
    match verdict {
        KvmVerdict::Emulated { .. } if !flags.is_empty() && !has => {
            format!("{what}; the CPU shows neither vmx nor svm")
        }
        _ => what,
    }
}

fn kvm_fix(what: &str) -> &'static str {
    if what.contains("Permission denied") {
        "adduser $USER kvm, then log in again"
    } else if what.contains("No such file") || what.contains("KVM kernel module") {
        "modprobe kvm_intel || modprobe kvm_amd; in a virtual machine: allow nested virtualization"
    } else if what.ends_with("is missing") {
        "apt-get install qemu-system-x86"
    } else {
        "nothing on this machine: the emulator needs no KVM, and kernels built with --arch um are timed without it"
    }
}

/// Boots under an accelerator, with a CPU model.
fn boot(host: &dyn ProbeHost, options: &ExamineOptions, machine: [&str; 2], seconds: u64) -> BootOutcome {
    if host.find(QEMU).is_none() {
        return BootOutcome::Failed(format!("{QEMU} is missing"));
    }
    match BootImage::choose(host, options.kernel.as_deref()) {
        BootImage::Kernel(kernel) => boot_kernel(host, &kernel, machine, seconds),
        BootImage::BootSector => boot_sector(host, machine, seconds),
    }
}

/// Returns the options of a minimal machine: CPU, memory and no other devices.
fn bare([accelerator, cpu_model]: [&str; 2]) -> Vec<String> {
    let machine = format!("pc,accel={accelerator}");
    [QEMU, "-machine", &machine, "-cpu", cpu_model, "-m", "512", "-nodefaults", "-no-user-config"]
        .into_iter()
        .chain(["-display", "none", "-no-reboot"])
        .map(String::from)
        .collect()
}

fn run(
    host: &dyn ProbeHost,
    argv: &[String],
    seconds: u64,
    up: impl Fn(&str) -> bool,
) -> Result<ProgramRun, BootOutcome> {
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    host.run(&argv, Duration::from_secs(seconds), &mut |line| !up(line))
        .map_err(|e| BootOutcome::Failed(e.to_string()))
}

fn boot_kernel(host: &dyn ProbeHost, kernel: &Path, machine: [&str; 2], seconds: u64) -> BootOutcome {
    let mut argv = bare(machine);
    let kernel = std::path::absolute(kernel).unwrap_or_else(|_| kernel.to_owned()).display().to_string();
    let append = "console=ttyS0 earlyprintk=ttyS0 panic=-1 nokaslr";
    argv.extend(["-serial", "stdio", "-kernel", &kernel, "-append", append].map(String::from));
    match run(host, &argv, seconds, is_up) {
        Ok(ran) => judge(&kernel, &ran, seconds),
        Err(failed) => failed,
    }
}

/// Returns true if the kernel has initialized and looks for its root file system, which it does not
/// have.
fn is_up(line: &str) -> bool {
    ["Unable to mount root fs", "Cannot open root device", "as init process", "No working init found"]
        .iter()
        .any(|words| line.contains(words))
}

/// Judges a boot by the kernel's console output.
fn judge(kernel: &str, ran: &ProgramRun, seconds: u64) -> BootOutcome {
    let release = ran.output.lines().find_map(|line| {
        let (_, after) = line.split_once("Linux version ")?;
        after.split_whitespace().next()
    });
    let last = ran.last_line().unwrap_or("nothing");
    match (release, &ran.ending) {
        (Some(release), _) if ran.output.lines().any(is_up) => {
            BootOutcome::Kernel(format!("booted Linux {release} ({kernel})"))
        }
        (Some(release), ProgramEnd::TimedOut) => {
            BootOutcome::Slow(format!("Linux {release} was not up after {seconds} s; its last line: {last}"))
        }
        (Some(release), _) => {
            BootOutcome::Failed(format!("Linux {release} ended early; its last line: {last}"))
        }
        (None, ProgramEnd::TimedOut) => {
            BootOutcome::Failed(format!("started, but {kernel} printed nothing within {seconds} s"))
        }
        (None, _) => BootOutcome::Failed(format!("did not start: {}", reason_of_qemu(last))),
    }
}

/// Removes QEMU's name from its message.
fn reason_of_qemu(line: &str) -> &str {
    line.strip_prefix(QEMU).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(line)
}

fn boot_sector(host: &dyn ProbeHost, machine: [&str; 2], seconds: u64) -> BootOutcome {
    let file = match write_image(&GuestIsa::BOOT_SECTOR.0) {
        Ok(file) => file,
        Err(error) => return BootOutcome::Failed(format!("cannot write a boot sector: {error}")),
    };
    let mut argv = bare(machine);
    // QEMU ends an option at a comma, and reads two commas as one.
    let path = file.path().display().to_string().replace(',', ",,");
    let drive = format!("file={path},format=raw,if=ide,snapshot=on");
    argv.extend(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", "-drive", &drive].map(String::from));
    match run(host, &argv, seconds, |_| false) {
        Ok(ran) if ran.ending == ProgramEnd::Exited(GuestIsa::BOOT_SECTOR.1) => BootOutcome::Sector,
        Ok(ran) if ran.ending == ProgramEnd::TimedOut => {
            BootOutcome::Failed(format!("a boot sector of four instructions did not end within {seconds} s"))
        }
        Ok(ran) => {
            let last = ran.last_line().unwrap_or("the boot sector did not run");
            BootOutcome::Failed(format!("did not start: {}", reason_of_qemu(last)))
        }
        Err(failed) => failed,
    }
}

fn write_image(bytes: &[u8]) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(bytes)?;
    file.flush()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_host::TestHost;
    use crate::CheckStatus;

    const UP: &str = "[    0.000000] Linux version 6.12.117 (kerntune@kerntune) (gcc 12.2.0)\n\
        [    1.9] /dev/root: Can't open blockdev\n\
        [    1.9] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n";

    fn options() -> ExamineOptions {
        ExamineOptions { kernel: Some("/k/bzImage".into()), ..ExamineOptions::default() }
    }

    /// Output of the small guest on a CPU that runs it.
    const SPEED: &str = "k\nk\nk\nk\n.\nu\nu\nu\nu\ns\ns\ns\ns\n.\n";

    fn the_kvm(host: TestHost, options: &ExamineOptions) -> HostCheck {
        kvm(&host.answer("accel=kvm -debugcon", 85, SPEED), options).remove(0)
    }

    #[test]
    fn a_kernel_that_looks_for_its_root_has_booted() {
        let host = TestHost::default().program(QEMU).answer("accel=tcg -kernel", 0, UP);
        let check = tcg(&host, &options());
        assert_eq!((check.status, check.fix), (CheckStatus::Ok, None));
        assert_eq!(check.found, "booted Linux 6.12.117 (/k/bzImage)");
    }

    #[test]
    fn a_kvm_that_stays_silent_is_missing_with_what_happened() {
        let warning = "qemu-system-x86_64: warning: host doesn't support requested feature\n";
        let host = TestHost::default().program(QEMU).hang("accel=kvm -kernel", warning);
        let check = the_kvm(host, &options());
        assert_eq!(check.status, CheckStatus::Missing);
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
        // Message seen on a virtual machine whose KVM lacks registers of its CPU.
        let assertion =
            "qemu-system-x86_64: target/i386/kvm/kvm.c:3849: kvm_buf_set_msrs: Assertion failed.\n";
        let check = the_kvm(TestHost::default().program(QEMU).answer("kvm", 134, assertion), &options());
        assert_eq!(
            check.found,
            "QEMU did not start it: target/i386/kvm/kvm.c:3849: kvm_buf_set_msrs: Assertion failed."
        );
        assert!(check.fix.unwrap().contains("the emulator needs no KVM"));
    }

    #[test]
    fn a_model_that_kvm_refuses_is_followed_by_one_that_it_takes() {
        let refused = "qemu-system-x86_64: error: failed to set MSR 0x10a to 0xc000069\n";
        let host = TestHost::default()
            .program(QEMU)
            .answer("accel=kvm -cpu max,-arch-capabilities -debugcon", 85, SPEED)
            .answer("accel=kvm -cpu max,-arch-capabilities -kernel", 0, UP)
            .answer("accel=kvm -cpu max", 134, refused);
        let check = the_kvm(host, &options());
        assert_eq!(check.status, CheckStatus::Ok, "{check:?}");
        assert_eq!(check.found, "booted Linux 6.12.117 (/k/bzImage); CPU model max,-arch-capabilities");
    }

    #[test]
    fn a_kvm_that_emulates_kernels_is_named_with_what_the_cpu_lacks() {
        let host = TestHost::default().file("/proc/cpuinfo", "flags : fpu vme sse2\n");
        let verdict = KvmVerdict::Emulated {
            cpu_model: MAX.into(),
            speed: kerntune_machine::KvmSpeed {
                kernel_turn: 1634.0,
                user_turn: Some(0.91),
                system_call: None,
            },
        };
        let what = with_hint(&host, &verdict, verdict.refusal().unwrap());
        assert!(what.contains("1.6 µs in kernel mode and 0.9 ns in user mode"), "{what}");
        assert!(what.ends_with("neither vmx nor svm"), "{what}");
        let able = TestHost::default().file("/proc/cpuinfo", "flags : fpu svm\n");
        assert_eq!(with_hint(&able, &verdict, "x".into()), "x");
    }

    #[test]
    fn a_slow_or_dying_kernel_is_told_apart() {
        let spoke = "Linux version 6.1.0-40-amd64 (debian)\nCalibrating delay loop...\n";
        let slow = TestHost::default().program(QEMU).hang("tcg", spoke);
        assert_eq!(tcg(&slow, &options()).status, CheckStatus::Limited);
        let dead = TestHost::default().program(QEMU).answer("tcg", 0, spoke);
        assert!(tcg(&dead, &options()).found.contains("ended early; its last line: Calibrating"));
    }

    #[test]
    fn without_a_kernel_a_boot_sector_proves_tcg_but_not_kvm() {
        let host = || TestHost::default().program(QEMU).answer("isa-debug-exit -drive", 85, "");
        assert_eq!(tcg(&host(), &ExamineOptions::default()).status, CheckStatus::Ok);
        let check = the_kvm(host(), &ExamineOptions::default());
        assert_eq!(check.status, CheckStatus::Limited);
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
        assert_eq!(tcg(&host, &ExamineOptions::default()).status, CheckStatus::Ok);
    }

    #[test]
    fn without_qemu_nothing_boots() {
        assert_eq!(tcg(&TestHost::default(), &options()).found, "qemu-system-x86_64 is missing");
    }
}
