//! JSON document of a code path (`docs/json.md`): nested entries.

use super::PathView;
use crate::unit::TickUnit;
use crate::Result;
use kerntune_analyze::path::{PathEntry, PathEntryKind, PathLine, PathLineKind, ThreadPath, ThreadStretch};
use kerntune_table::{Columns, ToValue, Value};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::cell::Cell;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-path/3";

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
    Ok(serde_json::to_string(&PathReport(shown))? + "\n")
}

/// JSON document of this report; [`SCHEMA`] names its version. Entries of a path are serialized one
/// by one: a [`kerntune_table::Document`] would hold a copy of all of them.
struct PathReport<'a>(&'a PathView<'a>);

impl Serialize for PathReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (shown, path, totals) = (self.0, self.0.path, &self.0.path.totals);
        let mut map = serializer.serialize_map(None)?;
        for (key, text) in [
            ("schema", SCHEMA),
            ("profile", &shown.profile.manifest.id),
            ("unit", TickUnit::of(shown.profile).name()),
            ("selected", shown.title),
        ] {
            map.serialize_entry(key, text)?;
        }
        for (key, count) in [
            ("begin_ns", path.begin_ns),
            ("end_ns", path.end_ns),
            ("busy", totals.busy_ticks),
            ("interrupt", totals.interrupt_ns),
            ("user", totals.user_ticks),
            ("unattributed", totals.unattributed_ticks),
            ("idle_ns", totals.idle_ns),
            ("calls", totals.calls),
            ("interrupts", totals.interrupts),
            ("exceptions", totals.exceptions),
            ("syscalls", totals.syscalls),
            ("switches", totals.switches),
            ("depth", totals.depth),
            ("taken_branches", totals.weights.taken_branches),
            ("l1i_misses", totals.weights.l1i_misses),
            ("itlb_misses", totals.weights.itlb_misses),
            ("more", path.more),
            ("hidden", path.hidden),
        ] {
            map.serialize_entry(key, &count)?;
        }
        map.serialize_entry("stretches", &path.stretches.iter().map(stretch).collect::<Vec<_>>())?;
        let threads = path.threads.iter().map(|thread| of_thread(shown, thread));
        map.serialize_entry("threads", &threads.collect::<Vec<_>>())?;
        map.end()
    }
}

fn stretch(of: &ThreadStretch) -> Value {
    let mut columns = Columns::<ThreadStretch>::new();
    columns.add("thread", "", |of| of.thread);
    columns.add("begin_ns", "", |of| of.begin_ns);
    columns.add("end_ns", "", |of| of.end_ns);
    columns.add("switches", "", |of| of.switches);
    columns.add("idle_ns", "", |of| of.idle_ns);
    columns.add("gap", "", |of| of.gap);
    columns.to_record(of)
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
            let (kind, members) = about(entries.shown, entry);
            map.serialize_entry("kind", kind)?;
            members.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
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

/// Returns the kind of an entry, and what JSON says of that kind.
fn about(shown: &PathView, entry: &PathEntry) -> (&'static str, Vec<(&'static str, Value)>) {
    match entry.kind {
        PathEntryKind::Call { function, how } => {
            let tables = &shown.profile.tables;
            let symbol = tables.symbols.get(function.get() as usize);
            let file = symbol.and_then(|symbol| symbol.file.as_deref());
            let module = symbol.and_then(|symbol| symbol.module.as_deref());
            let name = tables.name(function).to_value();
            (how.as_str(), vec![("function", name), ("file", file.to_value()), ("module", module.to_value())])
        }
        PathEntryKind::User => ("user", vec![]),
        PathEntryKind::Unattributed => ("unattributed", vec![]),
        PathEntryKind::Idle => ("idle", vec![]),
        PathEntryKind::Point(point) => ("point", vec![("point", shown.point(point).to_value())]),
        PathEntryKind::Operation => ("operation", vec![]),
        PathEntryKind::RegionBegin(region) => {
            ("region-begin", vec![("region", shown.region(region).to_value())])
        }
        PathEntryKind::RegionEnd(region) => ("region-end", vec![("region", shown.region(region).to_value())]),
        PathEntryKind::Unwind(frames) => ("unwind", vec![("frames", frames.to_value())]),
        PathEntryKind::Away { switches, idle_ns, to } => {
            let idle = ("idle_ns", idle_ns.to_value());
            ("away", vec![("switches", switches.to_value()), idle, ("to", to.to_value())])
        }
        PathEntryKind::Turn => ("turn", vec![]),
        PathEntryKind::Wake(thread) => ("wake", vec![("thread", thread.to_value())]),
        PathEntryKind::Delay(ns) => ("delay", vec![("ns", ns.to_value())]),
        PathEntryKind::Migrate { thread, from, to } => {
            let ends = [("from", from.to_value()), ("to", to.to_value())];
            ("migrate", [("thread", thread.to_value())].into_iter().chain(ends).collect())
        }
        PathEntryKind::Signal(cpu) => ("signal", vec![("cpu", cpu.to_value())]),
        PathEntryKind::Lock { address, ns } => {
            ("lock", vec![("address", format!("{address:#x}").to_value()), ("ns", ns.to_value())])
        }
        PathEntryKind::Gap => ("gap", vec![]),
    }
}
