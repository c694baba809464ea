//! Which lines the path has, and in which order: entries, returns where they help to follow, and
//! what is said where another thread runs.

use super::summary::exact;
use super::Shown;
use crate::style::Role;
use crate::unit::TimeUnit;
use kerntune_analyze::path::{Entry, EntryKind, Line, LineKind, Spread, Stretch, ThreadPath};
use kerntune_compare::number::grouped;
use kerntune_profile::How;

/// Lines after which a return is written: the entry may be out of sight.
const FAR: usize = 12;
/// The same for interrupts and exceptions, which are no part of what is around them.
const FAR_INTERRUPT: usize = 2;

/// A line of text.
pub(super) struct Row {
    /// Virtual time.
    pub time_ns: Option<u64>,
    /// How deep; none for what belongs to no stack.
    pub level: Option<u32>,
    pub text: String,
    /// What follows the text, times above all.
    pub figures: String,
    pub role: Role,
}

/// All lines.
pub(super) fn layout(shown: &Shown) -> Vec<Row> {
    let path = shown.path;
    let timeline = path.is_timeline();
    let mut threads: Vec<Follower> =
        path.threads.iter().map(|thread| Follower::new(shown, thread, timeline)).collect();
    let mut rows = Vec::new();
    if !timeline {
        for thread in &mut threads {
            thread.stretch(&mut rows);
        }
        return rows;
    }
    let mut before: Option<&Stretch> = None;
    for stretch in &path.stretches {
        rows.push(switch(shown, before, stretch));
        if let Some(thread) = threads.iter_mut().find(|t| t.thread.thread == stretch.thread) {
            thread.stretch(&mut rows);
        }
        before = Some(stretch);
    }
    rows
}

/// What is said where one thread's stretch ends and another's begins.
fn switch(shown: &Shown, before: Option<&Stretch>, next: &Stretch) -> Row {
    let to = shown.thread(next.thread);
    let text = match before {
        None => format!("---- Running: {to} ----"),
        Some(before) => {
            let away = next.begin_ns.saturating_sub(before.end_ns);
            let from = shown.thread(before.thread);
            if next.gap {
                format!("---- {} not recorded ---- Running: {to} ----", exact(away))
            } else if next.switches <= 1 {
                format!("---- Context switch: {from} out, {to} in ----")
            } else {
                let between = meanwhile(away, next.switches, next.idle_ns);
                format!("---- Context switch out: {from} ---- {between} ---- Context switch in: {to} ----")
            }
        }
    };
    Row { time_ns: Some(next.begin_ns), level: None, text, figures: String::new(), role: Role::Head }
}

fn meanwhile(ns: u64, switches: u64, idle_ns: u64) -> String {
    let idle = if idle_ns > 0 { format!(", {} idle", exact(idle_ns)) } else { String::new() };
    format!("{}, {} switches{idle}", exact(ns), grouped(switches))
}

/// An entry that is open, and what the text said of it.
struct Open {
    line: Line,
    /// Rows written when it began.
    row: usize,
    /// Whether a switch was written within it.
    switched: bool,
}

/// One thread's lines, stretch by stretch.
struct Follower<'a> {
    shown: &'a Shown<'a>,
    thread: &'a ThreadPath,
    lines: Vec<Line>,
    next: usize,
    open: Vec<Open>,
    /// Groups that are open: what is in them stands further in.
    groups: u32,
    timeline: bool,
}

impl<'a> Follower<'a> {
    fn new(shown: &'a Shown<'a>, thread: &'a ThreadPath, timeline: bool) -> Self {
        Self { shown, thread, lines: shown.lines(thread), next: 0, open: Vec::new(), groups: 0, timeline }
    }

