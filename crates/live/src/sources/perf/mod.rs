//! perf events: samples of cycles (or of a timer if the CPU cannot count them) and of context
//! switches.

mod branches;
mod cgroup;
mod events;
mod period;
pub mod record;
mod ring;
mod switches;
pub mod task_cgroups;
pub mod tracepoints;

pub use branches::BranchSource;

use crate::random::PeriodGenerator;
use crate::{
    Aggregate, CollectorOptions, Coverage, Error, Result, SamplingFilter, Source, SourceDescription,
    StackSample,
};
use events::{open, open_migrations, targets, EventKind, EventTarget, SampleRate};
use kerntune_profile::{Anomaly, CounterTotal};
use perf_event::Counter;
use record::{CallChain, PerfRecord, SampleLayout};
use ring::{EventBuffer, TimeOrder};
use rustix::time::{clock_gettime, ClockId};
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use switches::SwitchReader;
use tracepoints::{RunningThreads, TraceEvent, TracepointReader};

/// Buffer size of an event for time samples in bytes, a power of two.
const TIME_BUFFER_BYTES: usize = 512 << 10;
/// Buffer size of an event for switch samples in bytes, a power of two.
const SWITCH_BUFFER_BYTES: usize = 128 << 10;
/// Samples of context switches per second and CPU: enough for statistics, and cheap.
const SWITCHES_PER_SECOND: u64 = 199;
/// Type of a record of a new cgroup.
const CGROUP_RECORD: u32 = perf_event_open_sys::bindings::PERF_RECORD_CGROUP;
/// Assumed cycles per second if the CPU's speed is unknown.
const USUAL_HZ: u64 = 2_500_000_000;

/// Source of samples from perf events.
pub struct PerfSource {
    /// Buffers of time samples, followed by those of switch samples and of traced events.
    rings: Vec<EventBuffer>,
    /// Number of buffers of time samples.
    of_time: usize,
    /// Number of buffers of time samples and switch samples.
    of_samples: usize,
    /// Tracepoints of which every event is read.
    traced: Vec<TracepointReader>,
    /// Number of the tracepoint and of the target of each buffer of traced events.
    traced_rings: Vec<(usize, usize)>,
    running: RunningThreads,
    order: TimeOrder,
    /// Time of the last reset. Earlier samples and losses are ignored.
    since: u64,
    switch_reader: SwitchReader,
    what: EventKind,
    /// Mean of the random periods.
    mean: u64,
    cpus: u64,
    of_tasks: bool,
    random: PeriodGenerator,
    chain: CallChain,
    /// Counters of moves from CPU to CPU, with their counts at the last reset.
    migrations: Vec<(Counter, u64)>,
    lacks: Vec<String>,
    /// True if time samples have the id of their cgroup.
    has_cgroups: bool,
    /// True once the ids of cgroups were read.
    knows_cgroups: bool,
}

