//! The [Firefox Profiler](https://profiler.firefox.com)'s processed profile: what every thread did when, or call paths.
//!
//! Every interval in which nothing changes is one sample whose weight is its length: the call tree counts instructions (or
//! nanoseconds) where it says samples, exactly. Threads keep their names and numbers. Interrupts are a thread of their own, as
//! they are nobody's time; what each CPU did and the regions are markers. The viewer knows milliseconds alone, so the profile's
//! information says that a nanosecond is an instruction.

mod markers;
mod paths;

pub use paths::of_paths;

use crate::stacks::{function_name, lane_name, Unit};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameHandle, FrameInfo, ProcessHandle,
    Profile, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};
use kerntune_analyze::timeline::{CpuSlice, Doing, Lane, Sink, Slice};
use kerntune_profile::{thread_name, FunctionIndex, PathKind, Tables};
use kerntune_trace::{How, Recording};
use markers::Stretch;
use serde_json::{json, Value};
use std::collections::HashMap;

/// What a profile says of itself.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// What it is of.
    pub title: &'a str,
    /// Who wrote it.
    pub creator: &'a str,
    /// What weights count.
    pub unit: Unit,
    /// When it was recorded, milliseconds since 1970.
    pub recorded_ms: f64,
    /// What was left out, if anything.
    pub left_out: Option<&'a str>,
}

/// The colours of frames.
#[derive(Clone, Copy)]
struct Categories {
    kernel: CategoryHandle,
    user: CategoryHandle,
    interrupt: CategoryHandle,
    other: CategoryHandle,
}

impl Categories {
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

/// An empty profile.
fn begin(about: &About<'_>) -> Profile {
    let recorded = ReferenceTimestamp::from_millis_since_unix_epoch(about.recorded_ms);
    let mut profile = Profile::new(about.title, recorded, SamplingInterval::from_nanos(1000));
    profile.set_os_name("Linux");
    // Names are all that there is.
    profile.set_symbolicated(true);
    profile
}

/// The profile as JSON, with what the library has no place for.
fn finish(profile: &Profile, about: &About<'_>) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(profile)?;
    let (unit, weights) = match about.unit {
        Unit::Instructions => (
            "instructions: 1 ns of the time axis is one instruction",
            "a sample's weight is its number of instructions: \"samples\" in the call tree are instructions, exactly",
        ),
        Unit::Nanoseconds => ("nanoseconds", "a sample's weight is its time: \"samples\" in the call tree are ns"),
        Unit::Sampled(_) => ("samples of time", "a sample's weight is the number of samples that were taken there"),
    };
    let entry = |label: &str, value: &str| json!({ "label": label, "format": "string", "value": value });
    let mut entries =
        vec![entry("Unit", unit), entry("Weights", weights), entry("Written by", about.creator)];
    entries.extend(about.left_out.map(|text| entry("Left out", text)));
    if let Some(meta) = value.get_mut("meta") {
        // What the library writes as microseconds was handed to it as nanoseconds: intervals are shorter than its unit.
        meta["sampleUnits"]["threadCPUDelta"] = json!("ns");
        meta["importedFrom"] = json!(about.creator);
        // How much is left out is known at the end.
        meta["product"] = json!(about.title);
        meta["extra"] = json!([{ "label": "kerntune", "entries": entries }]);
    }
    Ok(value)
}

/// A moment, ns.
fn moment(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}

/// Lengths that are summed without a fraction: the library's weights are no longer.
fn weights(mut length: u64) -> impl Iterator<Item = i32> {
    std::iter::from_fn(move || {
        let part = i32::try_from(length).unwrap_or(i32::MAX);
        length -= part as u64;
        (part > 0).then_some(part)
    })
}

/// More than this at one go is no time that a machine ran without an event, ns: hours.
const LONGEST: u64 = 1 << 43;

/// A row of the viewer.
struct Row {
    handle: ThreadHandle,
    frames: HashMap<(PathKind, u32), FrameHandle>,
    /// Time that it ran since its last sample.
    since: u64,
}

/// An open function, and the stack that ends in it once that was asked for.
#[derive(Clone, Copy)]
struct Open {
    function: u32,
    how: How,
    stack: Option<StackHandle>,
}

/// Makes a profile of what a trace tells.
pub struct Timeline<'a> {
    profile: Profile,
    tables: &'a Tables,
    recording: &'a Recording,
    /// Of the first instant: the viewer's time begins there.
    begin: Option<u64>,
    categories: Categories,
    processes: HashMap<u32, ProcessHandle>,
    /// By thread; the one after those that are not named is that of interrupts.
    rows: Vec<Option<Row>>,
    stacks: Vec<Vec<Open>>,
    /// Who has run last, and until when.
    last: Option<(usize, u64)>,
    cpus: Vec<ThreadHandle>,
    region_row: ThreadHandle,
    regions: Vec<(u32, u64)>,
    /// It takes no more when there are so many samples.
    most: u64,
    /// An interval was too long for samples.
    is_overlong: bool,
    /// Sum of all weights.
    pub total: u64,
    /// Number of samples.
    pub samples: u64,
}

