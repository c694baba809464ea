//! Characterization of a workload, gathered from a profile's tables.

use super::counters::{self, WorkCount};
use super::event::{has_entries, CharacterInput, EventStats, FigureBasis, RateBase};
use super::marks;
use super::path::{cycles, data, path, ModeCounters, ModelCycles, PathFigure};
use super::scheduler::{locks, scheduling, switches, LockFigures, SchedulingFigures, SwitchCounts};
use super::split::{self, PartGroup, TimePart};
use super::syscalls::{syscalls, SyscallFigures};
use super::traffic::{disk, network, DiskFigures, NetworkFigures};
use crate::footprint;
use crate::groups::Grouping;
use crate::memory::MemoryUse;
use crate::traffic::NOT_SEEN;
use crate::unit::TickUnit;
use crate::view::is_user;
use crate::{health, sampled, Error, Result};
use kerntune_compare::ModelCosts;
use kerntune_profile::{CallKind, CounterTotal, KernelId, Profile};
use kerntune_table::share;
use serde::Serialize;
use std::collections::BTreeMap;

/// Time of one part of the time split, with its share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TimeShare {
    pub part: TimePart,
    /// Group of the part, as `top` and `vmstat` count: `user`, `kernel`, `interrupt`, `softirq`,
    /// `idle`.
    pub group: PartGroup,
    pub ns: i64,
    pub percent: f64,
    pub per_operation_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ns: Option<u64>,
}

/// Self time of a subsystem of the kernel's source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SubsystemShare {
    pub group: String,
    #[serde(rename = "self")]
    pub self_ticks: u64,
    pub percent_busy: f64,
    /// Share of the self time of all kernel functions.
    pub percent_kernel: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "error")]
    pub error_ns: Option<u64>,
}

/// Count of the running kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct KernelCount {
    pub kind: String,
    pub name: String,
    pub count: u64,
    pub per_second: Option<f64>,
    pub source: String,
}

/// Figure that the profile lacks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct MissingFigure {
    pub what: &'static str,
    /// Reason, and how to record the figure.
    pub why: String,
}

/// All figures that characterize a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct WorkloadCharacter {
    pub profile: String,
    pub region: Option<String>,
    pub kernel: KernelId,
    pub workload: String,
    pub machine: String,
    pub model: Option<String>,
    pub recorded: String,
    pub basis: FigureBasis,
    /// Unit of code times: `instructions` on the exact machine, else `ns`.
    pub unit: &'static str,
    pub cpus: u64,
    /// Functions were recorded.
    pub functions: bool,
    /// Kernel entries (interrupts, exceptions, system calls) and context switches were recorded.
    pub entries: bool,
    /// Divisor of figures per operation; `None` without operations, or with operations of several
    /// kinds.
    pub operations: Option<u64>,
    /// Names of the outermost regions.
    pub regions: Vec<String>,
    pub elapsed_ns: u64,
    #[serde(rename = "busy")]
    pub busy_ticks: u64,
    pub idle_ns: u64,
    /// Divisor of figures per second: virtual time, or wall-clock time if times are sums over
    /// several CPUs.
    pub passed_ns: u64,
    pub split: Vec<TimeShare>,
    pub path: Vec<PathFigure>,
    pub cycles: Vec<ModelCycles>,
    /// Kernel code by execution frequency; only for the whole profile.
    pub footprint: Vec<footprint::FootprintRow>,
    pub subsystems: Vec<SubsystemShare>,
    pub interrupts: Vec<EventStats>,
    pub exceptions: Vec<EventStats>,
    pub switches: SwitchCounts,
    pub scheduling: Option<SchedulingFigures>,
    pub locks: LockFigures,
    pub syscalls: SyscallFigures,
    pub work: Vec<WorkCount>,
    /// Requests to block devices; `None` if not recorded.
    pub disk: Option<DiskFigures>,
    /// Network packets; `None` if not recorded.
    pub network: Option<NetworkFigures>,
    pub data: Vec<PathFigure>,
    /// Touched memory.
    pub memory: MemoryUse,
    pub counted: Vec<KernelCount>,
    pub absent: Vec<MissingFigure>,
    pub notes: Vec<String>,
}

