//! What a profile says of its workload, gathered from its tables.

use super::counters::{self, Work};
use super::event::{has_entries, Basis, Event, Of, Rates};
use super::marks;
use super::path::{cycles, data, path, Counters, Cycles, Figure};
use super::scheduler::{locks, scheduling, switches, Locks, Scheduling, Switches};
use super::split::{self, is_user, Group, Part};
use super::syscalls::{syscalls, Syscalls};
use super::traffic::{disk, network, Disk, Network};
use crate::footprint;
use crate::groups::Grouping;
use crate::memory::Memory;
use crate::traffic::NOT_SEEN;
use crate::unit::Measure;
use crate::view::share;
use crate::{health, sampled, Error, Result};
use kerntune_compare::Costs;
use kerntune_profile::{Counted, How, KernelId, Profile};
use serde::Serialize;
use std::collections::BTreeMap;

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Share {
    pub part: Part,
    /// What `user`, `kernel`, `interrupt`, `softirq` and `idle` are sums of.
    pub group: Group,
    pub ns: i64,
    pub percent: f64,
    pub per_operation_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ns: Option<u64>,
}

/// A part of the kernel's source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Subsystem {
    pub group: String,
    #[serde(rename = "self")]
    pub net_ns: u64,
    pub percent_busy: f64,
    /// Of the time of all of the kernel's functions.
    pub percent_kernel: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "error")]
    pub error_ns: Option<u64>,
}

/// A count of the running kernel's own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Told {
    pub kind: String,
    pub name: String,
    pub count: u64,
    pub per_second: Option<f64>,
    pub source: String,
}

/// A figure that this profile does not have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Absent {
    pub what: &'static str,
    /// Why, and what to record for it.
    pub why: String,
}

/// Everything that is said of a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Character {
    pub profile: String,
    pub region: Option<String>,
    pub kernel: KernelId,
    pub workload: String,
    pub machine: String,
    pub model: Option<String>,
    pub recorded: String,
    pub basis: Basis,
    /// What code took is in: `instructions` of the exact machine, or `ns`.
    pub unit: &'static str,
    pub cpus: u64,
    /// Whether functions were recorded.
    pub functions: bool,
    /// Whether it is known by what the kernel was entered (interrupts, exceptions, system calls), and who got the CPU.
    pub entries: bool,
    /// What figures per operation are per: none without operations, or with those of several kinds.
    pub operations: Option<u64>,
    /// Names of the outermost regions.
    pub regions: Vec<String>,
    pub elapsed_ns: u64,
    #[serde(rename = "busy")]
    pub busy_ns: u64,
    pub idle_ns: u64,
    /// What figures per second are per: virtual time, or that of the wall where times are of several CPUs together.
    pub passed_ns: u64,
    pub split: Vec<Share>,
    pub path: Vec<Figure>,
    pub cycles: Vec<Cycles>,
    /// Kernel code by how often it runs; of the whole profile alone.
    pub footprint: Vec<footprint::Row>,
    pub subsystems: Vec<Subsystem>,
    pub interrupts: Vec<Event>,
    pub exceptions: Vec<Event>,
    pub switches: Switches,
    pub scheduling: Option<Scheduling>,
    pub locks: Locks,
    pub syscalls: Syscalls,
    pub work: Vec<Work>,
    /// Requests to block devices; none where they were not seen.
    pub disk: Option<Disk>,
    /// Network packets; none where they were not seen.
    pub network: Option<Network>,
    pub data: Vec<Figure>,
    /// Memory that was touched.
    pub memory: Memory,
    pub counted: Vec<Told>,
    pub absent: Vec<Absent>,
    pub notes: Vec<String>,
}

impl Character {
    /// `region` restricts it to the regions of that name and those within them; `costs` are those of the profile's model.
    ///
    /// # Errors
    /// A region that the profile does not have; a profile that was carried to another kernel.
    pub fn of(profile: &Profile, region: Option<&str>, costs: Option<Costs>) -> Result<Self> {
        let manifest = &profile.manifest;
        if let Some(carried) = &manifest.carried {
            let (profile, from) = (manifest.id.clone(), carried.profile.clone());
            return Err(Error::Carried { profile, from });
        }
        let scope = marks::measured(profile, region)?;
        let totals = scope.totals(profile);
        let rates = Rates::new(profile, &scope, &totals);
        let of = Of { profile, scope: &scope, totals: &totals, rates: &rates };
        let counters = Counters::of(profile, &scope);
        let cycles = cycles(&of, &counters, costs);
        let data = data(&of);
        let footprint = match region {
            // Blocks are counted of all regions together.
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
            basis: Basis::of(profile),
            unit: Measure::of(profile).word(),
            cpus: cpus(profile),
            functions: manifest.capture.functions,
            entries: has_entries(profile),
            operations: rates.operations,
            regions: rates.kinds.clone(),
            elapsed_ns: totals.elapsed_ns.get(),
            busy_ns: totals.busy_ns.get(),
            idle_ns: totals.idle_ns.get(),
            passed_ns: rates.passed_ns,
            split: shares(&of),
            path: path(&of, &counters),
            absent: absent(profile, &counters, &cycles, region),
            cycles,
            footprint,
            subsystems: subsystems(&of),
            interrupts: entered(&of, How::Interrupt),
            exceptions: entered(&of, How::Exception),
            switches: switches(&of),
            scheduling: scheduling(&of),
            locks: locks(&of),
            syscalls: syscalls(profile, &scope, &rates),
            work: counters::work(profile, &scope, &rates),
            disk: disk(&of),
            network: network(&of),
            data,
            memory: Memory::of(profile, &scope, region),
            counted: manifest.counted.iter().map(|row| told(row, &rates)).collect(),
            notes: health::notes(profile),
        })
    }

    /// Time of a group of parts, ns.
    pub fn group_ns(&self, group: Group) -> i64 {
        self.split.iter().filter(|share| share.group == group).fold(0, |sum, row| sum.saturating_add(row.ns))
    }

    /// The same in per cent of the busy time.
    pub fn percent_of_busy(&self, group: Group) -> f64 {
        share(u64::try_from(self.group_ns(group)).unwrap_or(0), self.busy_ns)
    }

    /// A figure of the path length's table.
    pub fn figure(&self, name: &str, mode: &str) -> Option<&Figure> {
        self.path.iter().find(|figure| figure.figure == name && figure.mode == mode)
    }

    /// An item of work.
    pub fn item(&self, item: &str) -> Option<&Event> {
        self.work.iter().find(|work| work.item == item).map(|work| &work.event)
    }

    /// Interrupts; none where they are not counted.
    pub fn interrupts(&self) -> Option<u64> {
        let counts = || self.interrupts.iter().map(|event| event.count);
        let told = || self.counted.iter().filter(|row| row.kind == "interrupt");
        match self.basis {
            Basis::Sampled if told().next().is_some() => {
                Some(told().fold(0, |sum, row| sum.saturating_add(row.count)))
            }
            Basis::Sampled => None,
            _ if self.entries => Some(counts().flatten().fold(0, u64::saturating_add)),
            _ => None,
        }
    }
}

