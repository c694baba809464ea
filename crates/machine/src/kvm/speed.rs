//! Finds out within seconds how fast the host's KVM runs code of the kernel.
//!
//! Some hosts offer `/dev/kvm` without hardware virtualization: programs run natively there, and
//! each instruction in kernel mode is emulated. A kernel that boots proves nothing of the other
//! kind, and on such a host none boots in time. So QEMU runs a flat guest (`speed.S`) instead of
//! firmware, which marks the beginning and the end of loops of known length; the host's clock times
//! them.

use kerntune_isa::{GuestIsa, Isa};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The guest's code, assembled from `speed.S`.
const CODE: &[u8] = include_bytes!("speed.bin");
/// Size of the image: QEMU takes multiples of it as firmware.
const IMAGE: usize = 0x1_0000;
/// Place of the code in the image, and of the CPU's first instruction.
const PLACES: [usize; 2] = [0xf000, 0xfff0];
/// QEMU's exit status after the guest's last instruction.
const DONE: i32 = 85;

/// Turns of a loop in kernel mode, in user mode, and number of system calls between two marks.
const TURNS: [(char, f64); 3] = [('k', 20_000.0), ('u', 500_000.0), ('s', 1_000.0)];
/// Nanoseconds that a turn of two instructions takes at most on a CPU that runs them itself: a
/// hundred times what it needs.
const NATIVE_TURN: f64 = 100.0;
/// The same for a system call.
const NATIVE_CALL: f64 = 20_000.0;

/// MSRs that a host's KVM may refuse, with the feature of QEMU's CPU models that brings them.
const REFUSED: [(u32, &str); 4] =
    [(0x10a, "arch-capabilities"), (0x345, "pdcm"), (0x0cf, "core-capability"), (0x480, "vmx")];

/// Time limit of one attempt.
pub const SPEED_LIMIT: Duration = Duration::from_secs(3);

/// Least time of each operation in the flat guest, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KvmSpeed {
    /// A turn of a loop of two instructions in kernel mode.
    pub kernel_turn: f64,
    /// The same in user mode; `None` if the guest did not get there.
    pub user_turn: Option<f64>,
    /// A system call that does nothing; `None` if none returned.
    pub system_call: Option<f64>,
}

impl KvmSpeed {
    /// Computes the times from the marks and the moments when they came, in their order.
    /// Returns `None` if no loop in kernel mode was timed.
    fn from_marks(marks: &[(char, Duration)]) -> Option<Self> {
        let least = |(mark, turns): (char, f64)| {
            let times = marks.windows(2).filter(|pair| pair[0].0 == mark);
            let times = times.map(|pair| pair[1].1.saturating_sub(pair[0].1).as_nanos() as f64 / turns);
            times.min_by(f64::total_cmp)
        };
        let [kernel, user, call] = TURNS.map(least);
        Some(Self { kernel_turn: kernel?, user_turn: user, system_call: call })
    }

    /// Returns true if the CPU does not run the kernel's instructions itself.
    pub fn is_emulated(&self) -> bool {
        self.kernel_turn > NATIVE_TURN || self.system_call.is_some_and(|call| call > NATIVE_CALL)
    }
}

impl fmt::Display for KvmSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a loop's turn takes {} in kernel mode", Nanoseconds(self.kernel_turn))?;
        if let Some(user) = self.user_turn {
            write!(f, " and {} in user mode", Nanoseconds(user))?;
        }
        match self.system_call {
            Some(call) => write!(f, ", a system call {}", Nanoseconds(call)),
            None => Ok(()),
        }
    }
}

/// Nanoseconds, printed with a unit that fits.
struct Nanoseconds(f64);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 0.1 => write!(f, "under 0.1 ns"),
            ns if ns < 100.0 => write!(f, "{ns:.1} ns"),
            ns if ns < 1000.0 => write!(f, "{ns:.0} ns"),
            ns => write!(f, "{:.1} µs", ns / 1000.0),
        }
    }
}

/// Result of the flat guest under the host's KVM.
#[derive(Debug, Clone, PartialEq)]
pub enum KvmVerdict {
    /// The CPU runs a kernel's code itself.
    Native {
        /// CPU model of QEMU's option `-cpu` that the host accepts.
        cpu_model: String,
        /// Times in the flat guest.
        speed: KvmSpeed,
    },
    /// The host emulates a kernel's code: times there are of the emulation.
    Emulated {
        /// CPU model of QEMU's option `-cpu` that the host accepts.
        cpu_model: String,
        /// Times in the flat guest.
        speed: KvmSpeed,
    },
    /// Nothing runs; with the reason.
    Fails(String),
}

impl KvmVerdict {
    /// Returns the reason that nothing can be timed, or `None` if it can.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Native { .. } => None,
            Self::Emulated { speed, cpu_model } => Some(format!(
                "this host's KVM emulates kernel code: {speed} (CPU model {cpu_model}), so no time of a kernel means anything here"
            )),
            Self::Fails(reason) => Some(reason.clone()),
        }
    }
}

