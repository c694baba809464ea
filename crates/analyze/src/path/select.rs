//! Selection of a path, and the part of the trace that it needs.

use super::PathError;
use kerntune_profile::FunctionIndex;
use kerntune_trace::{RecordedRegion, Recording};
use std::ops::RangeInclusive;

/// Selection of a path and of the entries to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSelection {
    /// Begin and end of the path.
    pub span: PathSpan,
    /// Pid or name of the threads to show; `None` for all.
    pub thread: Option<String>,
    /// True if other threads are shown if a single call is selected.
    pub all: bool,
    /// Number of levels of calls to show; an interrupt begins a new count.
    pub depth: Option<u32>,
    /// Maximum number of entries.
    pub limit: usize,
}

impl Default for PathSelection {
    fn default() -> Self {
        let span = PathSpan::Operation { region: None, nth: 1 };
        Self { span, thread: None, all: false, depth: None, limit: 1_000_000 }
    }
}

/// Begin and end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathSpan {
    /// Between two virtual times, both included.
    Window {
        /// Begin, in ticks.
        begin_ns: u64,
        /// End, in ticks.
        end_ns: u64,
    },
    /// From one operation's mark to the next; the first operation begins with its region. A region
    /// without such marks is shown whole.
    Operation {
        /// Name of the region; `None` for the first one that has operations.
        region: Option<String>,
        /// Number of the operation, from 1.
        nth: u64,
    },
    /// A single call, from entry to exit.
    Call(CallStart),
}

/// Selection of a single call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStart {
    /// The call of a function with a given begin and total time.
    At {
        /// The called function.
        function: FunctionIndex,
        /// Virtual time of the entry, in ticks.
        begin_ns: u64,
        /// Range of the total time; `None` for any.
        elapsed_ns: Option<RangeInclusive<u64>>,
    },
    /// The first call of any function at a time or later.
    From {
        /// Virtual time, in ticks.
        begin_ns: u64,
    },
    /// The nth call of a function.
    Nth {
        /// The called function.
        function: FunctionIndex,
        /// Number of the call, from 1.
        nth: u64,
        /// Name of the regions in which the call must begin; `None` for anywhere.
        region: Option<String>,
    },
}

/// Maximum number of levels, so that code that walks the tree may recurse.
const DEPTH_SHOWN: u32 = 1_000;

/// A selection, resolved to times and numbers.
pub(super) struct PathPlan {
    pub begins: PathBegin,
    /// Times between which the path lies; chunks outside are not read.
    pub window: (u64, u64),
    /// Times between which the path can begin, in order.
    pub windows: Vec<(u64, u64)>,
    /// True for shown threads, indexed by thread; includes
    /// [`crate::events::ReplayState::unknown_thread`].
    pub shown: Vec<bool>,
    pub all: bool,
    pub depth: u32,
    pub limit: usize,
    elapsed: Option<RangeInclusive<u64>>,
}

/// Event that begins a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathBegin {
    Time,
    /// The `nth` operation of a region of this name.
    Operation {
        region: String,
        nth: u64,
    },
    /// The `nth` call of this function; `None` for any function.
    Call {
        function: Option<FunctionIndex>,
        nth: u64,
    },
    /// A call of this function at the first time of the window.
    CallAt {
        function: FunctionIndex,
    },
}

impl PathPlan {
    pub fn elapsed(&self) -> Option<RangeInclusive<u64>> {
        self.elapsed.clone()
    }
}

