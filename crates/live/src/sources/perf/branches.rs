//! Samples of the CPU's last branches in kernel code, on CPUs that record them (LBR of Intel, BRS and
//! LBRv2 of AMD, BRBE of Arm).

use super::events::{self, EventTarget};
use super::ring::{EventBuffer, TimeOrder};
use super::{check_rate, cycles_per_second, now, refused};
use crate::{Aggregate, CollectorOptions, Coverage, Error, Result, Source, SourceDescription};
use kerntune_convert::perf::{BootSamples, BranchStacks};
use kerntune_convert::perf_data::{PerfEvent, PerfRecord, PerfSample};
use kerntune_profile::Anomaly;
use perf_event::events::{Event, Hardware, Raw};
use perf_event::{Builder, Clock, Counter, ReadFormat, SampleBranchFlag, SampleFlag};
use perf_event_open_sys::bindings::PERF_RECORD_SAMPLE as SAMPLE;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;

/// Buffer size of an event in bytes, a power of two. A sample has up to 800 bytes.
const BUFFER_BYTES: usize = 1 << 20;
/// Most branches and runs that are kept; the kernel code that ever runs has fewer.
const MAX_ENTRIES: usize = 1 << 20;
/// Estimated memory of a kept branch or run, in bytes.
const ENTRY_BYTES: usize = 48;
/// Cycles between two taken branches, about.
const CYCLES_PER_BRANCH: u64 = 8;

const BRANCHES: SampleBranchFlag = SampleBranchFlag::KERNEL.union(SampleBranchFlag::ANY);
const FIELDS: SampleFlag =
    SampleFlag::IP.union(SampleFlag::TID).union(SampleFlag::TIME).union(SampleFlag::BRANCH_STACK);

/// Event whose overflow takes a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BranchEvent {
    /// Taken branches, by the CPU's own number.
    Taken(u64),
    /// CPU cycles, for CPUs whose number is not known.
    Cycles,
}

impl BranchEvent {
    /// Returns the events to try, best first, for the text of `/proc/cpuinfo`.
    fn of_cpu(cpuinfo: &str) -> Vec<Self> {
        let is_by = |vendor: &str| {
            cpuinfo.lines().any(|line| line.starts_with("vendor_id") && line.ends_with(vendor))
        };
        let taken = match () {
            // BR_INST_RETIRED.NEAR_TAKEN.
            () if is_by("GenuineIntel") => Some(0x20c4),
            // Retired taken branches, without which BRS takes no sample.
            () if is_by("AuthenticAMD") => Some(0xc4),
            () => None,
        };
        taken.map(Self::Taken).into_iter().chain([Self::Cycles]).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Taken(_) => "taken branches",
            Self::Cycles => "cycles",
        }
    }

    /// Returns the events between two samples at this many samples per second: a prime number, so that
    /// no loop of the kernel runs in step with it.
    fn period(self, rate: u64) -> u64 {
        let cycles = cycles_per_second() / rate.max(1);
        let mean = match self {
            Self::Taken(_) => cycles / CYCLES_PER_BRANCH,
            Self::Cycles => cycles,
        };
        let is_prime = |number: &u64| (2..).take_while(|by| by * by <= *number).all(|by| number % by != 0);
        (mean.max(101)..).find(is_prime).unwrap_or(mean)
    }

    fn open(self, target: &EventTarget, period: u64, options: &CollectorOptions) -> io::Result<Counter> {
        match self {
            Self::Taken(number) => opened(Raw::new(number), target, period, options),
            Self::Cycles => opened(Hardware::CPU_CYCLES, target, period, options),
        }
    }
}

fn opened(
    event: impl Event,
    target: &EventTarget,
    period: u64,
    options: &CollectorOptions,
) -> io::Result<Counter> {
    let mut builder = Builder::new(event);
    builder
        .include_kernel()
        .exclude_user(true)
        .sample(FIELDS)
        .branch_sample_type(BRANCHES)
        .sample_period(period)
        .enabled(false)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .wakeup_watermark(BUFFER_BYTES / 4)
        .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
    events::follow(&mut builder, target, options.on_exec);
    builder.build()
}

