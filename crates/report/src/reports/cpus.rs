//! CPUs: time and counters of each, its interrupts, and interrupts sent between CPUs.

use super::{entry, Entry, Report, Selection};
use crate::unit::{header, DisplayUnit};
use crate::view::scope;
use crate::{head, health, Result};
use clap::Args;
use kerntune_profile::{FunctionIndex, Profile, RegionScope};
use kerntune_table::{Columns, Document, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-cpus/2";

/// Registry entry of `kerntune report PROFILE cpus`.
pub const ENTRY: Entry = entry::<CpusOptions>("cpus", 11);

/// Description of the JSON form.
const ABOUT: &str =
    "Time and counters of several CPUs, and their interrupts ([cpus.md](cpus.md)). Lists are empty in \
     a profile of one CPU.";

/// Several CPUs: time and counters of each, and interrupts received and sent (docs/cpus.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct CpusOptions {
    /// Region and number of rows.
    #[command(flatten)]
    pub select: Selection,
}

#[derive(Default)]
struct CpuRow {
    cpu: u32,
    kernel_instructions: u64,
    user_instructions: u64,
    busy_ticks: u64,
    halted_ticks: u64,
    interrupts: u64,
    switches: u64,
    /// Taken branches, L1I and iTLB misses of kernel code; `None` if no front-end model was active.
    front_end: Option<[u64; 3]>,
}

impl CpuRow {
    /// Returns the time in which the CPU was runnable and another one had its turn.
    fn waited_ticks(&self, elapsed: u64) -> u64 {
        elapsed.saturating_sub(self.busy_ticks).saturating_sub(self.halted_ticks)
    }
}

/// Adds up the CPUs' times and counters.
fn cpus(profile: &Profile, scope: &RegionScope) -> Vec<CpuRow> {
    let tables = &profile.tables;
    let mut cpus: BTreeMap<u32, CpuRow> = BTreeMap::new();
    for row in tables.cpus.iter().filter(|row| scope.outermost().contains(&row.region)) {
        let sum = cpus.entry(row.cpu).or_insert(CpuRow { cpu: row.cpu, ..CpuRow::default() });
        for (sum, more) in [
            (&mut sum.kernel_instructions, row.kernel_instructions.0),
            (&mut sum.user_instructions, row.user_instructions.0),
            (&mut sum.busy_ticks, row.kernel_instructions.0.saturating_add(row.user_instructions.0)),
            (&mut sum.halted_ticks, row.halted_ticks.get()),
            (&mut sum.interrupts, row.interrupts),
            (&mut sum.switches, row.switches),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
    for row in tables.cpu_front_ends.iter().filter(|row| scope.outermost().contains(&row.region)) {
        let Some(cpu) = cpus.get_mut(&row.cpu) else { continue };
        let sum = cpu.front_end.get_or_insert_default();
        let counts = [row.kernel_taken_branches, row.kernel_l1i_misses, row.kernel_itlb_misses];
        for (sum, more) in sum.iter_mut().zip(counts) {
            *sum = sum.saturating_add(more);
        }
    }
    cpus.into_values().collect()
}

/// Declares the columns of the CPUs' table.
fn cpu_columns<'a>(elapsed: u64, has_model: bool) -> Columns<'a, CpuRow> {
    let unit = DisplayUnit::for_largest(elapsed);
    let mut columns = Columns::<CpuRow>::new();
    columns.add("cpu", "Number of the CPU.", |row| row.cpu).head("CPU");
    columns
        .add("kernel_instructions", "Instructions executed in the kernel.", |row| row.kernel_instructions)
        .head("kernel\ninstr.");
    columns
        .add("user_instructions", "Instructions executed in user mode.", |row| row.user_instructions)
        .head("user\ninstr.");
    columns.add("busy", "Instructions executed.", |row| row.busy_ticks);
    columns.share("executed\n%", elapsed, |row| row.busy_ticks);
    columns
        .add("halted_ns", "Time in which the CPU was halted.", |row| row.halted_ticks)
        .head("halted")
        .unit(unit);
    columns.share("halted\n%", elapsed, |row| row.halted_ticks);
    columns
        .add("waited_ns", "Time in which it was another CPU's turn.", move |row| row.waited_ticks(elapsed));
    columns.share("others' turn\n%", elapsed, move |row| row.waited_ticks(elapsed));
    columns.add("interrupts", "Interrupts received.", |row| row.interrupts).head("interrupts");
    columns.add("switches", "Context switches.", |row| row.switches).head("switches");
    let counters = [
        (
            "kernel_taken_branches",
            "taken\nbranches",
            "Branches taken by kernel code; only of a front-end model.",
        ),
        ("kernel_l1i_misses", "L1I misses\n(model)", "L1I misses of kernel code; only of a front-end model."),
        (
            "kernel_itlb_misses",
            "iTLB misses\n(model)",
            "iTLB misses of kernel code; only of a front-end model.",
        ),
    ];
    for (at, (key, head, help)) in counters.into_iter().enumerate() {
        let column = columns.add(key, help, move |row| row.front_end.map(|counts| counts[at]));
        column.head(head).only_if(has_model).null("0").optional();
    }
    columns
}

struct InterruptCounts<'a> {
    function: &'a str,
    /// Counts by CPU.
    counts: Vec<u64>,
}

/// Adds up interrupts by function, for CPUs up to `number`.
fn interrupts<'a>(profile: &'a Profile, scope: &RegionScope, number: usize) -> Vec<InterruptCounts<'a>> {
    let tables = &profile.tables;
    let mut interrupts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in tables.cpu_interrupts.iter().filter(|row| scope.contains(row.region)) {
        let counts = interrupts.entry(tables.name(row.function)).or_insert_with(|| vec![0; number]);
        if let Some(sum) = counts.get_mut(row.cpu as usize) {
            *sum = sum.saturating_add(row.count);
        }
    }
    let mut rows: Vec<InterruptCounts> =
        interrupts.into_iter().map(|(function, counts)| InterruptCounts { function, counts }).collect();
    rows.sort_by_key(|row| Reverse(row.counts.iter().sum::<u64>()));
    rows
}

