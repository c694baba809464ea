//! JSON document of a code path (`docs/json.md`): nested entries.

use super::PathView;
use crate::unit::TickUnit;
use crate::Result;
use kerntune_analyze::path::{PathEntry, PathEntryKind, PathLine, PathLineKind, ThreadPath, ThreadStretch};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::cell::Cell;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-path/3";

/// JSON document of this report; [`SCHEMA`] names its version.
#[derive(Serialize)]
struct PathReport<'a> {
    schema: &'static str,
    profile: &'a str,
    unit: &'static str,
    selected: &'a str,
    begin_ns: u64,
    end_ns: u64,
    #[serde(rename = "busy")]
    busy_ticks: u64,
    #[serde(rename = "interrupt")]
    interrupt_ns: u64,
    #[serde(rename = "user")]
    user_ticks: u64,
    #[serde(rename = "unattributed")]
    unattributed_ticks: u64,
    idle_ns: u64,
    calls: u64,
    interrupts: u64,
    exceptions: u64,
    syscalls: u64,
    switches: u64,
    depth: u64,
    taken_branches: u64,
    l1i_misses: u64,
    itlb_misses: u64,
    more: u64,
    hidden: u64,
    stretches: Vec<JsonStretch>,
    threads: Vec<JsonThread<'a>>,
}

#[derive(Serialize)]
struct JsonStretch {
    thread: u32,
    begin_ns: u64,
    end_ns: u64,
    switches: u64,
    idle_ns: u64,
    gap: bool,
}

#[derive(Serialize)]
struct JsonThread<'a> {
    thread: u32,
    pid: Option<u32>,
    tgid: Option<u32>,
    comm: Option<&'a str>,
    entries: ThreadEntries<'a>,
}

/// Renders one JSON document with a newline at its end. It has no indentation, which would be most
/// of its size.
pub fn json(shown: &PathView) -> Result<String> {
    let path = shown.path;
    let totals = &path.totals;
    let document = PathReport {
        schema: SCHEMA,
        profile: &shown.profile.manifest.id,
        unit: TickUnit::of(shown.profile).name(),
        selected: shown.title,
        begin_ns: path.begin_ns,
        end_ns: path.end_ns,
        busy_ticks: totals.busy_ticks,
        interrupt_ns: totals.interrupt_ns,
        user_ticks: totals.user_ticks,
        unattributed_ticks: totals.unattributed_ticks,
        idle_ns: totals.idle_ns,
        calls: totals.calls,
        interrupts: totals.interrupts,
        exceptions: totals.exceptions,
        syscalls: totals.syscalls,
        switches: totals.switches,
        depth: totals.depth,
        taken_branches: totals.weights.taken_branches,
        l1i_misses: totals.weights.l1i_misses,
        itlb_misses: totals.weights.itlb_misses,
        more: path.more,
        hidden: path.hidden,
        stretches: path.stretches.iter().map(stretch).collect(),
        threads: path.threads.iter().map(|thread| of_thread(shown, thread)).collect(),
    };
    Ok(serde_json::to_string(&document)? + "\n")
}

fn stretch(stretch: &ThreadStretch) -> JsonStretch {
    let &ThreadStretch { thread, begin_ns, end_ns, switches, idle_ns, gap } = stretch;
    JsonStretch { thread, begin_ns, end_ns, switches, idle_ns, gap }
}

fn of_thread<'a>(shown: &'a PathView, thread: &'a ThreadPath) -> JsonThread<'a> {
    let known = shown.recording.threads.get(thread.thread as usize);
    JsonThread {
        thread: thread.thread,
        pid: known.map(|known| known.pid),
        tgid: known.map(|known| known.tgid),
        comm: known.map(|known| known.comm.as_str()),
        entries: ThreadEntries { shown, thread, lines: shown.lines(thread), next: Cell::new(0) },
    }
}

/// Lines of a thread, serialized lazily in order.
struct ThreadEntries<'a> {
    shown: &'a PathView<'a>,
    thread: &'a ThreadPath,
    lines: Vec<PathLine>,
    next: Cell<usize>,
}

impl ThreadEntries<'_> {
    /// Returns the next line, if it is at `level` or deeper and its group has not ended.
    fn peek(&self, level: u32) -> Option<(&PathLine, &PathEntry)> {
        let line = self.lines.get(self.next.get())?;
        let entry = self.thread.entries.get(line.entry as usize)?;
        (line.kind != PathLineKind::GroupEnd && line.level >= level).then_some((line, entry))
    }

    fn pass(&self) {
        self.next.set(self.next.get() + 1);
    }
}

impl Serialize for ThreadEntries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SiblingEntries(self, 0).serialize(serializer)
    }
}

