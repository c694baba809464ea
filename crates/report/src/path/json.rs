//! The path as JSON (`docs/json.md`): entries within entries.

use super::Shown;
use crate::unit::Measure;
use crate::Result;
use kerntune_analyze::path::{Entry, EntryKind, Line, LineKind, Stretch, ThreadPath};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::cell::Cell;

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-path/3";

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    profile: &'a str,
    unit: &'static str,
    selected: &'a str,
    begin_ns: u64,
    end_ns: u64,
    #[serde(rename = "busy")]
    busy_ns: u64,
    #[serde(rename = "interrupt")]
    interrupt_ns: u64,
    #[serde(rename = "user")]
    user_ns: u64,
    #[serde(rename = "unattributed")]
    unattributed_ns: u64,
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
    entries: Entries<'a>,
}

/// The path as one JSON document with a newline at its end. It is written without spaces:
/// indentation would be most of it.
pub fn json(shown: &Shown) -> Result<String> {
    let path = shown.path;
    let totals = &path.totals;
    let document = Json {
        schema: SCHEMA,
        profile: &shown.profile.manifest.id,
        unit: Measure::of(shown.profile).word(),
        selected: shown.title,
        begin_ns: path.begin_ns,
        end_ns: path.end_ns,
        busy_ns: totals.busy_ns,
        interrupt_ns: totals.interrupt_ns,
        user_ns: totals.user_ns,
        unattributed_ns: totals.unattributed_ns,
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

fn stretch(stretch: &Stretch) -> JsonStretch {
    let &Stretch { thread, begin_ns, end_ns, switches, idle_ns, gap } = stretch;
    JsonStretch { thread, begin_ns, end_ns, switches, idle_ns, gap }
}

fn of_thread<'a>(shown: &'a Shown, thread: &'a ThreadPath) -> JsonThread<'a> {
    let known = shown.recording.threads.get(thread.thread as usize);
    JsonThread {
        thread: thread.thread,
        pid: known.map(|known| known.pid),
        tgid: known.map(|known| known.tgid),
        comm: known.map(|known| known.comm.as_str()),
        entries: Entries { shown, thread, lines: shown.lines(thread), next: Cell::new(0) },
    }
}

/// A thread's lines, of which each is written when its turn comes.
struct Entries<'a> {
    shown: &'a Shown<'a>,
    thread: &'a ThreadPath,
    lines: Vec<Line>,
    next: Cell<usize>,
}

impl Entries<'_> {
    /// The next line, if it is of `level` or deeper and its group has not ended.
    fn peek(&self, level: u32) -> Option<(&Line, &Entry)> {
        let line = self.lines.get(self.next.get())?;
        let entry = self.thread.entries.get(line.entry as usize)?;
        (line.kind != LineKind::GroupEnd && line.level >= level).then_some((line, entry))
    }

    fn pass(&self) {
        self.next.set(self.next.get() + 1);
    }
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Siblings(self, 0).serialize(serializer)
    }
}

/// What follows, as deep as this.
struct Siblings<'a>(&'a Entries<'a>, u32);

impl Serialize for Siblings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Siblings(entries, level) = self;
        let mut all = serializer.serialize_seq(None)?;
        while entries.peek(*level).is_some() {
            all.serialize_element(&One(entries, *level))?;
        }
        all.end()
    }
}

/// The next line with all that it contains.
struct One<'a>(&'a Entries<'a>, u32);

impl Serialize for One<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let One(entries, level) = *self;
        let mut map = serializer.serialize_map(None)?;
        let Some((line, entry)) = entries.peek(level) else { return map.end() };
        entries.pass();
        if line.kind == LineKind::Group {
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
        for (name, spread) in [("self", line.net), ("total", line.total)] {
            map.serialize_entry(name, &spread.sum)?;
        }
        map.serialize_entry("total_min", &line.total.min)?;
        map.serialize_entry("total_max", &line.total.max)?;
        let inside = if line.kind == LineKind::Group { line.level } else { line.level + 1 };
        map.serialize_entry("children", &Siblings(entries, inside))?;
        if line.kind == LineKind::Group {
            entries.pass();
        }
        map.end()
    }
}

/// What an entry is.
fn about<M: SerializeMap>(map: &mut M, shown: &Shown, entry: &Entry) -> Result<(), M::Error> {
    match entry.kind {
        EntryKind::Call { function, how } => {
            let symbol = shown.profile.tables.symbols.get(function.get() as usize);
            map.serialize_entry("kind", how.word())?;
            map.serialize_entry("function", shown.profile.tables.name(function))?;
            map.serialize_entry("file", &symbol.and_then(|symbol| symbol.file.as_deref()))?;
            map.serialize_entry("module", &symbol.and_then(|symbol| symbol.module.as_deref()))
        }
        EntryKind::User => map.serialize_entry("kind", "user"),
        EntryKind::Unattributed => map.serialize_entry("kind", "unattributed"),
        EntryKind::Idle => map.serialize_entry("kind", "idle"),
        EntryKind::Point(point) => {
            map.serialize_entry("kind", "point")?;
            map.serialize_entry("point", &shown.point(point))
        }
        EntryKind::Operation => map.serialize_entry("kind", "operation"),
        EntryKind::RegionBegin(region) => {
            map.serialize_entry("kind", "region-begin")?;
            map.serialize_entry("region", &shown.region(region))
        }
        EntryKind::RegionEnd(region) => {
            map.serialize_entry("kind", "region-end")?;
            map.serialize_entry("region", &shown.region(region))
        }
        EntryKind::Unwind(frames) => {
            map.serialize_entry("kind", "unwind")?;
            map.serialize_entry("frames", &frames)
        }
        EntryKind::Away { switches, idle_ns, to } => {
            map.serialize_entry("kind", "away")?;
            map.serialize_entry("switches", &switches)?;
            map.serialize_entry("idle_ns", &idle_ns)?;
            map.serialize_entry("to", &to)
        }
        EntryKind::Turn => map.serialize_entry("kind", "turn"),
        EntryKind::Wake(thread) => {
            map.serialize_entry("kind", "wake")?;
            map.serialize_entry("thread", &thread)
        }
        EntryKind::Delay(ns) => {
            map.serialize_entry("kind", "delay")?;
            map.serialize_entry("ns", &ns)
        }
        EntryKind::Migrate { thread, from, to } => {
            map.serialize_entry("kind", "migrate")?;
            map.serialize_entry("thread", &thread)?;
            map.serialize_entry("from", &from)?;
            map.serialize_entry("to", &to)
        }
        EntryKind::Signal(cpu) => {
            map.serialize_entry("kind", "signal")?;
            map.serialize_entry("cpu", &cpu)
        }
        EntryKind::Lock { address, ns } => {
            map.serialize_entry("kind", "lock")?;
            map.serialize_entry("address", &format!("{address:#x}"))?;
            map.serialize_entry("ns", &ns)
        }
        EntryKind::Gap => map.serialize_entry("kind", "gap"),
    }
}
