//! Lanes of the timeline: who has a line of its own, and who shares one.

use super::Timeline;
use kerntune_analyze::timeline::{Holder, Lane};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Threads with a lane of their own; the others share one.
const THREADS: usize = 30;

#[derive(Serialize)]
pub(super) struct LaneData {
    name: String,
    /// `thread`, `interrupt`, `idle`, `others`; with several CPUs also `task`, an idle task.
    kind: &'static str,
    pid: u32,
}

/// Who has which line of the picture.
pub(super) struct Lanes {
    pub data: Vec<LaneData>,
    /// How many CPUs there are.
    pub cpus: usize,
    /// Numbers of the idle tasks.
    idle_tasks: BTreeSet<u32>,
    of: HashMap<Lane, u32>,
    others: u32,
}

impl Lanes {
    pub fn new(timeline: &Timeline<'_>) -> Self {
        let mut time: BTreeMap<u32, u64> = BTreeMap::new();
        for bin in &timeline.overview.bins {
            if let Lane::Thread(thread) = bin.holder.lane {
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
                Some(thread) if out.data.len() < THREADS => {
                    out.push(Lane::Thread(number), &thread.comm, "thread", thread.pid);
                }
                _ => count += 1,
            }
        }
        out.others = out.data.len() as u32;
        if count > 0 {
            out.push(Lane::Unknown, &format!("{count} other threads"), "others", 0);
        }
        out.push(Lane::Interrupt, "interrupts", "interrupt", 0);
        let idle = out.data.len() as u32;
        out.push(Lane::Idle, "idle", "idle", 0);
        out.of.extend(out.idle_tasks.iter().map(|&number| (Lane::Thread(number), idle)));
        if count == 0 {
            // Nothing should need it; if something does, it is shown with the interrupts.
            out.others = idle - 1;
        }
        if out.cpus > 1 {
            out.part_idle_tasks(timeline, &threads);
        }
        out
    }

    /// Each CPU has an idle task: their calls would lie over each other in one lane.
    fn part_idle_tasks(&mut self, timeline: &Timeline<'_>, threads: &[(u32, u64)]) {
        let mut tasks: Vec<u32> = threads.iter().map(|(number, _)| *number).collect();
        tasks.retain(|number| self.idle_tasks.contains(number));
        tasks.sort_unstable();
        for number in tasks {
            let name = timeline.recording.threads.get(number as usize).map_or("", |thread| &thread.comm);
            self.push(Lane::Thread(number), name, "task", 0);
        }
    }

    fn push(&mut self, lane: Lane, name: &str, kind: &'static str, pid: u32) {
        self.of.insert(lane, self.data.len() as u32);
        self.data.push(LaneData { name: name.into(), kind, pid });
    }

    pub fn lane(&self, lane: Lane) -> u32 {
        self.of.get(&lane).copied().unwrap_or(self.others)
    }

    pub fn holder(&self, holder: Holder) -> u32 {
        2 * self.lane(holder.lane) + u32::from(holder.user)
    }

    /// Whether it is the idle task that has the CPU.
    pub fn is_idle_task(&self, holder: Holder) -> bool {
        matches!(holder.lane, Lane::Thread(number) if self.idle_tasks.contains(&number))
    }
}
