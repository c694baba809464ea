//! Accesses counted by kind, before they are added to the counts of a region.

use kerntune_layout::DataCounts;

/// Kinds of pages, and more. The last one is none: the remainder of `u8::MAX`.
const KINDS: usize = 8;

/// Reads and writes by the mode of the code and the kind of the page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AccessTally([[[u64; 2]; KINDS]; 2]);

impl AccessTally {
    /// Counts an access by user or kernel code to a page of this kind, `u8::MAX` for none.
    #[inline]
    pub fn count(&mut self, user: bool, kind: u8, store: bool) {
        self.0[usize::from(user)][usize::from(kind) % KINDS][usize::from(store)] += 1;
    }

    /// Returns the accesses by mode.
    pub fn by_mode(&self) -> [DataCounts; 2] {
        self.0.map(|kinds| DataCounts {
            loads: kinds.iter().map(|[loads, _]| loads).sum(),
            stores: kinds.iter().map(|[_, stores]| stores).sum(),
            ..DataCounts::default()
        })
    }

    /// Returns kind, reads and writes of the accesses to pages of a kind.
    pub fn by_kind(&self) -> impl Iterator<Item = (usize, [u64; 2])> + '_ {
        let sum = |kind: usize| [0, 1].map(|store| self.0[0][kind][store] + self.0[1][kind][store]);
        (0..KINDS - 1).map(move |kind| (kind, sum(kind))).filter(|(_, counts)| *counts != [0; 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_counted_by_mode_and_by_kind() {
        let mut tally = AccessTally::default();
        for (user, kind, store) in [(false, 0, false), (true, 0, false), (true, 5, true), (false, 255, true)]
        {
            tally.count(user, kind, store);
        }
        let counts = |loads, stores| DataCounts { loads, stores, ..DataCounts::default() };
        assert_eq!(tally.by_mode(), [counts(1, 1), counts(1, 1)]);
        assert_eq!(tally.by_kind().collect::<Vec<_>>(), [(0, [2, 0]), (5, [0, 1])]);
    }
}