impl PerfSource {
    /// Opens and enables the events.
    ///
    /// # Errors
    /// [`Error::NotPermitted`], [`Error::NoPerf`], [`Error::Filter`], [`Error::Rate`].
    pub fn start(options: &CollectorOptions) -> Result<Self> {
        check_rate(options.rate)?;
        let (targets, cpus) = targets(&options.filter)?;
        let clock = 1_000_000_000 / options.rate.max(1);
        let cycles = cycles_per_second() / options.rate.max(1);
        let mut lacks = Vec::new();
        let trial = CollectorOptions { on_exec: false, ..options.clone() };
        let no_cycles = match options.software_clock {
            true => Some("the software clock was asked for".to_string()),
            false => {
                let tried = targets
                    .first()
                    .map(|target| open(EventKind::Cycles, target, SampleRate::Period(cycles), &trial));
                tried
                    .and_then(io::Result::err)
                    .map(|error| format!("the CPU counts no cycles here ({error})"))
            }
        };
        let (what, mean) = match no_cycles {
            None => (EventKind::Cycles, cycles),
            Some(why) => {
                lacks.push(format!("{why}: the software clock is sampled"));
                (EventKind::Clock, clock)
            }
        };
        // Kernels before 5.7, or without CONFIG_CGROUP_PERF, put no cgroup into a sample.
        let trial = CollectorOptions { cgroups: true, ..trial };
        let tried = targets.first().map(|target| open(what, target, SampleRate::Period(mean), &trial));
        let has_cgroups = tried.is_some_and(|opened| opened.is_ok());
        let options = &CollectorOptions { cgroups: has_cgroups, ..options.clone() };
        let mut perf = Self {
            rings: Vec::new(),
            of_time: 0,
            of_samples: 0,
            traced: Vec::new(),
            traced_rings: Vec::new(),
            running: RunningThreads::default(),
            order: TimeOrder::default(),
            since: 0,
            switch_reader: SwitchReader::find(),
            what,
            mean,
            cpus,
            of_tasks: options.filter.is_of_tasks(),
            random: PeriodGenerator::new(),
            chain: CallChain::with_capacity(1024),
            migrations: Vec::new(),
            lacks,
            has_cgroups,
            knows_cgroups: false,
        };
        for target in &targets {
            let often = SampleRate::Period(perf.random.period(mean));
            let counter = open(what, target, often, options).map_err(refused)?;
            perf.rings.push(EventBuffer::new(counter, TIME_BUFFER_BYTES).map_err(refused)?);
        }
        perf.of_time = perf.rings.len();
        perf.open_switches(&targets, options);
        perf.of_samples = perf.rings.len();
        perf.open_migrations(&targets, options);
        // After the samples: a user who may not take these learns that first.
        perf.traced = tracepoints::find(&options.trace)?;
        perf.open_traced(&targets, options)?;
        if !options.on_exec {
            for (counter, _) in &mut perf.migrations {
                counter.enable().map_err(refused)?;
            }
        }
        for (at, ring) in perf.rings.iter_mut().enumerate() {
            let traced = at.checked_sub(perf.of_samples).and_then(|at| perf.traced_rings.get(at));
            let is_machine_wide =
                traced.is_some_and(|(point, _)| perf.traced[*point].point.is_machine_wide());
            // The others start with the program.
            if !options.on_exec || is_machine_wide {
                ring.enable().map_err(refused)?;
            }
        }
        perf.reset()?;
        Ok(perf)
    }

    fn buffer_bytes(&self) -> usize {
        let traced = self.traced_rings.iter().map(|(number, _)| self.traced[*number].point.buffer_bytes());
        self.of_time * TIME_BUFFER_BYTES
            + (self.of_samples - self.of_time) * SWITCH_BUFFER_BYTES
            + traced.sum::<usize>()
    }

    /// Opens the counters of migrations. A failure is only noted.
    fn open_migrations(&mut self, targets: &[EventTarget], options: &CollectorOptions) {
        let opened: io::Result<Vec<_>> =
            targets.iter().map(|target| Ok((open_migrations(target, options)?, 0))).collect();
        match opened {
            Ok(counters) => self.migrations = counters,
            Err(error) => self.lacks.push(format!("moves from CPU to CPU are not counted ({error})")),
        }
    }

    /// Opens the tracepoints of which every event is read.
    fn open_traced(&mut self, watched: &[EventTarget], options: &CollectorOptions) -> Result<()> {
        if self.traced.is_empty() {
            return Ok(());
        }
        let (machine, _) = targets(&SamplingFilter::default())?;
        self.running = RunningThreads::new(machine.len());
        for (number, reader) in self.traced.iter().enumerate() {
            let what = reader.event();
            let targets = if reader.point.is_machine_wide() { &machine } else { watched };
            for (at, target) in targets.iter().enumerate() {
                let counter = open(what, target, SampleRate::Period(1), options).map_err(refused)?;
                let ring = EventBuffer::new(counter, reader.point.buffer_bytes()).map_err(refused)?;
                self.rings.push(ring);
                self.traced_rings.push((number, at));
            }
        }
        Ok(())
    }

    /// Opens the events for context switches. A failure is only noted.
    fn open_switches(&mut self, targets: &[EventTarget], options: &CollectorOptions) {
        for target in targets {
            let often = SampleRate::Frequency(SWITCHES_PER_SECOND);
            let opened = open(self.switch_reader.what(), target, often, options)
                .and_then(|counter| EventBuffer::new(counter, SWITCH_BUFFER_BYTES));
            match opened {
                Ok(ring) => self.rings.push(ring),
                Err(error) => {
                    self.lacks.push(format!("context switches are not sampled ({error})"));
                    self.rings.truncate(self.of_time);
                    return;
                }
            }
        }
        if let Some(why) = self.switch_reader.lacks() {
            self.lacks.push(why);
        }
    }
}

