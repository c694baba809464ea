//! Samples of a file, and counts of what is left out.

use super::PerfDataRequest;
use crate::aggregate::{Aggregate, StackSample};
use crate::sources::perf::tracepoints::{self, RunningThreads, TraceEvent, TracepointReader};
use kerntune_convert::perf_data::{
    CpuMode, EventKind, MapRecord, PerfEvent, PerfFile, PerfRecord, PerfSample,
};
use std::collections::BTreeSet;

/// Largest share of samples in the kernel whose address is in no function.
const MAX_UNNAMED: f64 = 0.2;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// Figures of the samples that are not in the aggregate.
#[derive(Debug, Clone, Default)]
pub(super) struct SampleCounts {
    /// True for each event that is imported.
    chosen: Vec<bool>,
    /// Samples of each event.
    of_event: Vec<u64>,
    user_chains: bool,
    /// Sum of the periods of imported samples; `None` if samples have none.
    periods: Option<u64>,
    /// Times of the first and the last imported sample.
    span: Option<(u64, u64)>,
    cpus: BTreeSet<u32>,
    /// Imported samples in kernel code, and those in no function.
    kernel: u64,
    unnamed: u64,
    /// Samples in virtual machines, and in an unknown mode.
    guests: u64,
    other_modes: u64,
    user_stacks: u64,
    user_stack_bytes: u64,
    branches: u64,
    aux_bytes: u64,
    throttled: u64,
    switches: u64,
    deferred: u64,
    /// Lost samples.
    pub lost: u64,
    lost_counted: u64,
    modules: BTreeSet<String>,
    /// Reader of each event whose events are waits or system calls.
    traced: Vec<Option<TracepointReader>>,
    running: RunningThreads,
}

/// Number of CPUs whose threads are known.
const MAX_CPUS: usize = 4096;

/// Returns the reader of an event of which every occurrence was recorded, if it is of waits or system
/// calls.
fn tracepoint(file: &PerfFile, event: &PerfEvent) -> Option<TracepointReader> {
    let is_every = event.period == 1 && !event.is_frequency;
    let format = file.formats.iter().find(|format| {
        event.event == (TRACEPOINT, format.id.into())
            || event.name == format!("{}:{}", format.system, format.name)
    })?;
    let name = format!("{}:{}", format.system, format.name);
    let place = |name: &str| format.field(name).map(|field| (field.offset, field.size));
    TracepointReader::find(&name, place).filter(|_| is_every)
}

/// Type of tracepoints (`PERF_TYPE_TRACEPOINT`).
const TRACEPOINT: u32 = 2;

impl SampleCounts {
    pub fn new(file: &PerfFile, chosen: &[usize], user_chains: bool) -> Self {
        Self {
            chosen: (0..file.events.len()).map(|at| chosen.contains(&at)).collect(),
            of_event: vec![0; file.events.len()],
            periods: Some(0),
            user_chains,
            traced: file.events.iter().map(|event| tracepoint(file, event)).collect(),
            running: RunningThreads::new(MAX_CPUS),
            ..Self::default()
        }
    }

