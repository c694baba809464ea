//! Lines of a code path in order: entries, returns where they help to follow, and remarks on thread
//! switches.

use super::summary::exact;
use super::PathView;
use crate::unit::DisplayUnit;
use kerntune_analyze::path::{
    PathEntry, PathEntryKind, PathLine, PathLineKind, ThreadPath, ThreadStretch, TimeSpread,
};
use kerntune_profile::CallKind;
use kerntune_table::number::grouped;
use kerntune_table::TextRole;

/// Number of lines after which a return is written, since the entry may be out of sight.
const FAR_LINES: usize = 12;
/// Same limit for interrupts and exceptions, which do not belong to the code around them.
const FAR_INTERRUPT_LINES: usize = 2;

/// Line of text.
pub(super) struct TextRow {
    /// Virtual time.
    pub time_ns: Option<u64>,
    /// Depth; `None` for lines that belong to no stack.
    pub level: Option<u32>,
    pub text: String,
    /// Figures after the text, mainly times.
    pub figures: String,
    pub role: TextRole,
}

/// Lays out all lines.
pub(super) fn layout(shown: &PathView) -> Vec<TextRow> {
    let path = shown.path;
    let timeline = path.is_timeline();
    let mut threads: Vec<ThreadLayout> =
        path.threads.iter().map(|thread| ThreadLayout::new(shown, thread, timeline)).collect();
    let mut rows = Vec::new();
    if !timeline {
        for thread in &mut threads {
            thread.stretch(&mut rows);
        }
        return rows;
    }
    let mut before: Option<&ThreadStretch> = None;
    for stretch in &path.stretches {
        rows.push(switch(shown, before, stretch));
        if let Some(thread) = threads.iter_mut().find(|t| t.thread.thread == stretch.thread) {
            thread.stretch(&mut rows);
        }
        before = Some(stretch);
    }
    rows
}

/// Describes the switch from one thread's stretch to another's.
fn switch(shown: &PathView, before: Option<&ThreadStretch>, next: &ThreadStretch) -> TextRow {
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
    TextRow { time_ns: Some(next.begin_ns), level: None, text, figures: String::new(), role: TextRole::Head }
}

fn meanwhile(ns: u64, switches: u64, idle_ns: u64) -> String {
    let idle = if idle_ns > 0 { format!(", {} idle", exact(idle_ns)) } else { String::new() };
    format!("{}, {} switches{idle}", exact(ns), grouped(switches))
}

/// Open entry, and what has been written of it.
struct OpenEntry {
    line: PathLine,
    /// Number of rows written at its begin.
    row: usize,
    /// A thread switch was written within it.
    switched: bool,
}

/// Layout of one thread's lines, stretch by stretch.
struct ThreadLayout<'a> {
    shown: &'a PathView<'a>,
    thread: &'a ThreadPath,
    lines: Vec<PathLine>,
    next: usize,
    open: Vec<OpenEntry>,
    /// Number of open groups, whose lines are indented further.
    groups: u32,
    timeline: bool,
}

impl<'a> ThreadLayout<'a> {
    fn new(shown: &'a PathView<'a>, thread: &'a ThreadPath, timeline: bool) -> Self {
        Self { shown, thread, lines: shown.lines(thread), next: 0, open: Vec::new(), groups: 0, timeline }
    }

