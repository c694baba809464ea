//! Several CPUs: what each of them did, its interrupts, and whom it interrupts.

use super::{entry, Entry, Report};
use crate::columns::{Columns, Side};
use crate::head::Head;
use crate::style::{printable, Role};
use crate::unit::{header, TimeUnit};
use crate::view::{scope, share};
use crate::{health, Result, Style};
use clap::Args;
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{Profile, ScopeTotals};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-cpus/2";

/// `kerntune report PROFILE cpus`.
pub const ENTRY: Entry = entry::<Options>("cpus", 11);

/// Several CPUs: what each did, its interrupts, whom it interrupts (docs/cpus.md)
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Options {
    /// Show at most N rows of a table [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Cpu {
    cpu: u32,
    kernel_instructions: u64,
    user_instructions: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    halted_ns: u64,
    /// The CPU could run, and it was another one's turn.
    waited_ns: u64,
    interrupts: u64,
    switches: u64,
    /// Only where a model counted.
    #[serde(flatten)]
    front_end: Option<FrontEnd>,
}

/// Of the CPU's kernel code.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct FrontEnd {
    kernel_taken_branches: u64,
    kernel_l1i_misses: u64,
    kernel_itlb_misses: u64,
}

#[derive(Debug, Serialize)]
struct Interrupt {
    function: String,
    /// By CPU.
    counts: Vec<u64>,
}

#[derive(Debug, Serialize)]
struct Signal {
    from: u32,
    to: u32,
    /// The function that sends; none where none was open.
    function: Option<String>,
    /// On whose behalf.
    reason: Option<String>,
    count: u64,
}

struct Found {
    totals: ScopeTotals,
    cpus: Vec<Cpu>,
    interrupts: Vec<Interrupt>,
    signals: Vec<Signal>,
}

