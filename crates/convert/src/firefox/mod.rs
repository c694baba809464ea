//! The [Firefox Profiler](https://profiler.firefox.com)'s processed profile, of a trace or of call
//! paths.
//!
//! Every interval without a change is one sample, with its length as weight. So the call tree
//! counts instructions (or nanoseconds) exactly where it says samples. Threads keep their names and
//! numbers. Interrupts are a thread of their own, because their time belongs to no thread. CPU
//! occupancy and regions are markers. The viewer only knows milliseconds, so the profile's
//! information says that a nanosecond is an instruction.

mod markers;
mod paths;

pub use paths::of_paths;

use crate::stacks::{function_name, lane_name, FigureUnit};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameHandle, FrameInfo, ProcessHandle,
    Profile, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};
use kerntune_analyze::timeline::{CpuActivity, CpuSlice, HolderSlice, TimelineLane, TimelineSink};
use kerntune_profile::{thread_name, FunctionIndex, PathKind, Tables};
use kerntune_trace::{EnterKind, Recording};
use markers::IntervalMarker;
use serde_json::{json, Value};
use std::collections::HashMap;

/// Description of a profile for the viewer.
#[derive(Debug, Clone, Copy)]
pub struct FirefoxMetadata<'a> {
    /// Title of the profile.
    pub title: &'a str,
    /// Program and version that wrote the profile.
    pub creator: &'a str,
    /// Unit of the weights.
    pub unit: FigureUnit,
    /// Time of recording, milliseconds since 1970.
    pub recorded_ms: f64,
    /// Part of the recording that was left out, if any.
    pub left_out: Option<&'a str>,
}

/// Categories of frames, which decide their colors.
#[derive(Clone, Copy)]
struct FrameCategories {
    kernel: CategoryHandle,
    user: CategoryHandle,
    interrupt: CategoryHandle,
    other: CategoryHandle,
}

impl FrameCategories {
    fn of(profile: &mut Profile) -> Self {
        let mut add = |name, color| profile.add_category(name, color);
        Self {
            kernel: add("Kernel", CategoryColor::Orange),
            user: add("User", CategoryColor::Green),
            interrupt: add("Interrupt", CategoryColor::Purple),
            other: add("Not attributed", CategoryColor::Gray),
        }
    }
}

/// Creates an empty profile.
fn begin(about: &FirefoxMetadata<'_>) -> Profile {
    let recorded = ReferenceTimestamp::from_millis_since_unix_epoch(about.recorded_ms);
    let mut profile = Profile::new(about.title, recorded, SamplingInterval::from_nanos(1000));
    profile.set_os_name("Linux");
    // Frames have names and no addresses to be symbolized.
    profile.set_symbolicated(true);
    profile
}

/// Converts the profile to JSON, and adds fields that the library does not support.
fn finish(profile: &Profile, about: &FirefoxMetadata<'_>) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(profile)?;
    let (unit, weights) = match about.unit {
        FigureUnit::Instructions => (
            "instructions: 1 ns of the time axis is one instruction",
            "a sample's weight is its number of instructions: \"samples\" in the call tree are instructions, exactly",
        ),
        FigureUnit::Nanoseconds => ("nanoseconds", "a sample's weight is its time: \"samples\" in the call tree are ns"),
        FigureUnit::Sampled(_) => ("samples of time", "a sample's weight is the number of samples that were taken there"),
    };
    let entry = |label: &str, value: &str| json!({ "label": label, "format": "string", "value": value });
    let mut entries =
        vec![entry("Unit", unit), entry("Weights", weights), entry("Written by", about.creator)];
    entries.extend(about.left_out.map(|text| entry("Left out", text)));
    if let Some(meta) = value.get_mut("meta") {
        // The library writes microseconds, but was given nanoseconds: intervals are shorter than
        // its unit.
        meta["sampleUnits"]["threadCPUDelta"] = json!("ns");
        meta["importedFrom"] = json!(about.creator);
        // The title is known only now, because it says how much is left out.
        meta["product"] = json!(about.title);
        meta["extra"] = json!([{ "label": "kerntune", "entries": entries }]);
    }
    Ok(value)
}

/// Converts a time in ns.
fn moment(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}

/// Splits a length into weights that fit into the library's integers.
fn weights(mut length: u64) -> impl Iterator<Item = i32> {
    std::iter::from_fn(move || {
        let part = i32::try_from(length).unwrap_or(i32::MAX);
        length -= part as u64;
        (part > 0).then_some(part)
    })
}

/// Limit of an interval in ns; a machine does not run for hours without an event.
const MAX_INTERVAL: u64 = 1 << 43;

/// Row of the viewer.
struct ThreadRow {
    handle: ThreadHandle,
    frames: HashMap<(PathKind, u32), FrameHandle>,
    /// Time that the thread ran since its last sample.
    since: u64,
}