/// Interrupts from one CPU to another.
struct InterruptSignal<'a> {
    from: u32,
    to: u32,
    function: Option<&'a str>,
    reason: Option<&'a str>,
    count: u64,
}

fn signals<'a>(profile: &'a Profile, scope: &RegionScope) -> Vec<InterruptSignal<'a>> {
    let tables = &profile.tables;
    let name = |function: FunctionIndex| function.known().map(|function| tables.name(function));
    let mut signals: BTreeMap<_, u64> = BTreeMap::new();
    for row in tables.signals.iter().filter(|row| scope.contains(row.region)) {
        let key = (row.from_cpu, row.to_cpu, name(row.function), name(row.reason));
        let sum = signals.entry(key).or_default();
        *sum = sum.saturating_add(row.count);
    }
    let row = |((from, to, function, reason), count)| InterruptSignal { from, to, function, reason, count };
    let mut rows: Vec<InterruptSignal> = signals.into_iter().map(row).collect();
    rows.sort_by_key(|row| Reverse(row.count));
    rows
}

/// Returns the message for a profile without figures by CPU.
pub(super) fn no_cpus(profile: &Profile) -> &'static str {
    match profile.manifest.machine.as_str() {
        "emulator" => "This profile is of one CPU: record with `--cpus N` (docs/cpus.md).\n",
        _ => {
            "This profile has no figures by CPU, as it was not recorded in the emulator. There: `kerntune record \
             --workload W --cpus N` (docs/cpus.md).\n"
        }
    }
}

impl Report for CpusOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let region = self.select.region.as_deref();
        let scope = scope(profile, region)?;
        let totals = scope.totals(profile);
        let elapsed = totals.elapsed_ticks.get();
        let mut document = head::document(SCHEMA, ABOUT, profile, region, None);
        document.field("elapsed_ns", "Time inside regions.", elapsed);
        document.field("idle_ns", "Time in which all CPUs were halted.", totals.idle_ticks.get());
        document.text(header(profile, &totals, region));
        let cpus = cpus(profile, &scope);
        if cpus.is_empty() {
            document.text(no_cpus(profile));
            document.end_text();
        }
        document.note(
            "CPUs take turns on one clock, on which each instruction takes a nanosecond: what a CPU executed \
             is exact, but\nelapsed time is not that of CPUs which execute side by side.",
        );
        let mut columns = Columns::<InterruptCounts>::new();
        columns.add("counts", "Interrupts by CPU.", |row| row.counts.clone());
        for row in &cpus {
            let cpu = row.cpu as usize;
            columns.text_only(format!("CPU {cpu}"), move |row| row.counts.get(cpu).copied());
        }
        columns.add("function", "Function that handles the interrupt.", |row| row.function).head("interrupt");
        let interrupts = interrupts(profile, &scope, cpus.last().map_or(0, |last| last.cpu as usize + 1));
        let has_model = cpus.iter().any(|row| row.front_end.is_some());
        let table = Table::new("cpus", cpus, cpu_columns(elapsed, has_model));
        document.table(table.help("CPUs by number.").default_rows(usize::MAX).hidden_if_empty());
        let table = Table::new("interrupts", interrupts, columns).top(self.select.top);
        document.table(table.help("Interrupts by function, most first.").hidden_if_empty());
        let mut columns = Columns::<InterruptSignal>::new();
        columns.add("count", "Interrupts sent.", |row| row.count).head("interrupts");
        columns.add("from", "CPU that sends.", |row| row.from).head("from\nCPU");
        columns.add("to", "CPU that receives.", |row| row.to).head("to\nCPU");
        columns
            .add("function", "Function that sends; null if none was open.", |row| row.function)
            .head("sent by")
            .null("[no function open]");
        columns
            .add("reason", "Function on whose behalf it is sent; null if none was open.", |row| row.reason)
            .head("for")
            .null("[no function open]");
        let table = Table::new("sent", signals(profile, &scope), columns).top(self.select.top);
        document.table(table.help("Interrupts from CPU to CPU, most first.").hidden_if_empty());
        health::add(&mut document, profile);
        Ok(document)
    }
}
