//! Front-end model. `fetch` runs inside an emulator callback hundreds of millions of times.

use crate::config::{FrontEndConfig, LARGE_PAGE_BYTES, SMALL_PAGE_BYTES};
use crate::lru::LruSets;
use crate::second_level::{SecondLevel, SecondLevelCounts, SecondLevelEvent, TakenBranch};
use crate::{CpuMode, Result};
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

/// First-level events of one CPU mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeCounts {
    /// Lines fetched, whether hit or missed. A line counts once for each fetch that touches it.
    pub lines: u64,
    /// Lines that missed the L1I.
    pub l1i_misses: u64,
    /// Pages that missed the iTLB.
    pub itlb_misses: u64,
}

/// First-level events by CPU mode. Subtract two readings for the events between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontEndCounts {
    /// Fetches in [`CpuMode::Kernel`].
    pub kernel: ModeCounts,
    /// Fetches in [`CpuMode::User`].
    pub user: ModeCounts,
}

impl Sub for ModeCounts {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self {
            lines: self.lines - before.lines,
            l1i_misses: self.l1i_misses - before.l1i_misses,
            itlb_misses: self.itlb_misses - before.itlb_misses,
        }
    }
}

impl AddAssign for ModeCounts {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.l1i_misses += other.l1i_misses;
        self.itlb_misses += other.itlb_misses;
    }
}

impl Sub for FrontEndCounts {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self { kernel: self.kernel - before.kernel, user: self.user - before.user }
    }
}

impl AddAssign for FrontEndCounts {
    fn add_assign(&mut self, other: Self) {
        self.kernel += other.kernel;
        self.user += other.user;
    }
}

/// Front end of one core: L1I and iTLB with true LRU replacement and, if the model has them, the L2
/// behind the L1I and the predictors of branch targets and directions.
///
/// The model has no prefetching unless configured, no speculation, no data in the L2, and no TLB
/// flush on a context switch (entries are tagged, as with PCIDs). Kernel-mode fetches use pages of
/// `kernel_text_page_bytes`, user-mode fetches 4-KiB pages.
#[derive(Debug, Clone)]
pub struct FrontEnd {
    l1i: LruSets,
    itlb: LruSets,
    /// TLB for large pages of kernel text; `None` if kernel text shares the 4-KiB entries.
    itlb_large: Option<LruSets>,
    counts: FrontEndCounts,
    ahead: FetchAhead,
    /// Boxed, so that models without these parts pay nothing for them.
    second_level: Option<Box<SecondLevel>>,
}

/// State of the prefetcher.
#[derive(Debug, Clone, Copy)]
enum FetchAhead {
    Nothing,
    /// Number of lines to prefetch after a miss.
    NextLines(u64),
    /// `lines` of the path are requested at an awaited line; `asked` of them are left.
    Path {
        lines: u64,
        asked: u64,
    },
}

impl FetchAhead {
    fn new(config: &FrontEndConfig) -> Self {
        let prefetch = config.prefetch.map(|prefetch| (prefetch.next_lines, prefetch.run_ahead_lines));
        match prefetch {
            Some((Some(lines), _)) => Self::NextLines(lines),
            Some((None, Some(lines))) => Self::Path { lines, asked: 0 },
            _ => Self::Nothing,
        }
    }

    /// Discards the requests, which were for another path.
    fn lose_the_path(&mut self) {
        if let Self::Path { asked, .. } = self {
            *asked = 0;
        }
    }
}

impl FrontEnd {
    /// Creates empty caches.
    ///
    /// # Errors
    /// Those of [`FrontEndConfig::validate`].
    pub fn new(config: &FrontEndConfig) -> Result<Self> {
        config.validate()?;
        let l1i = config.l1i;
        let large = config.itlb_large.filter(|_| config.kernel_text_page_bytes == LARGE_PAGE_BYTES);
        Ok(Self {
            l1i: LruSets::new(l1i.size_bytes / l1i.line_bytes, l1i.ways, l1i.line_bytes),
            itlb: LruSets::new(config.itlb.entries, config.itlb.ways, SMALL_PAGE_BYTES),
            itlb_large: large.map(|t| LruSets::new(t.entries, t.ways.unwrap_or(t.entries), LARGE_PAGE_BYTES)),
            counts: FrontEndCounts::default(),
            ahead: FetchAhead::new(config),
            second_level: SecondLevel::new(config).map(Box::new),
        })
    }

    /// Fetches the bytes `start..=end_inclusive`, a straight run of instructions.
    ///
    /// `space` separates address spaces: 0 for the kernel, and for user code any number that
    /// identifies the process or the physical page. It is hashed into the tags; with 0 the tags are
    /// exact. An end before the start counts as one byte. The cost is proportional to the length of
    /// the range, so pass basic blocks.
    #[inline]
    pub fn fetch(&mut self, start: u64, end_inclusive: u64, mode: CpuMode, space: u64) {
        self.fetch_with_misses(start, end_inclusive, mode, space, |_, _| ());
    }