/// Open function, and the stack that ends in it once it was needed.
#[derive(Clone, Copy)]
struct OpenCall {
    function: u32,
    how: EnterKind,
    stack: Option<StackHandle>,
}

/// Profile under construction, fed by a trace's timeline.
pub struct FirefoxTimeline<'a> {
    profile: Profile,
    tables: &'a Tables,
    recording: &'a Recording,
    /// First time in the trace; the viewer's time begins there.
    begin: Option<u64>,
    categories: FrameCategories,
    processes: HashMap<u32, ProcessHandle>,
    /// Rows by thread; the last one is for interrupts.
    rows: Vec<Option<ThreadRow>>,
    stacks: Vec<Vec<OpenCall>>,
    /// Row that ran last, and until when.
    last: Option<(usize, u64)>,
    cpus: Vec<ThreadHandle>,
    region_row: ThreadHandle,
    regions: Vec<(u32, u64)>,
    /// Maximum number of samples.
    max: u64,
    /// An interval was too long for samples.
    is_overlong: bool,
    /// Sum of all weights.
    pub total: u64,
    /// Number of samples.
    pub samples: u64,
}

impl<'a> FirefoxTimeline<'a> {
    /// Creates an empty profile. It takes at most `max` samples, because all of them are in
    /// memory.
    pub fn new(about: &FirefoxMetadata<'_>, tables: &'a Tables, recording: &'a Recording, max: u64) -> Self {
        let mut profile = begin(about);
        let categories = FrameCategories::of(&mut profile);
        let machine = profile.add_process("CPUs and regions", 0, moment(0));
        let mut row = |name: &str| {
            let thread = profile.add_thread(machine, 0, moment(0), false);
            profile.set_thread_name(thread, name);
            profile.set_thread_show_markers_in_timeline(thread, true);
            thread
        };
        let region_row = row("regions");
        let cpus = (0..recording.cpus.max(1)).map(|cpu| row(&format!("CPU {cpu}"))).collect();
        let threads = recording.threads.len() + 2;
        Self {
            profile,
            tables,
            recording,
            begin: None,
            categories,
            processes: HashMap::from([(u32::MAX, machine)]),
            rows: (0..=threads).map(|_| None).collect(),
            stacks: vec![Vec::new(); threads],
            last: None,
            cpus,
            region_row,
            regions: Vec::new(),
            max,
            is_overlong: false,
            total: 0,
            samples: 0,
        }
    }

    /// Returns the profile as JSON.
    ///
    /// # Errors
    /// A value that JSON cannot hold; no such case is known.
    pub fn finish(mut self, about: &FirefoxMetadata<'_>) -> serde_json::Result<Value> {
        if let Some((row, end)) = self.last.take() {
            self.pause(row, end);
        }
        finish(&self.profile, about)
    }

    fn moment(&mut self, at: u64) -> Timestamp {
        let begin = *self.begin.get_or_insert(at);
        moment(at.saturating_sub(begin))
    }

    /// Returns the row of a thread, or of interrupts, and creates it at first use.
    fn row(&mut self, row: usize) -> ThreadHandle {
        if let Some(Some(row)) = self.rows.get(row) {
            return row.handle;
        }
        let (recording, profile) = (self.recording, &mut self.profile);
        let machine = self.processes.get(&u32::MAX).copied();
        let (name, tid, tgid) = match recording.threads.get(row) {
            Some(thread) => (thread_name(&thread.comm), thread.pid, thread.tgid),
            None if row + 1 == self.rows.len() => (PathKind::Interrupt.stand_in().into(), 0, u32::MAX),
            None => ("[thread not known]".into(), 0, u32::MAX),
        };
        let process = *self.processes.entry(tgid).or_insert_with(|| {
            let leader = recording.threads.iter().find(|thread| thread.pid == tgid);
            let name = leader.map_or_else(|| name.clone(), |leader| thread_name(&leader.comm));
            profile.add_process(&name, tgid, moment(0))
        });
        let process = if tgid == u32::MAX { machine.unwrap_or(process) } else { process };
        let handle = profile.add_thread(process, tid, moment(0), false);
        profile.set_thread_name(handle, &name);
        self.rows[row] = Some(ThreadRow { handle, frames: HashMap::new(), since: 0 });
        handle
    }

