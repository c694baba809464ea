//! Facts from the recording and the symbols that the analysis of each chunk needs.

use crate::events::TraceBounds;
use crate::multi_cpu::ServiceFunctions;
use crate::scheduler::SchedulerFunctions;
use crate::AnalysisInput;
use kerntune_profile::{CallKind, PathKind};
use kerntune_trace::{EnterKind, RecordedThread};
use std::collections::BTreeMap;

/// Name of the pseudo-thread of all interrupts.
pub(crate) const INTERRUPT: &str = "[interrupt]";
/// Name of threads and functions that were not identified.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// Checks whether a thread is an idle task. Threads that were never identified have pid 0, too, but
/// no task.
pub(crate) fn is_idle(thread: &RecordedThread) -> bool {
    thread.pid == 0 && thread.task != 0
}

/// Converts a kind of entry to that of profiles.
pub fn call_kind(how: EnterKind) -> CallKind {
    match how {
        EnterKind::Call => CallKind::Call,
        EnterKind::Jump => CallKind::Jump,
        EnterKind::Interrupt => CallKind::Interrupt,
        EnterKind::Exception => CallKind::Exception,
        EnterKind::Syscall => CallKind::Syscall,
    }
}

/// Bounds, names and roles of threads, regions and functions.
pub(crate) struct TraceContext {
    /// Thread numbers are followed by [`TraceContext::interrupt`] and
    /// [`TraceContext::unknown_thread`], region numbers by [`TraceContext::outside`].
    pub bounds: TraceBounds,
    /// True for idle tasks, which have no user mode; indexed by thread.
    pub idle: Vec<bool>,
    /// Kind and name of the roots of path trees, sorted.
    pub roots: Vec<(PathKind, String)>,
    /// Index into `roots`, by thread.
    pub root_of: Vec<u32>,
    /// Index into `roots` for all interrupts.
    pub interrupt_root: u32,
    /// Names of threads, sorted.
    pub comms: Vec<String>,
    /// Index into `comms`, by thread.
    pub comm_of: Vec<u32>,
    pub scheduler: SchedulerFunctions,
    pub service_functions: ServiceFunctions,
    /// True if events carry weights.
    pub wide: bool,
}

impl TraceContext {
    pub fn new(input: &AnalysisInput<'_>, wide: bool) -> Self {
        let threads = &input.recording.threads;
        let root = |thread: &RecordedThread| match is_idle(thread) {
            true => (PathKind::Idle, String::new()),
            false => (PathKind::Thread, thread.comm.clone()),
        };
        let interrupts = (PathKind::Interrupt, String::new());
        let roots = threads.iter().map(root).chain([interrupts, (PathKind::Thread, UNKNOWN.to_owned())]);
        let comms = threads.iter().map(|thread| thread.comm.as_str()).chain([INTERRUPT, UNKNOWN]);
        let (roots, root_of) = number(roots);
        let (comms, comm_of) = number(comms.map(str::to_owned));
        let mut idle: Vec<bool> = threads.iter().map(is_idle).collect();
        idle.extend([false; 2]);
        Self {
            bounds: TraceBounds {
                functions: input.symbols.len(),
                regions: input.recording.regions.len(),
                points: input.points.len(),
                ..TraceBounds::of(input.recording)
            },
            idle,
            interrupt_root: root_of[threads.len()],
            roots,
            root_of,
            comms,
            comm_of,
            scheduler: SchedulerFunctions::new(input.symbols),
            service_functions: ServiceFunctions::new(input.symbols),
            wide,
        }
    }

    /// Checks whether a root is that of the idle tasks.
    pub fn is_idle_root(&self, root: u32) -> bool {
        self.roots.get(root as usize).is_some_and(|(kind, _)| *kind == PathKind::Idle)
    }

    pub fn has_several_cpus(&self) -> bool {
        self.bounds.cpus > 1
    }

    /// Returns the number of the pseudo-thread of all interrupts.
    pub fn interrupt(&self) -> usize {
        self.bounds.threads
    }

    /// Returns the number that stands for an unknown running thread.
    pub fn unknown_thread(&self) -> usize {
        self.bounds.threads + 1
    }

    /// Returns the number of the pseudo-region for time outside of all regions.
    pub fn outside(&self) -> u32 {
        self.bounds.regions as u32
    }
}

/// Returns the distinct values, sorted, and the index of each value among them.
fn number<T: Ord + Clone>(values: impl Iterator<Item = T>) -> (Vec<T>, Vec<u32>) {
    let values: Vec<T> = values.collect();
    let mut numbers: BTreeMap<T, u32> = values.iter().map(|value| (value.clone(), 0)).collect();
    for (number, at) in numbers.values_mut().zip(0..) {
        *number = at;
    }
    let of = values.iter().map(|value| numbers.get(value).copied().unwrap_or_default()).collect();
    (numbers.into_keys().collect(), of)
}
