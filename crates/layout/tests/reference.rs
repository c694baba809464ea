//! Comparison of the front end with a reference model that is simple enough to be obviously right.

use kerntune_layout::{
    CacheConfig, CpuMode, FrontEnd, FrontEndConfig, FrontEndCounts, L2Config, LargeTlbConfig, ModeCounts,
    PrefetchConfig, TlbConfig, LARGE_PAGE_BYTES, SMALL_PAGE_BYTES,
};
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};

/// Textbook cache.
struct ReferenceModel {
    sets: HashMap<u64, VecDeque<(u64, u64)>>,
    set_count: u64,
    ways: usize,
    block_bytes: u64,
}

impl ReferenceModel {
    fn new(entries: u64, ways: u64, block_bytes: u64) -> Self {
        Self { sets: HashMap::new(), set_count: entries / ways, ways: ways as usize, block_bytes }
    }

    fn walk(&mut self, start: u64, end: u64, space: u64) -> u64 {
        self.missed(start, end, space, 0).len() as u64
    }

    /// Makes a block the most recent of its set; returns true if it was missing.
    fn use_one(&mut self, block: u64, space: u64) -> bool {
        let set = self.sets.entry(block % self.set_count).or_default();
        let before = set.len();
        set.retain(|&held| held != (block, space));
        let missed = set.len() == before;
        set.push_back((block, space));
        if set.len() > self.ways {
            set.pop_front();
        }
        missed
    }

    /// Returns the missing blocks in order, each followed by those that it prefetched.
    fn missed(&mut self, start: u64, end: u64, space: u64, ahead: u64) -> Vec<(u64, bool)> {
        let mut missed = Vec::new();
        for block in start / self.block_bytes..=end / self.block_bytes {
            if !self.use_one(block, space) {
                continue;
            }
            missed.push((block, true));
            for next in block + 1..=block + ahead {
                let same_page = next * self.block_bytes / 4096 == block * self.block_bytes / 4096;
                let held = self.sets.entry(next % self.set_count).or_default().contains(&(next, space));
                if same_page && !held {
                    self.use_one(next, space);
                    missed.push((next, false));
                }
            }
        }
        missed
    }
}

/// State of a run-ahead fetch: number of lines fetched (repeats of a line not counted) and the last
/// awaited line.
#[derive(Default)]
struct RunAheadPath {
    last: Option<(u64, u64)>,
    lines: u64,
    awaited: Option<u64>,
}

impl RunAheadPath {
    /// Works like [`ReferenceModel::missed`], but a line no more than `reach` lines behind an
    /// awaited one is not awaited.
    fn missed(
        &mut self,
        l1i: &mut ReferenceModel,
        start: u64,
        end: u64,
        space: u64,
        reach: u64,
    ) -> Vec<(u64, bool)> {
        let mut missed = Vec::new();
        for block in start / l1i.block_bytes..=end / l1i.block_bytes {
            if self.last == Some((block, space)) {
                continue;
            }
            self.last = Some((block, space));
            self.lines += 1;
            if l1i.use_one(block, space) {
                let awaited = self.awaited.is_none_or(|line| self.lines - line > reach);
                if awaited {
                    self.awaited = Some(self.lines);
                }
                missed.push((block, awaited));
            }
        }
        missed
    }
}

