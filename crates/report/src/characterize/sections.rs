//! Sections of the page for text and HTML: tables with their remarks.

use super::event::{time, EventCount, EventStats, FigureBasis};
use super::facts::WorkloadCharacter;
use super::path::{ModelCycles, PathFigure};
use crate::html::PageSection;
use crate::unit::{readable, DisplayUnit, TickUnit};
use crate::{io, memory, packets};
use kerntune_table::columns::{Alignment, TextTable};
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_table::{printable, Table};
use std::collections::BTreeMap;

/// Number of events that a section shows; JSON has all.
const MAX_ROWS: usize = 12;

/// Returns all sections with content, in order.
pub(crate) fn sections(of: &WorkloadCharacter) -> Vec<PageSection> {
    let mut all = vec![split(of)];
    all.extend(path(of));
    all.extend(subsystems(of));
    all.extend(events(of, "interrupts", "Interrupts", &of.interrupts));
    all.extend(events(of, "exceptions", "Exceptions", &of.exceptions));
    all.extend(switches(of));
    all.extend(syscalls(of));
    all.extend(work(of));
    all.extend(disk(of));
    all.extend(network(of));
    all.extend(data(of));
    all.extend(touched(of));
    all.extend(kernel_counts(of));
    all.push(absent(of));
    all
}

/// Returns the head of the page, one line each.
pub(crate) fn head(of: &WorkloadCharacter) -> Vec<String> {
    let region = of.region.as_ref().map_or(String::new(), |region| format!(", region {region}"));
    let operations = match (of.operations, of.regions.as_slice()) {
        (Some(1), _) => "1 operation".into(),
        (Some(count), _) => format!("{} operations", grouped(count)),
        (None, []) => "no regions".into(),
        (None, [_]) => "no operations: figures are only per second".into(),
        (None, several) => format!(
            "regions of {} names: figures are per second; with --region NAME also per operation ({})",
            several.len(),
            several.join(", ")
        ),
    };
    let kernel = &of.kernel;
    let cpus = if of.cpus == 1 { String::new() } else { format!(", {} CPUs", grouped(of.cpus)) };
    let passed = match of.basis {
        FigureBasis::Sampled => format!("{} on the wall", readable(of.passed_ns)),
        _ if of.machine == "emulator" => {
            format!("{} of virtual time (an instruction is a nanosecond)", readable(of.passed_ns))
        }
        _ => readable(of.passed_ns),
    };
    let version = match kernel.version.as_str() {
        "" => String::new(),
        version => format!(": Linux {version} ({})", kernel.id),
    };
    vec![
        format!("{}{region}: {operations}", of.workload),
        format!(
            "kernel {}{version}; machine {}{cpus}; {passed}; profile {} ({})",
            kernel.label,
            of.machine,
            of.profile,
            of.basis.name()
        ),
    ]
}

fn per(rate: Option<f64>) -> String {
    rate.map_or("-".into(), figure)
}

/// Columns of rates; the one per operation exists only with operations.
struct RateColumns(bool);

impl RateColumns {
    fn heads(&self) -> Vec<(&'static str, Alignment)> {
        let second = ("per\nsecond", Alignment::Right);
        if self.0 {
            vec![("per\noperation", Alignment::Right), second]
        } else {
            vec![second]
        }
    }

    fn cells(&self, per_operation: Option<f64>, per_second: Option<f64>) -> Vec<String> {
        if self.0 {
            vec![per(per_operation), per(per_second)]
        } else {
            vec![per(per_second)]
        }
    }
}

/// Returns the unit of code times.
fn measure(of: &WorkloadCharacter) -> TickUnit {
    TickUnit::exact(of.basis == FigureBasis::Exact)
}

fn rated(of: &WorkloadCharacter) -> RateColumns {
    RateColumns(of.operations.is_some())
}