    /// Fetches as [`FrontEnd::fetch`] does, and calls `missed` with the number and the tag salt of
    /// each line that the L1I misses or prefetches. The salt is derived from `space`.
    #[inline]
    pub fn fetch_with_misses(
        &mut self,
        start: u64,
        end_inclusive: u64,
        mode: CpuMode,
        space: u64,
        mut missed: impl FnMut(u64, u64),
    ) {
        let salt = salt(space);
        let end = end_inclusive.max(start);
        let (counts, itlb) = match (mode, &mut self.itlb_large) {
            (CpuMode::User, _) => (&mut self.counts.user, &mut self.itlb),
            (CpuMode::Kernel, None) => (&mut self.counts.kernel, &mut self.itlb),
            (CpuMode::Kernel, Some(large)) => (&mut self.counts.kernel, large),
        };
        counts.itlb_misses += itlb.walk(start, end, salt, |_| ());
        let second_level = &mut self.second_level;
        let mut missed_or_ahead = |line, awaited| {
            match (second_level.as_mut(), awaited) {
                (Some(second_level), true) => second_level.line(line, salt, mode),
                (Some(second_level), false) => second_level.line_ahead(line, salt),
                (None, _) => {}
            }
            missed(line, salt);
        };
        let range = (start, end);
        counts.l1i_misses += match &mut self.ahead {
            FetchAhead::Nothing => self.l1i.walk(start, end, salt, |line| missed_or_ahead(line, true)),
            FetchAhead::NextLines(lines) => self.l1i.walk_ahead(range, salt, *lines, missed_or_ahead),
            FetchAhead::Path { lines, asked } => {
                self.l1i.walk_running_ahead(range, salt, (*lines, asked), missed_or_ahead)
            }
        };
        counts.lines += self.l1i.blocks(start, end);
    }

    /// Records a taken branch; `space` is that of [`FrontEnd::fetch`].
    #[inline]
    pub fn branch(&mut self, branch: &TakenBranch, mode: CpuMode, space: u64) {
        if let Some(second_level) = &mut self.second_level {
            if !second_level.branch(branch, salt(space), mode) {
                self.ahead.lose_the_path();
            }
        }
    }

    /// Returns true if the model predicts directions, so that [`FrontEnd::not_taken`] has an
    /// effect.
    pub fn guesses_directions(&self) -> bool {
        self.second_level.as_ref().is_some_and(|second_level| second_level.guesses_directions())
    }

    /// Records that the conditional branch at `source` to `target` was not taken; `space` is that
    /// of [`FrontEnd::fetch`].
    #[inline]
    pub fn not_taken(&mut self, source: u64, target: u64, mode: CpuMode, space: u64) {
        if let Some(second_level) = &mut self.second_level {
            if !second_level.not_taken(source, target, salt(space), mode) {
                self.ahead.lose_the_path();
            }
        }
    }

    /// Returns all first-level events since creation.
    pub fn counts(&self) -> FrontEndCounts {
        self.counts
    }

    /// Returns the second-level events since creation; `None` if the model has no such parts.
    pub fn second_level_counts(&self) -> Option<SecondLevelCounts> {
        self.second_level.as_ref().map(|second_level| second_level.counts())
    }

    /// Returns the kinds of events that [`FrontEnd::second_level_counts`] can contain.
    pub fn second_level_events(&self) -> Vec<SecondLevelEvent> {
        self.second_level.as_ref().map(|second_level| second_level.events()).unwrap_or_default()
    }
}

