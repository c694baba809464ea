//! The device of kgmon: commands to the module, and its status. Start from [`KgmonDevice`].

use crate::{Error, KgmonDump, Result};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

/// Path of the module's device.
pub const DEVICE: &str = "/dev/kgmon";

/// Globs of a ready-made macro profile: system calls, and the entry points of the kernel's large
/// parts. It costs one or two percent of the path. Functions that a kernel does not have are
/// ignored.
pub const MACRO: &[&str] = &[
    // System calls, except those without arguments (`__do_sys_getpid`), which are so short that
    // counting distorts them.
    "__x64_sys_*",
    // Virtual file system.
    "vfs_*",
    "do_filp_open",
    "path_openat",
    // Socket layer and transport protocols.
    "sock_sendmsg",
    "sock_recvmsg",
    "tcp_sendmsg",
    "tcp_recvmsg",
    "udp_sendmsg",
    "udp_recvmsg",
    "unix_stream_*msg",
    // Processes and memory.
    "kernel_clone",
    "begin_new_exec",
    "do_exit",
    "handle_mm_fault",
    // Deferred and asynchronous work.
    "handle_softirqs",
    "__do_softirq",
    "process_one_work",
];

/// Way in which kernel functions call the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EntryMode {
    /// Directly; through ftrace's trampoline if a BPF program is attached directly to one of the
    /// functions.
    #[default]
    Auto,
    /// Directly; fails if this is not possible.
    Direct,
    /// Through ftrace's trampoline, as functions of modules always do.
    Generic,
    /// Calls are not counted.
    Off,
}

impl EntryMode {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Direct => "direct",
            Self::Generic => "generic",
            Self::Off => "off",
        }
    }
}

/// Sampling timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimerMode {
    /// No sampling.
    Off,
    /// Random intervals between 0.5 and 1.5 times the mean period.
    #[default]
    Random,
    /// In step with the kernel's tick; does not see work that the tick starts.
    Tick,
}

impl TimerMode {
    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Random => "random",
            Self::Tick => "tick",
        }
    }
}

/// Settings of the counters. The default counts all functions, and samples every 997 µs on average.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartCommand {
    /// Globs of functions whose calls are counted; empty for all functions.
    pub filter: Vec<String>,
    /// Globs of functions whose calls are not counted.
    pub except: Vec<String>,
    /// Way in which kernel functions call the module.
    pub entry: EntryMode,
    /// Sampling timer.
    pub timer: TimerMode,
    /// Mean time between two samples of a CPU, in ns, from 20,000 to 10⁹. `None` means the module's
    /// default, 997,000.
    pub period_ns: Option<u64>,
    /// Capacity for arcs, at most 65,536. `None` means the module's default, 65,536.
    pub arcs: Option<u32>,
    /// Capacity for addresses of samples, a power of two. `None` means the module's default,
    /// 65,536.
    pub samples: Option<u32>,
    /// Seed of the random intervals. `None` means a seed from the clock.
    pub seed: Option<u64>,
    /// Stop when the [`KgmonDevice`] that started it is closed, which also happens when its process
    /// ends in any way.
    pub hold: bool,
}

impl StartCommand {
    fn command(&self) -> Result<String> {
        let mut text = format!("start entry={} timer={}", self.entry.name(), self.timer.name());
        for (word, globs) in [("filter", &self.filter), ("except", &self.except)] {
            for glob in globs {
                if glob.is_empty() || glob.chars().any(|c| c.is_whitespace() || c == '\0') {
                    return Err(refused("start", format!("`{glob}` is not a glob of functions")));
                }
                let _ = write!(text, " {word}={glob}");
            }
        }
        let numbers = [
            ("period", self.period_ns),
            ("arcs", self.arcs.map(u64::from)),
            ("samples", self.samples.map(u64::from)),
            ("seed", self.seed),
        ];
        for (word, number) in numbers {
            if let Some(number) = number {
                let _ = write!(text, " {word}={number}");
            }
        }
        if self.hold {
            text.push_str(" hold");
        }
        Ok(text)
    }
}

/// Status of the module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KgmonStatus {
    /// Calls are being counted.
    pub counting: bool,
    /// Way in which kernel functions call the module: `direct`, `generic` or `off`.
    pub entry: String,
    /// Sampling timer: `off`, `random` or `tick`.
    pub timer: String,
    /// Number of counted functions that belong to modules.
    pub module_functions: u64,
    /// Arcs seen since the counters were allocated.
    pub arcs: u64,
    /// Capacity for arcs.
    pub arc_capacity: u64,
    /// Memory that the module uses on all CPUs, in bytes.
    pub memory_bytes: u64,
    /// Number of dumps made so far.
    pub sequence: u64,
}

