//! Arguments of `kerntune live` and `kerntune record --live`.

use crate::exit::Failure;
use crate::global::FormatOptions;
use clap::{Args, Subcommand};
use kerntune_live::{
    cpu_list, CallCountOptions, CollectorOptions, SamplingFilter, TableBounds, USER_FUNCTIONS,
};
use std::path::PathBuf;

/// Default of `--rate`, in samples per second and CPU.
const RATE: u64 = 1000;

/// Options of the collector, shared by `record --live`, `live start` and `live top`.
#[derive(Debug, Clone, Default, Args)]
pub struct LiveOptions {
    /// With --live: mean number of samples per second and CPU [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    rate: Option<u64>,
    /// With --live: sample by the kernel's timer, even if the CPU counts cycles
    #[arg(long)]
    software_clock: bool,
    /// With --live: follow call chains into user programs that keep frame pointers
    #[arg(long)]
    user_chains: bool,
    /// With --live: profile only this process, its threads and the processes that it starts; may be
    /// repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// With --live: profile only this cgroup and the cgroups below it: a directory in
    /// /sys/fs/cgroup, or a name as in /proc/PID/cgroup
    #[arg(long, value_name = "DIR|NAME", conflicts_with = "pid")]
    cgroup: Option<PathBuf>,
    /// With --live: also count calls of the functions that match this glob; `all` means all
    /// functions, `macro` means system calls and the entry points of large parts; may be repeated
    #[arg(long, value_name = "GLOB")]
    calls: Vec<String>,
    /// With --calls: do not count functions that match this glob; may be repeated
    #[arg(long, value_name = "GLOB", requires = "calls")]
    calls_except: Vec<String>,
    /// With --live: profile only these CPUs (0-3,8)
    #[arg(long, value_name = "LIST")]
    cpu: Option<String>,
}

impl LiveOptions {
    /// Returns true if any of these options was given.
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

    /// Returns true if the options say what to watch on the machine.
    pub fn names_a_part(&self) -> bool {
        !self.pid.is_empty() || self.cgroup.is_some() || !self.calls.is_empty()
    }

    /// Converts the options for the collector. Calls are counted by the module kgmon, which the
    /// caller must still build.
    ///
    /// # Errors
    /// An invalid list of CPUs; values of `--calls` that exclude each other; `--calls` with a
    /// filter for processes, a cgroup or CPUs.
    pub fn options(&self) -> Result<CollectorOptions, Failure> {
        let cpus = self.cpu.as_deref().map(cpu_list).transpose()?.unwrap_or_default();
        let filter = SamplingFilter { processes: self.pid.clone(), cgroup: self.cgroup.clone(), cpus };
        let rate = self.rate.unwrap_or(RATE);
        let calls = self.counted()?;
        if calls.is_some() && !filter.is_all() {
            return Err(Failure::usage(
                "--calls counts on the whole machine: leave out --pid, --cgroup and --cpu",
            ));
        }
        let bounds =
            TableBounds { user: if self.user_chains { USER_FUNCTIONS } else { 0 }, ..TableBounds::default() };
        Ok(CollectorOptions {
            rate,
            filter,
            bounds,
            software_clock: self.software_clock,
            calls,
            ..CollectorOptions::default()
        })
    }

    fn counted(&self) -> Result<Option<CallCountOptions>, Failure> {
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
        Ok(Some(CallCountOptions { only, except: self.calls_except.clone(), module: None }))
    }
}

/// Commands for a collector that keeps running after the terminal is closed.
#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    /// Start profiling the kernel of this machine; runs until `live stop`
    Start {
        #[command(flatten)]
        watch: LiveOptions,
        /// Run in this terminal, not in the background
        #[arg(long)]
        foreground: bool,
    },
    /// Show whether a collector runs, what it has collected, and how much memory it uses
    Status {
        #[command(flatten)]
        format: FormatOptions,
    },
    /// Write the data collected so far as a profile; the collector continues
    Dump(LiveDumpOptions),
    /// Discard the data collected so far; the collector continues
    Reset,
    /// Stop the collector; data that was not dumped is lost
    Stop,
    /// Show functions, paths, subsystems, interrupts and rates, updated continuously
    Top {
        /// Set what is watched if no collector runs
        #[command(flatten)]
        watch: LiveOptions,
        /// Seconds between two updates
        #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
        every: u64,
    },
}

#[derive(Debug, Args)]
pub struct LiveDumpOptions {
    /// Name of the machine's workload, for the profile
    #[arg(long, value_name = "NAME", default_value = "live")]
    pub workload: String,
    /// Also write the profile for GNU gprof; its symbols go into FILE.symbols, for `gprof -S`
    #[arg(long, value_name = "FILE")]
    pub gmon: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}
