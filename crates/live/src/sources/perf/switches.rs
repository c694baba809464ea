//! Samples of context switches: from the scheduler's tracepoint where it can be read, which says who gets the CPU, or from
//! perf's own counter, which does not.

use super::events::What;
use super::record::Layout;
use crate::tracefs::{field, Tracefs};
use crate::{Aggregate, SwitchSample};
use std::borrow::Cow;
use std::ops::Range;

/// Bits of `prev_state` that say that the thread wants to go on (`TASK_RUNNING` or `TASK_REPORT_MAX`).
const WANTS_TO_RUN: u64 = 0x100;

/// How samples of switches are understood.
#[derive(Debug)]
pub(super) enum SwitchReader {
    /// By the tracepoint's bytes.
    Tracepoint { id: u64, from: Range<usize>, to: Range<usize>, state: Range<usize> },
    /// By the counter alone; why there is no more.
    Counter(String),
}

impl SwitchReader {
    /// The best that this kernel lets us have.
    pub fn find() -> Self {
        let found = Tracefs::open().and_then(|tracefs| {
            Ok((tracefs.event_id("sched/sched_switch")?, tracefs.read("events/sched/sched_switch/format")?))
        });
        match found {
            Err(error) => SwitchReader::Counter(format!("tracepoints cannot be read: {error}")),
            Ok((id, format)) => {
                let range = |name| field(&format, name).map(|(at, size)| at..at.saturating_add(size));
                match (range("prev_comm"), range("next_comm"), range("prev_state")) {
                    (Some(from), Some(to), Some(state)) => SwitchReader::Tracepoint { id, from, to, state },
                    _ => SwitchReader::Counter("sched_switch has another format".into()),
                }
            }
        }
    }

    pub fn what(&self) -> What {
        match self {
            SwitchReader::Tracepoint { id, .. } => What::SchedSwitch(*id),
            SwitchReader::Counter(_) => What::Switches,
        }
    }

    pub fn layout(&self) -> Layout {
        Layout { period: true, raw: matches!(self, SwitchReader::Tracepoint { .. }) }
    }

    pub fn source(&self) -> String {
        match self {
            SwitchReader::Tracepoint { .. } => "perf: sched:sched_switch".into(),
            SwitchReader::Counter(_) => "perf: context-switches".into(),
        }
    }

    /// What is missing from the samples.
    pub fn lacks(&self) -> Option<String> {
        match self {
            SwitchReader::Tracepoint { .. } => None,
            SwitchReader::Counter(why) => Some(format!(
                "whom the CPU was given to, and whether it was taken away, is not known ({why})"
            )),
        }
    }

    /// Counts a sample.
    pub fn take(&self, tid: u32, weight: u64, raw: &[u8], kernel: &[u64], into: &mut Aggregate) {
        match self {
            SwitchReader::Counter(_) => {
                let from = into.threads.comm_of(tid);
                into.switch(&SwitchSample { from, to: None, preempted: None, kernel, weight });
            }
            SwitchReader::Tracepoint { from, to, state, .. } => {
                let (Some(from), Some(to), Some(state)) =
                    (name(raw, from), name(raw, to), number(raw, state))
                else {
                    into.note("damaged_records", 1);
                    return;
                };
                let preempted = Some(state == 0 || state & WANTS_TO_RUN != 0);
                let (from, to) = (Some(into.threads.number(&from)), Some(into.threads.number(&to)));
                into.switch(&SwitchSample { from, to, preempted, kernel, weight });
            }
        }
    }
}

fn name<'a>(raw: &'a [u8], at: &Range<usize>) -> Option<Cow<'a, str>> {
    let bytes = raw.get(at.clone())?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(bytes))
}

fn number(raw: &[u8], at: &Range<usize>) -> Option<u64> {
    Some(u64::from_ne_bytes(raw.get(at.clone())?.try_into().ok()?))
}