    fn entry(&self, line: &PathLine) -> Option<&'a PathEntry> {
        self.thread.entries.get(line.entry as usize)
    }

    /// Writes the thread's lines up to its next switch; all lines if no other thread is shown.
    fn stretch(&mut self, rows: &mut Vec<TextRow>) {
        let mut inside: Vec<String> = Vec::new();
        while let Some(&line) = self.lines.get(self.next) {
            self.next += 1;
            let Some(entry) = self.entry(&line) else { continue };
            self.close(line.level, rows);
            if line.kind == PathLineKind::GroupEnd {
                self.groups = self.groups.saturating_sub(1);
            }
            let before = line.kind == PathLineKind::Entry && entry.begin_ns.is_none();
            match entry.kind {
                PathEntryKind::Call { function, .. } if before => inside.push(self.shown.function(function)),
                _ => self.inside(&mut inside, rows),
            }
            let call = matches!(entry.kind, PathEntryKind::Call { .. });
            if line.kind == PathLineKind::Entry && call {
                self.open.push(OpenEntry { line, row: rows.len(), switched: false });
            }
            if before && call {
                continue;
            }
            let away =
                matches!(entry.kind, PathEntryKind::Away { .. } | PathEntryKind::Turn | PathEntryKind::Gap);
            if away && line.kind == PathLineKind::Entry {
                self.open.iter_mut().for_each(|open| open.switched = true);
                if self.timeline {
                    return;
                }
            }
            rows.push(self.row(&line, entry));
            self.groups += u32::from(line.kind == PathLineKind::Group);
        }
        self.inside(&mut inside, rows);
        self.close(0, rows);
    }

    /// Lists the calls that were open when the thread was first seen.
    fn inside(&self, inside: &mut Vec<String>, rows: &mut Vec<TextRow>) {
        if !inside.is_empty() {
            let text = format!(".. in {}", inside.join(" > "));
            inside.clear();
            rows.push(TextRow {
                time_ns: None,
                level: None,
                text,
                figures: String::new(),
                role: TextRole::Faint,
            });
        }
    }

    /// Closes the entries from `level` on.
    fn close(&mut self, level: u32, rows: &mut Vec<TextRow>) {
        while self.open.last().is_some_and(|open| open.line.level >= level) {
            let Some(open) = self.open.pop() else { return };
            let Some(entry) = self.entry(&open.line) else { continue };
            let (Some(end), PathEntryKind::Call { function, how }) = (entry.end_ns, entry.kind) else {
                continue;
            };
            let far = if matches!(how, CallKind::Interrupt | CallKind::Exception) {
                FAR_INTERRUPT_LINES
            } else {
                FAR_LINES
            };
            let unseen = entry.begin_ns.is_none();
            if !(unseen || open.switched || rows.len() > open.row + far) {
                continue;
            }
            rows.push(TextRow {
                // Of several repeats in one line, none ends alone.
                time_ns: (open.line.count == 1).then_some(end),
                level: Some(open.line.level + self.groups),
                text: format!("<- {}", self.shown.function(function)),
                figures: if unseen { times(entry, &open.line) } else { String::new() },
                role: TextRole::Plain,
            });
        }
    }

    fn row(&self, line: &PathLine, entry: &PathEntry) -> TextRow {
        let shown = self.shown;
        let plain = |text: String| (text, String::new(), TextRole::Plain);
        let (text, figures, role) = match (line.kind, entry.kind) {
            (PathLineKind::Group, _) => (
                format!("×{} {{", grouped(line.times.into())),
                format!("  ({} each turn)", spread(&line.total, line.count)),
                TextRole::Plain,
            ),
            (PathLineKind::GroupEnd, _) => plain("}".into()),
            (_, PathEntryKind::Call { function, how }) => {
                let (sign, role) = match how {
                    CallKind::Call => ("->", TextRole::Plain),
                    CallKind::Jump => ("~>", TextRole::Plain),
                    CallKind::Syscall => ("=>", TextRole::Plain),
                    CallKind::Exception => ("?!", TextRole::Bad),
                    CallKind::Interrupt => ("!!", TextRole::Bad),
                };
                let hidden = match entry.hidden {
                    0 => String::new(),
                    1 => "  … 1 call deeper".into(),
                    more => format!("  … {} calls deeper", grouped(more.into())),
                };
                (format!("{sign} {}", shown.function(function)), times(entry, line) + &hidden, role)
            }
            (_, PathEntryKind::User) => (".. user code".into(), times(entry, line), TextRole::Plain),
            (_, PathEntryKind::Unattributed) => {
                (".. kernel code in no known function".into(), times(entry, line), TextRole::Plain)
            }
            (_, PathEntryKind::Idle) => (".. idle".into(), times(entry, line), TextRole::Plain),
            (_, PathEntryKind::Point(point)) => {
                (format!("== {}", shown.point(point)), repeated(line), TextRole::Plain)
            }
            (_, PathEntryKind::Operation) => {
                ("---- operation done ----".into(), repeated(line), TextRole::Head)
            }
            (_, PathEntryKind::RegionBegin(region)) => {
                (format!("---- region {} begins ----", shown.region(region)), String::new(), TextRole::Head)
            }
            (_, PathEntryKind::RegionEnd(region)) => {
                (format!("---- region {} ends ----", shown.region(region)), String::new(), TextRole::Head)
            }
            (_, PathEntryKind::Unwind(frames)) => {
                let calls = if frames == 1 { "call" } else { "calls" };
                (
                    format!("<< {} {calls} ended without a return", grouped(frames.into())),
                    repeated(line),
                    TextRole::Bad,
                )
            }
            (_, PathEntryKind::Gap) => ("---- not recorded ----".into(), String::new(), TextRole::Bad),
            (_, PathEntryKind::Turn) => {
                let text = format!("---- other CPUs' turn: {} ns ----", grouped(entry.total_ns));
                (text, repeated(line), TextRole::Head)
            }
            (_, PathEntryKind::Wake(thread)) => {
                (format!("== wakes up {}", shown.thread(thread)), repeated(line), TextRole::Head)
            }
            (_, PathEntryKind::Delay(ns)) => {
                (format!("== had waited {} ns for a CPU", grouped(ns)), repeated(line), TextRole::Head)
            }
            (_, PathEntryKind::Migrate { thread, from, to }) => {
                let text = format!("== {} goes from CPU {from} to CPU {to}", shown.thread(thread));
                (text, repeated(line), TextRole::Head)
            }
            (_, PathEntryKind::Signal(cpu)) => {
                (format!("== interrupts CPU {cpu}"), repeated(line), TextRole::Head)
            }
            (_, PathEntryKind::Lock { address, ns }) => {
                let text = format!("== had waited {} ns for the lock at {address:#x}", grouped(ns));
                (text, repeated(line), TextRole::Head)
            }
            (_, PathEntryKind::Away { switches, idle_ns, to }) => {
                (away(shown, line, entry, (switches, idle_ns, to)), String::new(), TextRole::Head)
            }
        };
        let time_ns = match line.kind {
            PathLineKind::GroupEnd => None,
            _ => entry.begin_ns.or(Some(shown.path.begin_ns)),
        };
        TextRow { time_ns, level: Some(line.level + self.groups), text, figures, role }
    }
}

