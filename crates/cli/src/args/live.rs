//! How the running kernel is watched.

use crate::exit::Failure;
use crate::global::Json;
use clap::{Args, Subcommand};
use kerntune_live::{cpu_list, Bounds, CallCounts, Filter, Options, USER_FUNCTIONS};
use std::path::PathBuf;

/// Samples per second and CPU that are taken if nothing else is asked for.
const RATE: u64 = 1000;

/// What `record --live` and `live start` have in common.
#[derive(Debug, Clone, Default, Args)]
pub struct Watch {
    /// With --live: samples per second and CPU, on average [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: Option<u64>,
    /// With --live: sample by the kernel's timer even if the CPU counts cycles
    #[arg(long)]
    software_clock: bool,
    /// With --live: follow call chains into programs, as far as these keep frame pointers
    #[arg(long)]
    user_chains: bool,
    /// With --live: only this process, its threads and what they start; may be repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// With --live: only this cgroup and those below it: a directory in /sys/fs/cgroup, or a name as in /proc/PID/cgroup
    #[arg(long, value_name = "DIR|NAME", conflicts_with = "pid")]
    cgroup: Option<PathBuf>,
    /// With --live: also count the calls of the functions that this glob matches; `all` stands for all functions, `macro` for
    /// system calls and the entry points of large parts; may be repeated
    #[arg(long, value_name = "GLOB")]
    calls: Vec<String>,
    /// With --calls: except functions that this glob matches; may be repeated
    #[arg(long, value_name = "GLOB", requires = "calls")]
    calls_except: Vec<String>,
    /// With --live: only these CPUs (0-3,8)
    #[arg(long, value_name = "LIST")]
    cpu: Option<String>,
}

impl Watch {
    /// Whether any of it was given.
    pub fn is_given(&self) -> bool {
        let Self { rate, software_clock, user_chains, pid, cgroup, cpu, calls, calls_except: _ } = self;
        rate.is_some()
            || *software_clock
            || *user_chains
            || !pid.is_empty()
            || cgroup.is_some()
            || cpu.is_some()
            || !calls.is_empty()
    }

    /// The same for the collector; calls are counted by a module that is not built yet.
    ///
    /// # Errors
    /// A list of CPUs that is none; words of --calls that exclude each other.
    pub fn options(&self) -> Result<Options, Failure> {
        let cpus = self.cpu.as_deref().map(cpu_list).transpose()?.unwrap_or_default();
        let filter = Filter { processes: self.pid.clone(), cgroup: self.cgroup.clone(), cpus };
        let rate = self.rate.unwrap_or(RATE);
        let calls = self.counted()?;
        if calls.is_some() && !filter.is_all() {
            return Err(Failure::usage(
                "--calls counts on the whole machine: leave out --pid, --cgroup and --cpu",
            ));
        }
        let bounds = Bounds { user: if self.user_chains { USER_FUNCTIONS } else { 0 }, ..Bounds::default() };
        Ok(Options { rate, filter, bounds, software_clock: self.software_clock, calls, ..Options::default() })
    }

    fn counted(&self) -> Result<Option<CallCounts>, Failure> {
        let globs: Vec<&str> = self.calls.iter().map(String::as_str).collect();
        let only = match globs[..] {
            [] => return Ok(None),
            ["all"] => Vec::new(),
            ["macro"] => kerntune_kgmon::MACRO.iter().map(|glob| (*glob).to_string()).collect(),
            _ if globs.contains(&"all") || globs.contains(&"macro") => {
                return Err(Failure::usage("give --calls all or --calls macro alone, without other --calls"));
            }
            _ => self.calls.clone(),
        };
        Ok(Some(CallCounts { only, except: self.calls_except.clone(), module: None }))
    }
}

/// A collector that outlives the terminal.
#[derive(Debug, Subcommand)]
pub enum Live {
    /// Start to profile the kernel of this machine, until `live stop`
    Start {
        #[command(flatten)]
        watch: Watch,
        /// Stay in this terminal
        #[arg(long)]
        foreground: bool,
    },
    /// Show whether a collector runs, what it has collected and how much memory it takes
    Status {
        #[command(flatten)]
        format: Json,
    },
    /// Keep what was collected so far as a profile; the collector continues
    Dump(Dump),
    /// Discard what was collected so far; the collector continues
    Reset,
    /// Stop the collector; what was not dumped is lost
    Stop,
    /// Show functions, paths, subsystems, interrupts and rates as they change
    Top {
        /// Without a collector that runs: what to watch.
        #[command(flatten)]
        watch: Watch,
        /// Seconds between two updates
        #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
        every: u64,
    },
}

#[derive(Debug, Args)]
pub struct Dump {
    /// Name of the workload that the machine ran
    #[arg(long, value_name = "NAME", default_value = "live")]
    pub workload: String,
    /// Also write it for GNU gprof; its symbols go into FILE.symbols, for `gprof -S`
    #[arg(long, value_name = "FILE")]
    pub gmon: Option<PathBuf>,
    #[command(flatten)]
    pub format: Json,
}