impl Source for PerfSource {
    fn description(&self) -> SourceDescription {
        let is_clock = self.what == EventKind::Clock;
        let bias = "the software clock is a timer interrupt: time in code that runs with interrupts off is charged to where \
                    they come on again, and none is seen in the timer's own interrupt";
        let cycles = "a sample stands for cycles that were not halted, and all samples for the same time: code that runs while \
                      the CPU is slower or faster than on average is charged with less or more than its time";
        SourceDescription {
            name: if is_clock { "perf: cpu-clock" } else { "perf: cycles" }.into(),
            period: format!(
                "every {} {} on average, for each CPU another period between half and one and a half of that, chosen at \
                 random again whenever its samples are taken over (ten times a second or more)",
                self.mean,
                if is_clock { "ns" } else { "cycles" }
            ),
            bias: Some(if is_clock { bias } else { cycles }.into()),
            calls: false,
            sees_idle: is_clock && !self.of_tasks,
            buffers: self.buffer_bytes(),
            traced: self.traced.iter().map(TracepointReader::source).collect(),
            lacks: self.lacks.clone(),
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.rings.iter().map(EventBuffer::descriptor).collect()
    }

    fn drain(&mut self, into: &mut Aggregate) -> Result<()> {
        // Records that arrive during the drain wait for the next one.
        let Self {
            rings,
            of_time,
            of_samples,
            traced,
            traced_rings,
            running,
            order,
            since,
            switch_reader,
            mean,
            random,
            chain,
            has_cgroups,
            knows_cgroups,
            ..
        } = self;
        if *has_cgroups && !std::mem::replace(knows_cgroups, true) {
            task_cgroups::read_ids(into);
        }
        let until = now();
        order.take(rings, until, |at, held, tally| {
            let is_time = at < *of_time;
            let traced = at
                .checked_sub(*of_samples)
                .and_then(|at| traced_rings.get(at))
                .map(|(point, cpu)| (&traced[*point], *cpu));
            let layout = match traced {
                Some(_) => SampleLayout { period: true, raw: true },
                None if is_time => SampleLayout::default(),
                None => switch_reader.layout(),
            };
            if held.kind == CGROUP_RECORD {
                if task_cgroups::named(&held.body, into).is_none() {
                    into.note(Anomaly::DamagedRecords, 1);
                }
                return;
            }
            match record::parse(held.kind, held.misc, &held.body, layout, chain) {
                Some(PerfRecord::Sample { .. } | PerfRecord::Lost(_)) if held.time < *since => {}
                Some(PerfRecord::Sample { pid, tid, is_user, .. }) if is_time => {
                    tally.has_samples = true;
                    let id = held.body.last_chunk().filter(|_| *has_cgroups);
                    task_cgroups::take(tid, pid, id.map(|id| u64::from_ne_bytes(*id)), into);
                    let CallChain { kernel, user } = &*chain;
                    into.sample(&StackSample { tid, tgid: pid, is_user, kernel, user });
                }
                Some(PerfRecord::Sample { tid, period, raw, .. }) => match traced {
                    Some((reader, cpu)) => {
                        let registers = tracepoints::after_raw(&held.body, raw);
                        let kernel = &chain.kernel;
                        let event = TraceEvent { time: held.time, tid, cpu, raw, kernel, registers };
                        tracepoints::take(reader, &event, running, into);
                    }
                    None => switch_reader.take(tid, period, raw, &chain.kernel, into),
                },
                Some(PerfRecord::Lost(count)) if is_time || traced.is_some() => tally.lost += count,
                Some(PerfRecord::Lost(count)) => into.note(Anomaly::LostSwitchSamples, count),
                Some(other) => take(&other, into),
                None => into.note(Anomaly::DamagedRecords, 1),
            }
        });
        for ring in rings.iter_mut().take(*of_time) {
            if !std::mem::take(&mut ring.tally.has_samples) {
                continue;
            }
            // An event whose last thread has ended rejects the period and does not need it.
            let _ = period::set(ring.descriptor(), random.period(*mean));
        }
        Ok(())
    }

    fn flush_counts(&mut self, into: &mut Aggregate) -> Result<()> {
        let mut lost = 0_u64;
        for ring in self.rings.iter_mut().skip(self.of_samples) {
            lost = lost.saturating_add(ring.since().map_err(refused)?.lost);
        }
        if lost > 0 {
            into.health.insert(Anomaly::LostTraceEvents, lost);
        }
        Ok(())
    }

    fn coverage(&mut self) -> Result<Option<Coverage>> {
        let mut sum = Coverage { cpus: self.cpus, ..Coverage::default() };
        for ring in self.rings.iter_mut().take(self.of_time) {
            let since = ring.since().map_err(refused)?;
            sum.ns += if self.what == EventKind::Clock { since.count } else { since.running_ns };
            sum.lost += since.lost;
        }
        Ok(Some(sum))
    }

    fn counter_totals(&mut self) -> Result<Vec<CounterTotal>> {
        let mut count = 0;
        let switches = self.rings.get_mut(self.of_time..self.of_samples).unwrap_or_default();
        for ring in &mut *switches {
            count += ring.since().map_err(refused)?.count;
        }
        let source = self.switch_reader.source();
        let name = "context switches".to_string();
        let row = CounterTotal { kind: "switch".into(), name, count, source };
        let mut rows = if switches.is_empty() { Vec::new() } else { vec![row] };
        let mut count = 0_u64;
        for (counter, base) in &mut self.migrations {
            count = count.saturating_add(counter.read().map_err(refused)?.saturating_sub(*base));
        }
        if !self.migrations.is_empty() {
            rows.push(CounterTotal {
                kind: "migration".into(),
                name: "migrations from CPU to CPU".into(),
                count,
                source: "perf: cpu-migrations".into(),
            });
        }
        Ok(rows)
    }

    fn reset(&mut self) -> Result<()> {
        // The buffers also hold records of threads, so they are not emptied but read at the next
        // drain.
        self.since = now();
        self.running.clear();
        for (counter, base) in &mut self.migrations {
            *base = counter.read().map_err(refused)?;
        }
        self.rings.iter_mut().try_for_each(EventBuffer::reset).map_err(refused)
    }
}

/// Returns the time of the records' clock, in ns.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// Handles a record of threads or code.
fn take(record: &PerfRecord, into: &mut Aggregate) {
    match *record {
        PerfRecord::Comm { pid, tid, name, exec } => {
            into.threads.named(tid, pid, &String::from_utf8_lossy(name));
            if exec {
                into.threads.recheck_cgroup(tid);
                into.user.cleared(pid);
            }
        }
        PerfRecord::Fork { pid, tid, parent, parent_process } => {
            into.threads.forked(tid, pid, parent);
            into.waits.off_cpu.forked(tid);
            into.user.forked(pid, parent_process);
        }
        PerfRecord::Mapped { pid, begin, size, offset, path } => {
            into.user.mapped(pid, begin, begin.saturating_add(size), offset, &String::from_utf8_lossy(path));
        }
        PerfRecord::Exit { pid, tid } => {
            into.threads.ended(tid);
            into.waits.ended(tid);
            if pid == tid {
                into.user.cleared(pid);
            }
        }
        PerfRecord::Throttled => into.note(Anomaly::Throttled, 1),
        PerfRecord::Symbol { address, gone: true, .. } => into.code_gone(address),
        PerfRecord::Symbol { address, size, is_bpf, name, .. } => {
            let module = if is_bpf { "bpf" } else { "generated" };
            into.code_added(&String::from_utf8_lossy(name), module, address, size.into());
        }
        PerfRecord::Sample { .. } | PerfRecord::Lost(_) | PerfRecord::Other => {}
    }
}

/// Converts the error of a failed system call.
fn refused(source: io::Error) -> Error {
    match source.raw_os_error() {
        // EPERM, EACCES
        Some(1 | 13) => {
            let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
            let mut paranoid = setting.map_or("not shown".into(), |text| text.trim().to_string());
            let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
            if lockdown.contains("[confidentiality]") {
                paranoid += ", and the kernel's lockdown for confidentiality forbids it";
            }
            Error::NotPermitted { paranoid, source }
        }
        // ENOSYS
        Some(38) => Error::NoPerf { source },
        // ESRCH: the thread has ended since the list was read.
        Some(3) => Error::Filter("the process has ended".into()),
        // EBADF: of the directories that are opened, only a cgroup's can be of the wrong kind.
        Some(9) => Error::Filter(
            "perf events cannot follow this cgroup: give one of version 2 (`mount -t cgroup2 none DIR`)"
                .into(),
        ),
        _ => Error::Event { what: "this kernel with perf events".into(), source },
    }
}

/// Rejects a rate above the kernel's limit.
fn check_rate(asked: u64) -> Result<()> {
    let limit = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").ok();
    match limit.and_then(|text| text.trim().parse::<u64>().ok()).filter(|max| asked > *max) {
        Some(max) => Err(Error::Rate { asked, max }),
        None => Ok(()),
    }
}

fn cycles_per_second() -> u64 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("cpu MHz")?.split(':').nth(1)?.trim().parse::<f64>().ok());
    line.map_or(USUAL_HZ, |mhz| (mhz * 1e6) as u64).clamp(100_000_000, 10_000_000_000)
}
