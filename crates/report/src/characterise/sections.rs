//! The page: its sections, each a table with what has to be known of it, for text and HTML alike.

use super::event::{time, Basis, Count, Event};
use super::facts::Character;
use super::path::{Cycles, Figure};
use crate::columns::{Side, Table};
use crate::html::Section;
use crate::style::printable;
use crate::unit::{readable, Measure, TimeUnit};
use crate::{io, memory, packets};
use kerntune_compare::number::{figure, fixed, grouped};
use std::collections::BTreeMap;

/// Rows of events that a section shows; JSON has all.
const TOP: usize = 12;

/// All sections that there is something to say in, in order.
pub(crate) fn sections(of: &Character) -> Vec<Section> {
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
    all.extend(told(of));
    all.push(absent(of));
    all
}

/// What the page is of: a line each.
pub(crate) fn head(of: &Character) -> Vec<String> {
    let region = of.region.as_ref().map_or(String::new(), |region| format!(", region {region}"));
    let operations = match (of.operations, of.regions.as_slice()) {
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
        Basis::Sampled => format!("{} on the wall", readable(of.passed_ns)),
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
            of.basis.word()
        ),
    ]
}

fn per(rate: Option<f64>) -> String {
    rate.map_or("-".into(), figure)
}

/// The columns of rates: per operation only if there are operations.
struct Rated(bool);

