//! perf events: samples of cycles, or of a timer where the CPU counts none, and of context switches.

mod cgroup;
mod events;
mod period;
pub mod record;
mod ring;
mod switches;

use crate::random::Random;
use crate::{Aggregate, Description, Error, Observed, Options, Result, Sample, Source};
use events::{open, targets, Often, Target, What};
use kerntune_profile::Counted;
use record::{Chain, Layout, Record};
use ring::{Order, Ring};
use rustix::time::{clock_gettime, ClockId};
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use switches::SwitchReader;

/// Bytes of the buffer of one event for samples of time; a power of two.
const BUFFER: usize = 512 << 10;
/// The same for samples of switches.
const SWITCH_BUFFER: usize = 128 << 10;
/// Samples of context switches per second and CPU: enough for who and why, too few to cost anything.
const SWITCHES_PER_SECOND: u64 = 199;
/// Cycles per second of a CPU whose speed is not told.
const USUAL_HZ: u64 = 2_500_000_000;

/// The source.
pub struct Perf {
    /// Those of samples of time, which come first, and those of switches.
    rings: Vec<Ring>,
    /// How many of them are of samples of time.
    of_time: usize,
    order: Order,
    /// When the last reset was: samples and losses from before are not counted.
    since: u64,
    switch_reader: SwitchReader,
    what: What,
    /// The period around which periods are chosen.
    mean: u64,
    cpus: u64,
    of_tasks: bool,
    random: Random,
    chain: Chain,
    lacks: Vec<String>,
}

impl Perf {
    /// Opens the events of what is to be watched, and begins.
    ///
    /// # Errors
    /// [`Error::NotPermitted`], [`Error::NoPerf`], [`Error::Filter`], [`Error::Rate`].
    pub fn start(options: &Options) -> Result<Self> {
        check_rate(options.rate)?;
        let (targets, cpus) = targets(&options.filter)?;
        let clock = 1_000_000_000 / options.rate.max(1);
        let cycles = cycles_per_second() / options.rate.max(1);
        let mut lacks = Vec::new();
        let trial = Options { on_exec: false, ..options.clone() };
        let no_cycles = match options.software_clock {
            true => Some("the software clock was asked for".to_string()),
            false => {
                let tried =
                    targets.first().map(|target| open(What::Cycles, target, Often::Period(cycles), &trial));
                tried
                    .and_then(io::Result::err)
                    .map(|error| format!("the CPU counts no cycles here ({error})"))
            }
        };
        let (what, mean) = match no_cycles {
            None => (What::Cycles, cycles),
            Some(why) => {
                lacks.push(format!("{why}: the software clock is sampled"));
                (What::Clock, clock)
            }
        };
        let mut perf = Self {
            rings: Vec::new(),
            of_time: 0,
            order: Order::default(),
            since: 0,
            switch_reader: SwitchReader::find(),
            what,
            mean,
            cpus,
            of_tasks: options.filter.is_of_tasks(),
            random: Random::new(),
            chain: Chain::with_capacity(1024),
            lacks,
        };
        for target in &targets {
            let often = Often::Period(perf.random.period(mean));
            let counter = open(what, target, often, options).map_err(refused)?;
            perf.rings.push(Ring::new(counter, BUFFER).map_err(refused)?);
        }
        perf.of_time = perf.rings.len();
        perf.open_switches(&targets, options);
        if !options.on_exec {
            for ring in &mut perf.rings {
                ring.enable().map_err(refused)?;
            }
        }
        perf.reset()?;
        Ok(perf)
    }

