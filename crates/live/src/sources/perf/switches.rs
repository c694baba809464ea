//! Samples of context switches. The scheduler's tracepoint also names the next thread; if it cannot
//! be read, perf's own counter is used, which does not.

use super::events::EventKind;
use super::record::SampleLayout;
use crate::tracefs::{field, TracefsDir};
use crate::{Aggregate, SwitchSample};
use kerntune_profile::Anomaly;
use std::borrow::Cow;
use std::ops::Range;

/// Bits of `prev_state` that mark a runnable thread (`TASK_RUNNING` or `TASK_REPORT_MAX`).
const WANTS_TO_RUN: u64 = 0x100;

/// Interpretation of switch samples.
#[derive(Debug)]
pub(super) enum SwitchReader {
    /// From the tracepoint's raw bytes, with the positions of its fields.
    Tracepoint { id: u64, from: Range<usize>, to: Range<usize>, state: Range<usize> },
    /// From the counter alone, with the reason.
    Counter(String),
}

impl SwitchReader {
    /// Chooses the best way that this kernel allows.
    pub fn find() -> Self {
        let found = TracefsDir::open().and_then(|tracefs| {
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

    pub fn what(&self) -> EventKind {
        match self {
            SwitchReader::Tracepoint { id, .. } => EventKind::SchedSwitch(*id),
            SwitchReader::Counter(_) => EventKind::Switches,
        }
    }

    pub fn layout(&self) -> SampleLayout {
        SampleLayout { period: true, raw: matches!(self, SwitchReader::Tracepoint { .. }) }
    }

    pub fn source(&self) -> String {
        match self {
            SwitchReader::Tracepoint { .. } => "perf: sched:sched_switch".into(),
            SwitchReader::Counter(_) => "perf: context-switches".into(),
        }
    }

    /// Describes the data missing from the samples.
    pub fn lacks(&self) -> Option<String> {
        match self {
            SwitchReader::Tracepoint { .. } => None,
            SwitchReader::Counter(why) => Some(format!(
                "whom the CPU was given to, and whether it was taken away, is not known ({why})"
            )),
        }
    }

    /// Adds a sample to the aggregate.
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
                    into.note(Anomaly::DamagedRecords, 1);
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