/// Branch stacks of samples, in bounded memory.
#[derive(Debug)]
struct StackCollection {
    layout: PerfEvent,
    sample: PerfSample,
    stacks: BranchStacks,
    max: usize,
    /// Samples that found no room.
    lost: u64,
    /// Samples that are not yet in the aggregate's number.
    new: u64,
}

impl StackCollection {
    fn new(max: usize) -> Self {
        Self {
            layout: PerfEvent::of_ring(FIELDS.bits(), BRANCHES.bits()),
            sample: PerfSample::default(),
            stacks: BranchStacks::of_boot(BootSamples::default()),
            max,
            lost: 0,
            new: 0,
        }
    }

    /// Takes a record of a CPU's ring. Returns the number of samples that it says were lost; `None` if it
    /// is damaged.
    fn take(&mut self, kind: u32, misc: u16, body: &[u8], cpu: u32) -> Option<u64> {
        if kind == SAMPLE {
            self.sample.read(&self.layout, misc, body)?;
            if self.stacks.kept() >= self.max {
                self.lost += 1;
            } else if !self.sample.branches.is_empty() {
                self.stacks.sample(&self.sample.branches, Some(cpu))?;
                self.new += 1;
            }
            return Some(0);
        }
        match PerfRecord::parse(kind, misc, body)? {
            PerfRecord::Lost(count) | PerfRecord::LostSamples(count) => Some(count),
            _ => Some(0),
        }
    }

    fn clear(&mut self) {
        self.stacks = BranchStacks::of_boot(BootSamples::default());
        (self.lost, self.new) = (0, 0);
    }
}

/// Source of branch stacks from perf events.
pub struct BranchSource {
    /// A ring for each target.
    rings: Vec<EventBuffer>,
    /// CPU of each ring.
    ring_cpus: Vec<u32>,
    order: TimeOrder,
    collection: StackCollection,
    /// Time of the last reset. Earlier samples are ignored.
    since: u64,
    what: BranchEvent,
    period: u64,
    cpus: u64,
}

impl BranchSource {
    /// Opens and enables the events.
    ///
    /// # Errors
    /// [`Error::NoBranches`] if the CPU records none here; [`Error::NotPermitted`],
    /// [`Error::NoPerf`], [`Error::Filter`], [`Error::Rate`].
    pub fn start(options: &CollectorOptions) -> Result<Self> {
        check_rate(options.rate)?;
        let (targets, cpus) = events::targets(&options.filter)?;
        let trial = CollectorOptions { on_exec: false, ..options.clone() };
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut failed = None;
        let found = targets.first().and_then(|target| {
            BranchEvent::of_cpu(&cpuinfo).into_iter().find(|what| {
                let tried = what.open(target, what.period(options.rate), &trial);
                tried.map_err(|error| failed = Some(error)).is_ok()
            })
        });
        let Some(what) = found else {
            return Err(failed.map_or_else(|| absent("no CPU is watched"), not_opened));
        };
        let period = what.period(options.rate);
        let mut source = Self {
            rings: Vec::new(),
            ring_cpus: targets.iter().map(EventTarget::cpu).collect(),
            order: TimeOrder::default(),
            collection: StackCollection::new(MAX_ENTRIES),
            since: 0,
            what,
            period,
            cpus,
        };
        for target in &targets {
            let counter = what.open(target, period, options).map_err(not_opened)?;
            source.rings.push(EventBuffer::new(counter, BUFFER_BYTES).map_err(refused)?);
        }
        if !options.on_exec {
            source.rings.iter_mut().try_for_each(EventBuffer::enable).map_err(refused)?;
        }
        source.reset()?;
        Ok(source)
    }
}

