//! Counts of taken branches, by pair of blocks.

/// An open-addressing table of fixed size: nothing is allocated when an edge is counted.
pub struct Edges {
    keys: Box<[u64]>,
    counts: Box<[u64]>,
    used: usize,
    /// Branches that found the table full.
    pub uncounted: u64,
}

impl Edges {
    /// Room for `1 << bits` pairs, of which three quarters are used.
    pub fn new(bits: u32) -> Self {
        let size = 1usize << bits;
        Self {
            keys: vec![0; size].into_boxed_slice(),
            counts: vec![0; size].into_boxed_slice(),
            used: 0,
            uncounted: 0,
        }
    }

    /// Counts one branch from block `from` to block `to`; numbers from 1.
    #[inline]
    pub fn count(&mut self, from: u32, to: u32) {
        let key = u64::from(from) << 32 | u64::from(to);
        let mask = self.keys.len() - 1;
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            let found = self.keys[slot & mask];
            if found == key {
                self.counts[slot & mask] += 1;
                return;
            }
            if found == 0 {
                if self.used >= self.keys.len() / 4 * 3 {
                    self.uncounted += 1;
                    return;
                }
                self.used += 1;
                self.keys[slot & mask] = key;
                self.counts[slot & mask] = 1;
                return;
            }
            slot += 1;
        }
    }

    /// All pairs with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let pairs = self.keys.iter().zip(self.counts.iter()).filter(|(key, _)| **key != 0);
        pairs.map(|(key, count)| ((key >> 32) as u32, *key as u32, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_pair_and_says_when_it_is_full() {
        let mut edges = Edges::new(4);
        for to in 1..=14 {
            edges.count(7, to);
            edges.count(7, to);
        }
        assert_eq!(edges.iter().map(|(_, _, n)| n).sum::<u64>(), 24);
        assert_eq!(edges.uncounted, 4);
        assert!(edges.iter().all(|(from, to, n)| from == 7 && to <= 12 && n == 2));
    }
}
