//! gshare: two-bit counters, indexed by the branch's address XOR the last outcomes.

use super::counter::TwoBitCounter;

#[derive(Debug, Clone)]
pub(crate) struct Gshare {
    counters: Box<[TwoBitCounter]>,
    /// Last outcomes, the newest in the lowest bit.
    history: u64,
    history_mask: u64,
}

impl Gshare {
    pub(super) fn new(entries: u64, history: u64) -> Self {
        Self {
            counters: vec![TwoBitCounter::WEAK; entries as usize].into_boxed_slice(),
            history: 0,
            history_mask: (1 << history) - 1,
        }
    }

    #[inline]
    pub(super) fn guess(&mut self, branch: u64, taken: bool) -> bool {
        let index = (branch ^ self.history) as usize & (self.counters.len() - 1);
        let counter = &mut self.counters[index];
        let guess = counter.taken();
        counter.learn(taken);
        self.history = (self.history << 1 | u64::from(taken)) & self.history_mask;
        guess
    }
}