    fn entry(&self, line: &Line) -> Option<&'a Entry> {
        self.thread.entries.get(line.entry as usize)
    }

    /// Writes what the thread did until it was switched away; all that it did where no other
    /// thread is shown.
    fn stretch(&mut self, rows: &mut Vec<Row>) {
        let mut inside: Vec<String> = Vec::new();
        while let Some(&line) = self.lines.get(self.next) {
            self.next += 1;
            let Some(entry) = self.entry(&line) else { continue };
            self.close(line.level, rows);
            if line.kind == LineKind::GroupEnd {
                self.groups = self.groups.saturating_sub(1);
            }
            let before = line.kind == LineKind::Entry && entry.begin_ns.is_none();
            match entry.kind {
                EntryKind::Call { function, .. } if before => inside.push(self.shown.function(function)),
                _ => self.inside(&mut inside, rows),
            }
            let call = matches!(entry.kind, EntryKind::Call { .. });
            if line.kind == LineKind::Entry && call {
                self.open.push(Open { line, row: rows.len(), switched: false });
            }
            if before && call {
                continue;
            }
            let away = matches!(entry.kind, EntryKind::Away { .. } | EntryKind::Turn | EntryKind::Gap);
            if away && line.kind == LineKind::Entry {
                self.open.iter_mut().for_each(|open| open.switched = true);
                if self.timeline {
                    return;
                }
            }
            rows.push(self.row(&line, entry));
            self.groups += u32::from(line.kind == LineKind::Group);
        }
        self.inside(&mut inside, rows);
        self.close(0, rows);
    }

    /// Says which calls were open when the thread was first seen.
    fn inside(&self, inside: &mut Vec<String>, rows: &mut Vec<Row>) {
        if !inside.is_empty() {
            let text = format!(".. in {}", inside.join(" > "));
            inside.clear();
            rows.push(Row { time_ns: None, level: None, text, figures: String::new(), role: Role::Faint });
        }
    }

    /// The entries from `level` on are over.
    fn close(&mut self, level: u32, rows: &mut Vec<Row>) {
        while self.open.last().is_some_and(|open| open.line.level >= level) {
            let Some(open) = self.open.pop() else { return };
            let Some(entry) = self.entry(&open.line) else { continue };
            let (Some(end), EntryKind::Call { function, how }) = (entry.end_ns, entry.kind) else { continue };
            let far = if matches!(how, How::Interrupt | How::Exception) { FAR_INTERRUPT } else { FAR };
            let unseen = entry.begin_ns.is_none();
            if !(unseen || open.switched || rows.len() > open.row + far) {
                continue;
            }
            rows.push(Row {
                // Of several that became one line, none ends alone.
                time_ns: (open.line.count == 1).then_some(end),
                level: Some(open.line.level + self.groups),
                text: format!("<- {}", self.shown.function(function)),
                figures: if unseen { times(entry, &open.line) } else { String::new() },
                role: Role::Plain,
            });
        }
    }

    fn row(&self, line: &Line, entry: &Entry) -> Row {
        let shown = self.shown;
        let plain = |text: String| (text, String::new(), Role::Plain);
        let (text, figures, role) = match (line.kind, entry.kind) {
            (LineKind::Group, _) => (
                format!("×{} {{", grouped(line.times.into())),
                format!("  ({} each turn)", spread(&line.total, line.count)),
                Role::Plain,
            ),
            (LineKind::GroupEnd, _) => plain("}".into()),
            (_, EntryKind::Call { function, how }) => {
                let (sign, role) = match how {
                    How::Call => ("->", Role::Plain),
                    How::Jump => ("~>", Role::Plain),
                    How::Syscall => ("=>", Role::Plain),
                    How::Exception => ("?!", Role::Bad),
                    How::Interrupt => ("!!", Role::Bad),
                };
                let hidden = match entry.hidden {
                    0 => String::new(),
                    1 => "  … 1 call deeper".into(),
                    more => format!("  … {} calls deeper", grouped(more.into())),
                };
                (format!("{sign} {}", shown.function(function)), times(entry, line) + &hidden, role)
            }
            (_, EntryKind::User) => (".. user code".into(), times(entry, line), Role::Plain),
            (_, EntryKind::Unattributed) => {
                (".. kernel code in no known function".into(), times(entry, line), Role::Plain)
            }
            (_, EntryKind::Idle) => (".. idle".into(), times(entry, line), Role::Plain),
            (_, EntryKind::Point(point)) => {
                (format!("== {}", shown.point(point)), repeated(line), Role::Plain)
            }
            (_, EntryKind::Operation) => ("---- operation done ----".into(), repeated(line), Role::Head),
            (_, EntryKind::RegionBegin(region)) => {
                (format!("---- region {} begins ----", shown.region(region)), String::new(), Role::Head)
            }
            (_, EntryKind::RegionEnd(region)) => {
                (format!("---- region {} ends ----", shown.region(region)), String::new(), Role::Head)
            }
            (_, EntryKind::Unwind(frames)) => {
                let calls = if frames == 1 { "call" } else { "calls" };
                (
                    format!("<< {} {calls} ended without a return", grouped(frames.into())),
                    repeated(line),
                    Role::Bad,
                )
            }
            (_, EntryKind::Gap) => ("---- not recorded ----".into(), String::new(), Role::Bad),
            (_, EntryKind::Turn) => {
                let text = format!("---- other CPUs' turn: {} ns ----", grouped(entry.total_ns));
                (text, repeated(line), Role::Head)
            }
            (_, EntryKind::Wake(thread)) => {
                (format!("== wakes up {}", shown.thread(thread)), repeated(line), Role::Head)
            }
            (_, EntryKind::Delay(ns)) => {
                (format!("== had waited {} ns for a CPU", grouped(ns)), repeated(line), Role::Head)
            }
            (_, EntryKind::Migrate { thread, from, to }) => {
                let text = format!("== {} goes from CPU {from} to CPU {to}", shown.thread(thread));
                (text, repeated(line), Role::Head)
            }
            (_, EntryKind::Signal(cpu)) => (format!("== interrupts CPU {cpu}"), repeated(line), Role::Head),
            (_, EntryKind::Lock { address, ns }) => {
                let text = format!("== had waited {} ns for the lock at {address:#x}", grouped(ns));
                (text, repeated(line), Role::Head)
            }
            (_, EntryKind::Away { switches, idle_ns, to }) => {
                (away(shown, line, entry, (switches, idle_ns, to)), String::new(), Role::Head)
            }
        };
        let time_ns = match line.kind {
            LineKind::GroupEnd => None,
            _ => entry.begin_ns.or(Some(shown.path.begin_ns)),
        };
        Row { time_ns, level: Some(line.level + self.groups), text, figures, role }
    }
}