    /// Context switches are worth having, and no reason to fail.
    fn open_switches(&mut self, targets: &[Target], options: &Options) {
        for target in targets {
            let often = Often::Frequency(SWITCHES_PER_SECOND);
            let opened = open(self.switch_reader.what(), target, often, options)
                .and_then(|counter| Ring::new(counter, SWITCH_BUFFER));
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

impl Source for Perf {
    fn description(&self) -> Description {
        let is_clock = self.what == What::Clock;
        let bias = "the software clock is a timer interrupt: time in code that runs with interrupts off is charged to where \
                    they come on again, and none is seen in the timer's own interrupt";
        let cycles = "a sample stands for cycles that were not halted, and all samples for the same time: code that runs while \
                      the CPU is slower or faster than on average is charged with less or more than its time";
        Description {
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
            buffers: self.of_time * BUFFER + (self.rings.len() - self.of_time) * SWITCH_BUFFER,
            lacks: self.lacks.clone(),
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.rings.iter().map(Ring::descriptor).collect()
    }

    fn drain(&mut self, into: &mut Aggregate) -> Result<()> {
        // What comes in while this is read waits for the next time.
        let Self { rings, of_time, order, since, switch_reader, mean, random, chain, .. } = self;
        let until = now();
        order.take(rings, until, |at, held, tally| {
            let is_time = at < *of_time;
            let layout = if is_time { Layout::default() } else { switch_reader.layout() };
            match record::parse(held.kind, held.misc, &held.body, layout, chain) {
                Some(Record::Sample { .. } | Record::Lost(_)) if held.time < *since => {}
                Some(Record::Sample { pid, tid, is_user, .. }) if is_time => {
                    tally.has_samples = true;
                    let Chain { kernel, user } = &*chain;
                    into.sample(&Sample { tid, tgid: pid, is_user, kernel, user });
                }
                Some(Record::Sample { tid, period, raw, .. }) => {
                    switch_reader.take(tid, period, raw, &chain.kernel, into);
                }
                Some(Record::Lost(count)) if is_time => tally.lost += count,
                Some(Record::Lost(count)) => into.note("lost_switch_samples", count),
                Some(other) => take(&other, into),
                None => into.note("damaged_records", 1),
            }
        });
        for ring in rings.iter_mut().take(*of_time) {
            if !std::mem::take(&mut ring.tally.has_samples) {
                continue;
            }
            // An event whose last thread has ended takes no period, and needs none.
            let _ = period::set(ring.descriptor(), random.period(*mean));
        }
        Ok(())
    }

    fn observed(&mut self) -> Result<Option<Observed>> {
        let mut sum = Observed { cpus: self.cpus, ..Observed::default() };
        for ring in self.rings.iter_mut().take(self.of_time) {
            let since = ring.since().map_err(refused)?;
            sum.ns += if self.what == What::Clock { since.count } else { since.running_ns };
            sum.lost += since.lost;
        }
        Ok(Some(sum))
    }

    fn counted(&mut self) -> Result<Vec<Counted>> {
        let mut count = 0;
        let switches = self.rings.get_mut(self.of_time..).unwrap_or_default();
        for ring in &mut *switches {
            count += ring.since().map_err(refused)?.count;
        }
        let source = self.switch_reader.source();
        let name = "context switches".to_string();
        let row = Counted { kind: "switch".into(), name, count, source };
        Ok(if switches.is_empty() { Vec::new() } else { vec![row] })
    }

    fn reset(&mut self) -> Result<()> {
        // What is still in the buffers tells of threads, too, and is taken the next time.
        self.since = now();
        self.rings.iter_mut().try_for_each(Ring::reset).map_err(refused)
    }
}

/// The clock of the records, in ns.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// What a record says of threads and code.
fn take(record: &Record, into: &mut Aggregate) {
    match *record {
        Record::Comm { pid, tid, name, exec } => {
            into.threads.named(tid, pid, &String::from_utf8_lossy(name));
            if exec {
                into.user.cleared(pid);
            }
        }
        Record::Fork { pid, tid, parent, parent_process } => {
            into.threads.forked(tid, pid, parent);
            into.user.forked(pid, parent_process);
        }
        Record::Mapped { pid, begin, size, offset, path } => {
            into.user.mapped(pid, begin, begin.saturating_add(size), offset, &String::from_utf8_lossy(path));
        }
        Record::Exit { pid, tid } => {
            into.threads.ended(tid);
            if pid == tid {
                into.user.cleared(pid);
            }
        }
        Record::Throttled => into.note("throttled", 1),
        Record::Symbol { address, gone: true, .. } => into.code_gone(address),
        Record::Symbol { address, size, is_bpf, name, .. } => {
            let module = if is_bpf { "bpf" } else { "generated" };
            into.code_added(&String::from_utf8_lossy(name), module, address, size.into());
        }
        Record::Sample { .. } | Record::Lost(_) | Record::Other => {}
    }
}

/// What a failed system call means.
fn refused(source: io::Error) -> Error {
    match source.raw_os_error() {
        // EPERM, EACCES.
        Some(1 | 13) => {
            let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
            let paranoid = setting.map_or("not shown".into(), |text| text.trim().to_string());
            Error::NotPermitted { paranoid, source }
        }
        // ENOSYS.
        Some(38) => Error::NoPerf { source },
        // ESRCH: a thread that was there when the list was read.
        Some(3) => Error::Filter("the process has ended".into()),
        _ => Error::Event { what: "this kernel with perf events".into(), source },
    }
}

/// Refuses a rate that the kernel would not keep to.
fn check_rate(asked: u64) -> Result<()> {
    let limit = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").ok();
    match limit.and_then(|text| text.trim().parse::<u64>().ok()).filter(|most| asked > *most) {
        Some(most) => Err(Error::Rate { asked, most }),
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
