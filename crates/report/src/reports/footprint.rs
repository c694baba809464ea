//! Footprint of hot code: executed kernel code in bytes, cache lines and pages.
//!
//! Blocks are taken in order of frequency, most frequent first, until they make up a share of all
//! executed instructions. An instruction cache must hold the lines of these blocks to serve that
//! share. The executed bytes on these lines show how much of the lines is useful: no order of
//! functions needs fewer lines than these bytes fill.

use super::{entry, Entry, Report};
use crate::{head, health, Error, Result};
use clap::Args;
use kerntune_profile::{Block, Profile};
use kerntune_table::{Columns, Document, Table};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Name and version of the JSON form, see `docs/json.md`.
pub const SCHEMA: &str = "kerntune-footprint/1";

/// Registry entry of `kerntune report PROFILE footprint`.
pub const ENTRY: Entry = entry::<FootprintOptions>("footprint", 11);

/// Description of the JSON form.
const ABOUT: &str = "Bytes, cache lines and pages of the kernel code that is executed most often.";

/// Footprint of hot code: bytes, cache lines and pages of the most frequent blocks
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct FootprintOptions;

/// Size of a cache line in bytes, on every x86-64 CPU.
pub const LINE_BYTES: u64 = 64;
/// Size of a small page in bytes.
pub const PAGE_BYTES: u64 = 4096;

/// Shares of the executed instructions, in per cent, one row each.
const SHARES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// Most frequent blocks that make up a share of the executed instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FootprintRow {
    /// Share of all executed kernel instructions, in per cent.
    pub share_percent: f64,
    /// Number of blocks.
    pub blocks: u64,
    /// Executions of the least frequent of them.
    pub min_count: u64,
    /// Distinct bytes of code.
    pub bytes: u64,
    /// Cache lines of [`LINE_BYTES`] that the code touches.
    pub lines: u64,
    /// Used bytes, in per cent of these lines' size.
    pub line_use_percent: f64,
    /// Pages of [`PAGE_BYTES`] that the code touches.
    pub pages: u64,
}

/// Computes one row for each share, from the hottest code to all that ran.
///
/// # Errors
/// [`Error::NoBlocks`].
pub fn rows(profile: &Profile) -> Result<Vec<FootprintRow>> {
    let mut blocks: Vec<&Block> =
        profile.tables.blocks.iter().filter(|block| block.count > 0 && block.bytes > 0).collect();
    let executed = |block: &Block| u128::from(block.count) * u128::from(block.instructions.get());
    let all: u128 = blocks.iter().map(|block| executed(block)).sum();
    if all == 0 {
        return Err(Error::NoBlocks);
    }
    blocks.sort_by_key(|block| (std::cmp::Reverse(block.count), block.start));
    let mut touched = TouchedCode::default();
    let (mut rows, mut sum, mut next) = (Vec::new(), 0u128, blocks.iter().enumerate().peekable());
    for share in SHARES {
        let wanted = (all as f64 * share / 100.0) as u128;
        let mut last = None;
        while let Some((at, block)) = next.next_if(|_| sum < wanted || share == 100.0) {
            sum += executed(block);
            touched.add(block);
            last = Some((at, block.count));
        }
        // A share already reached by one hot block repeats the previous row.
        let (blocks, min_count) = match (last, rows.last()) {
            (Some((at, count)), _) => (at as u64 + 1, count),
            (None, Some(FootprintRow { blocks, min_count, .. })) => (*blocks, *min_count),
            (None, None) => (0, 0),
        };
        rows.push(touched.row(share, blocks, min_count));
    }
    Ok(rows)
}

/// Bytes touched so far: for each line a bit mask of its 64 bytes.
#[derive(Default)]
struct TouchedCode {
    lines: HashMap<u64, u64>,
    pages: HashSet<u64>,
    bytes: u64,
}

impl TouchedCode {
    fn add(&mut self, block: &Block) {
        let (mut from, end) = (block.start.get(), block.start.get().saturating_add(block.bytes));
        while from < end {
            let line = from / LINE_BYTES;
            let until = end.min((line + 1).saturating_mul(LINE_BYTES));
            let ones = u64::MAX >> (LINE_BYTES - (until - from)) << (from % LINE_BYTES);
            let seen = self.lines.entry(line).or_default();
            self.bytes += u64::from((ones & !*seen).count_ones());
            *seen |= ones;
            self.pages.insert(from / PAGE_BYTES);
            from = until;
        }
    }

