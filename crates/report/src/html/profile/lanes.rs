//! Lanes of the timeline, and the lane of each thread.

use super::TraceTimeline;
use kerntune_analyze::timeline::{CpuHolder, TimelineLane};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Number of threads with a lane of their own; the others share one.
const MAX_THREAD_LANES: usize = 30;

#[derive(Serialize)]
pub(super) struct LaneData {
    name: String,
    /// `thread`, `interrupt`, `idle`, `others`; with several CPUs also `task`, an idle task.
    kind: &'static str,
    pid: u32,
}

/// Assignment of threads to the timeline's lanes.
pub(super) struct TimelineLanes {
    pub data: Vec<LaneData>,
    /// Number of CPUs.
    pub cpus: usize,
    /// Thread numbers of the idle tasks.
    idle_tasks: BTreeSet<u32>,
    of: HashMap<TimelineLane, u32>,
    others: u32,
}

impl TimelineLanes {
    pub fn new(timeline: &TraceTimeline<'_>) -> Self {
        let mut time: BTreeMap<u32, u64> = BTreeMap::new();
        for bin in &timeline.overview.bins {
            if let TimelineLane::Thread(thread) = bin.holder.lane {
                *time.entry(thread).or_default() += bin.ns;
            }
        }
        let mut threads: Vec<(u32, u64)> = time.into_iter().collect();
        threads.sort_by_key(|&(thread, ns)| (std::cmp::Reverse(ns), thread));
        let idle_tasks = timeline.recording.threads.iter().zip(0..).filter(|(thread, _)| thread.pid == 0);
        let mut out = Self {
            data: Vec::new(),
            cpus: timeline.overview.cpu_slices.len().max(1),
            idle_tasks: idle_tasks.map(|(_, number)| number).collect(),
            of: HashMap::new(),
            others: 0,
        };
        let mut count = 0;
        for &(number, _) in &threads {
            match timeline.recording.threads.get(number as usize) {
                // The idle task has its lane below.
                Some(thread) if thread.pid == 0 => {}
                Some(thread) if out.data.len() < MAX_THREAD_LANES => {
                    out.push(TimelineLane::Thread(number), &thread.comm, "thread", thread.pid);
                }
                _ => count += 1,
            }
        }
        out.others = out.data.len() as u32;
        if count > 0 {
            out.push(TimelineLane::Unknown, &format!("{count} other threads"), "others", 0);
        }
        out.push(TimelineLane::Interrupt, "interrupts", "interrupt", 0);
        let idle = out.data.len() as u32;
        out.push(TimelineLane::Idle, "idle", "idle", 0);
        out.of.extend(out.idle_tasks.iter().map(|&number| (TimelineLane::Thread(number), idle)));
        if count == 0 {
            // Nothing should need this; anything that does is shown with the interrupts.
            out.others = idle - 1;
        }
        if out.cpus > 1 {
            out.part_idle_tasks(timeline, &threads);
        }
        out
    }

    /// Gives each CPU's idle task a lane of its own: their calls would overlap in one.
    fn part_idle_tasks(&mut self, timeline: &TraceTimeline<'_>, threads: &[(u32, u64)]) {
        let mut tasks: Vec<u32> = threads.iter().map(|(number, _)| *number).collect();
        tasks.retain(|number| self.idle_tasks.contains(number));
        tasks.sort_unstable();
        for number in tasks {
            let name = timeline.recording.threads.get(number as usize).map_or("", |thread| &thread.comm);
            self.push(TimelineLane::Thread(number), name, "task", 0);
        }
    }

    fn push(&mut self, lane: TimelineLane, name: &str, kind: &'static str, pid: u32) {
        self.of.insert(lane, self.data.len() as u32);
        self.data.push(LaneData { name: name.into(), kind, pid });
    }

    pub fn lane(&self, lane: TimelineLane) -> u32 {
        self.of.get(&lane).copied().unwrap_or(self.others)
    }

    pub fn holder(&self, holder: CpuHolder) -> u32 {
        2 * self.lane(holder.lane) + u32::from(holder.user)
    }

    /// Checks whether the CPU runs its idle task.
    pub fn is_idle_task(&self, holder: CpuHolder) -> bool {
        matches!(holder.lane, TimelineLane::Thread(number) if self.idle_tasks.contains(&number))
    }
}