impl WorkloadCharacter {
    /// Gathers the figures of a profile. `region` restricts them to the regions of that name and
    /// those within them; `costs` are those of the profile's front-end model.
    ///
    /// # Errors
    /// An unknown region; a profile that was transferred to another kernel.
    pub fn of(profile: &Profile, region: Option<&str>, costs: Option<ModelCosts>) -> Result<Self> {
        let manifest = &profile.manifest;
        if let Some(source) = &manifest.carried {
            let (profile, from) = (manifest.id.clone(), source.profile.clone());
            return Err(Error::Transferred { profile, from });
        }
        let scope = marks::measured(profile, region)?;
        let totals = scope.totals(profile);
        let rates = RateBase::new(profile, &scope, &totals);
        let of = CharacterInput { profile, scope: &scope, totals: &totals, rates: &rates };
        let counters = ModeCounters::of(profile, &scope);
        let cycles = cycles(&of, &counters, costs);
        let data = data(&of);
        let footprint = match region {
            // Block counts are not divided by region.
            None if marks::has_readings(profile) => Vec::new(),
            None => footprint::rows(profile).unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        Ok(Self {
            profile: manifest.id.clone(),
            region: region.map(Into::into),
            kernel: manifest.kernel.clone(),
            workload: manifest.workload.clone(),
            machine: manifest.machine.clone(),
            model: manifest.model.clone(),
            recorded: manifest.recorded.clone(),
            basis: FigureBasis::of(profile),
            unit: TickUnit::of(profile).name(),
            cpus: cpus(profile),
            functions: manifest.capture.functions,
            entries: has_entries(profile),
            operations: rates.operations,
            regions: rates.kinds.clone(),
            elapsed_ns: totals.elapsed_ticks.get(),
            busy_ticks: totals.busy_ticks.get(),
            idle_ns: totals.idle_ticks.get(),
            passed_ns: rates.passed_ns,
            split: shares(&of),
            path: path(&of, &counters),
            absent: absent(profile, &counters, &cycles, region),
            cycles,
            footprint,
            subsystems: subsystems(&of),
            interrupts: entered(&of, CallKind::Interrupt),
            exceptions: entered(&of, CallKind::Exception),
            switches: switches(&of),
            scheduling: scheduling(&of),
            locks: locks(&of),
            syscalls: syscalls(profile, &scope, &rates),
            work: counters::work(profile, &scope, &rates),
            disk: disk(&of),
            network: network(&of),
            data,
            memory: MemoryUse::of(profile, &scope, region),
            counted: manifest.counted.iter().map(|row| kernel_count(row, &rates)).collect(),
            notes: health::notes(profile),
        })
    }

    /// Returns the time of a group of parts, in ns.
    pub fn group_ns(&self, group: PartGroup) -> i64 {
        self.split.iter().filter(|share| share.group == group).fold(0, |sum, row| sum.saturating_add(row.ns))
    }

    /// Returns the time of a group of parts, in per cent of the busy time.
    pub fn percent_of_busy(&self, group: PartGroup) -> f64 {
        share(u64::try_from(self.group_ns(group)).unwrap_or(0), self.busy_ticks)
    }

    /// Returns a figure of the path length table.
    pub fn figure(&self, name: &str, mode: &str) -> Option<&PathFigure> {
        self.path.iter().find(|figure| figure.figure == name && figure.mode == mode)
    }

    /// Returns an item of work.
    pub fn item(&self, item: &str) -> Option<&EventStats> {
        self.work.iter().find(|work| work.item == item).map(|work| &work.event)
    }

    /// Returns the number of interrupts; `None` if not counted.
    pub fn interrupts(&self) -> Option<u64> {
        let counts = || self.interrupts.iter().map(|event| event.count);
        let kernel_count = || self.counted.iter().filter(|row| row.kind == "interrupt");
        match self.basis {
            FigureBasis::Sampled if kernel_count().next().is_some() => {
                Some(kernel_count().fold(0, |sum, row| sum.saturating_add(row.count)))
            }
            FigureBasis::Sampled => None,
            _ if self.entries => Some(counts().flatten().fold(0, u64::saturating_add)),
            _ => None,
        }
    }
}

fn cpus(profile: &Profile) -> u64 {
    let numbers = profile.tables.cpus.iter().map(|row| u64::from(row.cpu) + 1);
    profile.manifest.sampled.as_ref().map_or(numbers.max().unwrap_or(1), |sampled| sampled.cpus)
}

fn shares(of: &CharacterInput) -> Vec<TimeShare> {
    let elapsed = of.totals.elapsed_ticks.get();
    let slices = split::split(of.profile, of.scope, of.totals);
    let share = |slice: split::PartTime| {
        let ns = slice.ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        TimeShare {
            part: slice.part,
            group: slice.part.group(),
            ns,
            percent: if elapsed == 0 { 0.0 } else { 100.0 * ns as f64 / elapsed as f64 },
            per_operation_ns: of.rates.per_operation(ns as f64),
            error_ns: sampled::error_ns(of.profile, ns.unsigned_abs()),
        }
    };
    slices.into_iter().map(share).collect()
}

fn subsystems(of: &CharacterInput) -> Vec<SubsystemShare> {
    let tables = &of.profile.tables;
    let grouping = Grouping::default();
    let mut groups: BTreeMap<String, u64> = BTreeMap::new();
    let mut all = 0u64;
    for totals in tables.totals(|region| of.scope.contains(region)) {
        let symbol = tables.symbols.get(totals.function.get() as usize);
        if symbol.is_some_and(|symbol| !is_user(of.profile, symbol)) {
            let sum = groups.entry(grouping.of(&tables.symbols, totals.function)).or_default();
            *sum = sum.saturating_add(totals.self_ticks.get());
            all = all.saturating_add(totals.self_ticks.get());
        }
    }
    let row = |(group, self_ticks): (String, u64)| SubsystemShare {
        group,
        self_ticks,
        percent_busy: share(self_ticks, of.totals.busy_ticks.get()),
        percent_kernel: share(self_ticks, all),
        error_ns: sampled::error_ns(of.profile, self_ticks),
    };
    let mut rows: Vec<SubsystemShare> = groups.into_iter().filter(|(_, net)| *net > 0).map(row).collect();
    rows.sort_by(|a, b| b.self_ticks.cmp(&a.self_ticks).then_with(|| a.group.cmp(&b.group)));
    rows
}

/// Returns kernel entries of one kind, by entry function.
pub(crate) fn entered(of: &CharacterInput, how: CallKind) -> Vec<EventStats> {
    let tables = &of.profile.tables;
    let mut sums: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for arc in tables.arcs.iter().filter(|arc| arc.how == how && of.scope.contains(arc.region)) {
        let sum = sums.entry(tables.name(arc.callee)).or_default();
        for (sum, part) in sum.iter_mut().zip([arc.calls, arc.ended, arc.total_ticks.get()]) {
            *sum = sum.saturating_add(part);
        }
    }
    let event = |(name, [calls, ended, elapsed]): (&str, [u64; 3])| {
        EventStats::new(of.profile, name, sampled::calls_of(of.profile, calls), (ended, elapsed), of.rates)
    };
    let mut events: Vec<EventStats> = sums.into_iter().map(event).collect();
    events.sort_by(|a, b| b.elapsed_ns.cmp(&a.elapsed_ns).then_with(|| a.name.cmp(&b.name)));
    events
}

fn kernel_count(row: &CounterTotal, rates: &RateBase) -> KernelCount {
    KernelCount {
        kind: row.kind.clone(),
        name: row.name.clone(),
        count: row.count,
        per_second: rates.per_second(row.count as f64).filter(|_| row.kind != "time"),
        source: row.source.clone(),
    }
}

/// Figures that no profile has yet.
const NOWHERE: [(&str, &str); 1] = [(
    "cycles of a CPU",
    "`kerntune bench run --machine host` and `kerntune counters` read a CPU's counters",
)];

fn absent(
    profile: &Profile,
    counters: &ModeCounters,
    cycles: &[ModelCycles],
    region: Option<&str>,
) -> Vec<MissingFigure> {
    let capture = &profile.manifest.capture;
    let sampled = profile.manifest.sampled.as_ref();
    let mut absent = Vec::new();
    let mut say = |what, why: &str| absent.push(MissingFigure { what, why: why.into() });
    const RECORD: &str = "record in the emulator: `kerntune record --workload W`";
    let is_recorded = profile.manifest.machine == "emulator";
    if !capture.functions {
        let why = if is_recorded { "record without --no-functions" } else { RECORD };
        say("functions, interrupts, switches and system calls", why);
    }
    if capture.functions && !has_entries(profile) {
        say(
            "time by part, interrupts, exceptions, context switches",
            "this profile has only calls of functions",
        );
    }
    if !counters.are_there() {
        let why = if sampled.is_some() {
            "sampling counts no instructions; "
        } else {
            "no instructions were counted; "
        };
        say("path length, branches, misses of code", &format!("{why}{RECORD}"));
    } else if !capture.edges || !capture.model {
        say("branches, misses of code", "record without --no-edges");
    }
    if cycles.is_empty() && counters.are_there() && capture.model {
        let model = profile.manifest.model.as_deref().unwrap_or("(several)");
        say(
            "CPI",
            &format!("the model {model} does not say what events cost, or is not built in (docs/models.md)"),
        );
    }
    if sampled.is_some_and(|sampled| sampled.calls.is_none()) {
        say("counts of calls", "record with --calls macro, all, or a function's name (docs/live.md)");
    }
    if sampled.is_none() && profile.tables.cpus.is_empty() && capture.functions {
        say(
            "migrations, run delay, waits for locks",
            match is_recorded {
                true => "this profile is of one CPU: record with --cpus N (docs/cpus.md)",
                false => "it has no figures by CPU; record in the emulator: `kerntune record --workload W --cpus N`",
            },
        );
    }
    if sampled.is_some() {
        say(
            "migrations by thread",
            "sampling does not see them; record in the emulator: `kerntune record --workload W --cpus N`",
        );
        if profile.tables.delays.is_empty() {
            say("run delay", "record with --off-cpu (docs/live.md)");
        }
        if profile.tables.lock_paths.is_empty() {
            say("waits for locks", "record with --locks (docs/live.md)");
        }
    }
    if !capture.data {
        say("misses of data by level", "record in the emulator with --data (docs/data.md)");
        say(
            "memory that is touched, TLB reach, use of huge pages",
            "record in the emulator with --data (docs/data.md)",
        );
    }
    if !capture.requests {
        say("size, randomness, queue depth and time of I/O", NOT_SEEN);
    }
    if !capture.packets {
        say("sizes of network packets", NOT_SEEN);
    }
    if region.is_some() && capture.edges {
        say("footprint of code", "blocks are counted for all regions together: leave out --region");
    }
    if region.is_none() && capture.edges && marks::has_readings(profile) {
        say(
            "footprint of code",
            "block counts include those of the readings of /proc: record without --proc",
        );
    }
    for (what, why) in NOWHERE {
        say(what, why);
    }
    absent
}
