//! Regions between begin and end marks.

use kerntune_layout::{SecondLevelCounts, SecondLevelEvent};
use kerntune_trace::{CpuCounters, CpuFrontEnd, ModeCounters, ModelEventCount, RecordedRegion};

/// Values of all counters at one moment.
#[derive(Debug, Clone, Default)]
pub struct CounterSnapshot {
    /// Virtual time, in ns.
    pub now_ns: u64,
    /// Idle time so far, in ns.
    pub idle_ns: u64,
    /// Counters of kernel code.
    pub kernel: ModeCounters,
    /// Counters of user code.
    pub user: ModeCounters,
    /// Second-level events of the model.
    pub second_level: SecondLevelCounts,
    /// Each CPU's part of these values, on machines with several CPUs.
    pub cpus: Vec<CpuSnapshot>,
}

/// Values of one CPU's counters at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuSnapshot {
    /// Halted time so far, in ns.
    pub halted_ns: u64,
    /// Counters of the CPU's kernel code.
    pub kernel: ModeCounters,
    /// Counters of the CPU's user code.
    pub user: ModeCounters,
    /// Second-level events of the CPU's model; `None` without a model.
    pub second_level: Option<SecondLevelCounts>,
}

/// Regions seen so far and currently open.
#[derive(Default)]
pub struct RegionTracker {
    /// All regions in the order of their begin marks.
    pub list: Vec<RecordedRegion>,
    /// Kinds of second-level events that the model counts.
    events: Vec<SecondLevelEvent>,
    open: Vec<(usize, CounterSnapshot)>,
}

impl RegionTracker {
    /// Creates an empty tracker for a model that counts these events.
    pub fn new(events: Vec<SecondLevelEvent>) -> Self {
        Self { events, ..Self::default() }
    }

    /// Returns the number of open regions.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Returns the indices of the open regions, outermost first.
    pub fn open(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.open.iter().map(|(index, _)| *index as u32)
    }

    /// Opens a region and returns its index.
    pub fn begin(&mut self, name: String, at: CounterSnapshot) -> u32 {
        let index = self.list.len();
        self.list.push(RecordedRegion {
            name,
            begin_ns: at.now_ns,
            elapsed_ns: 0,
            idle_ns: 0,
            operations: 0,
            depth: self.open.len() as u32,
            closed: false,
            kernel: ModeCounters::default(),
            user: ModeCounters::default(),
            model_events: Vec::new(),
            cpus: Vec::new(),
        });
        self.open.push((index, at));
        index as u32
    }

    /// Counts an operation of the innermost open region. Returns false if none is open.
    pub fn operation(&mut self) -> bool {
        match self.open.last() {
            Some((index, _)) => {
                self.list[*index].operations += 1;
                true
            }
            None => false,
        }
    }

    /// Closes the innermost open region of this name and returns its index. With 0 `operations` the
    /// marked count is kept.
    pub fn end(&mut self, name: &str, operations: u64, at: CounterSnapshot) -> Option<u32> {
        let place = self.open.iter().rposition(|(index, _)| self.list[*index].name == name)?;
        let (index, begin) = self.open.remove(place);
        let region = &mut self.list[index];
        region.elapsed_ns = at.now_ns.saturating_sub(begin.now_ns);
        region.idle_ns = at.idle_ns - begin.idle_ns;
        region.kernel = at.kernel - begin.kernel;
        region.user = at.user - begin.user;
        let behind = |second_level: SecondLevelCounts| {
            let counted = |&event: &SecondLevelEvent| ModelEventCount {
                event: event.name().into(),
                kernel: second_level.kernel.of(event),
                user: second_level.user.of(event),
            };
            self.events.iter().map(counted).collect()
        };
        region.model_events = behind(at.second_level - begin.second_level);
        let of_a_cpu = |(now, then): (&CpuSnapshot, CpuSnapshot)| {
            let (kernel, user) = (now.kernel - then.kernel, now.user - then.user);
            CpuCounters {
                kernel: kernel.instructions,
                user: user.instructions,
                halted_ns: now.halted_ns - then.halted_ns,
                front_end: now.second_level.zip(then.second_level).map(|(now, then)| CpuFrontEnd {
                    kernel,
                    user,
                    model_events: behind(now - then),
                }),
            }
        };
        region.cpus = at.cpus.iter().zip(begin.cpus).map(of_a_cpu).collect();
        if operations != 0 {
            region.operations = operations;
        }
        region.closed = true;
        Some(index as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_layout::SecondLevelModeCounts;

    #[test]
    fn nested_regions_count_for_themselves_and_around() {
        let second_level =
            |n| SecondLevelModeCounts { l2_misses: n, btb_misses: 2 * n, ..Default::default() };
        let at = |n| CounterSnapshot {
            now_ns: n,
            second_level: SecondLevelCounts { kernel: second_level(n), user: second_level(2 * n) },
            kernel: ModeCounters { instructions: n, ..Default::default() },
            ..Default::default()
        };
        let mut regions = RegionTracker::new(vec![SecondLevelEvent::L2Miss, SecondLevelEvent::BtbMiss]);
        regions.begin("outer".into(), at(10));
        regions.begin("inner".into(), at(20));
        regions.operation();
        regions.operation();
        assert_eq!(regions.end("inner", 0, at(50)), Some(1));
        assert_eq!(regions.end("nobody", 0, at(50)), None);
        assert_eq!(regions.end("outer", 7, at(100)), Some(0));
        assert_eq!(regions.list[1].kernel.instructions, 30);
        assert_eq!((regions.list[1].operations, regions.list[1].depth), (2, 1));
        let counted = |event: &str, kernel, user| ModelEventCount { event: event.into(), kernel, user };
        assert_eq!(regions.list[1].model_events, [counted("l2_miss", 30, 60), counted("btb_miss", 60, 120)]);
        assert_eq!((regions.list[0].elapsed_ns, regions.list[0].operations), (90, 7));
        assert!(regions.list.iter().all(|region| region.cpus.is_empty()), "one CPU is all there is");
    }

    #[test]
    fn each_of_several_cpus_has_its_part_of_what_the_model_counted() {
        let at = |n: u64, modeled: bool| CounterSnapshot {
            cpus: vec![
                CpuSnapshot {
                    halted_ns: 2 * n,
                    kernel: ModeCounters { instructions: n, l1i_misses: 3 * n, ..Default::default() },
                    user: ModeCounters { instructions: 5 * n, taken_branches: n, ..Default::default() },
                    second_level: modeled.then(|| SecondLevelCounts {
                        kernel: SecondLevelModeCounts { l2_misses: n, ..Default::default() },
                        user: SecondLevelModeCounts { l2_misses: 4 * n, ..Default::default() },
                    }),
                },
                CpuSnapshot::default(),
            ],
            ..Default::default()
        };
        let region = |modeled| {
            let mut regions = RegionTracker::new(vec![SecondLevelEvent::L2Miss]);
            regions.begin("rr".into(), at(10, modeled));
            regions.end("rr", 1, at(17, modeled));
            regions.list.remove(0)
        };
        let cpus = region(true).cpus;
        assert_eq!((cpus[0].kernel, cpus[0].user, cpus[0].halted_ns), (7, 35, 14));
        let front_end = cpus[0].front_end.as_ref().unwrap();
        assert_eq!((front_end.kernel.l1i_misses, front_end.user.taken_branches), (21, 7));
        let l2 = ModelEventCount { event: "l2_miss".into(), kernel: 7, user: 28 };
        assert_eq!(front_end.model_events, [l2]);
        assert!(region(false).cpus[0].front_end.is_none());
    }
}