pub(super) fn plan(recording: &Recording, selection: &PathSelection) -> Result<PathPlan, PathError> {
    let mut plan = PathPlan {
        begins: PathBegin::Time,
        window: (0, u64::MAX),
        windows: Vec::new(),
        shown: shown(recording, selection.thread.as_deref())?,
        all: selection.all,
        depth: selection.depth.unwrap_or(DEPTH_SHOWN).clamp(1, DEPTH_SHOWN),
        limit: selection.limit,
        elapsed: None,
    };
    match &selection.span {
        &PathSpan::Window { begin_ns: begin, end_ns: end } => {
            if end < begin {
                return Err(PathError::Backwards { begin, end });
            }
            plan.window = (begin, end);
            plan.windows.push((begin, end));
        }
        PathSpan::Operation { region, nth } => {
            let first = first_region(recording, region.as_deref())?;
            plan.windows = regions(recording, &first.name).map(|r| (r.begin_ns, end(r))).collect();
            plan.window = (first.begin_ns, plan.windows.iter().map(|w| w.1).max().unwrap_or(u64::MAX));
            plan.begins = PathBegin::Operation { region: first.name.clone(), nth: (*nth).max(1) };
        }
        PathSpan::Call(CallStart::At { function, begin_ns, elapsed_ns }) => {
            plan.window = (*begin_ns, u64::MAX);
            plan.windows.push((*begin_ns, *begin_ns));
            plan.begins = PathBegin::CallAt { function: *function };
            plan.elapsed = elapsed_ns.clone();
        }
        PathSpan::Call(CallStart::From { begin_ns }) => {
            plan.window = (*begin_ns, u64::MAX);
            plan.windows.push((*begin_ns, u64::MAX));
            plan.begins = PathBegin::Call { function: None, nth: 1 };
        }
        PathSpan::Call(CallStart::Nth { function, nth, region }) => {
            plan.windows = match region {
                None => vec![(0, u64::MAX)],
                Some(name) => {
                    first_region(recording, Some(name))?;
                    regions(recording, name).map(|r| (r.begin_ns, end(r))).collect()
                }
            };
            plan.window = (plan.windows.first().map_or(0, |w| w.0), u64::MAX);
            plan.begins = PathBegin::Call { function: Some(*function), nth: (*nth).max(1) };
        }
    }
    Ok(plan)
}

fn end(region: &RecordedRegion) -> u64 {
    if region.closed {
        region.begin_ns.saturating_add(region.elapsed_ns)
    } else {
        u64::MAX
    }
}

fn regions<'a>(recording: &'a Recording, name: &'a str) -> impl Iterator<Item = &'a RecordedRegion> {
    recording.regions.iter().filter(move |region| region.name == name)
}

fn first_region<'a>(recording: &'a Recording, name: Option<&str>) -> Result<&'a RecordedRegion, PathError> {
    let all = &recording.regions;
    let found = match name {
        Some(name) => all.iter().find(|region| region.name == name),
        None => all.iter().find(|region| region.operations > 0).or(all.first()),
    };
    found.ok_or_else(|| match name {
        None => PathError::NoRegions,
        Some(name) => {
            let known = known(all.iter().map(|region| region.name.clone()));
            PathError::NoRegion { name: name.into(), known }
        }
    })
}

/// Returns whether each thread is shown, including the pseudo-threads after the last.
fn shown(recording: &Recording, wanted: Option<&str>) -> Result<Vec<bool>, PathError> {
    let threads = &recording.threads;
    let Some(wanted) = wanted else { return Ok(vec![true; threads.len() + 2]) };
    let pid = wanted.parse::<u32>().ok();
    let mut shown: Vec<bool> = threads.iter().map(|t| Some(t.pid) == pid || t.comm == wanted).collect();
    shown.extend([false; 2]);
    if shown.contains(&true) {
        return Ok(shown);
    }
    let known = known(threads.iter().map(|t| format!("{} [{}]", t.comm, t.pid)));
    Err(PathError::NoThread { name: wanted.into(), known })
}

/// Lists names for a message, each once, up to a limit.
fn known(names: impl Iterator<Item = String>) -> String {
    const MAX_NAMES: usize = 20;
    let mut all: Vec<String> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    match all.len() {
        0 => "none".into(),
        count if count > MAX_NAMES => {
            format!("{} and {} more", all[..MAX_NAMES].join(", "), count - MAX_NAMES)
        }
        _ => all.join(", "),
    }
}
