//! Sections of the page for text and HTML: tables with their remarks.

use super::counters::WorkCount;
use super::event::{time, EventCount, EventStats, FigureBasis};
use super::facts::{KernelCount, MissingFigure, SubsystemShare, TimeShare, WorkloadCharacter};
use super::path::{ModelCycles, PathFigure};
use crate::html::PageSection;
use crate::unit::{readable, DisplayUnit, TickUnit};
use crate::{io, memory, packets};
use kerntune_table::columns::TextTable;
use kerntune_table::number::{figure, fixed, grouped};
use kerntune_table::{printable, Columns, Table};
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

/// Adds the columns of rates per operation, only with operations, and per second.
fn add_rates<'a, R: 'a>(
    columns: &mut Columns<'a, R>,
    of: &WorkloadCharacter,
    rates: fn(&R) -> [Option<f64>; 2],
) {
    let has_operations = of.operations.is_some();
    columns.text_only("per\noperation", move |row| rates(row)[0]).null("-").only_if(has_operations);
    columns.text_only("per\nsecond", move |row| rates(row)[1]).null("-");
}

/// Returns the unit of code times.
fn measure(of: &WorkloadCharacter) -> TickUnit {
    TickUnit::exact(of.basis == FigureBasis::Exact)
}

fn split(of: &WorkloadCharacter) -> PageSection {
    let largest = of.split.iter().map(|share| share.ns.unsigned_abs()).max().unwrap_or(0);
    let unit = DisplayUnit::for_largest(largest);
    let elapsed = i64::try_from(of.elapsed_ns).unwrap_or(i64::MAX);
    let each = of.operations.map(|operations| of.elapsed_ns as f64 / operations as f64);
    let percent = if of.elapsed_ns == 0 { 0.0 } else { 100.0 };
    let share = |row: &TimeShare| (row.ns, row.error_ns, row.per_operation_ns, row.percent, row.part.title());
    let rows = of.split.iter().map(share).chain([(elapsed, None, each, percent, "elapsed")]);
    let mut columns = Columns::<(i64, Option<u64>, Option<f64>, f64, &str)>::new();
    columns.text_only("", |row| row.0).unit(unit);
    columns.text_only("±", |row| row.1).unit(unit).only_if(of.basis == FigureBasis::Sampled);
    columns
        .text_only("per\noperation", |row| row.2.map(time))
        .right()
        .null("-")
        .only_if(of.operations.is_some());
    columns.text_only("% of\nelapsed", |row| row.3).decimals(2);
    columns.text_only("part", |row| row.4);
    let mut section = PageSection::new("time", format!("Time ({})", of.basis.name()));
    section.about.push(
        "Each instant is in one part; a system call or exception includes what it calls, except softirqs and \
         interrupts."
            .into(),
    );
    section.table = Some(Table::text_only(rows, columns).into());
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
    let mut columns = Columns::<&PathFigure>::new();
    add_rates(&mut columns, of, |row| [row.per_operation, row.per_second]);
    // Instructions per 1,000 instructions would say nothing.
    columns.text_only(format!("per 1,000\n{thousand}"), |row| {
        (row.figure != "instructions").then_some(row.per_thousand)
    });
    columns.text_only("", |row| row.basis.name());
    columns.text_only("what", |row| format!("{} code: {}", row.mode, title(row.figure)));
    Table::text_only(figures, columns).into()
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
    let unit = measure(of).unit(of.subsystems.first().map_or(0, |row| row.self_ticks));
    let mut columns = Columns::<&SubsystemShare>::new();
    columns.text_only("net", |row| row.self_ticks).unit(unit);
    columns.text_only("±", |row| row.error_ns).unit(unit).only_if(of.basis == FigureBasis::Sampled);
    columns.text_only("% of\nkernel", |row| row.percent_kernel).decimals(2);
    columns.text_only("% of\nbusy", |row| row.percent_busy).decimals(2);
    columns.text_only("part of the kernel", |row| row.group.clone());
    let mut section = PageSection::new("kernel", format!("Parts of the kernel ({})", of.basis.name()));
    section.about.push("Time of functions themselves, in whatever context they ran.".into());
    section.table = Some(Table::new("", &of.subsystems, columns).top(Some(MAX_ROWS)).into());
    more(&mut section, of.subsystems.len(), "parts");
    Some(section)
}

