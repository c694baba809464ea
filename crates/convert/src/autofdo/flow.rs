//! Flow through blocks and edges, taken apart into runs from a branch's target to the next taken branch.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Straight code with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stretch {
    /// First instruction.
    pub start: u64,
    /// Last instruction.
    pub last: u64,
    /// What follows it in memory.
    pub end: u64,
    /// How often it ran.
    pub count: u64,
}

/// A taken branch with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival {
    /// Where it goes.
    pub target: u64,
    /// The branch.
    pub source: u64,
    /// How often it was taken.
    pub count: u64,
}

/// What leaves by a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Departure {
    /// How often it was taken, wherever it went.
    pub taken: u128,
    /// Control can go on behind it: it is conditional.
    pub falls_through: bool,
}

/// What control did `count` times: it came to `target` and ran straight on to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchRecord {
    /// The branch by which it came; none for entries and returns of interrupts, exceptions and system calls,
    /// and for the iterations of a repeated string instruction.
    pub source: Option<u64>,
    /// The first instruction.
    pub target: u64,
    /// The last instruction; none if no count says that the first one ran (an interrupt came before it).
    pub last: Option<u64>,
    /// How often, never 0.
    pub count: u64,
}

/// Takes the flow apart. Of `stretches` and `arrivals`, both sorted, and of `departures` by their branch.
///
/// Stretches are walked by address. Flows open where branches arrive; what a stretch ran more often than
/// branches and the code before it account for came from nowhere that is recorded. Flows close, the
/// oldest first, at a branch as often as it was taken, all of them at one that cannot fall through, and where
/// the code behind ran less often than they would need. So every stretch is in as many runs as it has counts, and
/// every branch in as many as it was taken, whatever the counts are. What is held at a time are the flows
/// through one place.
pub(super) fn runs<E>(
    stretches: &[Stretch],
    arrivals: &[Arrival],
    mut departures: HashMap<u64, Departure>,
    take: &mut impl FnMut(BranchRecord) -> Result<(), E>,
) -> Result<(), E> {
    let mut arrivals = arrivals.iter().peekable();
    // By the address where they would go on.
    let mut pending: BTreeMap<u64, Vec<Falling>> = BTreeMap::new();
    for here in stretches.chunk_by(|one, next| one.start == next.start) {
        let Some(start) = here.first().map(|stretch| stretch.start) else { continue };
        while let Some(entry) = pending.first_entry().filter(|entry| *entry.key() < start) {
            entry.remove().into_iter().try_for_each(|falling| falling.close(take))?;
        }
        while let Some(stray) = arrivals.next_if(|arrival| arrival.target < start) {
            take(stray.without_run())?;
        }
        let mut arrived = Flows::default();
        while let Some(arrival) = arrivals.next_if(|arrival| arrival.target == start) {
            arrived.push(Flow { source: Some(arrival.source), target: start, count: arrival.count });
        }
        let mut before = pending.remove(&start).unwrap_or_default();
        for stretch in here {
            let mut wanted = u128::from(stretch.count);
            // Branches first, as they are certain; but what was there before is older.
            let by_branch = wanted.min(arrived.total);
            wanted -= by_branch;
            let mut inside = Flows::default();
            for falling in &mut before {
                wanted -= falling.flows.give(wanted, &mut inside);
            }
            arrived.give(by_branch, &mut inside);
            inside.push(Flow {
                source: None,
                target: start,
                count: u64::try_from(wanted).unwrap_or(u64::MAX),
            });

            let mut leaving = Flows::default();
            if let Some(departure) = departures.get_mut(&stretch.last) {
                let most = if departure.falls_through { departure.taken } else { inside.total };
                departure.taken = departure.taken.saturating_sub(inside.give(most, &mut leaving));
            }
            Falling { last: stretch.last, flows: leaving }.close(take)?;
            let falling = Falling { last: stretch.last, flows: inside };
            // Nothing can go on inside of itself.
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

impl Arrival {
    fn without_run(&self) -> BranchRecord {
        BranchRecord { source: Some(self.source), target: self.target, last: None, count: self.count }
    }
}

/// Runs that have begun in the same way.
#[derive(Debug, Clone, Copy)]
struct Flow {
    source: Option<u64>,
    target: u64,
    count: u64,
}

impl Flow {
    fn record(self, last: Option<u64>) -> BranchRecord {
        BranchRecord { source: self.source, target: self.target, last, count: self.count }
    }
}

/// Flows in the order in which they began.
#[derive(Debug, Default)]
struct Flows {
    list: VecDeque<Flow>,
    total: u128,
}

impl Flows {
    fn push(&mut self, flow: Flow) {
        if flow.count > 0 {
            self.total += u128::from(flow.count);
            self.list.push_back(flow);
        }
    }

    /// Moves the oldest to the end of `to`, up to `most`. Returns how many.
    fn give(&mut self, most: u128, to: &mut Flows) -> u128 {
        if self.total <= most {
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
        let mut left = most;
        while left > 0 {
            let Some(first) = self.list.front_mut() else { break };
            let part = u64::try_from(left).map_or(first.count, |left| left.min(first.count));
            to.push(Flow { count: part, ..*first });
            first.count -= part;
            if first.count == 0 {
                self.list.pop_front();
            }
            self.total -= u128::from(part);
            left -= u128::from(part);
        }
        most - left
    }
}

/// Flows that left a stretch at its end, if they go on.
#[derive(Debug)]
struct Falling {
    /// The stretch's last instruction.
    last: u64,
    flows: Flows,
}

impl Falling {
    fn close<E>(self, take: &mut impl FnMut(BranchRecord) -> Result<(), E>) -> Result<(), E> {
        self.flows.list.into_iter().try_for_each(|flow| take(flow.record(Some(self.last))))
    }
}
