//! CPUs: time and counters of each, its interrupts, and interrupts sent between CPUs.

use super::{entry, Entry, Report};
use kerntune_table::columns::{Alignment, TableBuilder};
use crate::head::JsonHead;
use kerntune_table::{printable, TextRole};
use crate::unit::{header, DisplayUnit};
use crate::view::scope;
use kerntune_table::share;
use crate::{health, Result, Style};
use clap::Args;
use kerntune_table::number::{fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-cpus/2";

/// Registry entry of `kerntune report PROFILE cpus`.
pub const ENTRY: Entry = entry::<CpusOptions>("cpus", 11);

/// Several CPUs: time and counters of each, and interrupts received and sent (docs/cpus.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct CpusOptions {
    /// Show at most N rows of a table [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct CpuRow {
    cpu: u32,
    kernel_instructions: u64,
    user_instructions: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    halted_ns: u64,
    /// Time in which the CPU was runnable and another one had its turn.
    waited_ns: u64,
    interrupts: u64,
    switches: u64,
    /// `None` if no front-end model was active.
    #[serde(flatten)]
    front_end: Option<CpuFrontEnd>,
}

/// Front-end counters of the CPU's kernel code.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct CpuFrontEnd {
    kernel_taken_branches: u64,
    kernel_l1i_misses: u64,
    kernel_itlb_misses: u64,
}

#[derive(Debug, Serialize)]
struct InterruptCounts {
    function: String,
    /// Counts by CPU.
    counts: Vec<u64>,
}

#[derive(Debug, Serialize)]
struct InterruptSignal {
    from: u32,
    to: u32,
    /// Function that sends the interrupt; `None` if no function was open.
    function: Option<String>,
    /// Function on whose behalf it is sent.
    reason: Option<String>,
    count: u64,
}

struct CpuTables {
    totals: ScopeTotals,
    cpus: Vec<CpuRow>,
    interrupts: Vec<InterruptCounts>,
    signals: Vec<InterruptSignal>,
}