fn find(profile: &Profile, options: &Options) -> Result<Found> {
    let tables = &profile.tables;
    let scope = scope(profile, options.region.as_deref())?;
    let totals = scope.totals(profile);
    let mut cpus: BTreeMap<u32, Cpu> = BTreeMap::new();
    for row in tables.cpus.iter().filter(|row| scope.outermost().contains(&row.region)) {
        let sum = cpus.entry(row.cpu).or_insert(Cpu { cpu: row.cpu, ..Cpu::default() });
        for (sum, more) in [
            (&mut sum.kernel_instructions, row.kernel_instructions.0),
            (&mut sum.user_instructions, row.user_instructions.0),
            (&mut sum.busy_ns, row.kernel_instructions.0.saturating_add(row.user_instructions.0)),
            (&mut sum.halted_ns, row.halted_ns.get()),
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
        cpu.waited_ns = totals.elapsed_ns.get().saturating_sub(cpu.busy_ns).saturating_sub(cpu.halted_ns);
    }
    let number = cpus.keys().next_back().map_or(0, |last| *last as usize + 1);
    let mut interrupts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in tables.cpu_interrupts.iter().filter(|row| scope.contains(row.region)) {
        let counts = interrupts.entry(tables.name(row.function)).or_insert_with(|| vec![0; number]);
        if let Some(sum) = counts.get_mut(row.cpu as usize) {
            *sum = sum.saturating_add(row.count);
        }
    }
    let mut interrupts: Vec<Interrupt> = interrupts
        .into_iter()
        .map(|(function, counts)| Interrupt { function: function.into(), counts })
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
    let mut signals: Vec<Signal> = signals
        .into_iter()
        .map(|((from, to, function, reason), count)| Signal { from, to, function, reason, count })
        .collect();
    signals.sort_by_key(|row| Reverse(row.count));
    Ok(Found { totals, cpus: cpus.into_values().collect(), interrupts, signals })
}

fn cpus(found: &Found) -> Columns {
    let elapsed = found.totals.elapsed_ns.get();
    let unit = TimeUnit::for_largest(elapsed);
    let halted = format!("halted\n{}", unit.name());
    let mut columns = vec![
        ("CPU", Side::Right),
        ("kernel\ninstr.", Side::Right),
        ("user\ninstr.", Side::Right),
        ("executed\n%", Side::Right),
        (halted.as_str(), Side::Right),
        ("halted\n%", Side::Right),
        ("others' turn\n%", Side::Right),
        ("interrupts", Side::Right),
        ("switches", Side::Right),
    ];
    let modelled = found.cpus.iter().any(|row| row.front_end.is_some());
    if modelled {
        columns.extend([
            ("taken\nbranches", Side::Right),
            ("L1I misses\n(model)", Side::Right),
            ("iTLB misses\n(model)", Side::Right),
        ]);
    }
    let mut table = Columns::with(columns);
    for row in &found.cpus {
        let mut cells = vec![
            row.cpu.to_string().into(),
            grouped(row.kernel_instructions).into(),
            grouped(row.user_instructions).into(),
            fixed(share(row.busy_ns, elapsed), 2).into(),
            unit.format(row.halted_ns).into(),
            fixed(share(row.halted_ns, elapsed), 2).into(),
            fixed(share(row.waited_ns, elapsed), 2).into(),
            grouped(row.interrupts).into(),
            grouped(row.switches).into(),
        ];
        if modelled {
            let FrontEnd { kernel_taken_branches, kernel_l1i_misses, kernel_itlb_misses } =
                row.front_end.unwrap_or_default();
            let counted = [kernel_taken_branches, kernel_l1i_misses, kernel_itlb_misses];
            cells.extend(counted.map(|count| grouped(count).into()));
        }
        table.row_of(cells);
    }
    table
}

fn interrupts(found: &Found, top: usize) -> Columns {
    let heads: Vec<String> = found.cpus.iter().map(|row| format!("CPU {}", row.cpu)).collect();
    let mut columns: Vec<(&str, Side)> = heads.iter().map(|head| (head.as_str(), Side::Right)).collect();
    columns.push(("interrupt", Side::Left));
    let mut table = Columns::with(columns);
    for row in found.interrupts.iter().take(top) {
        let counts = row.counts.iter().map(|count| grouped(*count).into());
        table.row_of(counts.chain([printable(&row.function).into()]).collect());
    }
    table
}

fn signals(found: &Found, top: usize) -> Columns {
    let mut table = Columns::new([
        ("interrupts", Side::Right),
        ("from\nCPU", Side::Right),
        ("to\nCPU", Side::Right),
        ("sent by", Side::Left),
        ("for", Side::Left),
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

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    elapsed_ns: u64,
    idle_ns: u64,
    cpus: &'a [Cpu],
    interrupts: &'a [Interrupt],
    sent: &'a [Signal],
}

/// Message for a profile without figures by CPU.
pub(super) fn no_cpus(profile: &Profile) -> &'static str {
    match profile.manifest.machine.as_str() {
        "emulator" => "This profile is of one CPU: record with `--cpus N` (docs/cpus.md).\n",
        _ => {
            "This profile has no figures by CPU, as it was not recorded in the emulator. There: `kerntune record \
             --workload W --cpus N` (docs/cpus.md).\n"
        }
    }
}

impl Report for Options {
    fn text(&self, profile: &Profile, style: Style) -> Result<String> {
        let found = find(profile, self)?;
        let top = self.top.unwrap_or(crate::TOP);
        let mut out = header(profile, &found.totals, self.region.as_deref());
        if found.cpus.is_empty() {
            return Ok(out + no_cpus(profile));
        }
        out += &style.paint(
            Role::Faint,
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
        crate::to_json(&Json {
            head: Head::new(SCHEMA, profile, &self.region),
            elapsed_ns: found.totals.elapsed_ns.get(),
            idle_ns: found.totals.idle_ns.get(),
            cpus: &found.cpus,
            interrupts: &found.interrupts[..top(found.interrupts.len())],
            sent: &found.signals[..top(found.signals.len())],
        })
    }
}
