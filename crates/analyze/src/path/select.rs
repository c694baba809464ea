//! What is to be shown, and what of the trace that needs.

use super::PathError;
use kerntune_profile::FunctionIndex;
use kerntune_trace::{Recording, Region};
use std::ops::RangeInclusive;

/// What is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// From where to where.
    pub span: Span,
    /// Only this thread, by its pid, or those of this name.
    pub thread: Option<String>,
    /// Whether other threads are shown where one call is selected.
    pub all: bool,
    /// Levels of calls that are shown; an interrupt is shown wherever it hits.
    pub depth: Option<u32>,
    /// Entries at most.
    pub limit: usize,
}

impl Default for Selection {
    fn default() -> Self {
        let span = Span::Operation { region: None, nth: 1 };
        Self { span, thread: None, all: false, depth: None, limit: 1_000_000 }
    }
}

/// From where to where a path goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Two virtual times, both included.
    Window {
        /// The first, in nanoseconds.
        begin_ns: u64,
        /// The last, in nanoseconds.
        end_ns: u64,
    },
    /// From one operation's mark to the next: the first begins with its region. A region without
    /// such marks is shown whole.
    Operation {
        /// The region's name; the first that has operations if none.
        region: Option<String>,
        /// 1 for the first.
        nth: u64,
    },
    /// One call from beginning to end.
    Call(CallStart),
}

/// Which call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStart {
    /// The call of a function that began at a time and took so long.
    At {
        /// Which function.
        function: FunctionIndex,
        /// Virtual ns.
        begin_ns: u64,
        /// What its total time must be; any if none.
        elapsed_ns: Option<RangeInclusive<u64>>,
    },
    /// The first call of any function that began at a time or later.
    From {
        /// Virtual ns.
        begin_ns: u64,
    },
    /// The nth call of a function.
    Nth {
        /// Which function.
        function: FunctionIndex,
        /// 1 for the first.
        nth: u64,
        /// Only those that begin in the regions of this name.
        region: Option<String>,
    },
}

/// Levels that are shown at most, so that whoever walks the tree may recurse.
const DEPTH_SHOWN: u32 = 1_000;

/// A selection in numbers.
pub(super) struct Plan {
    pub begins: Begins,
    /// Where the path lies: what ends before or begins after is not read.
    pub window: (u64, u64),
    /// What makes the path begin happens in one of these, in order of time.
    pub windows: Vec<(u64, u64)>,
    /// Threads that are shown, by number, with room for [`crate::events::Machine::nobody`].
    pub shown: Vec<bool>,
    pub all: bool,
    pub depth: u32,
    pub limit: usize,
    elapsed: Option<RangeInclusive<u64>>,
}

/// What makes a path begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Begins {
    Time,
    /// The `nth` operation of a region of this name.
    Operation {
        region: String,
        nth: u64,
    },
    /// The `nth` call of this function (of any if none).
    Call {
        function: Option<FunctionIndex>,
        nth: u64,
    },
    /// The first call of this function at the first time of the window.
    CallAt {
        function: FunctionIndex,
    },
}

impl Plan {
    pub fn elapsed(&self) -> Option<RangeInclusive<u64>> {
        self.elapsed.clone()
    }
}

pub(super) fn plan(recording: &Recording, selection: &Selection) -> Result<Plan, PathError> {
    let mut plan = Plan {
        begins: Begins::Time,
        window: (0, u64::MAX),
        windows: Vec::new(),
        shown: shown(recording, selection.thread.as_deref())?,
        all: selection.all,
        depth: selection.depth.unwrap_or(DEPTH_SHOWN).clamp(1, DEPTH_SHOWN),
        limit: selection.limit,
        elapsed: None,
    };
    match &selection.span {
        &Span::Window { begin_ns: begin, end_ns: end } => {
            if end < begin {
                return Err(PathError::Backwards { begin, end });
            }
            plan.window = (begin, end);
            plan.windows.push((begin, end));
        }
        Span::Operation { region, nth } => {
            let first = first_region(recording, region.as_deref())?;
            plan.windows = regions(recording, &first.name).map(|r| (r.begin_ns, end(r))).collect();
            plan.window = (first.begin_ns, plan.windows.iter().map(|w| w.1).max().unwrap_or(u64::MAX));
            plan.begins = Begins::Operation { region: first.name.clone(), nth: (*nth).max(1) };
        }
        Span::Call(CallStart::At { function, begin_ns, elapsed_ns }) => {
            plan.window = (*begin_ns, u64::MAX);
            plan.windows.push((*begin_ns, *begin_ns));
            plan.begins = Begins::CallAt { function: *function };
            plan.elapsed = elapsed_ns.clone();
        }
        Span::Call(CallStart::From { begin_ns }) => {
            plan.window = (*begin_ns, u64::MAX);
            plan.windows.push((*begin_ns, u64::MAX));
            plan.begins = Begins::Call { function: None, nth: 1 };
        }
        Span::Call(CallStart::Nth { function, nth, region }) => {
            plan.windows = match region {
                None => vec![(0, u64::MAX)],
                Some(name) => {
                    first_region(recording, Some(name))?;
                    regions(recording, name).map(|r| (r.begin_ns, end(r))).collect()
                }
            };
            plan.window = (plan.windows.first().map_or(0, |w| w.0), u64::MAX);
            plan.begins = Begins::Call { function: Some(*function), nth: (*nth).max(1) };
        }
    }
    Ok(plan)
}

fn end(region: &Region) -> u64 {
    if region.closed {
        region.begin_ns.saturating_add(region.elapsed_ns)
    } else {
        u64::MAX
    }
}

fn regions<'a>(recording: &'a Recording, name: &'a str) -> impl Iterator<Item = &'a Region> {
    recording.regions.iter().filter(move |region| region.name == name)
}

fn first_region<'a>(recording: &'a Recording, name: Option<&str>) -> Result<&'a Region, PathError> {
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

/// Which threads are shown, with room for the machine's nobody.
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

/// Names for a message, each once, not more than fit.
fn known(names: impl Iterator<Item = String>) -> String {
    const MOST: usize = 20;
    let mut all: Vec<String> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    match all.len() {
        0 => "none".into(),
        count if count > MOST => format!("{} and {} more", all[..MOST].join(", "), count - MOST),
        _ => all.join(", "),
    }
}