impl KgmonStatus {
    fn read(text: &str) -> Self {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
        };
        let number = |name| value(name).parse().unwrap_or(0);
        Self {
            counting: value("calls") == "counting",
            entry: value("entry").to_string(),
            timer: value("timer").to_string(),
            module_functions: number("module_functions"),
            arcs: number("arcs"),
            arc_capacity: number("arc_capacity"),
            memory_bytes: number("memory_bytes"),
            sequence: number("sequence"),
        }
    }
}

fn refused(command: &str, said: String) -> Error {
    Error::Refused { command: command.to_string(), said }
}

/// The open device of the module. Commands of several threads are serialized.
#[derive(Debug)]
pub struct KgmonDevice(Mutex<File>);

impl KgmonDevice {
    /// Opens the device of the loaded module.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if the module is not loaded; [`Error::NotRoot`]; other errors of the
    /// kernel.
    pub fn open() -> Result<Self> {
        match OpenOptions::new().read(true).write(true).open(DEVICE) {
            Ok(file) => Ok(Self(Mutex::new(file))),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::NoDevice { path: DEVICE.into() }),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Err(crate::obstacle().unwrap_or(Error::NotRoot))
            }
            Err(source) => Err(Error::Io { action: "open", path: DEVICE.into(), source }),
        }
    }

    /// Starts counting. Counts continue from their previous values, unless they were reset.
    ///
    /// # Errors
    /// [`Error::Refused`] with the module's reason.
    pub fn start(&self, start: &StartCommand) -> Result<()> {
        self.ask(&start.command()?).map(drop)
    }

    /// Stops counting; the kernel's functions get their NOPs back. Counts are kept.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn stop(&self) -> Result<()> {
        self.ask("stop").map(drop)
    }

    /// Clears all counts and samples.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn reset(&self) -> Result<()> {
        self.ask("reset").map(drop)
    }

    /// Reads the counts since the last reset.
    ///
    /// # Errors
    /// [`Error::Refused`] if nothing was counted yet, or if there is no memory for the dump.
    pub fn dump(&self) -> Result<KgmonDump> {
        Ok(KgmonDump::read(&self.dump_bytes(false)?)?)
    }

    /// Reads and resets the counts atomically: every call is in exactly one such dump.
    ///
    /// # Errors
    /// The errors of [`KgmonDevice::dump`].
    pub fn take(&self) -> Result<KgmonDump> {
        Ok(KgmonDump::read(&self.dump_bytes(true)?)?)
    }

    /// Reads a dump as bytes, as the module writes it; with `take`, also resets the counts.
    ///
    /// # Errors
    /// The errors of [`KgmonDevice::dump`].
    pub fn dump_bytes(&self, take: bool) -> Result<Vec<u8>> {
        self.ask(if take { "take" } else { "dump" })
    }

    /// Reads the module's status.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn status(&self) -> Result<KgmonStatus> {
        Ok(KgmonStatus::read(&String::from_utf8_lossy(&self.ask("status")?)))
    }

    fn ask(&self, command: &str) -> Result<Vec<u8>> {
        let mut file = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let verb = command.split(' ').next().unwrap_or(command);
        let io = |action| move |source| Error::Io { action, path: DEVICE.into(), source };
        let written = file.write(command.as_bytes());
        file.seek(SeekFrom::Start(0)).map_err(io("rewind"))?;
        let mut answer = Vec::new();
        file.read_to_end(&mut answer).map_err(io("read"))?;
        match written {
            Ok(_) => Ok(answer),
            Err(error) => {
                let said = String::from_utf8_lossy(&answer).trim().to_string();
                Err(refused(verb, if said.is_empty() { error.to_string() } else { said }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_what_the_module_reads() {
        let command = |start: &StartCommand| start.command().unwrap();
        assert_eq!(command(&StartCommand::default()), "start entry=auto timer=random");
        let start = StartCommand {
            filter: vec!["tcp_*".into(), "vfs_read".into()],
            except: vec!["tcp_ack".into()],
            entry: EntryMode::Direct,
            timer: TimerMode::Tick,
            period_ns: Some(1_000_000),
            arcs: Some(4096),
            samples: Some(1024),
            seed: Some(7),
            hold: true,
        };
        assert_eq!(
            command(&start),
            "start entry=direct timer=tick filter=tcp_* filter=vfs_read except=tcp_ack period=1000000 arcs=4096 \
             samples=1024 seed=7 hold"
        );
        let bad = StartCommand { filter: vec!["a b".into()], ..StartCommand::default() };
        assert!(bad.command().unwrap_err().to_string().contains("`a b` is not a glob"));
    }

    #[test]
    fn the_status_is_read_by_names() {
        let status = KgmonStatus::read(
            "version 1\ncalls counting\nentry direct\nfuture 5\narcs 12\nmemory_bytes 99\n",
        );
        assert!(status.counting);
        assert_eq!((&status.entry[..], status.arcs, status.memory_bytes), ("direct", 12, 99));
    }
}
