//! Regions between begin and end marks.

use kerntune_layout::{SecondLevelCounts, SecondLevelEvent};
use kerntune_trace::{CpuCounters, CpuFrontEnd, ModeCounters, ModelEventCount, Region};

/// Where all counters stand at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Virtual time, ns.
    pub now_ns: u64,
    /// Idle time so far, ns.
    pub idle_ns: u64,
    /// Kernel counters so far.
    pub kernel: ModeCounters,
    /// User counters so far.
    pub user: ModeCounters,
    /// What the model counted behind the first level.
    pub second_level: SecondLevelCounts,
    /// What each of several CPUs did: the parts of the sums above.
    pub cpus: Vec<CpuSnapshot>,
}

/// Where one CPU's counters stand.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuSnapshot {
    /// In which it was halted so far, ns.
    pub halted_ns: u64,
    /// Of its kernel code so far.
    pub kernel: ModeCounters,
    /// Of its user code so far.
    pub user: ModeCounters,
    /// What its model counted behind the first level; none without a model.
    pub second_level: Option<SecondLevelCounts>,
}

/// The regions seen so far and those that are open.
#[derive(Default)]
pub struct Regions {
    /// All, in order of their beginning.
    pub list: Vec<Region>,
    /// What the model counts behind the first level.
    events: Vec<SecondLevelEvent>,
    open: Vec<(usize, Snapshot)>,
}

impl Regions {
    /// None yet, of a model that counts these.
    pub fn new(events: Vec<SecondLevelEvent>) -> Self {
        Self { events, ..Self::default() }
    }

    /// How many are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Those that are open, outermost first.
    pub fn open(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.open.iter().map(|(index, _)| *index as u32)
    }

    /// Begins one; returns its index.
    pub fn begin(&mut self, name: String, at: Snapshot) -> u32 {
        let index = self.list.len();
        self.list.push(Region {
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

    /// One operation of the innermost region is done. Whether one is open.
    pub fn operation(&mut self) -> bool {
        match self.open.last() {
            Some((index, _)) => {
                self.list[*index].operations += 1;
                true
            }
            None => false,
        }
    }

    /// Ends the innermost open region of that name; `operations` of 0 keeps the marked count.
    pub fn end(&mut self, name: &str, operations: u64, at: Snapshot) -> Option<u32> {
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
        let at = |n| Snapshot {
            now_ns: n,
            second_level: SecondLevelCounts { kernel: second_level(n), user: second_level(2 * n) },
            kernel: ModeCounters { instructions: n, ..Default::default() },
            ..Default::default()
        };
        let mut regions = Regions::new(vec![SecondLevelEvent::L2Miss, SecondLevelEvent::BtbMiss]);
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
        let at = |n: u64, modelled: bool| Snapshot {
            cpus: vec![
                CpuSnapshot {
                    halted_ns: 2 * n,
                    kernel: ModeCounters { instructions: n, l1i_misses: 3 * n, ..Default::default() },
                    user: ModeCounters { instructions: 5 * n, taken_branches: n, ..Default::default() },
                    second_level: modelled.then(|| SecondLevelCounts {
                        kernel: SecondLevelModeCounts { l2_misses: n, ..Default::default() },
                        user: SecondLevelModeCounts { l2_misses: 4 * n, ..Default::default() },
                    }),
                },
                CpuSnapshot::default(),
            ],
            ..Default::default()
        };
        let region = |modelled| {
            let mut regions = Regions::new(vec![SecondLevelEvent::L2Miss]);
            regions.begin("rr".into(), at(10, modelled));
            regions.end("rr", 1, at(17, modelled));
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
