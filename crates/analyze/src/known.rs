//! What recording and symbols say: the bounds of what events may name, and names for it.

use crate::events::Bounds;
use crate::scheduler::Scheduler;
use crate::several::Servants;
use crate::Input;
use kerntune_profile::PathKind;
use kerntune_trace::Thread;
use std::collections::BTreeMap;

/// Name of the pseudo-thread of all interrupts.
pub(crate) const INTERRUPT: &str = "[interrupt]";
/// Name of what ran before anything was known.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// Whether a thread is an idle task, as opposed to one that was never identified.
pub(crate) fn is_idle(thread: &Thread) -> bool {
    thread.pid == 0 && thread.task != 0
}

/// Bounds and names.
pub(crate) struct Known {
    /// The threads' numbers are followed by [`Known::interrupt`] and [`Known::nobody`], the regions' by
    /// [`Known::outside`].
    pub bounds: Bounds,
    /// Whether each thread is an idle task, which has no user mode.
    pub idle: Vec<bool>,
    /// Roots of the trees of paths in their order: kind and name.
    pub roots: Vec<(PathKind, String)>,
    /// The root of each thread.
    pub root_of: Vec<u32>,
    /// The root of all interrupts.
    pub interrupt_root: u32,
    /// Names of threads.
    pub comms: Vec<String>,
    /// The name of each thread.
    pub comm_of: Vec<u32>,
    pub scheduler: Scheduler,
    pub servants: Servants,
    /// Whether events carry weights.
    pub wide: bool,
}

impl Known {
    pub fn new(input: &Input<'_>, wide: bool) -> Self {
        let threads = &input.recording.threads;
        let root = |thread: &Thread| match is_idle(thread) {
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
            bounds: Bounds {
                functions: input.symbols.len(),
                regions: input.recording.regions.len(),
                points: input.points.len(),
                ..Bounds::of(input.recording)
            },
            idle,
            interrupt_root: root_of[threads.len()],
            roots,
            root_of,
            comms,
            comm_of,
            scheduler: Scheduler::new(input.symbols),
            servants: Servants::new(input.symbols),
            wide,
        }
    }

    /// Whether a root is that of idle tasks.
    pub fn is_idle_root(&self, root: u32) -> bool {
        self.roots.get(root as usize).is_some_and(|(kind, _)| *kind == PathKind::Idle)
    }

    /// Whether there is more than one CPU.
    pub fn has_several_cpus(&self) -> bool {
        self.bounds.cpus > 1
    }

    /// The pseudo-thread of all interrupts.
    pub fn interrupt(&self) -> usize {
        self.bounds.threads
    }

    /// Stands for the running thread as long as it is not known.
    pub fn nobody(&self) -> usize {
        self.bounds.threads + 1
    }

    /// The pseudo-region of all that passes while no region is open.
    pub fn outside(&self) -> u32 {
        self.bounds.regions as u32
    }
}

/// The values in order without repetition, and each one's number.
fn number<T: Ord + Clone>(values: impl Iterator<Item = T>) -> (Vec<T>, Vec<u32>) {
    let values: Vec<T> = values.collect();
    let mut numbers: BTreeMap<T, u32> = values.iter().map(|value| (value.clone(), 0)).collect();
    for (number, at) in numbers.values_mut().zip(0..) {
        *number = at;
    }
    let of = values.iter().map(|value| numbers.get(value).copied().unwrap_or_default()).collect();
    (numbers.into_keys().collect(), of)
}