impl<'a> Timeline<'a> {
    /// One of nothing yet, which takes no more when it has `most` samples: all of them are in memory.
    pub fn new(about: &About<'_>, tables: &'a Tables, recording: &'a Recording, most: u64) -> Self {
        let mut profile = begin(about);
        let categories = Categories::of(&mut profile);
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
            most,
            is_overlong: false,
            total: 0,
            samples: 0,
        }
    }

    /// The profile as JSON.
    ///
    /// # Errors
    /// None that is known: what a JSON value cannot hold.
    pub fn finish(mut self, about: &About<'_>) -> serde_json::Result<Value> {
        if let Some((row, end)) = self.last.take() {
            self.pause(row, end);
        }
        finish(&self.profile, about)
    }

    fn moment(&mut self, at: u64) -> Timestamp {
        let begin = *self.begin.get_or_insert(at);
        moment(at.saturating_sub(begin))
    }

    /// The row of a thread, or of interrupts.
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
        self.rows[row] = Some(Row { handle, frames: HashMap::new(), since: 0 });
        handle
    }

    fn frame(&mut self, row: usize, kind: PathKind, function: u32, how: How) -> Option<FrameHandle> {
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
            PathKind::Function if function > self.recording.kernel_functions => of.user,
            PathKind::Function if how == How::Interrupt => of.interrupt,
            PathKind::Function => of.kernel,
            _ => of.other,
        };
        let frame = Frame::Label(self.profile.intern_string(&name));
        let info = FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() };
        let handle = self.profile.intern_frame(known.handle, info);
        known.frames.insert(key, handle);
        Some(handle)
    }

    /// The stack of what runs: of an interrupt only what is above it.
    fn stack(&mut self, thread: usize, row: usize, user: bool) -> Option<StackHandle> {
        let handle = self.row(row);
        let is_entry = |open: &Open| open.how == How::Interrupt;
        let open = self.stacks.get(thread)?;
        let bottom = open.iter().rposition(is_entry).unwrap_or(0);
        let known = open[bottom..].iter().rposition(|open| open.stack.is_some()).map(|at| at + bottom);
        let mut stack = known.and_then(|at| open[at].stack);
        let from = known.map_or(bottom, |at| at + 1);
        for at in from..self.stacks[thread].len() {
            let Open { function, how, .. } = self.stacks[thread][at];
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
        let frame = self.frame(row, kind, 0, How::Call)?;
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

    /// A row ran until then: from there on it has no stack.
    fn pause(&mut self, row: usize, at: u64) {
        self.sample(row, at, None, 0);
    }
}

impl Sink for Timeline<'_> {
    fn is_full(&self) -> bool {
        self.is_overlong || self.samples >= self.most
    }

    fn enter(&mut self, _: u64, thread: u32, function: u32, how: How) {
        if let Some(stack) = self.stacks.get_mut(thread as usize) {
            stack.push(Open { function, how, stack: None });
        }
    }

    fn exit(&mut self, _: u64, thread: u32) {
        if let Some(stack) = self.stacks.get_mut(thread as usize) {
            stack.pop();
        }
    }

    fn ran(&mut self, slice: Slice, thread: u32) {
        if slice.end - slice.begin > LONGEST {
            self.is_overlong = true;
            return;
        }
        let thread = thread as usize;
        let row = if slice.holder.lane == Lane::Interrupt { self.rows.len() - 1 } else { thread };
        if let Some((last, end)) = self.last.filter(|last| *last != (row, slice.begin)) {
            self.pause(last, end);
        }
        let stack = self.stack(thread, row, slice.holder.user);
        self.sample(row, slice.begin, stack, slice.end - slice.begin);
        self.last = Some((row, slice.end));
    }

    fn cpu(&mut self, cpu: u32, slice: CpuSlice) {
        let name = match (slice.state.doing, slice.state.holder.lane) {
            (Doing::Halted, _) | (_, Lane::Idle) => "halted".into(),
            (Doing::Waits, _) => "another CPU's turn".into(),
            (_, lane) => lane_name(self.recording, lane),
        };
        let name = if slice.state.holder.user { format!("{name} (user)") } else { name.into_owned() };
        let (begin, end) = (self.moment(slice.begin), self.moment(slice.end));
        if let Some(row) = self.cpus.get(cpu as usize) {
            Stretch::add(&mut self.profile, *row, &name, begin, end);
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
        Stretch::add(&mut self.profile, self.region_row, name, begin, end);
    }
}

#[cfg(test)]
mod tests;