/// Builds a table of the first events, without the columns that a sampled profile lacks.
fn event_table(of: &WorkloadCharacter, events: &[EventStats], what: &str) -> TextTable {
    let events = &events[..events.len().min(MAX_ROWS)];
    let unit = measure(of).row_unit(events.iter().map(|event| event.elapsed_ns).max().unwrap_or(0));
    let sampled = of.basis == FigureBasis::Sampled;
    // Calls that did not end, or whose end was not seen, have no time.
    let timed = |event: &EventStats| event.ended > 0 || event.elapsed_ns > 0;
    let mut columns = Columns::<&EventStats>::new();
    columns.text_only("count", |event| event.count).null("-");
    add_rates(&mut columns, of, |event| [event.per_operation, event.per_second]);
    columns.text_only("elapsed", move |event| timed(event).then_some(event.elapsed_ns)).unit(unit).null("-");
    columns.text_only("±", |event| event.error_ns).unit(unit).only_if(sampled);
    let each = format!("avg\n{}", measure(of).smallest_unit().name());
    columns.text_only(each, |event| event.avg_ns).null("-").only_if(!sampled);
    columns
        .text_only("% of\nbusy", move |event| timed(event).then_some(event.percent_busy))
        .decimals(2)
        .null("-");
    columns.text_only(what, |event| event.name.clone());
    Table::text_only(events, columns).into()
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
    section.table = Some(event_table(of, events, "entered by"));
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
        let mut columns = Columns::<(&EventCount, &str, &str)>::new();
        columns.text_only("count", |row| row.0.count);
        add_rates(&mut columns, of, |row| [row.0.per_operation, row.0.per_second]);
        columns.share("%", switches.all.count, |row| row.0.count);
        columns.text_only("kind", |row| row.1.to_owned());
        columns.text_only("reason: called the scheduler", |row| row.2.to_owned());
        let kinds = [
            (&switches.all, "all", ""),
            (&switches.voluntary, "voluntary", ""),
            (&switches.preempted, "preempted", ""),
        ];
        let reasons = switches.reasons.iter().take(MAX_ROWS);
        let reasons = reasons.map(|row| (row, row.kind.as_str(), row.name.as_str()));
        section.table = Some(Table::text_only(kinds.into_iter().chain(reasons), columns).into());
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
        // Sampled profiles have the sum of migrations alone, among the counts of the kernel.
        if of.basis != FigureBasis::Sampled {
            let migrations = if migrations.is_empty() { "none".into() } else { migrations.join(", ") };
            section.notes.push(format!("Migrations: {migrations}."));
        }
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
        section.table = Some(event_table(of, &calls.calls, "system call"));
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
        let sampled = of.basis == FigureBasis::Sampled;
        let mut columns = Columns::<&WorkCount>::new();
        columns.text_only("count", |work| work.event.count).null("-");
        add_rates(&mut columns, of, |work| [work.event.per_operation, work.event.per_second]);
        columns.text_only("avg\nns", move |work| work.event.avg_ns.filter(|_| !sampled)).null("-");
        columns.text_only("function", |work| work.function.clone());
        columns.text_only("what its calls are", |work| {
            let note = if work.note.is_empty() { String::new() } else { format!(" ({})", work.note) };
            format!("{}{note}", work.event.name)
        });
        section.table = Some(Table::text_only(done, columns).into());
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
    let mut columns = Columns::<&KernelCount>::new();
    columns
        .text_only("counted", |row| match row.kind.as_str() {
            "time" => readable(row.count),
            _ => grouped(row.count),
        })
        .right();
    columns.text_only("per\nsecond", |row| row.per_second);
    columns.text_only("kind", |row| row.kind.clone());
    columns.text_only("what", |row| row.name.clone());
    columns.text_only("source", |row| row.source.clone());
    let mut section = PageSection::new("counted", "Counted by the kernel (exact)");
    let table = Table::new("", rows.iter().copied(), columns);
    section.table = Some(table.top(Some(MAX_KERNEL_COUNTS)).into());
    if rows.len() > MAX_KERNEL_COUNTS {
        section.notes.push(format!("{} more (--json).", grouped((rows.len() - MAX_KERNEL_COUNTS) as u64)));
    }
    Some(section)
}

fn absent(of: &WorkloadCharacter) -> PageSection {
    let mut columns = Columns::<&MissingFigure>::new();
    columns.text_only("figure", |row| row.what);
    columns.text_only("why not, and what to do for it", |row| row.why.clone());
    let mut section = PageSection::new("absent", "Not in this profile");
    section.table = Some(Table::text_only(&of.absent, columns).into());
    section
}