/// End of an attempt to run the flat guest.
#[derive(Debug, Clone, Default)]
pub struct SpeedAttempt {
    /// Lines of QEMU and of the guest, each with the time since the start.
    pub lines: Vec<(String, Duration)>,
    /// Exit status; `None` if the time limit was over.
    pub status: Option<i32>,
}

/// Runs the flat guest with one CPU model after the other until the host accepts one. `run` runs
/// one command, of [`SPEED_LIMIT`] at most.
///
/// # Errors
/// Those of `run`.
pub fn examine_kvm<E>(
    image: &Path,
    mut run: impl FnMut(&[String]) -> Result<SpeedAttempt, E>,
) -> Result<KvmVerdict, E> {
    let mut cpu_model = String::from("max");
    loop {
        let attempt = run(&arguments(image, &cpu_model))?;
        match refused_feature(&attempt) {
            Some(feature) if !cpu_model.contains(feature) => cpu_model += &format!(",-{feature}"),
            _ => return Ok(judge(&attempt, cpu_model)),
        }
    }
}

/// Returns QEMU's command line.
fn arguments(image: &Path, cpu_model: &str) -> Vec<String> {
    let image = image.display().to_string();
    [GuestIsa::NAMES.qemu, "-machine", "pc,accel=kvm", "-cpu", cpu_model, "-smp", "1", "-m", "16"]
        .into_iter()
        .chain(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-bios", &image])
        .chain(["-debugcon", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"])
        .map(String::from)
        .collect()
}

/// Returns the feature whose MSR the host's KVM refused, if that is why QEMU ended.
fn refused_feature(attempt: &SpeedAttempt) -> Option<&'static str> {
    attempt.lines.iter().find_map(|(line, _)| {
        let (_, after) = line.split_once("failed to set MSR 0x")?;
        let number = u32::from_str_radix(after.split_whitespace().next()?, 16).ok()?;
        REFUSED.iter().find(|(msr, _)| *msr == number).map(|(_, feature)| *feature)
    })
}

fn judge(attempt: &SpeedAttempt, cpu_model: String) -> KvmVerdict {
    let is_mark = |line: &str| ["k", "u", "s", "."].contains(&line);
    let marks: Vec<_> = attempt
        .lines
        .iter()
        .filter(|(line, _)| is_mark(line))
        .filter_map(|(line, at)| Some((line.chars().next()?, *at)))
        .collect();
    let said = attempt.lines.iter().rev().find(|(line, _)| !is_mark(line) && !line.trim().is_empty());
    let said = said.map(|(line, _)| line.trim());
    let complete = attempt.status == Some(DONE);
    match KvmSpeed::from_marks(&marks) {
        Some(speed) if speed.is_emulated() => KvmVerdict::Emulated { cpu_model, speed },
        Some(speed) if complete => KvmVerdict::Native { cpu_model, speed },
        _ => KvmVerdict::Fails(match (attempt.status, said) {
            (None, _) => format!("a small guest did not end within {} s", SPEED_LIMIT.as_secs()),
            (Some(_), Some(line)) => format!("QEMU did not start it: {}", without_program(line)),
            (Some(status), None) => format!("a small guest ended early (QEMU's status {status})"),
        }),
    }
}

/// Removes QEMU's name from its message.
fn without_program(line: &str) -> &str {
    line.strip_prefix(GuestIsa::NAMES.qemu).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(line)
}

/// Returns the image that QEMU starts as firmware.
pub fn speed_image() -> Vec<u8> {
    // Everything else is `hlt`.
    let mut image = vec![0xf4; IMAGE];
    let [code, first] = PLACES;
    image[code..code + CODE.len()].copy_from_slice(CODE);
    // A near jump, relative to its end.
    let distance = (code as u16).wrapping_sub(first as u16 + 3).to_le_bytes();
    image[first..first + 3].copy_from_slice(&[0xe9, distance[0], distance[1]]);
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::process::Command;

    /// Lines and milliseconds of a host without hardware virtualization: QEMU 10.0.2 in a cloud's
    /// virtual machine, by `qemu-system-x86_64 … -debugcon stdio`. The system call does not return
    /// there, and QEMU ends.
    const EMULATED: &str = "303.7 k|455.3 k|591.6 k|733.1 k|929.2 .|929.4 u|929.6 u|929.8 u|930 u|930.2 s";
    /// QEMU's last words with a CPU model that the same host refuses.
    const REFUSED_MODEL: &str = "0 qemu-system-x86_64: error: failed to set MSR 0x10a to 0xc000069|1 qemu-system-x86_64: target/i386/kvm/kvm.c:3849: kvm_buf_set_msrs: Assertion `ret == cpu->kvm_msr_buf->nmsrs' failed.";
    /// Marks of QEMU's TCG, which is fast enough to stand for a CPU.
    const NATIVE: &str = "0 k|0.1 k|0.2 k|0.3 k|0.4 .|0.5 u|1 u|1.6 u|2.1 u|2.7 s|3 s|3.2 s|3.5 s|3.8 .";

    fn attempt(text: &str, status: Option<i32>) -> SpeedAttempt {
        let lines = text.split('|').filter(|line| !line.is_empty()).map(|line| {
            let (at, line) = line.split_once(' ').unwrap();
            (line.to_string(), Duration::from_secs_f64(at.parse::<f64>().unwrap() / 1000.0))
        });
        SpeedAttempt { lines: lines.collect(), status }
    }

    fn verdict(attempts: &[(&str, Option<i32>)]) -> (KvmVerdict, Vec<String>) {
        let (mut models, mut attempts) = (Vec::new(), attempts.iter());
        let verdict = examine_kvm(Path::new("/i"), |argv| {
            let at = argv.iter().position(|word| word == "-cpu").unwrap();
            models.push(argv[at + 1].clone());
            let (text, status) = attempts.next().unwrap();
            Ok::<_, Infallible>(attempt(text, *status))
        });
        (verdict.unwrap(), models)
    }

    #[test]
    fn a_refused_register_costs_its_feature_and_nothing_else() {
        let (verdict, models) = verdict(&[(REFUSED_MODEL, Some(134)), (EMULATED, Some(0))]);
        assert_eq!(models, ["max", "max,-arch-capabilities"]);
        let reason = verdict.refusal().unwrap();
        assert_eq!(
            reason,
            "this host's KVM emulates kernel code: a loop's turn takes 6.8 µs in kernel mode and 0.4 ns in user mode (CPU model max,-arch-capabilities), so no time of a kernel means anything here"
        );
    }

    #[test]
    fn the_ladder_ends_where_no_rung_is_left() {
        let (last, models) = verdict(&[(REFUSED_MODEL, Some(134)), (REFUSED_MODEL, Some(134))]);
        assert_eq!(models.len(), 2);
        assert!(last.refusal().unwrap().starts_with("QEMU did not start it: target/i386/kvm"), "{last:?}");
        let unknown = "0 qemu-system-x86_64: error: failed to set MSR 0xdead to 0x1";
        let (unknown, models) = verdict(&[(unknown, Some(134))]);
        assert!(models.len() == 1 && unknown.refusal().unwrap().contains("0xdead"), "{unknown:?}");
        let denied = "0 Could not access KVM kernel module: Permission denied|1 qemu-system-x86_64: failed to initialize kvm: Permission denied";
        let (denied, _) = verdict(&[(denied, Some(1))]);
        assert_eq!(
            denied,
            KvmVerdict::Fails("QEMU did not start it: failed to initialize kvm: Permission denied".into())
        );
    }

    #[test]
    fn a_cpu_that_runs_it_all_is_native_and_half_a_run_proves_nothing() {
        let (native, _) = verdict(&[(NATIVE, Some(DONE))]);
        assert_eq!(native.refusal(), None);
        let KvmVerdict::Native { cpu_model, speed } = native else { panic!("{native:?}") };
        assert_eq!(cpu_model, "max");
        assert!((speed.kernel_turn - 5.0).abs() < 0.01 && (speed.system_call.unwrap() - 200.0).abs() < 0.1);
        let half = "0 k|0.1 k|0.2 k|0.3 k|0.4 .";
        assert!(verdict(&[(half, Some(0))]).0.refusal().unwrap().contains("ended early"));
        assert!(verdict(&[(half, None)]).0.refusal().unwrap().contains("within 3 s"));
        assert!(verdict(&[("", None)]).0.refusal().unwrap().contains("within 3 s"));
        // A preempted loop does not condemn the others.
        let busy = NATIVE.replace("0.1 k|0.2 k|0.3 k|0.4 .", "40 k|40.1 k|90 k|90.1 .");
        let busy = busy.replace("0.5 u|1 u|1.6 u|2.1 u|2.7 s|3 s|3.2 s|3.5 s|3.8 .", "91 u|92 s|93 s|94 .");
        assert_eq!(verdict(&[(&busy, Some(DONE))]).0.refusal(), None);
        let slow_calls = NATIVE.replace("2.7 s|3 s|3.2 s|3.5 s|3.8 .", "3 s|90 s|180 .");
        assert!(verdict(&[(&slow_calls, Some(DONE))]).0.refusal().unwrap().contains("a system call 87.0 µs"));
    }

    #[test]
    fn the_code_is_what_its_source_says() {
        let dir = tempfile::tempdir().unwrap();
        let [object, code] = ["speed.o", "speed.bin"].map(|name| dir.path().join(name));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kvm/speed.S");
        let done = |command: &mut Command| assert!(command.status().unwrap().success());
        done(Command::new("as").args(["--64", source, "-o"]).arg(&object));
        done(Command::new("objcopy").args(["-O", "binary", "-j", ".text"]).args([&object, &code]));
        assert!(std::fs::read(code).unwrap() == CODE, "assemble speed.S again: as --64 speed.S -o speed.o && objcopy -O binary -j .text speed.o speed.bin");
    }

    #[test]
    fn the_image_runs_to_its_end_in_the_emulator() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        std::fs::write(&image, speed_image()).unwrap();
        let argv: Vec<String> =
            arguments(&image, "max").iter().map(|word| word.replace("accel=kvm", "accel=tcg")).collect();
        let output = Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
        assert_eq!(output.status.code(), Some(DONE), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        assert_eq!(lines.lines().collect::<String>(), "kkkk.uuuussss.");
    }
}