    /// Takes a record.
    pub fn record(&mut self, record: &PerfRecord<'_>, all: &mut Aggregate) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match *record {
            PerfRecord::Sample(sample) => self.sample(sample, all),
            PerfRecord::Map(map) if map.is_kernel => self.module(&map, all),
            PerfRecord::Map(map) => {
                if self.user_chains {
                    all.user.mapped(
                        map.pid,
                        map.begin,
                        map.begin.saturating_add(map.size),
                        map.offset,
                        &text(map.path),
                    );
                }
            }
            PerfRecord::Comm { pid, tid, name, exec } => {
                all.threads.named(tid, pid, &text(name));
                if exec && self.user_chains {
                    all.user.cleared(pid);
                }
            }
            PerfRecord::Fork { pid, tid, parent_process, parent } => {
                all.threads.forked(tid, pid, parent);
                if self.user_chains {
                    all.user.forked(pid, parent_process);
                }
            }
            PerfRecord::Exit { pid, tid } => {
                all.threads.ended(tid);
                all.waits.ended(tid);
                if pid == tid && self.user_chains {
                    all.user.cleared(pid);
                }
            }
            PerfRecord::Symbol { address, size, is_bpf, gone, name } => match gone {
                true => all.code_gone(address),
                false => {
                    all.code_added(
                        &text(name),
                        if is_bpf { "bpf" } else { "__builtin__" },
                        address,
                        size.into(),
                    );
                }
            },
            PerfRecord::Lost(count) => self.lost_counted = self.lost_counted.saturating_add(count),
            PerfRecord::LostSamples(count) => self.lost = self.lost.saturating_add(count),
            PerfRecord::Throttled => self.throttled += 1,
            PerfRecord::Switch => self.switches += 1,
            PerfRecord::Aux(bytes) => self.aux_bytes = self.aux_bytes.saturating_add(bytes),
            PerfRecord::DeferredChain => self.deferred += 1,
            PerfRecord::Other => {}
        }
    }

    /// Takes the place of a module. Without its functions it becomes one function.
    fn module(&mut self, map: &MapRecord<'_>, all: &mut Aggregate) {
        let path = String::from_utf8_lossy(map.path);
        if path.starts_with("[kernel.kallsyms]") || path.starts_with("[guest") || map.size == 0 {
            return;
        }
        let file = path.rsplit('/').next().unwrap_or_default();
        let stem = file.split(".ko").next().unwrap_or_default().trim_matches(['[', ']']);
        let name = stem.replace('-', "_");
        let end = map.begin.saturating_add(map.size);
        let mut inside =
            all.table.functions().iter().filter(|function| function.module.as_deref() == Some(&name));
        let is_known =
            inside.any(|f| (map.begin..end).contains(&f.address) && all.table.lookup(f.address).is_some());
        if !is_known && !name.is_empty() {
            all.code_added(&format!("[{name}]"), &name, map.begin, map.size);
            self.modules.insert(name);
        }
    }

    fn sample(&mut self, sample: &PerfSample, all: &mut Aggregate) {
        self.of_event[sample.event] += 1;
        if let Some((reader, time)) = self.traced[sample.event].as_ref().zip(sample.time) {
            let event = TraceEvent {
                time,
                tid: sample.tid,
                cpu: sample.cpu.map_or(MAX_CPUS, |cpu| cpu as usize),
                raw: &sample.raw,
                kernel: &sample.kernel,
                registers: &[],
            };
            tracepoints::take(reader, &event, &mut self.running, all);
        }
        if !self.chosen[sample.event] {
            return;
        }
        match sample.mode {
            CpuMode::Kernel | CpuMode::User => {}
            CpuMode::GuestKernel | CpuMode::GuestUser => return self.guests += 1,
            CpuMode::Other => return self.other_modes += 1,
        }
        self.periods = self.periods.and_then(|sum| sum.checked_add(sample.period?));
        if let Some(time) = sample.time {
            let (first, last) = self.span.unwrap_or((time, time));
            self.span = Some((first.min(time), last.max(time)));
        }
        self.cpus.extend(sample.cpu);
        self.user_stacks += u64::from(sample.user_stack > 0);
        self.user_stack_bytes = self.user_stack_bytes.saturating_add(sample.user_stack);
        self.branches += u64::from(!sample.branches.is_empty());
        self.aux_bytes = self.aux_bytes.saturating_add(sample.aux);
        let is_user = sample.mode == CpuMode::User;
        if !is_user {
            self.kernel += 1;
            self.unnamed += u64::from(all.lookup(sample.ip).is_none());
        }
        all.sample(&StackSample {
            tid: sample.tid,
            tgid: sample.pid,
            is_user,
            kernel: if is_user { &[] } else { &sample.kernel },
            user: if self.user_chains { &sample.user } else { &[] },
        });
    }

    /// Checks that there is something to report; returns the reason if not.
    pub fn check(&mut self, file: &PerfFile, all: &Aggregate) -> Result<(), String> {
        // The number of lost records includes that of lost samples, if both are written.
        self.lost = self.lost.max(self.lost_counted);
        if all.samples == 0 {
            let others: Vec<String> =
                self.others(file).map(|(event, count)| format!("{count} of `{}`", event.name)).collect();
            return Err(match (self.guests, &others[..]) {
                (0, []) => "it has no samples: what was recorded ran too briefly, or not at all".into(),
                (0, _) => format!("it has no samples of the chosen event, only {}; choose one with --event", others.join(", ")),
                _ => format!(
                    "all its {} samples are of virtual machines, whose kernels it does not describe: record in the guest",
                    self.guests
                ),
            });
        }
        let share = self.unnamed as f64 / self.kernel.max(1) as f64;
        if share > MAX_UNNAMED {
            return Err(format!(
                "{:.0} % of its {} samples in the kernel are in no function of the kernel that gives the names, {:.0} % are allowed: \
                 it is another kernel, or it was elsewhere in memory",
                share * 100.0,
                self.kernel,
                MAX_UNNAMED * 100.0
            ));
        }
        Ok(())
    }

    /// Returns events that are not imported and have samples.
    fn others<'a>(&'a self, file: &'a PerfFile) -> impl Iterator<Item = (&'a PerfEvent, u64)> {
        let counted = file.events.iter().zip(&self.of_event).zip(&self.chosen);
        counted
            .zip(&self.traced)
            .filter(|(((_, count), chosen), traced)| **count > 0 && !**chosen && traced.is_none())
            .map(|(((event, count), _), _)| (event, *count))
    }

    /// Returns true if the file has events of waits or system calls.
    pub fn has_waits(&self) -> bool {
        self.traced.iter().any(Option::is_some)
    }

    /// Returns the names of the sources of waits and system calls.
    pub fn traced(&self) -> Vec<String> {
        self.traced.iter().flatten().map(TracepointReader::source).collect()
    }

    fn imported(&self) -> u64 {
        let counted = self.of_event.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen);
        counted.map(|(count, _)| count).sum::<u64>().saturating_sub(self.guests + self.other_modes)
    }

    /// Returns the time that a sample stands for, in ns.
    pub fn sample_ns(&self, event: &PerfEvent) -> u64 {
        let samples = self.imported().max(1);
        let is_timer = matches!(event.kind, EventKind::CpuClock | EventKind::TaskClock);
        let ns = match (is_timer, self.periods, event.is_frequency) {
            (true, Some(sum), _) if sum > 0 => sum / samples,
            (true, _, false) => event.period,
            (_, _, true) => NS_PER_SECOND / event.period.max(1),
            (false, _, false) => self.span_ns().saturating_mul(self.cpus().max(1)) / samples,
        };
        ns.max(1)
    }

    /// Returns the time from the first to the last sample, in ns.
    pub fn span_ns(&self) -> u64 {
        self.span.map_or(0, |(first, last)| last - first)
    }

    /// Returns the number of CPUs with samples.
    pub fn cpus(&self) -> u64 {
        self.cpus.len() as u64
    }

    /// Returns what was watched; `None` for the whole machine.
    pub fn filter(&self, file: &PerfFile) -> Option<String> {
        let command = file.command.as_deref().unwrap_or_default();
        let mut words = command.split(' ').take_while(|word| *word != "--");
        match words.any(|word| matches!(word, "-a" | "--all-cpus")) || command.is_empty() {
            true => None,
            false => Some(format!("what `{command}` watched")),
        }
    }

    /// Returns a sentence for each kind of data that is not in the profile, and each lack.
    pub fn left_out(&self, file: &PerfFile, request: &PerfDataRequest<'_>) -> Vec<String> {
        let mut notes = Vec::new();
        let mut add = |count: u64, text: String| {
            if count > 0 {
                notes.push(text);
            }
        };
        add(
            file.is_unfinished.into(),
            "perf was killed before it finished the file: it has no build ids of its end".into(),
        );
        let others: Vec<String> =
            self.others(file).map(|(event, count)| format!("{count} samples of `{}`", event.name)).collect();
        add(
            others.len() as u64,
            format!("left out: {}; a profile is of one event, and --event chooses it", others.join(", ")),
        );
        add(
            self.guests,
            format!(
                "left out: {} samples in virtual machines, whose kernels the file does not describe",
                self.guests
            ),
        );
        add(
            self.other_modes,
            format!("left out: {} samples in neither kernel nor user mode", self.other_modes),
        );
        add(
            self.user_stacks,
            format!(
                "left out: copies of user stacks in {} samples ({} KiB, --call-graph dwarf); chains of programs have their \
                 innermost function alone, and those of the kernel are whole",
                self.user_stacks,
                self.user_stack_bytes >> 10
            ),
        );
        add(
            u64::from(self.branches > 0 && request.kernel.is_none()),
            format!(
                "left out: branch records of {} samples; with --kernel K they become a profile for recipes",
                self.branches
            ),
        );
        add(self.aux_bytes, format!("left out: {} bytes of hardware tracing (AUX)", self.aux_bytes));
        add(self.switches, format!("left out: {} records of context switches", self.switches));
        add(
            self.deferred,
            format!("left out: {} user call chains that the kernel wrote after their samples", self.deferred),
        );
        add(
            self.modules.len() as u64,
            format!(
                "functions of these modules have no names, and each module is one function: {}",
                self.modules.iter().cloned().collect::<Vec<_>>().join(", ")
            ),
        );
        add(
            self.throttled,
            format!(
                "the kernel stopped sampling {} times, because there were too many samples",
                self.throttled
            ),
        );
        add(self.lost, format!("{} samples were lost: their time is [not sampled]", self.lost));
        let chosen =
            || file.events.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen).map(|(event, _)| event);
        add(
            u64::from(!chosen().any(PerfEvent::has_chains)),
            "it has no call chains (perf record -g): callers are not known".into(),
        );
        add(
            u64::from(chosen().all(|event| event.excludes_user)),
            "user code was not sampled (`:k`), and its time is in no row".into(),
        );
        notes
    }
}
