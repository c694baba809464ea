//! Regions between begin and end marks.

use kerntune_trace::{ModeCounters, Region};

/// Where all counters stand at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Snapshot {
    /// Virtual time, ns.
    pub now_ns: u64,
    /// Idle time so far, ns.
    pub idle_ns: u64,
    /// Kernel counters so far.
    pub kernel: ModeCounters,
    /// User counters so far.
    pub user: ModeCounters,
}

/// The regions seen so far and those that are open.
#[derive(Default)]
pub struct Regions {
    /// All, in order of their beginning.
    pub list: Vec<Region>,
    open: Vec<(usize, Snapshot)>,
}

impl Regions {
    /// How many are open.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Those that are open, outermost first.
    pub fn open(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.open.iter().map(|&(index, _)| index as u32)
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
        });
        self.open.push((index, at));
        index as u32
    }

    /// One operation of the innermost region is done. Whether one is open.
    pub fn operation(&mut self) -> bool {
        match self.open.last() {
            Some(&(index, _)) => {
                self.list[index].operations += 1;
                true
            }
            None => false,
        }
    }

    /// Ends the innermost open region of that name; `operations` of 0 keeps the marked count.
    pub fn end(&mut self, name: &str, operations: u64, at: Snapshot) -> Option<u32> {
        let place = self.open.iter().rposition(|&(index, _)| self.list[index].name == name)?;
        let (index, begin) = self.open.remove(place);
        let region = &mut self.list[index];
        region.elapsed_ns = at.now_ns.saturating_sub(begin.now_ns);
        region.idle_ns = at.idle_ns - begin.idle_ns;
        region.kernel = at.kernel - begin.kernel;
        region.user = at.user - begin.user;
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

    #[test]
    fn nested_regions_count_for_themselves_and_around() {
        let at = |n| Snapshot {
            now_ns: n,
            kernel: ModeCounters { instructions: n, ..Default::default() },
            ..Default::default()
        };
        let mut regions = Regions::default();
        regions.begin("outer".into(), at(10));
        regions.begin("inner".into(), at(20));
        regions.operation();
        regions.operation();
        assert_eq!(regions.end("inner", 0, at(50)), Some(1));
        assert_eq!(regions.end("nobody", 0, at(50)), None);
        assert_eq!(regions.end("outer", 7, at(100)), Some(0));
        assert_eq!(regions.list[1].kernel.instructions, 30);
        assert_eq!((regions.list[1].operations, regions.list[1].depth), (2, 1));
        assert_eq!((regions.list[0].elapsed_ns, regions.list[0].operations), (90, 7));
    }
}