fn split(of: &WorkloadCharacter) -> PageSection {
    let largest = of.split.iter().map(|share| share.ns.unsigned_abs()).max().unwrap_or(0);
    let unit = DisplayUnit::for_largest(largest);
    let format = |ns: i64| format!("{}{}", if ns < 0 { "-" } else { "" }, unit.format(ns.unsigned_abs()));
    let mut heads = vec![(unit.name().to_owned(), Alignment::Right)];
    let (operations, sampled) = (of.operations.is_some(), of.basis == FigureBasis::Sampled);
    heads.extend(sampled.then(|| (format!("±\n{}", unit.name()), Alignment::Right)));
    heads.extend(operations.then(|| ("per\noperation".to_owned(), Alignment::Right)));
    heads.extend([("% of\nelapsed".to_owned(), Alignment::Right), ("part".to_owned(), Alignment::Left)]);
    let mut table = TextTable::new(heads);
    let mut line = |ns: i64, error: Option<u64>, per_operation: Option<f64>, percent: f64, title: &str| {
        let mut cells = vec![format(ns)];
        cells.extend(sampled.then(|| error.map_or(String::new(), |error| unit.format(error))));
        cells.extend(operations.then(|| per_operation.map_or("-".into(), time)));
        cells.extend([fixed(percent, 2), title.to_owned()]);
        table.row(cells);
    };
    for share in &of.split {
        line(share.ns, share.error_ns, share.per_operation_ns, share.percent, share.part.title());
    }
    let elapsed = i64::try_from(of.elapsed_ns).unwrap_or(i64::MAX);
    let each = of.operations.map(|operations| of.elapsed_ns as f64 / operations as f64);
    line(elapsed, None, each, if of.elapsed_ns == 0 { 0.0 } else { 100.0 }, "elapsed");
    let mut section = PageSection::new("time", format!("Time ({})", of.basis.name()));
    section.about.push(
        "Each instant is in one part; a system call or exception includes what it calls, except softirqs and \
         interrupts."
            .into(),
    );
    section.table = Some(table);
    section
}

/// Returns the title of a counter.
fn title(figure: &str) -> &str {
    match figure {
        "instructions" => "instructions",
        "taken_branches" => "taken branches",
        "l1i_misses" => "L1I misses",
        "itlb_misses" => "iTLB misses",
        "l2_miss" => "L2 misses of code",
        "btb_l2_hit" => "late targets",
        "btb_miss" => "BTB misses",
        "misprediction" => "mispredicted",
        "direction_misprediction" => "directions wrong",
        "loads" => "reads",
        "stores" => "writes",
        "l1d_misses" => "L1D misses",
        "l2_misses" => "L2 misses",
        "l3_misses" => "L3 misses",
        "transfers" => "lines from other CPUs",
        "dtlb_misses" => "dTLB misses",
        "walks" => "page walks",
        other => other,
    }
}

fn figures(of: &WorkloadCharacter, figures: &[PathFigure], thousand: &str) -> TextTable {
    let rated = rated(of);
    let mut heads = rated.heads();
    let thousand = format!("per 1,000\n{thousand}");
    heads.extend([(thousand.as_str(), Alignment::Right), ("", Alignment::Left), ("what", Alignment::Left)]);
    let mut table = TextTable::new(heads);
    for row in figures {
        let mut cells = rated.cells(row.per_operation, row.per_second);
        // Instructions per 1,000 instructions would say nothing.
        let thousand = if row.figure == "instructions" { String::new() } else { figure(row.per_thousand) };
        let what = format!("{} code: {}", row.mode, title(row.figure));
        cells.extend([thousand, row.basis.name().into(), what]);
        table.row(cells);
    }
    table
}

fn path(of: &WorkloadCharacter) -> Option<PageSection> {
    if of.path.is_empty() {
        return None;
    }
    let mut section = PageSection::new("path", "Path length");
    section.table = Some(figures(of, &of.path, "instr."));
    let cpi = |row: &ModelCycles| {
        let per = row
            .per_operation
            .map_or(String::new(), |cycles| format!(" ({} cycles per operation)", figure(cycles)));
        format!("{} {}{per}", row.mode, fixed(row.per_instruction, 2))
    };
    if let (false, Some(model)) = (of.cycles.is_empty(), &of.model) {
        let rows: Vec<String> = of.cycles.iter().map(cpi).collect();
        section.notes.push(format!(
            "CPI (model {model}, of a front end that never waits for data): {}.",
            rows.join(", ")
        ));
    }
    for row in of.footprint.iter().filter(|row| [90.0, 99.0, 100.0].contains(&row.share_percent)) {
        section.notes.push(format!(
            "{} % of the kernel's instructions are in {} KiB of code on {} lines of 64 bytes and {} pages.",
            fixed(row.share_percent, 0),
            grouped(row.bytes.div_ceil(1024)),
            grouped(row.lines),
            grouped(row.pages)
        ));
    }
    Some(section)
}

fn more(section: &mut PageSection, all: usize, what: &str) {
    if all > MAX_ROWS {
        section.notes.push(format!("{} more {what} (--json).", grouped((all - MAX_ROWS) as u64)));
    }
}