/// Following entries of one level.
struct SiblingEntries<'a>(&'a ThreadEntries<'a>, u32);

impl Serialize for SiblingEntries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SiblingEntries(entries, level) = self;
        let mut all = serializer.serialize_seq(None)?;
        while entries.peek(*level).is_some() {
            all.serialize_element(&EntryTree(entries, *level))?;
        }
        all.end()
    }
}

/// Next line with all that it contains.
struct EntryTree<'a>(&'a ThreadEntries<'a>, u32);

impl Serialize for EntryTree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let EntryTree(entries, level) = *self;
        let mut map = serializer.serialize_map(None)?;
        let Some((line, entry)) = entries.peek(level) else { return map.end() };
        entries.pass();
        if line.kind == PathLineKind::Group {
            map.serialize_entry("kind", "repeat")?;
        } else {
            about(&mut map, entries.shown, entry)?;
            map.serialize_entry("begin_ns", &entry.begin_ns)?;
            map.serialize_entry("end_ns", &entry.end_ns)?;
            map.serialize_entry("complete", &entry.complete())?;
            map.serialize_entry("hidden", &entry.hidden)?;
        }
        map.serialize_entry("times", &line.times)?;
        map.serialize_entry("count", &line.count)?;
        for (name, spread) in [("self", line.self_time), ("total", line.total)] {
            map.serialize_entry(name, &spread.sum)?;
        }
        map.serialize_entry("total_min", &line.total.min)?;
        map.serialize_entry("total_max", &line.total.max)?;
        let inside = if line.kind == PathLineKind::Group { line.level } else { line.level + 1 };
        map.serialize_entry("children", &SiblingEntries(entries, inside))?;
        if line.kind == PathLineKind::Group {
            entries.pass();
        }
        map.end()
    }
}

/// Serializes the description of an entry.
fn about<M: SerializeMap>(map: &mut M, shown: &PathView, entry: &PathEntry) -> Result<(), M::Error> {
    match entry.kind {
        PathEntryKind::Call { function, how } => {
            let symbol = shown.profile.tables.symbols.get(function.get() as usize);
            map.serialize_entry("kind", how.as_str())?;
            map.serialize_entry("function", shown.profile.tables.name(function))?;
            map.serialize_entry("file", &symbol.and_then(|symbol| symbol.file.as_deref()))?;
            map.serialize_entry("module", &symbol.and_then(|symbol| symbol.module.as_deref()))
        }
        PathEntryKind::User => map.serialize_entry("kind", "user"),
        PathEntryKind::Unattributed => map.serialize_entry("kind", "unattributed"),
        PathEntryKind::Idle => map.serialize_entry("kind", "idle"),
        PathEntryKind::Point(point) => {
            map.serialize_entry("kind", "point")?;
            map.serialize_entry("point", &shown.point(point))
        }
        PathEntryKind::Operation => map.serialize_entry("kind", "operation"),
        PathEntryKind::RegionBegin(region) => {
            map.serialize_entry("kind", "region-begin")?;
            map.serialize_entry("region", &shown.region(region))
        }
        PathEntryKind::RegionEnd(region) => {
            map.serialize_entry("kind", "region-end")?;
            map.serialize_entry("region", &shown.region(region))
        }
        PathEntryKind::Unwind(frames) => {
            map.serialize_entry("kind", "unwind")?;
            map.serialize_entry("frames", &frames)
        }
        PathEntryKind::Away { switches, idle_ns, to } => {
            map.serialize_entry("kind", "away")?;
            map.serialize_entry("switches", &switches)?;
            map.serialize_entry("idle_ns", &idle_ns)?;
            map.serialize_entry("to", &to)
        }
        PathEntryKind::Turn => map.serialize_entry("kind", "turn"),
        PathEntryKind::Wake(thread) => {
            map.serialize_entry("kind", "wake")?;
            map.serialize_entry("thread", &thread)
        }
        PathEntryKind::Delay(ns) => {
            map.serialize_entry("kind", "delay")?;
            map.serialize_entry("ns", &ns)
        }
        PathEntryKind::Migrate { thread, from, to } => {
            map.serialize_entry("kind", "migrate")?;
            map.serialize_entry("thread", &thread)?;
            map.serialize_entry("from", &from)?;
            map.serialize_entry("to", &to)
        }
        PathEntryKind::Signal(cpu) => {
            map.serialize_entry("kind", "signal")?;
            map.serialize_entry("cpu", &cpu)
        }
        PathEntryKind::Lock { address, ns } => {
            map.serialize_entry("kind", "lock")?;
            map.serialize_entry("address", &format!("{address:#x}"))?;
            map.serialize_entry("ns", &ns)
        }
        PathEntryKind::Gap => map.serialize_entry("kind", "gap"),
    }
}
