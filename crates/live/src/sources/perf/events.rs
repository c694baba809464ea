//! Opening events, for whatever is to be watched.

use super::cgroup;
use crate::{cpu_list, Error, Filter, Options, Result};
use perf_event::events::{Event, Hardware, Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, ReadFormat, SampleFlag};
use std::fs::{self, File};
use std::io;

/// What an event is opened on.
#[derive(Debug)]
pub(super) enum Target {
    /// Everything that runs on a CPU.
    Cpu(u32),
    /// A cgroup on a CPU.
    Cgroup(File, u32),
    /// A thread, and what it starts, on a CPU.
    Thread(u32, u32),
}

/// The targets of a filter, one for each buffer, and the number of CPUs.
pub(super) fn targets(filter: &Filter) -> Result<(Vec<Target>, u64)> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online")
        .map_err(Error::io("read", "/sys/devices/system/cpu/online"))?;
    let online = cpu_list(&online)?;
    let cpus = if filter.cpus.is_empty() { online.clone() } else { filter.cpus.clone() };
    if let Some(missing) = cpus.iter().find(|cpu| !online.contains(cpu)) {
        return Err(Error::Filter(format!("CPU {missing} is not online; those that are: {online:?}")));
    }
    let mut threads = Vec::new();
    for process in &filter.processes {
        threads.extend(threads_of(*process)?);
    }
    let mut targets = Vec::new();
    for cpu in &cpus {
        match &filter.cgroup {
            Some(_) if !threads.is_empty() => {
                return Err(Error::Filter("processes and a cgroup cannot both be chosen: give one".into()));
            }
            Some(cgroup) => targets.push(Target::Cgroup(cgroup::open(cgroup)?, *cpu)),
            None if threads.is_empty() => targets.push(Target::Cpu(*cpu)),
            None => targets.extend(threads.iter().map(|thread| Target::Thread(*thread, *cpu))),
        }
    }
    Ok((targets, cpus.len() as u64))
}

fn threads_of(process: u32) -> Result<Vec<u32>> {
    let gone = || Error::Filter(format!("there is no process {process}"));
    let tasks = fs::read_dir(format!("/proc/{process}/task")).map_err(|_| gone())?;
    let threads: Vec<u32> =
        tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
    if threads.is_empty() {
        return Err(gone());
    }
    Ok(threads)
}

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Cycles of the CPU.
    Cycles,
    /// The kernel's timer.
    Clock,
    /// Context switches, without knowing to whom.
    Switches,
    /// The tracepoint of context switches, by its number.
    SchedSwitch(u64),
}

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Often {
    /// Every so many events.
    Period(u64),
    /// About so many times a second: the kernel finds the period.
    Frequency(u64),
}

/// Opens an event on a target; not enabled unless a program's start is to enable it.
///
/// # Errors
/// Those of the system call.
pub(super) fn open(what: What, target: &Target, often: Often, options: &Options) -> io::Result<Counter> {
    match what {
        What::Cycles => opened(Hardware::CPU_CYCLES, what, target, often, options),
        What::Clock => opened(Software::CPU_CLOCK, what, target, often, options),
        What::Switches => opened(Software::CONTEXT_SWITCHES, what, target, often, options),
        What::SchedSwitch(id) => opened(Tracepoint::with_id(id), what, target, often, options),
    }
}

fn opened(
    event: impl Event,
    what: What,
    target: &Target,
    often: Often,
    options: &Options,
) -> io::Result<Counter> {
    let on_exec = options.on_exec;
    let is_time = matches!(what, What::Cycles | What::Clock);
    let mut builder = Builder::new(event);
    let mut sample = SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN;
    if !is_time {
        sample |= SampleFlag::PERIOD;
    }
    if matches!(what, What::SchedSwitch(_)) {
        sample |= SampleFlag::RAW;
    }
    builder
        .include_kernel()
        .include_hv()
        .sample(sample)
        .enabled(false)
        .exclude_callchain_user(!(is_time && options.user_chains()));
    match often {
        Often::Period(period) => builder.sample_period(period),
        Often::Frequency(frequency) => builder.sample_frequency(frequency),
    };
    match target {
        Target::Cpu(cpu) => builder.any_pid().one_cpu(*cpu as usize),
        Target::Cgroup(cgroup, cpu) => builder.observe_cgroup(cgroup).one_cpu(*cpu as usize),
        Target::Thread(thread, cpu) => {
            builder.observe_pid(*thread as i32).one_cpu(*cpu as usize).inherit(true).enable_on_exec(on_exec)
        }
    };
    // Names of threads and code that is loaded are told with the samples of time.
    let mapped = is_time && options.user_chains();
    builder.mmap(mapped).mmap2(mapped);
    builder.comm(is_time).comm_exec(is_time).task(is_time).ksymbol(is_time);
    // Records of several buffers are put in order by their time.
    builder.sample_id_all(true).clockid(Clock::MONOTONIC);
    builder.wakeup_watermark(WAKE_AT);
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    // Kernels before 6.0 do not count what is lost.
    builder.read_format(times | ReadFormat::LOST).build().or_else(|error| match error.raw_os_error() {
        Some(INVALID) => builder.read_format(times).ksymbol(false).build(),
        _ => Err(error),
    })
}

/// Bytes in a buffer that wake the collector before its time.
const WAKE_AT: usize = 64 << 10;
/// `EINVAL`.
const INVALID: i32 = 22;