fn subsystems(of: &WorkloadCharacter) -> Option<PageSection> {
    if of.subsystems.is_empty() {
        return None;
    }
    let sampled = of.basis == FigureBasis::Sampled;
    let unit = measure(of).unit(of.subsystems.first().map_or(0, |row| row.self_ticks));
    let mut heads = vec![(format!("net\n{}", unit.name()), Alignment::Right)];
    heads.extend(sampled.then(|| (format!("±\n{}", unit.name()), Alignment::Right)));
    let right = ["% of\nkernel", "% of\nbusy"].map(|head| (head.to_owned(), Alignment::Right));
    heads.extend(right);
    heads.push(("part of the kernel".into(), Alignment::Left));
    let mut table = TextTable::new(heads);
    for row in of.subsystems.iter().take(MAX_ROWS) {
        let mut cells = vec![unit.format(row.self_ticks)];
        cells.extend(sampled.then(|| row.error_ns.map_or(String::new(), |ns| unit.format(ns))));
        cells.extend([fixed(row.percent_kernel, 2), fixed(row.percent_busy, 2), printable(&row.group)]);
        table.row(cells);
    }
    let mut section = PageSection::new("kernel", format!("Parts of the kernel ({})", of.basis.name()));
    section.about.push("Time of functions themselves, in whatever context they ran.".into());
    section.table = Some(table);
    more(&mut section, of.subsystems.len(), "parts");
    Some(section)
}

/// Builds a table of events, without the columns that a sampled profile lacks.
fn event_table<'a>(
    of: &WorkloadCharacter,
    events: impl Iterator<Item = &'a EventStats>,
    what: &str,
) -> TextTable {
    let events: Vec<&EventStats> = events.collect();
    let rated = rated(of);
    let unit = measure(of).row_unit(events.iter().map(|event| event.elapsed_ns).max().unwrap_or(0));
    let sampled = of.basis == FigureBasis::Sampled;
    let elapsed = format!("elapsed\n{}", unit.name());
    let error = format!("±\n{}", unit.name());
    let mut heads = vec![("count", Alignment::Right)];
    heads.extend(rated.heads());
    heads.push((elapsed.as_str(), Alignment::Right));
    let each = format!("avg\n{}", measure(of).smallest_unit().name());
    heads.push((if sampled { error.as_str() } else { each.as_str() }, Alignment::Right));
    heads.extend([("% of\nbusy", Alignment::Right), (what, Alignment::Left)]);
    let mut table = TextTable::new(heads);
    for event in events {
        let mut cells = vec![event.count.map_or("-".into(), grouped)];
        cells.extend(rated.cells(event.per_operation, event.per_second));
        // Calls that did not end, or whose end was not seen, have no time.
        let timed = event.ended > 0 || event.elapsed_ns > 0;
        cells.push(if timed { unit.format(event.elapsed_ns) } else { "-".into() });
        cells.push(match sampled {
            true => event.error_ns.map_or(String::new(), |ns| unit.format(ns)),
            false => event.avg_ns.map_or("-".into(), grouped),
        });
        let percent = if timed { fixed(event.percent_busy, 2) } else { "-".into() };
        cells.extend([percent, printable(&event.name)]);
        table.row(cells);
    }
    table
}

fn events(
    of: &WorkloadCharacter,
    id: &'static str,
    title: &str,
    events: &[EventStats],
) -> Option<PageSection> {
    if !of.entries {
        return None;
    }
    let mut section = PageSection::new(id, format!("{title} ({})", of.basis.name()));
    if events.is_empty() {
        section.notes.push("none".into());
        return Some(section);
    }
    if of.basis != FigureBasis::Sampled {
        let count = events.iter().filter_map(|event| event.count).fold(0, u64::saturating_add);
        section.about.push(format!("{} in all.", grouped(count)));
    }
    section.table = Some(event_table(of, events.iter().take(MAX_ROWS), "entered by"));
    more(&mut section, events.len(), "entries");
    Some(section)
}