/// Converts the error of an event with branch stacks that was not opened.
fn not_opened(source: io::Error) -> Error {
    match source.raw_os_error() {
        // ENOENT: no PMU; EINVAL, EOPNOTSUPP: it records no branches.
        Some(2) => absent("it shows no counters, as in most virtual machines"),
        Some(22 | 95) => absent("its counters record none, or this kernel has no driver for it"),
        _ => refused(source),
    }
}

fn absent(reason: &'static str) -> Error {
    Error::NoBranches { reason }
}

impl Source for BranchSource {
    fn description(&self) -> SourceDescription {
        SourceDescription {
            name: format!("perf: last branches, by {}", self.what.name()),
            period: format!("every {} {} of kernel code", self.period, self.what.name()),
            bias: Some(match self.what {
                BranchEvent::Taken(_) => "a sample is taken after so many taken branches, wherever time is spent".into(),
                BranchEvent::Cycles => {
                    "a sample is taken after so many cycles, so that branches before slow code are in more samples".into()
                }
            }),
            calls: false,
            sees_idle: false,
            buffers: self.rings.len() * BUFFER_BYTES + MAX_ENTRIES * ENTRY_BYTES,
            traced: Vec::new(),
            lacks: vec!["only branches are sampled: times and call chains are not known".into()],
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.rings.iter().map(EventBuffer::descriptor).collect()
    }

    fn drain(&mut self, into: &mut Aggregate) -> Result<()> {
        let Self { rings, ring_cpus, order, collection, since, .. } = self;
        order.take(rings, now(), |at, held, tally| {
            if held.time < *since {
                return;
            }
            let cpu = ring_cpus.get(at).copied().unwrap_or_default();
            match collection.take(held.kind, held.misc, &held.body, cpu) {
                Some(lost) => tally.lost += lost,
                None => into.note(Anomaly::DamagedRecords, 1),
            }
        });
        into.samples += std::mem::take(&mut collection.new);
        Ok(())
    }

    fn coverage(&mut self) -> Result<Option<Coverage>> {
        let mut sum = Coverage { cpus: self.cpus, lost: self.collection.lost, ..Coverage::default() };
        for ring in &mut self.rings {
            let since = ring.since().map_err(refused)?;
            sum.ns += since.running_ns;
            sum.lost += since.lost;
        }
        Ok(Some(sum))
    }

    fn branches(&self) -> Option<&BranchStacks> {
        Some(&self.collection.stacks)
    }

    fn reset(&mut self) -> Result<()> {
        self.since = now();
        self.collection.clear();
        self.rings.iter_mut().try_for_each(EventBuffer::reset).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_convert::autofdo::BranchRecords;
    use kerntune_convert::perf_data::{read_branches, BranchWalk, PerfData, PerfPipeWriter, WrittenMachine};
    use kerntune_profile::{Address, Block, Edge, EdgeKind, FunctionIndex, Instructions, Symbol, Tables};

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    /// Exact counts of a loop and of a call out of it.
    fn walk() -> BranchWalk {
        let symbol = Symbol {
            function: FunctionIndex(0),
            name: "looping".into(),
            address: Address(TEXT),
            size: 0x100,
            file: None,
            module: None,
        };
        let block = |start: u64, last: u64, count| Block {
            start: Address(TEXT + start),
            last: Address(TEXT + last),
            count,
            instructions: Instructions(4),
            bytes: last + 2 - start,
        };
        let edge = |source: u64, target: u64, count| Edge {
            source: Address(TEXT + source),
            target: Address(TEXT + target),
            count,
            kind: EdgeKind::Conditional,
        };
        let tables = Tables {
            symbols: vec![symbol],
            blocks: vec![block(0, 0xe, 1000), block(0x10, 0x1e, 100), block(0x80, 0x8e, 60)],
            edges: vec![edge(0xe, 0, 900), edge(0x1e, 0x80, 60), edge(0x8e, 0, 60)],
            ..Tables::default()
        };
        BranchWalk::new(&BranchRecords::of(&tables).unwrap(), 3).unwrap()
    }

    /// Returns the body of a sample with the fields that the source asks the kernel for.
    fn body(stack: &[(u64, u64, u64)]) -> Vec<u8> {
        let ip = stack.first().map_or(TEXT, |branch| branch.1);
        let mut words = vec![ip, 7 | 7 << 32, 1000, stack.len() as u64];
        words.extend(stack.iter().flat_map(|(source, target, flags)| [*source, *target, *flags]));
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_ring_gives_what_a_file_gives() {
        let (mut walk, mut stack) = (walk(), Vec::new());
        let mut collection = StackCollection::new(MAX_ENTRIES);
        let machine = WrittenMachine { text_at: TEXT, cpus: 2, ..WrittenMachine::default() };
        let mut file = Vec::new();
        let mut writer = PerfPipeWriter::begin(machine, &mut file).unwrap();
        for at in 0..500 {
            walk.stack(32, &mut stack);
            // Entries that a CPU of AMD left empty, and some of a wrong path (google/autofdo#256).
            if at % 10 == 0 {
                stack[5] = (0, 0, 0);
                stack[9].2 = 1 << 24;
            }
            writer.sample(at % 2, stack[0].1, &stack).unwrap();
            assert_eq!(collection.take(9, 1, &body(&stack), at % 2), Some(0));
        }
        let of_file = read_branches(&mut PerfData::open(io::Cursor::new(file)).unwrap()).unwrap();
        let of_ring = &collection.stacks;
        assert_eq!((of_ring.samples, of_ring.empty_entries, of_ring.speculated), (500, 50, 50));
        assert_eq!(of_ring.parts[0].branches, of_file.parts[0].branches);
        assert_eq!(of_ring.parts[0].runs, of_file.parts[0].runs);
        assert_eq!(of_ring.parts[0].cpus, of_file.parts[0].cpus);
        assert_eq!((of_ring.entries, of_ring.longest), (of_file.entries, of_file.longest));
    }

    #[test]
    fn memory_is_bounded_and_damage_is_seen() {
        let mut collection = StackCollection::new(3);
        let stack = [(TEXT + 0xe, TEXT, 0), (TEXT + 0x1e, TEXT + 0x80, 0), (TEXT + 0x8e, TEXT + 0x10, 0)];
        assert_eq!(collection.take(9, 1, &body(&stack), 0), Some(0));
        assert_eq!(collection.take(9, 1, &body(&stack), 0), Some(0));
        assert_eq!((collection.stacks.samples, collection.lost, collection.new), (1, 1, 1));
        let whole = body(&stack);
        assert_eq!(collection.take(9, 1, &whole[..whole.len() - 8], 0), None);
        assert_eq!(collection.take(2, 0, &[1_u64, 99].map(u64::to_le_bytes).concat(), 0), Some(99));
        collection.clear();
        assert_eq!((collection.stacks.samples, collection.stacks.kept(), collection.lost), (0, 0, 0));
    }

    #[test]
    fn events_are_chosen_by_the_vendor() {
        let of =
            |vendor: &str| BranchEvent::of_cpu(&format!("processor : 0\nvendor_id\t: {vendor}\nmodel : 1\n"));
        assert_eq!(of("GenuineIntel"), [BranchEvent::Taken(0x20c4), BranchEvent::Cycles]);
        assert_eq!(of("AuthenticAMD"), [BranchEvent::Taken(0xc4), BranchEvent::Cycles]);
        assert_eq!(of("Other"), [BranchEvent::Cycles]);
        let period = BranchEvent::Cycles.period(1000);
        assert!(period > 100_000 && (2..1000).all(|by| period % by != 0), "{period}");
    }

    #[test]
    fn a_cpu_without_branch_records_is_named_so() {
        for (number, word) in [(2, "no counters"), (95, "record none"), (22, "record none")] {
            let text = not_opened(io::Error::from_raw_os_error(number)).to_string();
            assert!(text.contains(word) && text.contains("LBR"), "{text}");
        }
        assert!(matches!(not_opened(io::Error::from_raw_os_error(13)), Error::NotPermitted { .. }));
    }
}