impl Rated {
    fn heads(&self) -> Vec<(&'static str, Side)> {
        let second = ("per\nsecond", Side::Right);
        if self.0 {
            vec![("per\noperation", Side::Right), second]
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

/// What times of code are.
fn measure(of: &Character) -> Measure {
    Measure::exact(of.basis == Basis::Exact)
}

fn rated(of: &Character) -> Rated {
    Rated(of.operations.is_some())
}

fn split(of: &Character) -> Section {
    let largest = of.split.iter().map(|share| share.ns.unsigned_abs()).max().unwrap_or(0);
    let unit = TimeUnit::for_largest(largest);
    let format = |ns: i64| format!("{}{}", if ns < 0 { "-" } else { "" }, unit.format(ns.unsigned_abs()));
    let mut heads = vec![(unit.name().to_owned(), Side::Right)];
    let (operations, sampled) = (of.operations.is_some(), of.basis == Basis::Sampled);
    heads.extend(sampled.then(|| (format!("±\n{}", unit.name()), Side::Right)));
    heads.extend(operations.then(|| ("per\noperation".to_owned(), Side::Right)));
    heads.extend([("% of\nelapsed".to_owned(), Side::Right), ("part".to_owned(), Side::Left)]);
    let mut table = Table::new(heads);
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
    let mut section = Section::new("time", format!("Time ({})", of.basis.word()));
    section.about.push(
        "Each instant is in one part; a system call or exception includes what it calls, except softirqs and \
         interrupts."
            .into(),
    );
    section.table = Some(table);
    section
}

/// Titles of what is counted.
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

fn figures(of: &Character, figures: &[Figure], thousand: &str) -> Table {
    let rated = rated(of);
    let mut heads = rated.heads();
    let thousand = format!("per 1,000\n{thousand}");
    heads.extend([(thousand.as_str(), Side::Right), ("", Side::Left), ("what", Side::Left)]);
    let mut table = Table::new(heads);
    for row in figures {
        let mut cells = rated.cells(row.per_operation, row.per_second);
        // Instructions per 1,000 instructions are none that say anything.
        let thousand = if row.figure == "instructions" { String::new() } else { figure(row.per_thousand) };
        let what = format!("{} code: {}", row.mode, title(row.figure));
        cells.extend([thousand, row.basis.word().into(), what]);
        table.row(cells);
    }
    table
}

fn path(of: &Character) -> Option<Section> {
    if of.path.is_empty() {
        return None;
    }
    let mut section = Section::new("path", "Path length");
    section.table = Some(figures(of, &of.path, "instr."));
    let cpi = |row: &Cycles| {
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

fn more(section: &mut Section, all: usize, what: &str) {
    if all > TOP {
        section.notes.push(format!("{} more {what} (--json).", grouped((all - TOP) as u64)));
    }
}

fn subsystems(of: &Character) -> Option<Section> {
    if of.subsystems.is_empty() {
        return None;
    }
    let sampled = of.basis == Basis::Sampled;
    let unit = measure(of).unit(of.subsystems.first().map_or(0, |row| row.net_ns));
    let mut heads = vec![(format!("net\n{}", unit.name()), Side::Right)];
    heads.extend(sampled.then(|| (format!("±\n{}", unit.name()), Side::Right)));
    let right = ["% of\nkernel", "% of\nbusy"].map(|head| (head.to_owned(), Side::Right));
    heads.extend(right);
    heads.push(("part of the kernel".into(), Side::Left));
    let mut table = Table::new(heads);
    for row in of.subsystems.iter().take(TOP) {
        let mut cells = vec![unit.format(row.net_ns)];
        cells.extend(sampled.then(|| row.error_ns.map_or(String::new(), |ns| unit.format(ns))));
        cells.extend([fixed(row.percent_kernel, 2), fixed(row.percent_busy, 2), printable(&row.group)]);
        table.row(cells);
    }
    let mut section = Section::new("kernel", format!("Parts of the kernel ({})", of.basis.word()));
    section.about.push("Time of functions themselves, in whatever context they ran.".into());
    section.table = Some(table);
    more(&mut section, of.subsystems.len(), "parts");
    Some(section)
}

/// A table of events; in a sampled profile without those columns that sampling does not know.
fn event_table<'a>(of: &Character, events: impl Iterator<Item = &'a Event>, what: &str) -> Table {
    let events: Vec<&Event> = events.collect();
    let rated = rated(of);
    let unit = measure(of).row_unit(events.iter().map(|event| event.elapsed_ns).max().unwrap_or(0));
    let sampled = of.basis == Basis::Sampled;
    let elapsed = format!("elapsed\n{}", unit.name());
    let error = format!("±\n{}", unit.name());
    let mut heads = vec![("count", Side::Right)];
    heads.extend(rated.heads());
    heads.push((elapsed.as_str(), Side::Right));
    let each = format!("avg\n{}", measure(of).one().name());
    heads.push((if sampled { error.as_str() } else { each.as_str() }, Side::Right));
    heads.extend([("% of\nbusy", Side::Right), (what, Side::Left)]);
    let mut table = Table::new(heads);
    for event in events {
        let mut cells = vec![event.count.map_or("-".into(), grouped)];
        cells.extend(rated.cells(event.per_operation, event.per_second));
        // Of calls that did not end, or whose ends were not seen, no time is known.
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

fn events(of: &Character, id: &'static str, title: &str, events: &[Event]) -> Option<Section> {
    if !of.entries {
        return None;
    }
    let mut section = Section::new(id, format!("{title} ({})", of.basis.word()));
    if events.is_empty() {
        section.notes.push("none".into());
        return Some(section);
    }
    if of.basis != Basis::Sampled {
        let count = events.iter().filter_map(|event| event.count).fold(0, u64::saturating_add);
        section.about.push(format!("{} in all.", grouped(count)));
    }
    section.table = Some(event_table(of, events.iter().take(TOP), "entered by"));
    more(&mut section, events.len(), "entries");
    Some(section)
}

fn switches(of: &Character) -> Option<Section> {
    let switches = &of.switches;
    if !of.entries && switches.all.count == 0 {
        return None;
    }
    let mut section = Section::new("switches", format!("Context switches ({})", of.basis.word()));
    if switches.all.count > 0 {
        let rated = rated(of);
        let mut heads = vec![("count", Side::Right)];
        heads.extend(rated.heads());
        heads.extend([
            ("%", Side::Right),
            ("kind", Side::Left),
            ("reason: called the scheduler", Side::Left),
        ]);
        let mut table = Table::new(heads);
        let mut line = |row: &Count, kind: &str, reason: &str| {
            let mut cells = vec![grouped(row.count)];
            cells.extend(rated.cells(row.per_operation, row.per_second));
            let percent = 100.0 * row.count as f64 / switches.all.count as f64;
            cells.extend([fixed(percent, 2), kind.into(), printable(reason)]);
            table.row(cells);
        };
        line(&switches.all, "all", "");
        line(&switches.voluntary, "voluntary", "");
        line(&switches.preempted, "preempted", "");
        for row in switches.reasons.iter().take(TOP) {
            line(row, &row.kind, &row.name);
        }
        section.table = Some(table);
        if of.basis == Basis::Sampled {
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

fn locks(of: &Character) -> String {
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

fn syscalls(of: &Character) -> Option<Section> {
    if !of.functions {
        return None;
    }
    let calls = &of.syscalls;
    let mut section = Section::new("syscalls", format!("System calls ({})", of.basis.word()));
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
        section.table = Some(event_table(of, calls.calls.iter().take(TOP), "system call"));
        more(&mut section, calls.calls.len(), "system calls");
    }
    Some(section)
}

fn work(of: &Character) -> Option<Section> {
    // Where nothing was counted at all the last section says so.
    if of.work.iter().all(|work| work.event.count.is_none()) {
        return None;
    }
    let mut section = Section::new("work", format!("Work, by calls of functions ({})", of.basis.word()));
    let done: Vec<_> =
        of.work.iter().filter(|work| work.event.count.is_some_and(|count| count > 0)).collect();
    if !done.is_empty() {
        let rated = rated(of);
        let mut heads = vec![("count", Side::Right)];
        heads.extend(rated.heads());
        heads.extend([
            ("avg\nns", Side::Right),
            ("function", Side::Left),
            ("what its calls are", Side::Left),
        ]);
        let mut table = Table::new(heads);
        for work in done {
            let event = &work.event;
            let mut cells = vec![event.count.map_or("-".into(), grouped)];
            cells.extend(rated.cells(event.per_operation, event.per_second));
            let avg = event.avg_ns.filter(|_| of.basis != Basis::Sampled);
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

fn disk(of: &Character) -> Option<Section> {
    let disk = of.disk.as_ref()?;
    let mut section = Section::new("disk", format!("Requests to block devices ({})", of.basis.word()));
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
    let mut table = Table::new(io::HEADS);
    let all = (disk.rows.len() > 1).then_some(&disk.all);
    for row in disk.rows.iter().take(TOP).chain(all) {
        table.row(io::cells(row).into());
    }
    section.table = Some(table);
    more(&mut section, disk.rows.len(), "devices and operations");
    section.notes.extend(disk.notes.iter().cloned());
    Some(section)
}

fn network(of: &Character) -> Option<Section> {
    let network = of.network.as_ref()?;
    let mut section = Section::new("packets", format!("Network packets ({})", of.basis.word()));
    if network.rows.is_empty() {
        section.notes.push("none".into());
        return Some(section);
    }
    section.about.push(packets::BYTES.into());
    let mut table = Table::new(packets::HEADS);
    for row in network.rows.iter().take(TOP) {
        table.row(packets::cells(row).into());
    }
    section.table = Some(table);
    more(&mut section, network.rows.len(), "devices and directions");
    Some(section)
}

fn data(of: &Character) -> Option<Section> {
    if of.data.is_empty() {
        return None;
    }
    let mut section = Section::new("data", "Accesses to data");
    section.table = Some(figures(of, &of.data, "accesses"));
    Some(section)
}

fn touched(of: &Character) -> Option<Section> {
    let memory = &of.memory;
    if memory.touched.is_empty() {
        return None;
    }
    let mut section = Section::new("memory", format!("Memory touched ({})", of.basis.word()));
    section.about.push("Pages by virtual address of each process, lines in them.".into());
    let mut table = Table::new(memory::HEADS);
    for row in &memory.touched {
        table.row(memory::cells(row).into());
    }
    section.table = Some(table);
    section.notes.extend(memory.reach());
    Some(section)
}

/// Rows of the kernel's own counts.
const TOLD: usize = 20;

fn told(of: &Character) -> Option<Section> {
    if of.counted.is_empty() {
        return None;
    }
    let mut rows: Vec<_> = of.counted.iter().collect();
    rows.sort_by(|a, b| (a.kind == "time").cmp(&(b.kind == "time")).then(b.count.cmp(&a.count)));
    let mut table = Table::new([
        ("counted", Side::Right),
        ("per\nsecond", Side::Right),
        ("kind", Side::Left),
        ("what", Side::Left),
        ("source", Side::Left),
    ]);
    for row in rows.iter().take(TOLD) {
        let is_time = row.kind == "time";
        table.row(vec![
            if is_time { readable(row.count) } else { grouped(row.count) },
            row.per_second.map_or(String::new(), figure),
            printable(&row.kind),
            printable(&row.name),
            printable(&row.source),
        ]);
    }
    let mut section = Section::new("counted", "Counted by the kernel (exact)");
    section.table = Some(table);
    if rows.len() > TOLD {
        section.notes.push(format!("{} more (--json).", grouped((rows.len() - TOLD) as u64)));
    }
    Some(section)
}

fn absent(of: &Character) -> Section {
    let mut table = Table::new([("figure", Side::Left), ("why not, and what to do for it", Side::Left)]);
    for row in &of.absent {
        table.row(vec![row.what.into(), printable(&row.why)]);
    }
    let mut section = Section::new("absent", "Not in this profile");
    section.table = Some(table);
    section
}