fn switches(of: &WorkloadCharacter) -> Option<PageSection> {
    let switches = &of.switches;
    if !of.entries && switches.all.count == 0 {
        return None;
    }
    let mut section = PageSection::new("switches", format!("Context switches ({})", of.basis.name()));
    if switches.all.count > 0 {
        let rated = rated(of);
        let mut heads = vec![("count", Alignment::Right)];
        heads.extend(rated.heads());
        heads.extend([
            ("%", Alignment::Right),
            ("kind", Alignment::Left),
            ("reason: called the scheduler", Alignment::Left),
        ]);
        let mut table = TextTable::new(heads);
        let mut line = |row: &EventCount, kind: &str, reason: &str| {
            let mut cells = vec![grouped(row.count)];
            cells.extend(rated.cells(row.per_operation, row.per_second));
            let percent = 100.0 * row.count as f64 / switches.all.count as f64;
            cells.extend([fixed(percent, 2), kind.into(), printable(reason)]);
            table.row(cells);
        };
        line(&switches.all, "all", "");
        line(&switches.voluntary, "voluntary", "");
        line(&switches.preempted, "preempted", "");
        for row in switches.reasons.iter().take(MAX_ROWS) {
            line(row, &row.kind, &row.name);
        }
        section.table = Some(table);
        if of.basis == FigureBasis::Sampled {
            section.about.push("All were counted; kinds and reasons are of a sample, scaled up.".into());
        }
        more(&mut section, switches.reasons.len(), "reasons");
    } else {
        section.notes.push("none".into());
    }
    if let Some(scheduling) = &of.scheduling {
        let migrations: Vec<String> = scheduling
            .migrations
            .iter()
            .map(|row| format!("{} for {}", grouped(row.count), row.name))
            .collect();
        section.notes.push(format!(
            "Waits of threads that could run for a CPU: {}, {} on average, {} at most.",
            grouped(scheduling.waits.count),
            readable(scheduling.avg_ns.unwrap_or(0)),
            readable(scheduling.longest_ns)
        ));
        let migrations = if migrations.is_empty() { "none".into() } else { migrations.join(", ") };
        section.notes.push(format!("Migrations: {migrations}."));
    }
    section.notes.push(locks(of));
    Some(section)
}

fn locks(of: &WorkloadCharacter) -> String {
    let locks = &of.locks;
    let mut text =
        format!("Functions that wait for locks, and spin: {} % of busy.", fixed(locks.percent_busy, 2));
    if let Some(waits) = locks.waits {
        text += &format!(" Waits for locks: {}", grouped(waits));
        let named = locks.locks.iter().take(3).map(|lock| {
            let name = lock.name.as_deref().unwrap_or("(no variable)");
            let caller = lock.caller.as_deref().map_or(String::new(), |caller| format!(" for {caller}"));
            format!("{} × {} {name}{caller}, {}", grouped(lock.waits), lock.kind, readable(lock.wait_ns))
        });
        let named: Vec<String> = named.collect();
        text += &if named.is_empty() { ".".into() } else { format!(": {}.", named.join("; ")) };
    }
    text
}

fn syscalls(of: &WorkloadCharacter) -> Option<PageSection> {
    if !of.functions {
        return None;
    }
    let calls = &of.syscalls;
    let mut section = PageSection::new("syscalls", format!("System calls ({})", of.basis.name()));
    let difference = match calls.difference() {
        None | Some(0) => String::new(),
        Some(more) => format!(
            "; {} more entries than calls of their functions (not traced with --only, refused before, or cut by the end of a region)",
            more
        ),
    };
    if let Some(entries) = calls.entries {
        section.about.push(format!("{} entries{difference}.", grouped(entries)));
    }
    if calls.calls.is_empty() {
        section.notes.push("none".into());
    } else {
        section.table = Some(event_table(of, calls.calls.iter().take(MAX_ROWS), "system call"));
        more(&mut section, calls.calls.len(), "system calls");
    }
    Some(section)
}

fn work(of: &WorkloadCharacter) -> Option<PageSection> {
    // If nothing was counted at all, the last section explains why.
    if of.work.iter().all(|work| work.event.count.is_none()) {
        return None;
    }
    let mut section = PageSection::new("work", format!("Work, by calls of functions ({})", of.basis.name()));
    let done: Vec<_> =
        of.work.iter().filter(|work| work.event.count.is_some_and(|count| count > 0)).collect();
    if !done.is_empty() {
        let rated = rated(of);
        let mut heads = vec![("count", Alignment::Right)];
        heads.extend(rated.heads());
        heads.extend([
            ("avg\nns", Alignment::Right),
            ("function", Alignment::Left),
            ("what its calls are", Alignment::Left),
        ]);
        let mut table = TextTable::new(heads);
        for work in done {
            let event = &work.event;
            let mut cells = vec![event.count.map_or("-".into(), grouped)];
            cells.extend(rated.cells(event.per_operation, event.per_second));
            let avg = event.avg_ns.filter(|_| of.basis != FigureBasis::Sampled);
            let note = if work.note.is_empty() { String::new() } else { format!(" ({})", work.note) };
            let function = printable(work.function.as_deref().unwrap_or_default());
            cells.extend([avg.map_or("-".into(), grouped), function, format!("{}{note}", event.name)]);
            table.row(cells);
        }
        section.table = Some(table);
    }
    let never: Vec<String> = of
        .work
        .iter()
        .filter(|work| work.event.count == Some(0))
        .map(|work| printable(work.function.as_deref().unwrap_or_default()))
        .collect();
    if !never.is_empty() {
        section.notes.push(format!("Never called: {}.", never.join(", ")));
    }
    let mut unknown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for work in &of.work {
        if let Some(why) = work.why {
            unknown.entry(why).or_default().push(work.wanted);
        }
    }
    for (why, functions) in unknown {
        section.notes.push(format!("Not known ({why}): {}.", functions.join(", ")));
    }
    Some(section)
}