fn cpus(profile: &Profile) -> u64 {
    let numbers = profile.tables.cpus.iter().map(|row| u64::from(row.cpu) + 1);
    profile.manifest.sampled.as_ref().map_or(numbers.max().unwrap_or(1), |sampled| sampled.cpus)
}

fn shares(of: &Of) -> Vec<Share> {
    let elapsed = of.totals.elapsed_ns.get();
    let slices = split::split(of.profile, of.scope, of.totals);
    let share = |slice: split::Slice| {
        let ns = slice.ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Share {
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

fn subsystems(of: &Of) -> Vec<Subsystem> {
    let tables = &of.profile.tables;
    let grouping = Grouping::default();
    let mut groups: BTreeMap<String, u64> = BTreeMap::new();
    let mut all = 0u64;
    for totals in tables.totals(|region| of.scope.contains(region)) {
        let symbol = tables.symbols.get(totals.function.get() as usize);
        if symbol.is_some_and(|symbol| !is_user(of.profile, symbol)) {
            let sum = groups.entry(grouping.of(&tables.symbols, totals.function)).or_default();
            *sum = sum.saturating_add(totals.net_ns.get());
            all = all.saturating_add(totals.net_ns.get());
        }
    }
    let row = |(group, net_ns): (String, u64)| Subsystem {
        group,
        net_ns,
        percent_busy: share(net_ns, of.totals.busy_ns.get()),
        percent_kernel: share(net_ns, all),
        error_ns: sampled::error_ns(of.profile, net_ns),
    };
    let mut rows: Vec<Subsystem> = groups.into_iter().filter(|(_, net)| *net > 0).map(row).collect();
    rows.sort_by(|a, b| b.net_ns.cmp(&a.net_ns).then_with(|| a.group.cmp(&b.group)));
    rows
}

/// What entered the kernel so, by the function that it entered by.
pub(crate) fn entered(of: &Of, how: How) -> Vec<Event> {
    let tables = &of.profile.tables;
    let mut sums: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for arc in tables.arcs.iter().filter(|arc| arc.how == how && of.scope.contains(arc.region)) {
        let sum = sums.entry(tables.name(arc.callee)).or_default();
        for (sum, part) in sum.iter_mut().zip([arc.calls, arc.ended, arc.elapsed_ns.get()]) {
            *sum = sum.saturating_add(part);
        }
    }
    let event = |(name, [calls, ended, elapsed]): (&str, [u64; 3])| {
        Event::new(of.profile, name, sampled::calls_of(of.profile, calls), (ended, elapsed), of.rates)
    };
    let mut events: Vec<Event> = sums.into_iter().map(event).collect();
    events.sort_by(|a, b| b.elapsed_ns.cmp(&a.elapsed_ns).then_with(|| a.name.cmp(&b.name)));
    events
}

fn told(row: &Counted, rates: &Rates) -> Told {
    Told {
        kind: row.kind.clone(),
        name: row.name.clone(),
        count: row.count,
        per_second: rates.per_second(row.count as f64).filter(|_| row.kind != "time"),
        source: row.source.clone(),
    }
}

/// What no profile has yet.
const NOWHERE: [(&str, &str); 1] = [(
    "cycles of a CPU",
    "`kerntune bench run --machine host` and `kerntune counters` read a CPU's counters",
)];

fn absent(profile: &Profile, counters: &Counters, cycles: &[Cycles], region: Option<&str>) -> Vec<Absent> {
    let capture = &profile.manifest.capture;
    let sampled = profile.manifest.sampled.as_ref();
    let mut absent = Vec::new();
    let mut say = |what, why: &str| absent.push(Absent { what, why: why.into() });
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
            "migrations, run delay, waits for locks",
            "sampling does not see them; record in the emulator: `kerntune record --workload W --cpus N`",
        );
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