/// Spreads a space over all bits. Multiplication by an odd constant is one to one.
#[inline]
fn salt(space: u64) -> u64 {
    space.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: u64 = 0xffff_ffff_8100_0000;

    fn front_end(model: &str) -> FrontEnd {
        FrontEnd::new(&FrontEndConfig::named(model).unwrap()).unwrap()
    }

    #[test]
    fn the_ninth_line_of_a_set_evicts_the_least_recently_used() {
        let mut fe = front_end("generic");
        let line = |i: u64| TEXT + i * 4096; // all in set 0
        for i in 0..8 {
            fe.fetch(line(i), line(i), CpuMode::Kernel, 0);
        }
        fe.fetch(line(0), line(0), CpuMode::Kernel, 0); // now 1 is the oldest
        fe.fetch(line(8), line(8), CpuMode::Kernel, 0);
        let before = fe.counts();
        assert_eq!(before.kernel.l1i_misses, 9);
        fe.fetch(line(0), line(0), CpuMode::Kernel, 0);
        assert_eq!((fe.counts() - before).kernel.l1i_misses, 0);
        fe.fetch(line(1), line(1), CpuMode::Kernel, 0);
        assert_eq!((fe.counts() - before).kernel.l1i_misses, 1);
    }

    #[test]
    fn modes_are_counted_apart_and_spaces_do_not_hit_each_other() {
        let mut fe = front_end("generic");
        for space in [1, 2, 1, 2] {
            fe.fetch(0x40_1000, 0x40_103f, CpuMode::User, space);
        }
        assert_eq!(fe.counts().user, ModeCounts { lines: 4, l1i_misses: 2, itlb_misses: 2 });
        assert_eq!(fe.counts().kernel, ModeCounts::default());
    }

    #[test]
    fn a_missed_line_brings_the_next_of_its_page_along() {
        let text = FrontEndConfig::named_text("generic").unwrap();
        let config = FrontEndConfig::parse(&format!("{text}\n[prefetch]\nnext_lines = 1\n")).unwrap();
        let mut fe = FrontEnd::new(&config).unwrap();
        let misses = |fe: &FrontEnd| fe.counts().kernel.l1i_misses;
        // In a straight run every other line misses.
        fe.fetch(TEXT, TEXT + 8 * 64 - 1, CpuMode::Kernel, 0);
        assert_eq!(misses(&fe), 4);
        // The last line of a page prefetches nothing.
        fe.fetch(TEXT + 4032, TEXT + 4095, CpuMode::Kernel, 0);
        fe.fetch(TEXT + 4096, TEXT + 4096, CpuMode::Kernel, 0);
        assert_eq!(misses(&fe), 6);
        // A prefetched line is no miss and prefetches nothing itself.
        fe.fetch(TEXT + 4096 + 64, TEXT + 4096 + 64, CpuMode::Kernel, 0);
        fe.fetch(TEXT + 4096 + 128, TEXT + 4096 + 128, CpuMode::Kernel, 0);
        assert_eq!(misses(&fe), 7);
    }

    #[test]
    fn while_a_line_is_waited_for_the_next_of_the_path_are_asked_for() {
        let text = FrontEndConfig::named_text("generic").unwrap();
        let config = format!("{text}\n[prefetch]\nrun_ahead_lines = 3\n[direction]\nkind = \"static\"\n");
        let config = config.replace("[cycles]", "[cycles]\nmisprediction = 14");
        let mut fe = FrontEnd::new(&FrontEndConfig::parse(&config).unwrap()).unwrap();
        let misses = |fe: &FrontEnd| fe.counts().kernel.l1i_misses;
        let line =
            |fe: &mut FrontEnd, at: u64| fe.fetch(TEXT + at * 64, TEXT + at * 64 + 63, CpuMode::Kernel, 0);
        // One line is awaited; the next three of the path come with it, wherever they are.
        for at in [0, 100, 101, 500] {
            line(&mut fe, at);
        }
        assert_eq!(misses(&fe), 1);
        // Repeating a line uses up no request; a line that hits does.
        for at in [1000, 1000, 0, 1001, 1002] {
            line(&mut fe, at);
        }
        assert_eq!(misses(&fe), 2);
        line(&mut fe, 1003);
        assert_eq!(misses(&fe), 3);
        // The static rule predicts backward branches as taken: the requests were for another path.
        fe.not_taken(TEXT + 1003 * 64, TEXT, CpuMode::Kernel, 0);
        line(&mut fe, 1004);
        assert_eq!(misses(&fe), 4);
        // A correctly predicted branch stays on the path.
        fe.not_taken(TEXT, TEXT + 64, CpuMode::Kernel, 0);
        line(&mut fe, 1005);
        assert_eq!(misses(&fe), 4);
    }

    #[test]
    fn large_pages_cover_two_mebibytes_of_kernel_text_and_leave_the_small_entries_alone() {
        let mut small = front_end("generic");
        let mut large = front_end("skylake");
        for fe in [&mut small, &mut large] {
            for page in 0..512 {
                fe.fetch(TEXT + page * 4096, TEXT + page * 4096, CpuMode::Kernel, 0);
            }
        }
        assert_eq!(small.counts().kernel.itlb_misses, 512);
        assert_eq!(large.counts().kernel.itlb_misses, 1);
    }

    #[test]
    fn the_top_of_the_address_space_and_backward_ranges_end() {
        let mut fe = front_end("generic");
        fe.fetch(u64::MAX - 1, u64::MAX, CpuMode::Kernel, 0);
        fe.fetch(u64::MAX, 0, CpuMode::Kernel, 0);
        fe.fetch(0, 0, CpuMode::User, u64::MAX);
        assert_eq!(fe.counts().kernel.lines, 2);
        assert_eq!(fe.counts().user.l1i_misses, 1);
    }
}