    fn row(&self, share_percent: f64, blocks: u64, min_count: u64) -> FootprintRow {
        let lines = self.lines.len() as u64;
        let line_use_percent = 100.0 * self.bytes as f64 / (lines * LINE_BYTES).max(1) as f64;
        let (bytes, pages) = (self.bytes, self.pages.len() as u64);
        FootprintRow { share_percent, blocks, min_count, bytes, lines, line_use_percent, pages }
    }
}

impl Report for FootprintOptions {
    fn document<'a>(&'a self, profile: &'a Profile) -> Result<Document<'a>> {
        let mut document = head::document(SCHEMA, ABOUT, profile, None, None);
        document.field("line_bytes", "Size of a cache line.", LINE_BYTES);
        document.field("page_bytes", "Size of a page.", PAGE_BYTES);
        let mut columns = Columns::<FootprintRow>::new();
        columns
            .add("share_percent", "Share of the executed kernel instructions.", |row| row.share_percent)
            .head("% of\ninstructions")
            .text(|row| row.share_percent.to_string());
        columns.add("blocks", "Most frequent blocks that make this share.", |row| row.blocks).head("blocks");
        columns
            .add("least_count", "Executions of the least frequent of them.", |row| row.min_count)
            .head("executed at\nleast times");
        columns.add("bytes", "Different bytes of code.", |row| row.bytes).head("bytes\nof code");
        columns.add("lines", "Cache lines with such bytes.", |row| row.lines).head("64-byte\nlines");
        columns
            .add("line_use_percent", "Bytes in percent of what the lines hold.", |row| row.line_use_percent)
            .head("% of lines\nexecuted")
            .decimals(1);
        columns.add("pages", "Pages with such bytes.", |row| row.pages).head("4-KiB\npages");
        document
            .table(Table::new("rows", rows(profile)?, columns).help("A row for each share, smallest first."));
        document.text(
            "\nKernel code of the whole recording, the most frequent blocks first. A 32-KiB cache holds 512 lines.\n",
        );
        health::add(&mut document, profile);
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, Instructions, KernelId, Manifest, Tables};

    fn profile(blocks: &[(u64, u64, u64, u64)]) -> Profile {
        let block = |&(start, bytes, instructions, count): &(u64, u64, u64, u64)| Block {
            start: Address(start),
            last: Address(start),
            count,
            instructions: Instructions(instructions),
            bytes,
        };
        let tables = Tables { blocks: blocks.iter().map(block).collect(), ..Tables::default() };
        Profile { manifest: Manifest::new("p1", KernelId::default(), "rr", "emulator"), tables }
    }

    #[test]
    fn lines_are_counted_once_and_the_hottest_first() {
        // 60 bytes over two lines, the same code entered in the middle, a cold block on another
        // page.
        let profile =
            profile(&[(0x1010, 60, 15, 100), (0x1030, 28, 7, 100), (0x5000, 4, 1, 2), (0x9000, 8, 2, 0)]);
        let rows = rows(&profile).unwrap();
        assert_eq!(rows.len(), SHARES.len());
        let half = &rows[0];
        assert_eq!((half.blocks, half.bytes, half.lines, half.pages, half.min_count), (1, 60, 2, 1, 100));
        let all = &rows[5];
        assert_eq!((all.blocks, all.bytes, all.lines, all.pages, all.min_count), (3, 64, 3, 2, 2));
        assert!((all.line_use_percent - 100.0 * 64.0 / 192.0).abs() < 1e-9);
        assert!(rows.windows(2).all(|pair| pair[0].bytes <= pair[1].bytes));
    }

    #[test]
    fn a_whole_line_and_the_last_one_are_counted_to_the_byte() {
        let line = rows(&profile(&[(0x1000, 64, 16, 1)])).unwrap();
        assert_eq!((line[5].bytes, line[5].lines, line[5].line_use_percent), (64, 1, 100.0));
        let last = rows(&profile(&[(u64::MAX - 3, 4, 1, 1)])).unwrap();
        assert_eq!(last[5].lines, 1);
        assert!(matches!(rows(&profile(&[])), Err(Error::NoBlocks)));
        assert!(FootprintOptions
            .text(&profile(&[(0x1000, 4, 1, 1)]), crate::Style::PLAIN)
            .unwrap()
            .contains("64-byte"));
    }
}
