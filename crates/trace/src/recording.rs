//! The recorder's summary of a run.

use crate::{check_version, CaptureSpec};
use serde::{Deserialize, Deserializer, Serialize};

/// Output of the recorder, written as JSON after all other files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recording {
    /// Format version: [`crate::VERSION`]; other versions are rejected.
    #[serde(deserialize_with = "this_version")]
    pub version: u32,
    /// Kinds of data that were captured.
    pub capture: CaptureSpec,
    /// Number of kernel functions. Lower function numbers are kernel functions, this number stands
    /// for kernel code outside of all known functions, and higher numbers are user functions, up to
    /// [`Self::first_loaded`].
    pub kernel_functions: u32,
    /// Number of the first function of code that the kernel loaded ([`crate::loaded`]), after those
    /// of user code; `None` if it loaded none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_loaded: Option<u32>,
    /// Kernel functions of which any code ran since power-on, inside or outside of regions, in
    /// ascending order. An emulator translates only code that is about to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::numbers")]
    pub ran: Vec<u32>,
    /// Kernel functions of which any code ran since the first program began. Filled only if blocks
    /// are counted ([`CaptureSpec::edges`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::numbers")]
    pub ran_since_boot: Vec<u32>,
    /// Number of virtual CPUs.
    pub cpus: u32,
    /// Offset of each CPU's copy of the per-CPU variables (`__per_cpu_offset`); empty if not
    /// requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_cpu: Vec<u64>,
    /// Regions in the order of their begin marks.
    pub regions: Vec<RecordedRegion>,
    /// All threads that were seen.
    pub threads: Vec<RecordedThread>,
    /// Chunks of the trace in order; reading can start at any of them.
    pub chunks: Vec<ChunkIndex>,
    /// Number of events in the trace.
    pub events: u64,
    /// Counts of anomalies.
    pub health: RecordingHealth,
    /// Texts of the [`crate::mark::Mark::Note`] marks.
    pub notes: Vec<String>,
}

impl Recording {
    /// Checks whether a function is user code's.
    #[inline]
    pub fn is_user(&self, function: u32) -> bool {
        function > self.kernel_functions && self.first_loaded.is_none_or(|first| function < first)
    }

    /// Returns the virtual time at which the last region ended, in ns since power-on.
    pub fn end_ns(&self) -> Option<u64> {
        self.regions.iter().map(|region| region.begin_ns.saturating_add(region.elapsed_ns)).max()
    }
}

/// Deserializes the version and rejects any other than [`VERSION`].
fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    check_version("recording", u32::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// Part of the run between a begin mark and its end mark.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedRegion {
    /// Name given by the mark.
    pub name: String,
    /// Virtual time of the begin mark, in ns.
    pub begin_ns: u64,
    /// Virtual time from the begin mark to the end mark, in ns.
    pub elapsed_ns: u64,
    /// Idle time in the region, in virtual ns: the CPU was halted, or all of several CPUs were.
    pub idle_ns: u64,
    /// Number of completed operations.
    pub operations: u64,
    /// Number of regions open around this one. Regions of depth 0 never overlap.
    pub depth: u32,
    /// True if the end mark was seen.
    pub closed: bool,
    /// Counters of kernel code in the region.
    pub kernel: ModeCounters,
    /// Counters of user code in the region.
    pub user: ModeCounters,
    /// Events of the model's second-level parts; empty if the model has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_events: Vec<ModelEventCount>,
    /// Each CPU's part of the region; empty if there is only one CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<CpuCounters>,
}

/// One CPU's part of a region on a machine with several. During the rest of the region's time other
/// CPUs had their turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCounters {
    /// Instructions in kernel mode.
    pub kernel: u64,
    /// Instructions in user mode.
    pub user: u64,
    /// Virtual ns in which this CPU was halted, including time in which all were.
    pub halted_ns: u64,
    /// The CPU's branches and model events; `None` without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end: Option<CpuFrontEnd>,
}

/// Front-end counters of one CPU in a region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuFrontEnd {
    /// Counters of kernel code, see [`RecordedRegion::kernel`].
    pub kernel: ModeCounters,
    /// Counters of user code, see [`RecordedRegion::user`].
    pub user: ModeCounters,
    /// Events of the model's second-level parts, see [`RecordedRegion::model_events`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_events: Vec<ModelEventCount>,
}

/// Number of model events of one kind in a region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelEventCount {
    /// Name of the kind: `l2_miss`, `btb_l2_hit`, `btb_miss` or `misprediction`.
    pub event: String,
    /// Events of kernel code.
    pub kernel: u64,
    /// Events of user code.
    pub user: u64,
}

/// Counters of one CPU mode. Branches and misses are 0 if they were not captured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeCounters {
    /// Executed instructions. Each iteration of a `rep` string instruction counts as one.
    pub instructions: u64,
    /// Taken branches: jumps, calls and returns. Interrupts are not branches.
    pub taken_branches: u64,
    /// Model: misses of the L1 instruction cache.
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

/// Thread of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedThread {
    /// Address of its `struct task_struct`.
    pub task: u64,
    /// Thread id (the kernel's `pid`); 0 for an idle task.
    pub pid: u32,
    /// Process id (the kernel's `tgid`).
    pub tgid: u32,
    /// Command name when the thread last ran.
    pub comm: String,
}

/// Position of a chunk in the trace file and the time it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkIndex {
    /// Offset of the chunk's header in the trace file.
    pub offset: u64,
    /// Virtual time of the chunk's beginning, in ns.
    pub begin_ns: u64,
    /// Virtual time of the chunk's last event, in ns.
    pub end_ns: u64,
    /// Number of events in the chunk.
    pub events: u32,
}

/// Counts of anomalies in the recording, inside of regions only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingHealth {
    /// Events that were seen but could not be written.
    pub lost_events: u64,
    /// Returns on an empty stack.
    pub unmatched_returns: u64,
    /// Returns by a function that was not on the stack, because its code was reached by a jump into
    /// the middle of a function. Each popped one call level, as a return does.
    pub foreign_returns: u64,
    /// Frames that ended without a return of their own.
    pub unwound_frames: u64,
    /// Returns of user functions whose calls were not seen. Causes: a forked child continues inside
    /// its parent's functions, or modified code returns to unmodified code.
    #[serde(default)]
    pub headless_returns: u64,
    /// Jumps out of the traced functions with unknown targets. Frames that they end may have ended
    /// later. Conditional jumps count once per place in the code, not per execution.
    #[serde(default)]
    pub lost_jumps: u64,
    /// Blocks that were not counted because no counter was left.
    pub uncounted_blocks: u64,
    /// Edges that were not counted because no counter was left.
    pub uncounted_edges: u64,
    /// Comparisons of the guest's clock with the recorder's instruction count.
    pub clock_checks: u64,
    /// Comparisons in which the clocks differed although the CPU had not been halted.
    pub clock_errors: u64,
    /// Sum of these differences, in ns.
    pub clock_error_ns: u64,
    /// Blocks that an exception or a device access cut short. Their counts were corrected.
    pub cut_blocks: u64,
}