fn config() -> impl Strategy<Value = FrontEndConfig> {
    let ways = prop_oneof![Just(1u64), Just(2), Just(3), Just(8)];
    let sets = || (0u32..4).prop_map(|n| 1u64 << n);
    let l2 = prop::option::of((ways.clone(), (2u32..6).prop_map(|n| 1u64 << n)));
    let large = prop::option::of((ways.clone(), sets()));
    let prefetch = prop::option::of((1u64..5, any::<bool>()).prop_map(|(lines, path)| PrefetchConfig {
        next_lines: (!path).then_some(lines),
        run_ahead_lines: path.then_some(lines),
    }));
    (ways.clone(), sets(), 4u32..8, ways, sets(), large, l2, prefetch).prop_map(
        |(ways, sets, line_log, tlb_ways, tlb_sets, large, l2, prefetch)| FrontEndConfig {
            name: "test".into(),
            description: String::new(),
            kernel_text_page_bytes: if large.is_some() { LARGE_PAGE_BYTES } else { SMALL_PAGE_BYTES },
            l1i: CacheConfig { size_bytes: (ways * sets) << line_log, ways, line_bytes: 1 << line_log },
            itlb: TlbConfig { entries: tlb_ways * tlb_sets, ways: tlb_ways },
            cycles: None,
            l2: l2.map(|(ways, sets)| L2Config { size_bytes: (ways * sets) << line_log, ways }),
            prefetch,
            data: None,
            branch: None,
            direction: None,
            itlb_large: large.map(|(ways, sets)| LargeTlbConfig { entries: ways * sets, ways: Some(ways) }),
        },
    )
}

/// Generates ranges that overlap: few pages, near and far apart, in the kernel and two user spaces.
fn fetches() -> impl Strategy<Value = Vec<(u64, u64, CpuMode, u64)>> {
    let one = (0u64..40, 0u64..4096, 0u64..300, 0u64..3, any::<bool>()).prop_map(
        |(page, offset, length, space, far)| {
            let stride = if far { LARGE_PAGE_BYTES } else { SMALL_PAGE_BYTES };
            let mode = if space == 0 { CpuMode::Kernel } else { CpuMode::User };
            let base = if space == 0 { 0xffff_ffff_8100_0000 } else { 0x40_0000 };
            let start = base + page * stride + offset;
            (start, start + length, mode, space)
        },
    );
    prop::collection::vec(one, 0..600)
}

proptest! {
    #[test]
    fn counts_equal_the_reference(config in config(), fetches in fetches()) {
        let mut fe = FrontEnd::new(&config).unwrap();
        let mut l1i = ReferenceModel::new(config.l1i.size_bytes / config.l1i.line_bytes, config.l1i.ways, config.l1i.line_bytes);
        let mut small = ReferenceModel::new(config.itlb.entries, config.itlb.ways, SMALL_PAGE_BYTES);
        let mut large = config.itlb_large.map(|t| ReferenceModel::new(t.entries, t.ways.unwrap(), LARGE_PAGE_BYTES));
        let mut l2 = config.l2.map(|c| ReferenceModel::new(c.size_bytes / config.l1i.line_bytes, c.ways, config.l1i.line_bytes));
        let mut expected = FrontEndCounts::default();
        let (mut l2_misses, mut path) = (0, RunAheadPath::default());
        for (start, end, mode, space) in fetches {
            fe.fetch(start, end, mode, space);
            let itlb = match mode {
                CpuMode::Kernel => large.as_mut().unwrap_or(&mut small),
                CpuMode::User => &mut small,
            };
            let missed = match config.prefetch.and_then(|prefetch| prefetch.run_ahead_lines) {
                Some(reach) => path.missed(&mut l1i, start, end, space, reach),
                None => l1i.missed(start, end, space, config.prefetch.and_then(|prefetch| prefetch.next_lines).unwrap_or(0)),
            };
            if let Some(l2) = &mut l2 {
                for &(line, awaited) in &missed {
                    l2_misses += u64::from(l2.use_one(line, space) && awaited);
                }
            }
            let one = ModeCounts {
                lines: end / config.l1i.line_bytes - start / config.l1i.line_bytes + 1,
                l1i_misses: missed.iter().filter(|(_, awaited)| *awaited).count() as u64,
                itlb_misses: itlb.walk(start, end, space),
            };
            match mode {
                CpuMode::Kernel => expected.kernel += one,
                CpuMode::User => expected.user += one,
            }
            prop_assert_eq!(fe.counts(), expected);
            let counted = fe.second_level_counts().map(|counts| counts.kernel.l2_misses + counts.user.l2_misses);
            prop_assert_eq!(counted, config.l2.map(|_| l2_misses));
        }
    }
}
