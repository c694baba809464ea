//! What the recorder says of a run.

use crate::{Capture, Error, VERSION};
use serde::{Deserialize, Deserializer, Serialize};

/// The recorder's output, as JSON, written when everything else is on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recording {
    /// [`VERSION`]; a recording of another one is refused.
    #[serde(deserialize_with = "this_version")]
    pub version: u32,
    /// What was captured.
    pub capture: Capture,
    /// Functions below this number are the kernel's, the number itself stands for kernel code in no
    /// known function, and those above are user code's.
    pub kernel_functions: u32,
    /// Kernel functions of which any code ran since the machine was switched on, inside of regions or not: an emulator
    /// translates what is about to run and nothing else. Rising.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::numbers")]
    pub ran: Vec<u32>,
    /// The same since the first program began. Only where blocks are counted ([`Capture::edges`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::numbers")]
    pub ran_since_boot: Vec<u32>,
    /// How many virtual CPUs there were.
    pub cpus: u32,
    /// What to add to the address of a variable that each CPU has one of (`__per_cpu_offset`), by CPU; empty where it was
    /// not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_cpu: Vec<u64>,
    /// The regions in the order in which they began.
    pub regions: Vec<Region>,
    /// Every thread that was seen.
    pub threads: Vec<Thread>,
    /// The trace's chunks in order: a reader can begin with any of them.
    pub chunks: Vec<ChunkIndex>,
    /// Events written.
    pub events: u64,
    /// How well it went.
    pub health: Health,
    /// Texts of [`crate::mark::Mark::Note`].
    pub notes: Vec<String>,
}

/// The version, if it is the one that is read.
fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        found => Err(serde::de::Error::custom(Error::Version { what: "recording", found })),
    }
}

/// One stretch between a begin and an end mark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Region {
    /// The name that the mark gave.
    pub name: String,
    /// Virtual time of the begin mark, ns.
    pub begin_ns: u64,
    /// Virtual ns from begin to end.
    pub elapsed_ns: u64,
    /// Virtual ns of it in which the CPU was halted; of several, in which all were.
    pub idle_ns: u64,
    /// Operations done in it.
    pub operations: u64,
    /// How many regions were open around it; those with 0 never overlap.
    pub depth: u32,
    /// Whether its end mark was seen.
    pub closed: bool,
    /// Kernel code in it.
    pub kernel: ModeCounters,
    /// User code in it.
    pub user: ModeCounters,
    /// What the parts of the model behind the first level counted; nothing of a model that has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_events: Vec<ModelEventCount>,
    /// What each CPU did of it; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<CpuCounters>,
}

/// What one of several CPUs did in a region. What is left of the region's time it was another CPU's turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCounters {
    /// Instructions in the kernel.
    pub kernel: u64,
    /// Instructions in user mode.
    pub user: u64,
    /// Virtual ns in which it was halted, those included in which all were.
    pub halted_ns: u64,
    /// Its part of the region's branches and of what the model counted; none without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end: Option<CpuFrontEnd>,
}

/// What the front end of one of several CPUs did in a region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuFrontEnd {
    /// As of [`Region::kernel`].
    pub kernel: ModeCounters,
    /// As of [`Region::user`].
    pub user: ModeCounters,
    /// As [`Region::model_events`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_events: Vec<ModelEventCount>,
}

/// Events of one kind in a region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelEventCount {
    /// The kind's name: `l2_miss`, `btb_l2_hit`, `btb_miss`, `misprediction`.
    pub event: String,
    /// Of kernel code.
    pub kernel: u64,
    /// Of user code.
    pub user: u64,
}

/// Counters of one mode of the CPU. Branches and misses are 0 where they were not captured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeCounters {
    /// Instructions; each iteration of a `rep` string instruction counts as one.
    pub instructions: u64,
    /// Branches taken: jumps, calls, returns. Interrupts are not branches.
    pub taken_branches: u64,
    /// Model: misses of the first-level instruction cache.
    pub l1i_misses: u64,
    /// Model: misses of the first-level instruction TLB.
    pub itlb_misses: u64,
}

impl std::ops::Sub for ModeCounters {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self {
            instructions: self.instructions - before.instructions,
            taken_branches: self.taken_branches - before.taken_branches,
            l1i_misses: self.l1i_misses - before.l1i_misses,
            itlb_misses: self.itlb_misses - before.itlb_misses,
        }
    }
}

impl std::ops::Add for ModeCounters {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            instructions: self.instructions + other.instructions,
            taken_branches: self.taken_branches + other.taken_branches,
            l1i_misses: self.l1i_misses + other.l1i_misses,
            itlb_misses: self.itlb_misses + other.itlb_misses,
        }
    }
}

/// A thread of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Address of its `struct task_struct`.
    pub task: u64,
    /// Thread id (the kernel's `pid`); 0 is the idle task.
    pub pid: u32,
    /// Process id (the kernel's `tgid`).
    pub tgid: u32,
    /// The name it had when it last ran.
    pub comm: String,
}

/// Where a chunk is and what it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkIndex {
    /// Offset of its header in the trace file.
    pub offset: u64,
    /// Virtual time of its beginning, ns.
    pub begin_ns: u64,
    /// Virtual time of its last event, ns.
    pub end_ns: u64,
    /// Events in it.
    pub events: u32,
}

/// What was not as it should be. Counted inside regions only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Events that were seen and not written.
    pub lost_events: u64,
    /// Returns on an empty stack.
    pub unmatched_returns: u64,
    /// Returns by a function that was not on the stack: code reached by a jump into the middle
    /// of a function. One call level was popped, which is what a return does.
    pub foreign_returns: u64,
    /// Frames that ended without a return of their own.
    pub unwound_frames: u64,
    /// Returns of user functions of whose calls nothing was seen: a forked child goes on inside of
    /// its parent's functions, code whose memory was changed comes back to code that was not.
    #[serde(default)]
    pub headless_returns: u64,
    /// Jumps out of what was selected whose target could not be known: the frames that they end may have
    /// ended later. Of conditional jumps, places in the code instead of passages.
    #[serde(default)]
    pub lost_jumps: u64,
    /// Blocks for which there was no counter left.
    pub uncounted_blocks: u64,
    /// Edges for which there was no counter left.
    pub uncounted_edges: u64,
    /// Times that the guest's clock was compared with ours.
    pub clock_checks: u64,
    /// Times that they differed without the CPU having been halted, and by how much in all.
    pub clock_errors: u64,
    /// Sum of those differences, ns.
    pub clock_error_ns: u64,
    /// Blocks that an exception or device access ended early, whose counts were put right.
    pub cut_blocks: u64,
}