    fn frame(&mut self, row: usize, kind: PathKind, function: u32, how: EnterKind) -> Option<FrameHandle> {
        let known = self.rows.get_mut(row)?.as_mut()?;
        let key = (kind, function);
        if let Some(frame) = known.frames.get(&key) {
            return Some(*frame);
        }
        let name = match kind {
            PathKind::Function => function_name(self.tables, FunctionIndex(function)),
            other => other.stand_in().to_owned(),
        };
        let of = &self.categories;
        let category = match kind {
            PathKind::User => of.user,
            PathKind::Function if self.recording.is_user(function) => of.user,
            PathKind::Function if how == EnterKind::Interrupt => of.interrupt,
            PathKind::Function => of.kernel,
            _ => of.other,
        };
        let frame = Frame::Label(self.profile.intern_string(&name));
        let info = FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() };
        let handle = self.profile.intern_frame(known.handle, info);
        known.frames.insert(key, handle);
        Some(handle)
    }

    /// Returns the stack that runs; for an interrupt only its own frames.
    fn stack(&mut self, thread: usize, row: usize, user: bool) -> Option<StackHandle> {
        let handle = self.row(row);
        let is_entry = |open: &OpenCall| open.how == EnterKind::Interrupt;
        let open = self.stacks.get(thread)?;
        let bottom = open.iter().rposition(is_entry).unwrap_or(0);
        let known = open[bottom..].iter().rposition(|open| open.stack.is_some()).map(|at| at + bottom);
        let mut stack = known.and_then(|at| open[at].stack);
        let from = known.map_or(bottom, |at| at + 1);
        for at in from..self.stacks[thread].len() {
            let OpenCall { function, how, .. } = self.stacks[thread][at];
            let frame = self.frame(row, PathKind::Function, function, how)?;
            let next = self.profile.intern_stack(handle, stack, frame);
            self.stacks[thread][at].stack = Some(next);
            stack = Some(next);
        }
        let is_bare = self.stacks[thread].is_empty();
        let kind = match (is_bare, user) {
            (true, true) => PathKind::User,
            (true, false) => PathKind::Unattributed,
            _ => return stack,
        };
        let frame = self.frame(row, kind, 0, EnterKind::Call)?;
        Some(self.profile.intern_stack(handle, stack, frame))
    }

    fn sample(&mut self, row: usize, at: u64, stack: Option<StackHandle>, length: u64) {
        let mut when = self.moment(at);
        let Some(Some(known)) = self.rows.get_mut(row) else { return };
        let parts: Vec<i32> = match length {
            0 => vec![0],
            length => weights(length).collect(),
        };
        let mut passed = 0;
        for weight in parts {
            let since = CpuDelta::from_micros(std::mem::replace(&mut known.since, weight as u64));
            self.profile.add_sample(known.handle, when, stack, since, weight);
            self.samples += 1;
            passed += weight as u64;
            when = moment((at + passed).saturating_sub(self.begin.unwrap_or(at)));
        }
        self.total = self.total.saturating_add(length);
    }

    /// Adds an empty stack at the time until which a row ran.
    fn pause(&mut self, row: usize, at: u64) {
        self.sample(row, at, None, 0);
    }
}

impl TimelineSink for FirefoxTimeline<'_> {
    fn is_full(&self) -> bool {
        self.is_overlong || self.samples >= self.max
    }

    fn enter(&mut self, _: u64, thread: u32, function: u32, how: EnterKind) {
        if let Some(stack) = self.stacks.get_mut(thread as usize) {
            stack.push(OpenCall { function, how, stack: None });
        }
    }

    fn exit(&mut self, _: u64, thread: u32) {
        if let Some(stack) = self.stacks.get_mut(thread as usize) {
            stack.pop();
        }
    }

    fn ran(&mut self, slice: HolderSlice, thread: u32) {
        if slice.end - slice.begin > MAX_INTERVAL {
            self.is_overlong = true;
            return;
        }
        let thread = thread as usize;
        let row = if slice.holder.lane == TimelineLane::Interrupt { self.rows.len() - 1 } else { thread };
        if let Some((last, end)) = self.last.filter(|last| *last != (row, slice.begin)) {
            self.pause(last, end);
        }
        let stack = self.stack(thread, row, slice.holder.user);
        self.sample(row, slice.begin, stack, slice.end - slice.begin);
        self.last = Some((row, slice.end));
    }

    fn cpu(&mut self, cpu: u32, slice: CpuSlice) {
        let name = match (slice.state.doing, slice.state.holder.lane) {
            (CpuActivity::Halted, _) | (_, TimelineLane::Idle) => "halted".into(),
            (CpuActivity::Waits, _) => "another CPU's turn".into(),
            (_, lane) => lane_name(self.recording, lane),
        };
        let name = if slice.state.holder.user { format!("{name} (user)") } else { name.into_owned() };
        let (begin, end) = (self.moment(slice.begin), self.moment(slice.end));
        if let Some(row) = self.cpus.get(cpu as usize) {
            IntervalMarker::add(&mut self.profile, *row, &name, begin, end);
        }
    }

    fn region_begun(&mut self, at: u64, region: u32) {
        self.moment(at);
        self.regions.push((region, at));
    }

    fn region_ended(&mut self, at: u64, _: u32) {
        let Some((region, begun)) = self.regions.pop() else { return };
        let name = self.recording.regions.get(region as usize).map_or("", |region| region.name.as_str());
        let (begin, end) = (self.moment(begun), self.moment(at));
        IntervalMarker::add(&mut self.profile, self.region_row, name, begin, end);
    }
}

#[cfg(test)]
mod tests;