fn disk(of: &WorkloadCharacter) -> Option<PageSection> {
    let disk = of.disk.as_ref()?;
    let mut section = PageSection::new("disk", format!("Requests to block devices ({})", of.basis.name()));
    if disk.rows.is_empty() {
        section.notes.push("none".into());
        return Some(section);
    }
    let per = |rate: Option<f64>, what: &str| {
        rate.map_or(String::new(), |rate| format!(", {} {what}", figure(rate)))
    };
    section.about.push(format!(
        "{} in all{}{}; more with `report io`.",
        grouped(disk.all.requests),
        per(disk.per_operation, "per operation"),
        per(disk.per_second, "a second")
    ));
    let all = (disk.rows.len() > 1).then(|| disk.all.clone());
    let table = Table::new("", disk.rows.iter().cloned(), io::columns(false)).top(Some(MAX_ROWS));
    section.table = Some(table.foot(all).into());
    more(&mut section, disk.rows.len(), "devices and operations");
    section.notes.extend(disk.notes.iter().cloned());
    Some(section)
}

fn network(of: &WorkloadCharacter) -> Option<PageSection> {
    let network = of.network.as_ref()?;
    let mut section = PageSection::new("packets", format!("Network packets ({})", of.basis.name()));
    if network.rows.is_empty() {
        section.notes.push("none".into());
        return Some(section);
    }
    section.about.push(packets::BYTES.into());
    let table = Table::new("", network.rows.iter().cloned(), packets::columns(false)).top(Some(MAX_ROWS));
    section.table = Some(table.into());
    more(&mut section, network.rows.len(), "devices and directions");
    Some(section)
}

fn data(of: &WorkloadCharacter) -> Option<PageSection> {
    if of.data.is_empty() {
        return None;
    }
    let mut section = PageSection::new("data", "Accesses to data");
    section.table = Some(figures(of, &of.data, "accesses"));
    Some(section)
}

fn touched(of: &WorkloadCharacter) -> Option<PageSection> {
    let memory = &of.memory;
    if memory.touched.is_empty() {
        return None;
    }
    let mut section = PageSection::new("memory", format!("Memory touched ({})", of.basis.name()));
    section.about.push("Pages by virtual address of each process, lines in them.".into());
    section.table = Some(Table::new("", memory.touched.iter().cloned(), memory::columns()).into());
    section.notes.extend(memory.reach());
    Some(section)
}

/// Number of the running kernel's counts that are shown.
const MAX_KERNEL_COUNTS: usize = 20;

fn kernel_counts(of: &WorkloadCharacter) -> Option<PageSection> {
    if of.counted.is_empty() {
        return None;
    }
    let mut rows: Vec<_> = of.counted.iter().collect();
    rows.sort_by(|a, b| (a.kind == "time").cmp(&(b.kind == "time")).then(b.count.cmp(&a.count)));
    let mut table = TextTable::new([
        ("counted", Alignment::Right),
        ("per\nsecond", Alignment::Right),
        ("kind", Alignment::Left),
        ("what", Alignment::Left),
        ("source", Alignment::Left),
    ]);
    for row in rows.iter().take(MAX_KERNEL_COUNTS) {
        let is_time = row.kind == "time";
        table.row(vec![
            if is_time { readable(row.count) } else { grouped(row.count) },
            row.per_second.map_or(String::new(), figure),
            printable(&row.kind),
            printable(&row.name),
            printable(&row.source),
        ]);
    }
    let mut section = PageSection::new("counted", "Counted by the kernel (exact)");
    section.table = Some(table);
    if rows.len() > MAX_KERNEL_COUNTS {
        section.notes.push(format!("{} more (--json).", grouped((rows.len() - MAX_KERNEL_COUNTS) as u64)));
    }
    Some(section)
}

fn absent(of: &WorkloadCharacter) -> PageSection {
    let mut table =
        TextTable::new([("figure", Alignment::Left), ("why not, and what to do for it", Alignment::Left)]);
    for row in &of.absent {
        table.row(vec![row.what.into(), printable(&row.why)]);
    }
    let mut section = PageSection::new("absent", "Not in this profile");
    section.table = Some(table);
    section
}