fn away(shown: &Shown, line: &Line, entry: &Entry, (switches, idle_ns, to): (u64, u64, u32)) -> String {
    let out = format!("---- Context switch out: {} runs ----", shown.thread(to));
    match entry.end_ns {
        None => format!("{out} not seen back"),
        Some(_) if line.count > 1 => {
            let turns = repeated(line);
            format!("{out}{turns} {} ---- Context switch in ----", spread(&line.total, line.count))
        }
        Some(_) => {
            format!("{out} {} ---- Context switch in ----", meanwhile(entry.total_ns, switches, idle_ns))
        }
    }
}

/// ` ×16` if it is so often in a row.
fn repeated(line: &Line) -> String {
    if line.times > 1 {
        format!(" ×{}", grouped(line.times.into()))
    } else {
        String::new()
    }
}

/// `(net, total)` as in Figure 4, with `>` where more may have been; for several that became one
/// line `×16 (avg net, total total, least..greatest)`.
fn times(entry: &Entry, line: &Line) -> String {
    let turns = repeated(line);
    let (net, total) = (average(&line.net, line.count), average(&line.total, line.count));
    let at_least = if entry.complete() { "" } else { ">" };
    let unit = TimeUnit::for_largest(total);
    let mut figures = format!("{at_least}{} {}", unit.format(net), unit.name());
    if net != total {
        figures += &format!(", {at_least}{} total", unit.format(total));
    }
    if line.total.min != line.total.max {
        figures = format!("avg {figures}, {}", range(&line.total));
    }
    format!("{turns} ({figures})")
}

/// `avg 22 ns, 21..23`, or the time alone if all are the same.
fn spread(times: &Spread, count: u64) -> String {
    let avg = exact(average(times, count));
    if times.min == times.max {
        return avg;
    }
    format!("avg {avg}, {}", range(times))
}

fn range(times: &Spread) -> String {
    let unit = TimeUnit::for_largest(times.max);
    let name = if unit == TimeUnit::Nanoseconds { String::new() } else { format!(" {}", unit.name()) };
    format!("{}..{}{name}", unit.format(times.min), unit.format(times.max))
}

/// Rounded to the nearest.
fn average(times: &Spread, count: u64) -> u64 {
    let count = count.max(1);
    times.sum / count + u64::from(times.sum % count >= count.div_ceil(2))
}
