//! Commands to the module, and its answers.

use crate::{Dump, Error, Result};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

/// Where the module is spoken to.
pub const DEVICE: &str = "/dev/kgmon";

/// A ready set of functions for a macro profile: what is asked of the kernel and of its large parts, at a cost of one
/// or two percent of the path. Those that a kernel does not have are passed over.
pub const MACRO: &[&str] = &[
    // System calls; but for those without arguments (`__do_sys_getpid`), which are so short that counting shows.
    "__x64_sys_*",
    // The virtual file system.
    "vfs_*",
    "do_filp_open",
    "path_openat",
    // The socket layer, and what carries it.
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
    // What comes by itself.
    "handle_softirqs",
    "__do_softirq",
    "process_one_work",
];

/// How functions of the kernel reach the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Entry {
    /// Directly, or through ftrace's own trampoline if a BPF program sits directly on one of them.
    #[default]
    Auto,
    /// Directly, or not at all.
    Direct,
    /// Through ftrace's own trampoline, as functions of modules always do.
    Generic,
    /// Calls are not counted.
    Off,
}

impl Entry {
    fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Direct => "direct",
            Self::Generic => "generic",
            Self::Off => "off",
        }
    }
}

/// When the timer expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timer {
    /// There is none.
    Off,
    /// After random times, between half of the mean period and one and a half.
    #[default]
    Random,
    /// With each tick of the kernel: it does not see what the tick sets going.
    Tick,
}

impl Timer {
    fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Random => "random",
            Self::Tick => "tick",
        }
    }
}

/// What to count, and how. The default counts all functions and samples every 997 µs on average.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Start {
    /// Globs of functions whose calls are counted; none: all functions.
    pub filter: Vec<String>,
    /// Globs of functions whose calls are not.
    pub except: Vec<String>,
    /// How functions of the kernel reach the module.
    pub entry: Entry,
    /// When the timer expires.
    pub timer: Timer,
    /// Mean time between two samples of a CPU, ns, 20,000 to 10⁹; the module's own (997,000) if this is `None`.
    pub period_ns: Option<u64>,
    /// Room for so many arcs, at most 65,536; the module's own (65,536) if this is `None`.
    pub arcs: Option<u32>,
    /// Room for so many addresses of samples, a power of two; the module's own (65,536) if this is `None`.
    pub samples: Option<u32>,
    /// Beginning of the random times; the clock if this is `None`.
    pub seed: Option<u64>,
    /// Stop when the [`Device`] that started it is closed, as it is when its process ends in any way.
    pub hold: bool,
}

impl Start {
    fn command(&self) -> Result<String> {
        let mut text = format!("start entry={} timer={}", self.entry.word(), self.timer.word());
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

/// What the module says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Calls are being counted.
    pub counting: bool,
    /// How functions of the kernel reach it: `direct`, `generic` or `off`.
    pub entry: String,
    /// The timer: `off`, `random` or `tick`.
    pub timer: String,
    /// Functions of modules that are counted.
    pub module_functions: u64,
    /// Arcs that were seen since the counters were made.
    pub arcs: u64,
    /// Arcs for which there is room.
    pub arc_capacity: u64,
    /// Memory that the module holds, bytes, on all CPUs.
    pub memory_bytes: u64,
    /// Dumps that were made.
    pub sequence: u64,
}

impl Status {
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

/// The module, open. Commands of several threads come one after the other.
#[derive(Debug)]
pub struct Device(Mutex<File>);

impl Device {
    /// Opens the module that is loaded.
    ///
    /// # Errors
    /// [`Error::NoDevice`]; [`Error::NotRoot`]; what else the kernel has against it.
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

    /// Counts from now on; goes on with what was counted before, unless it was reset.
    ///
    /// # Errors
    /// [`Error::Refused`] with the module's reason.
    pub fn start(&self, start: &Start) -> Result<()> {
        self.ask(&start.command()?).map(drop)
    }

    /// The kernel runs its NOPs again. What was counted stays.
    ///
    /// # Errors
    /// What the kernel has against it.
    pub fn stop(&self) -> Result<()> {
        self.ask("stop").map(drop)
    }

    /// Forgets what was counted, of samples too.
    ///
    /// # Errors
    /// What the kernel has against it.
    pub fn reset(&self) -> Result<()> {
        self.ask("reset").map(drop)
    }

    /// What was counted since the last reset.
    ///
    /// # Errors
    /// [`Error::Refused`] if nothing was counted yet; no memory for the dump.
    pub fn dump(&self) -> Result<Dump> {
        Ok(Dump::read(&self.dump_bytes(false)?)?)
    }

    /// Dump and reset in one: every call is in exactly one such dump.
    ///
    /// # Errors
    /// As of [`Device::dump`].
    pub fn take(&self) -> Result<Dump> {
        Ok(Dump::read(&self.dump_bytes(true)?)?)
    }

    /// A dump as the module writes it; with `take` what is in it is in no later one.
    ///
    /// # Errors
    /// As of [`Device::dump`].
    pub fn dump_bytes(&self, take: bool) -> Result<Vec<u8>> {
        self.ask(if take { "take" } else { "dump" })
    }

    /// What the module says of itself.
    ///
    /// # Errors
    /// What the kernel has against it.
    pub fn status(&self) -> Result<Status> {
        Ok(Status::read(&String::from_utf8_lossy(&self.ask("status")?)))
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
        let command = |start: &Start| start.command().unwrap();
        assert_eq!(command(&Start::default()), "start entry=auto timer=random");
        let start = Start {
            filter: vec!["tcp_*".into(), "vfs_read".into()],
            except: vec!["tcp_ack".into()],
            entry: Entry::Direct,
            timer: Timer::Tick,
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
        let bad = Start { filter: vec!["a b".into()], ..Start::default() };
        assert!(bad.command().unwrap_err().to_string().contains("`a b` is not a glob"));
    }

    #[test]
    fn the_status_is_read_by_names() {
        let status =
            Status::read("version 1\ncalls counting\nentry direct\nfuture 5\narcs 12\nmemory_bytes 99\n");
        assert!(status.counting);
        assert_eq!((&status.entry[..], status.arcs, status.memory_bytes), ("direct", 12, 99));
    }
}
