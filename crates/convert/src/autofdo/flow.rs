//! Decomposition of block and edge counts into runs from a branch's target to the next taken
//! branch.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Straight code with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StraightCode {
    /// Address of the first instruction.
    pub start: u64,
    /// Address of the last instruction.
    pub last: u64,
    /// Address after the last instruction.
    pub end: u64,
    /// Number of executions.
    pub count: u64,
}

/// Taken branch with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TakenBranch {
    /// Address of the target.
    pub target: u64,
    /// Address of the branch.
    pub source: u64,
    /// Number of times that it was taken.
    pub count: u64,
}

/// Control flow that leaves straight code by a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BranchExit {
    /// Number of times that the branch was taken, to any target.
    pub taken: u128,
    /// The branch is conditional, so control may fall through.
    pub falls_through: bool,
}

/// Run of straight code from `target` to `last`, with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchRecord {
    /// Branch that led to the run; `None` for entries and returns of interrupts, exceptions and
    /// system calls, and for the iterations of a repeated string instruction.
    pub source: Option<u64>,
    /// Address of the first instruction.
    pub target: u64,
    /// Address of the last instruction; `None` if no count says that the first one ran (an
    /// interrupt came before it).
    pub last: Option<u64>,
    /// Number of times, never 0.
    pub count: u64,
}

/// Decomposes the flow through `stretches` (straight code) into runs. `arrivals` are the taken
/// branches; both are sorted. `departures` are the branches at the ends, by address.
///
/// The straight code is walked by address. A flow opens where a branch arrives; if code ran more
/// often than branches and the code before it account for, the rest has no recorded source. Flows
/// close at a branch, the oldest first, as often as it was taken; all of them close at a branch
/// that cannot fall through, and where the code behind ran less often than they require. So all
/// straight code is in as many runs as its count says, and every branch in as many as it was taken,
/// whatever the counts are. Only the flows through one place are in memory at a time.
pub(super) fn runs<E>(
    stretches: &[StraightCode],
    arrivals: &[TakenBranch],
    mut departures: HashMap<u64, BranchExit>,
    take: &mut impl FnMut(BranchRecord) -> Result<(), E>,
) -> Result<(), E> {
    let mut arrivals = arrivals.iter().peekable();
    // By the address of the next instruction.
    let mut pending: BTreeMap<u64, Vec<FallThrough>> = BTreeMap::new();
    for here in stretches.chunk_by(|one, next| one.start == next.start) {
        let Some(start) = here.first().map(|stretch| stretch.start) else { continue };
        while let Some(entry) = pending.first_entry().filter(|entry| *entry.key() < start) {
            entry.remove().into_iter().try_for_each(|falling| falling.close(take))?;
        }
        while let Some(stray) = arrivals.next_if(|arrival| arrival.target < start) {
            take(stray.without_run())?;
        }
        let mut arrived = FlowQueue::default();
        while let Some(arrival) = arrivals.next_if(|arrival| arrival.target == start) {
            arrived.push(RunFlow { source: Some(arrival.source), target: start, count: arrival.count });
        }
        let mut before = pending.remove(&start).unwrap_or_default();
        for stretch in here {
            let mut wanted = u128::from(stretch.count);
            // Branches are certain, so they are served first; but flows from the code before are
            // older.
            let by_branch = wanted.min(arrived.total);
            wanted -= by_branch;
            let mut inside = FlowQueue::default();
            for falling in &mut before {
                wanted -= falling.flows.give(wanted, &mut inside);
            }
            arrived.give(by_branch, &mut inside);
            inside.push(RunFlow {
                source: None,
                target: start,
                count: u64::try_from(wanted).unwrap_or(u64::MAX),
            });

            let mut leaving = FlowQueue::default();
            if let Some(departure) = departures.get_mut(&stretch.last) {
                let max = if departure.falls_through { departure.taken } else { inside.total };
                departure.taken = departure.taken.saturating_sub(inside.give(max, &mut leaving));
            }
            FallThrough { last: stretch.last, flows: leaving }.close(take)?;
            let falling = FallThrough { last: stretch.last, flows: inside };
            // Code that ends before its last instruction (damaged data) cannot continue.
            if stretch.end > stretch.last {
                pending.entry(stretch.end).or_default().push(falling);
            } else {
                falling.close(take)?;
            }
        }
        for flow in arrived.list {
            take(flow.record(None))?;
        }
        before.into_iter().try_for_each(|falling| falling.close(take))?;
    }
    for falling in pending.into_values().flatten() {
        falling.close(take)?;
    }
    arrivals.try_for_each(|stray| take(stray.without_run()))
}

impl TakenBranch {
    fn without_run(&self) -> BranchRecord {
        BranchRecord { source: Some(self.source), target: self.target, last: None, count: self.count }
    }
}

/// Runs with the same source and target.
#[derive(Debug, Clone, Copy)]
struct RunFlow {
    source: Option<u64>,
    target: u64,
    count: u64,
}

impl RunFlow {
    fn record(self, last: Option<u64>) -> BranchRecord {
        BranchRecord { source: self.source, target: self.target, last, count: self.count }
    }
}

/// Flows in the order in which they began.
#[derive(Debug, Default)]
struct FlowQueue {
    list: VecDeque<RunFlow>,
    total: u128,
}

impl FlowQueue {
    fn push(&mut self, flow: RunFlow) {
        if flow.count > 0 {
            self.total += u128::from(flow.count);
            self.list.push_back(flow);
        }
    }

    /// Moves the oldest flows to the end of `to`, up to `max` in total. Returns the number moved.
    fn give(&mut self, max: u128, to: &mut FlowQueue) -> u128 {
        if self.total <= max {
            let given = std::mem::take(self);
            let total = given.total;
            if to.list.is_empty() {
                *to = given;
            } else {
                to.total += total;
                to.list.extend(given.list);
            }
            return total;
        }
        let mut left = max;
        while left > 0 {
            let Some(first) = self.list.front_mut() else { break };
            let part = u64::try_from(left).map_or(first.count, |left| left.min(first.count));
            to.push(RunFlow { count: part, ..*first });
            first.count -= part;
            if first.count == 0 {
                self.list.pop_front();
            }
            self.total -= u128::from(part);
            left -= u128::from(part);
        }
        max - left
    }
}

/// Flows at the end of straight code that may fall through.
#[derive(Debug)]
struct FallThrough {
    /// Address of the last instruction.
    last: u64,
    flows: FlowQueue,
}

impl FallThrough {
    fn close<E>(self, take: &mut impl FnMut(BranchRecord) -> Result<(), E>) -> Result<(), E> {
        self.flows.list.into_iter().try_for_each(|flow| take(flow.record(Some(self.last))))
    }
}