fn find(profile: &Profile, options: &CpusOptions) -> Result<CpuTables> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let totals = scope.totals(profile);
    let mut cpus: BTreeMap<u32, CpuRow> = BTreeMap::new();
    for row in tables.cpus.iter().filter(|row| scope.outermost().contains(&row.region)) {
        let sum = cpus.entry(row.cpu).or_insert(CpuRow { cpu: row.cpu, ..CpuRow::default() });
        for (sum, more) in [
            (&mut sum.kernel_instructions, row.kernel_instructions.0),
            (&mut sum.user_instructions, row.user_instructions.0),
            (&mut sum.busy_ticks, row.kernel_instructions.0.saturating_add(row.user_instructions.0)),
            (&mut sum.halted_ns, row.halted_ticks.get()),
            (&mut sum.interrupts, row.interrupts),
            (&mut sum.switches, row.switches),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
    for row in tables.cpu_front_ends.iter().filter(|row| scope.outermost().contains(&row.region)) {
        let Some(cpu) = cpus.get_mut(&row.cpu) else { continue };
        let sum = cpu.front_end.get_or_insert_default();
        for (sum, more) in [
            (&mut sum.kernel_taken_branches, row.kernel_taken_branches),
            (&mut sum.kernel_l1i_misses, row.kernel_l1i_misses),
            (&mut sum.kernel_itlb_misses, row.kernel_itlb_misses),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
    for cpu in cpus.values_mut() {
        cpu.waited_ns =
            totals.elapsed_ticks.get().saturating_sub(cpu.busy_ticks).saturating_sub(cpu.halted_ns);
    }
    let number = cpus.keys().next_back().map_or(0, |last| *last as usize + 1);
    let mut interrupts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in tables.cpu_interrupts.iter().filter(|row| scope.contains(row.region)) {
        let counts = interrupts.entry(tables.name(row.function)).or_insert_with(|| vec![0; number]);
        if let Some(sum) = counts.get_mut(row.cpu as usize) {
            *sum = sum.saturating_add(row.count);
        }
    }
    let mut interrupts: Vec<InterruptCounts> = interrupts
        .into_iter()
        .map(|(function, counts)| InterruptCounts { function: function.into(), counts })
        .collect();
    interrupts.sort_by_key(|row| Reverse(row.counts.iter().sum::<u64>()));
    let name =
        |function: kerntune_profile::FunctionIndex| function.known().map(|f| tables.name(f).to_owned());
    let mut signals: BTreeMap<(u32, u32, Option<String>, Option<String>), u64> = BTreeMap::new();
    for row in tables.signals.iter().filter(|row| scope.contains(row.region)) {
        let key = (row.from_cpu, row.to_cpu, name(row.function), name(row.reason));
        let sum = signals.entry(key).or_default();
        *sum = sum.saturating_add(row.count);
    }
    let mut signals: Vec<InterruptSignal> = signals
        .into_iter()
        .map(|((from, to, function, reason), count)| InterruptSignal { from, to, function, reason, count })
        .collect();
    signals.sort_by_key(|row| Reverse(row.count));
    Ok(CpuTables { totals, cpus: cpus.into_values().collect(), interrupts, signals })
}

fn cpus(found: &CpuTables) -> TableBuilder {
    let elapsed = found.totals.elapsed_ticks.get();
    let unit = DisplayUnit::for_largest(elapsed);
    let halted = format!("halted\n{}", unit.name());
    let mut columns = vec![
        ("CPU", Alignment::Right),
        ("kernel\ninstr.", Alignment::Right),
        ("user\ninstr.", Alignment::Right),
        ("executed\n%", Alignment::Right),
        (halted.as_str(), Alignment::Right),
        ("halted\n%", Alignment::Right),
        ("others' turn\n%", Alignment::Right),
        ("interrupts", Alignment::Right),
        ("switches", Alignment::Right),
    ];
    let modeled = found.cpus.iter().any(|row| row.front_end.is_some());
    if modeled {
        columns.extend([
            ("taken\nbranches", Alignment::Right),
            ("L1I misses\n(model)", Alignment::Right),
            ("iTLB misses\n(model)", Alignment::Right),
        ]);
    }
    let mut table = TableBuilder::with(columns);
    for row in &found.cpus {
        let mut cells = vec![
            row.cpu.to_string().into(),
            grouped(row.kernel_instructions).into(),
            grouped(row.user_instructions).into(),
            fixed(share(row.busy_ticks, elapsed), 2).into(),
            unit.format(row.halted_ns).into(),
            fixed(share(row.halted_ns, elapsed), 2).into(),
            fixed(share(row.waited_ns, elapsed), 2).into(),
            grouped(row.interrupts).into(),
            grouped(row.switches).into(),
        ];
        if modeled {
            let CpuFrontEnd { kernel_taken_branches, kernel_l1i_misses, kernel_itlb_misses } =
                row.front_end.unwrap_or_default();
            let counted = [kernel_taken_branches, kernel_l1i_misses, kernel_itlb_misses];
            cells.extend(counted.map(|count| grouped(count).into()));
        }
        table.row_of(cells);
    }
    table
}

fn interrupts(found: &CpuTables, top: usize) -> TableBuilder {
    let heads: Vec<String> = found.cpus.iter().map(|row| format!("CPU {}", row.cpu)).collect();
    let mut columns: Vec<(&str, Alignment)> =
        heads.iter().map(|head| (head.as_str(), Alignment::Right)).collect();
    columns.push(("interrupt", Alignment::Left));
    let mut table = TableBuilder::with(columns);
    for row in found.interrupts.iter().take(top) {
        let counts = row.counts.iter().map(|count| grouped(*count).into());
        table.row_of(counts.chain([printable(&row.function).into()]).collect());
    }
    table
}

fn signals(found: &CpuTables, top: usize) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("interrupts", Alignment::Right),
        ("from\nCPU", Alignment::Right),
        ("to\nCPU", Alignment::Right),
        ("sent by", Alignment::Left),
        ("for", Alignment::Left),
    ]);
    for row in found.signals.iter().take(top) {
        let name = |name: &Option<String>| printable(name.as_deref().unwrap_or("[no function open]"));
        table.row([
            grouped(row.count).into(),
            row.from.to_string().into(),
            row.to.to_string().into(),
            name(&row.function).into(),
            name(&row.reason).into(),
        ]);
    }
    table
}

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct CpusReport<'a> {
    #[serde(flatten)]
    head: JsonHead<'a>,
    elapsed_ns: u64,
    idle_ns: u64,
    cpus: &'a [CpuRow],
    interrupts: &'a [InterruptCounts],
    sent: &'a [InterruptSignal],
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
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let top = self.top.unwrap_or(crate::DEFAULT_ROWS);
        let mut out = header(profile, &found.totals, self.region.as_deref());
        if found.cpus.is_empty() {
            return Ok(out + no_cpus(profile));
        }
        out += &style.paint(
            TextRole::Faint,
            "CPUs take turns on one clock, on which each instruction takes a nanosecond: what a CPU executed \
             is exact, but\nelapsed time is not that of CPUs which execute side by side.\n",
        );
        out.push('\n');
        out += &cpus(&found).render(style);
        out += &interrupts(&found, top).below(found.interrupts.len(), top, style);
        out += &signals(&found, top).below(found.signals.len(), top, style);
        out += &health::text(profile, style);
        Ok(out)
    }

    fn json(&self, profile: &Profile) -> Result<String> {
        let found = find(profile, self)?;
        let top = |all: usize| self.top.unwrap_or(all).min(all);
        crate::to_json(&CpusReport {
            head: JsonHead::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ticks.get(),
            idle_ns: found.totals.idle_ticks.get(),
            cpus: &found.cpus,
            interrupts: &found.interrupts[..top(found.interrupts.len())],
            sent: &found.signals[..top(found.signals.len())],
        })
    }
}