fn away(
    shown: &PathView,
    line: &PathLine,
    entry: &PathEntry,
    (switches, idle_ns, to): (u64, u64, u32),
) -> String {
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

/// Returns ` ×16` for 16 repeats in a row.
fn repeated(line: &PathLine) -> String {
    if line.times > 1 {
        format!(" ×{}", grouped(line.times.into()))
    } else {
        String::new()
    }
}

/// Formats `(self, total)` times as in Figure 4, with `>` for lower bounds; for several repeats in
/// one line `×16 (avg net, total total, least..greatest)`.
fn times(entry: &PathEntry, line: &PathLine) -> String {
    let turns = repeated(line);
    let (net, total) = (average(&line.self_time, line.count), average(&line.total, line.count));
    let at_least = if entry.complete() { "" } else { ">" };
    let unit = DisplayUnit::for_largest(total);
    let mut figures = format!("{at_least}{} {}", unit.format(net), unit.name());
    if net != total {
        figures += &format!(", {at_least}{} total", unit.format(total));
    }
    if line.total.min != line.total.max {
        figures = format!("avg {figures}, {}", range(&line.total));
    }
    format!("{turns} ({figures})")
}

/// Formats `avg 22 ns, 21..23`, or the time alone if all are equal.
fn spread(times: &TimeSpread, count: u64) -> String {
    let avg = exact(average(times, count));
    if times.min == times.max {
        return avg;
    }
    format!("avg {avg}, {}", range(times))
}

fn range(times: &TimeSpread) -> String {
    let unit = DisplayUnit::for_largest(times.max);
    let name = if unit == DisplayUnit::Nanoseconds { String::new() } else { format!(" {}", unit.name()) };
    format!("{}..{}{name}", unit.format(times.min), unit.format(times.max))
}

/// Returns the mean, rounded to the nearest.
fn average(times: &TimeSpread, count: u64) -> u64 {
    let count = count.max(1);
    times.sum / count + u64::from(times.sum % count >= count.div_ceil(2))
}
