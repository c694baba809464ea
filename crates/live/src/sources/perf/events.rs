//! Opening of perf events.

use super::cgroup;
use crate::{cpu_list, CollectorOptions, Error, Result, SamplingFilter};
use perf_event::events::{Event, Hardware, Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, ReadFormat, SampleFlag};
use std::fs::{self, File};
use std::io;

/// Object on which an event is opened.
#[derive(Debug)]
pub(super) enum EventTarget {
    /// All code on a CPU.
    Cpu(u32),
    /// A cgroup on a CPU.
    Cgroup(File, u32),
    /// A thread with its children, on a CPU.
    Thread(u32, u32),
}

impl EventTarget {
    /// Returns the number of the CPU.
    pub fn cpu(&self) -> u32 {
        match self {
            Self::Cpu(cpu) | Self::Cgroup(_, cpu) | Self::Thread(_, cpu) => *cpu,
        }
    }
}

/// Returns the targets of a filter, one for each buffer, and the number of CPUs.
pub(super) fn targets(filter: &SamplingFilter) -> Result<(Vec<EventTarget>, u64)> {
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
            Some(cgroup) => targets.push(EventTarget::Cgroup(cgroup::open(cgroup)?, *cpu)),
            None if threads.is_empty() => targets.push(EventTarget::Cpu(*cpu)),
            None => targets.extend(threads.iter().map(|thread| EventTarget::Thread(*thread, *cpu))),
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

/// Kind of a sampled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    /// CPU cycles.
    Cycles,
    /// Kernel timer.
    Clock,
    /// Context switches, without the next thread.
    Switches,
    /// Tracepoint of context switches, by its id.
    SchedSwitch(u64),
    /// Tracepoint of which every event is read, by its id; with or without call chains, and a
    /// register of the thread, whose kind is that of its code.
    Tracepoint { id: u64, chain: bool, registers: bool },
}

/// Sampling rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleRate {
    /// Number of events per sample.
    Period(u64),
    /// Samples per second; the kernel adapts the period.
    Frequency(u64),
}

/// Opens an event on a target. It is not enabled, unless it is to start with a program.
///
/// # Errors
/// Those of the system call.
pub(super) fn open(
    what: EventKind,
    target: &EventTarget,
    often: SampleRate,
    options: &CollectorOptions,
) -> io::Result<Counter> {
    match what {
        EventKind::Cycles => opened(Hardware::CPU_CYCLES, what, target, often, options),
        EventKind::Clock => opened(Software::CPU_CLOCK, what, target, often, options),
        EventKind::Switches => opened(Software::CONTEXT_SWITCHES, what, target, often, options),
        EventKind::SchedSwitch(id) | EventKind::Tracepoint { id, .. } => {
            opened(Tracepoint::with_id(id), what, target, often, options)
        }
    }
}

/// Opens a counter of moves from CPU to CPU on a target, without samples. It is not enabled, unless
/// it is to start with a program.
///
/// # Errors
/// Those of the system call.
pub(super) fn open_migrations(target: &EventTarget, options: &CollectorOptions) -> io::Result<Counter> {
    let mut builder = Builder::new(Software::CPU_MIGRATIONS);
    builder.include_kernel().include_hv().enabled(false);
    follow(&mut builder, target, options.on_exec);
    builder.build()
}

/// Makes an event follow its target.
pub(super) fn follow<'a>(builder: &mut Builder<'a>, target: &'a EventTarget, on_exec: bool) {
    match target {
        EventTarget::Cpu(cpu) => builder.any_pid().one_cpu(*cpu as usize),
        EventTarget::Cgroup(cgroup, cpu) => builder.observe_cgroup(cgroup).one_cpu(*cpu as usize),
        EventTarget::Thread(thread, cpu) => {
            builder.observe_pid(*thread as i32).one_cpu(*cpu as usize).inherit(true).enable_on_exec(on_exec)
        }
    };
}

fn opened(
    event: impl Event,
    what: EventKind,
    target: &EventTarget,
    often: SampleRate,
    options: &CollectorOptions,
) -> io::Result<Counter> {
    let on_exec = options.on_exec;
    let is_time = matches!(what, EventKind::Cycles | EventKind::Clock);
    let mut builder = Builder::new(event);
    let mut sample = SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN;
    if !is_time {
        sample |= SampleFlag::PERIOD;
    }
    if matches!(what, EventKind::SchedSwitch(_) | EventKind::Tracepoint { .. }) {
        sample |= SampleFlag::RAW;
    }
    if is_time && options.cgroups {
        sample |= SampleFlag::CGROUP;
        builder.cgroup(true);
    }
    if matches!(what, EventKind::Tracepoint { registers: true, .. }) {
        sample |= SampleFlag::REGS_USER;
        builder.sample_regs_user(FIRST_REGISTER);
    }
    builder
        .include_kernel()
        .include_hv()
        .sample(sample)
        .enabled(false)
        .exclude_callchain_user(!(is_time && options.user_chains()))
        .exclude_callchain_kernel(matches!(what, EventKind::Tracepoint { chain: false, .. }));
    match often {
        SampleRate::Period(period) => builder.sample_period(period),
        SampleRate::Frequency(frequency) => builder.sample_frequency(frequency),
    };
    follow(&mut builder, target, on_exec);
    // Thread names and loaded code are reported with the time samples.
    let mapped = is_time && options.user_chains();
    builder.mmap(mapped).mmap2(mapped);
    builder.comm(is_time).comm_exec(is_time).task(is_time).ksymbol(is_time);
    // Time stamps order the records of several buffers.
    builder.sample_id_all(true).clockid(Clock::MONOTONIC);
    builder.wakeup_watermark(WAKEUP_BYTES);
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    // Kernels before 6.0 do not count losses.
    builder.read_format(times | ReadFormat::LOST).build().or_else(|error| match error.raw_os_error() {
        Some(INVALID) => builder.read_format(times).ksymbol(false).build(),
        _ => Err(error),
    })
}

/// Mask of one register that every architecture has.
const FIRST_REGISTER: u64 = 1;
/// Number of buffered bytes that wakes the collector early.
const WAKEUP_BYTES: usize = 64 << 10;
/// Error code `EINVAL`.
const INVALID: i32 = 22;
