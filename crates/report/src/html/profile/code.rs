//! Source lines and machine code of functions with execution counts, shown beside callers and
//! callees.
//!
//! Blocks are recorded with their counts, so that counts of instructions and lines are exact: the
//! rows sum to the instructions executed at the function's addresses. A block that does not match
//! the image, because the kernel patched its code, is a row of its own.

use super::pack;
use crate::Result;
use kerntune_profile::Tables;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Largest length of a function's source, in lines, that is shown without gaps.
const MAX_SOURCE_LINES: u32 = 1200;

/// Address, execution count, taken count of its branch, instruction, and row of
/// [`FunctionCode::lines`] (-1: none).
pub type CodeRow = (String, u64, u64, String, i64);

/// A function's source and machine code, with counts of the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FunctionCode {
    /// Instructions executed at the function's addresses.
    pub executed: u64,
    /// Source files, numbered for [`FunctionCode::lines`].
    pub files: Vec<String>,
    /// File, line, instructions executed for the line (`None`: it has no code), and its text if the
    /// source is available.
    pub lines: Vec<(i64, u32, Option<u64>, Option<String>)>,
    /// Machine code by address.
    pub code: Vec<CodeRow>,
    /// Remark for the reader: missing source, and the reason.
    pub note: String,
}

/// Code of functions that a page embeds.
#[derive(Debug, Clone, Default)]
pub struct PageCode {
    /// Row of the symbol table, and [`packed`] code.
    pub functions: Vec<(u32, Vec<u8>)>,
    /// Text shown for all other functions.
    pub rest: String,
}

/// Packs code for embedding in a page.
///
/// # Errors
/// None is expected.
pub fn packed(code: &FunctionCode) -> Result<Vec<u8>> {
    Ok(pack::bytes(code, 6).map_err(serde_json::Error::io)?)
}

/// Disassembled instruction of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedInstruction {
    /// Address of the instruction.
    pub address: u64,
    /// Address after the instruction.
    pub end: u64,
    /// Assembly text.
    pub text: String,
    /// Source file and line, if known.
    pub place: Option<(String, u32)>,
}

/// Execution counts of a profile's blocks and branches, by address.
#[derive(Debug, Clone, Default)]
pub struct BlockCounts {
    blocks: Vec<CountedBlock>,
    /// Taken counts by branch address.
    taken: HashMap<u64, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CountedBlock {
    start: u64,
    last: u64,
    instructions: u64,
    count: u64,
}

impl BlockCounts {
    /// Indexes the blocks and branches of a profile.
    pub fn new(tables: &Tables) -> Self {
        let blocks = tables.blocks.iter().filter(|block| block.count > 0);
        let mut blocks: Vec<_> = blocks
            .map(|block| CountedBlock {
                start: block.start.get(),
                last: block.last.get(),
                instructions: block.instructions.get(),
                count: block.count,
            })
            .collect();
        blocks.sort_unstable();
        let mut taken: HashMap<u64, u64> = HashMap::new();
        for edge in &tables.edges {
            let sum = taken.entry(edge.source.get()).or_default();
            *sum = sum.saturating_add(edge.count);
        }
        Self { blocks, taken }
    }

    /// Checks whether the profile has no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    fn within(&self, range: &Range<u64>) -> &[CountedBlock] {
        let from = self.blocks.partition_point(|block| block.start < range.start);
        let to = self.blocks.partition_point(|block| block.start < range.end);
        self.blocks.get(from..to).unwrap_or_default()
    }

    /// Returns the number of instructions executed in the ranges.
    pub fn executed(&self, ranges: &[Range<u64>]) -> u64 {
        let blocks = ranges.iter().flat_map(|range| self.within(range));
        blocks.fold(0, |sum, block| sum.saturating_add(block.count.saturating_mul(block.instructions)))
    }
}

struct InstructionRow {
    end: u64,
    text: String,
    place: Option<(String, u32)>,
    count: u64,
}

/// Assembles the code of the function that lies in `ranges`. `decode` disassembles a range of the
/// image; `source` returns the lines of a file.
pub fn function_code(
    ranges: &[Range<u64>],
    counts: &BlockCounts,
    decode: &mut dyn FnMut(Range<u64>) -> Vec<PlacedInstruction>,
    source: &mut dyn FnMut(&str) -> Option<Vec<String>>,
) -> FunctionCode {
    let mut rows: BTreeMap<u64, InstructionRow> = BTreeMap::new();
    // Blocks that do not match the image, by first and last instruction: number of instructions,
    // and count.
    let mut changed: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    let row = |one: PlacedInstruction| {
        (one.address, InstructionRow { end: one.end, text: one.text, place: one.place, count: 0 })
    };
    for range in ranges {
        rows.extend(decode(range.clone()).into_iter().filter(|one| one.address < range.end).map(row));
    }
    for range in ranges {
        for block in counts.within(range) {
            let walked = (block.last < range.end).then(|| walk(block, &mut rows, decode)).flatten();
            match walked {
                Some(addresses) => {
                    for address in addresses {
                        if let Some(row) = rows.get_mut(&address) {
                            row.count = row.count.saturating_add(block.count);
                        }
                    }
                }
                None => {
                    let sum = changed.entry((block.start, block.last)).or_insert((block.instructions, 0));
                    sum.1 = sum.1.saturating_add(block.count);
                }
            }
        }
    }
    written(rows, changed, counts, source)
}

/// Returns the addresses of a block's instructions, if the image has as many there.
fn walk(
    block: &CountedBlock,
    rows: &mut BTreeMap<u64, InstructionRow>,
    decode: &mut dyn FnMut(Range<u64>) -> Vec<PlacedInstruction>,
) -> Option<Vec<u64>> {
    let (mut at, mut addresses, mut new) = (block.start, Vec::new(), Vec::new());
    while (addresses.len() as u64) < block.instructions {
        let end = match rows.get(&at) {
            Some(row) => row.end,
            None => {
                // Code entered between the instructions of the preceding code.
                let one =
                    decode(at..at.checked_add(1)?).into_iter().next().filter(|one| one.address == at)?;
                let end = one.end;
                new.push(one);
                end
            }
        };
        addresses.push(at);
        if at >= block.last || end <= at {
            break;
        }
        at = end;
    }
    if addresses.last() != Some(&block.last) || addresses.len() as u64 != block.instructions {
        return None;
    }
    for one in new {
        rows.insert(one.address, InstructionRow { end: one.end, text: one.text, place: one.place, count: 0 });
    }
    Some(addresses)
}

fn written(
    rows: BTreeMap<u64, InstructionRow>,
    changed: BTreeMap<(u64, u64), (u64, u64)>,
    counts: &BlockCounts,
    source: &mut dyn FnMut(&str) -> Option<Vec<String>>,
) -> FunctionCode {
    let mut out = FunctionCode::default();
    // Instructions executed by file and line, files in code order. Code without a line comes last.
    let mut files: Vec<String> = Vec::new();
    let mut lines: BTreeMap<(usize, u32), u64> = BTreeMap::new();
    let mut no_line = None;
    let mut places = Vec::new();
    for row in rows.values() {
        let place = row.place.as_ref().map(|(file, line)| {
            let at = files.iter().position(|known| known == file).unwrap_or_else(|| {
                files.push(file.clone());
                files.len() - 1
            });
            (at, *line)
        });
        let sum = match place {
            Some(place) => lines.entry(place).or_default(),
            None => no_line.get_or_insert(0),
        };
        *sum = sum.saturating_add(row.count);
        out.executed = out.executed.saturating_add(row.count);
        places.push(place);
    }
    for (instructions, count) in changed.values() {
        let sum = no_line.get_or_insert(0);
        *sum = sum.saturating_add(instructions.saturating_mul(*count));
        out.executed = out.executed.saturating_add(instructions.saturating_mul(*count));
    }
    let mut number: HashMap<Option<(usize, u32)>, i64> = HashMap::new();
    if !files.is_empty() {
        source_lines(&files, &lines, source, &mut out, &mut number);
        if let Some(sum) = no_line {
            number.insert(None, out.lines.len() as i64);
            out.lines.push((-1, 0, Some(sum), Some("code of no line".into())));
        }
    }
    let of = |place: &Option<(usize, u32)>| number.get(place).copied().unwrap_or(-1);
    let mut code: Vec<(u64, CodeRow)> = rows
        .into_iter()
        .zip(&places)
        .map(|((address, row), place)| {
            let taken = counts.taken.get(&address).copied().unwrap_or_default();
            (address, (format!("{address:x}"), row.count, taken, row.text, of(place)))
        })
        .collect();
    for ((start, last), (instructions, count)) in &changed {
        let text =
            format!("({instructions} instructions to {last:x}, changed while the kernel ran, {count} times)");
        let ran = instructions.saturating_mul(*count);
        code.push((*start, (format!("{start:x}"), ran, 0, text, of(&None))));
    }
    code.sort_by_key(|(address, _)| *address);
    out.code = code.into_iter().map(|(_, row)| row).collect();
    out.files = files;
    out
}

/// Selects the lines to show: the function's own file from its first to its last line, other files
/// only where they have code.
fn source_lines(
    files: &[String],
    lines: &BTreeMap<(usize, u32), u64>,
    source: &mut dyn FnMut(&str) -> Option<Vec<String>>,
    out: &mut FunctionCode,
    number: &mut HashMap<Option<(usize, u32)>, i64>,
) {
    for (at, file) in files.iter().enumerate() {
        let text = source(file);
        let mine = || lines.range((at, 0)..=(at, u32::MAX)).map(|((_, line), sum)| (*line, *sum));
        let mut known = mine().filter(|(line, _)| *line > 0).map(|(line, _)| line);
        let first = known.next();
        let last = known.next_back().or(first);
        let mut shown: BTreeMap<u32, Option<u64>> = BTreeMap::new();
        if let (0, Some(first), Some(last), true) = (at, first, last, text.is_some()) {
            if last - first <= MAX_SOURCE_LINES {
                shown.extend((first..=last).map(|line| (line, None)));
            }
        }
        shown.extend(mine().map(|(line, sum)| (line, Some(sum))));
        for (line, sum) in shown {
            let words = match line {
                0 => Some("code of no line".into()),
                _ => text.as_ref().and_then(|text| text.get(line as usize - 1).cloned()),
            };
            number.insert(Some((at, line)), out.lines.len() as i64);
            out.lines.push((at as i64, line, sum, words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, Block, Edge, EdgeKind, Instructions};

    const WHOLE: Range<u64> = 100..124;
    const BEGINNING: Range<u64> = 100..112;

    /// Decodes instructions of four bytes each.
    fn decode(range: Range<u64>) -> Vec<PlacedInstruction> {
        let line = |address: u64| match address {
            0..=107 => Some(("a.c".to_owned(), 3)),
            108..=115 => Some(("a.h".to_owned(), 9)),
            _ => Some(("a.c".to_owned(), 5)),
        };
        let at = (range.start..range.end).step_by(4);
        at.map(|at| PlacedInstruction { address: at, end: at + 4, text: "nop".into(), place: line(at) })
            .collect()
    }

    fn tables(blocks: &[(u64, u64, u64, u64)]) -> Tables {
        let block = |(start, last, instructions, count): &(u64, u64, u64, u64)| Block {
            start: Address(*start),
            last: Address(*last),
            count: *count,
            instructions: Instructions(*instructions),
            bytes: last + 4 - start,
        };
        let edge = Edge { source: Address(108), target: Address(100), count: 6, kind: EdgeKind::Conditional };
        Tables { blocks: blocks.iter().map(block).collect(), edges: vec![edge], ..Tables::default() }
    }

    #[test]
    fn counts_are_of_every_block_that_an_instruction_is_in() {
        let tables = tables(&[(100, 108, 3, 10), (104, 108, 2, 5), (112, 120, 3, 4), (200, 204, 2, 9)]);
        let counts = BlockCounts::new(&tables);
        let text = || Some((1..=6).map(|line| format!("line {line}")).collect());
        let found = function_code(&[WHOLE], &counts, &mut decode, &mut |file| {
            if file == "a.c" {
                text()
            } else {
                None
            }
        });
        let ran: Vec<u64> = found.code.iter().map(|row| row.1).collect();
        assert_eq!(ran, [10, 15, 15, 4, 4, 4]);
        assert_eq!(found.code[2].2, 6);
        assert_eq!(found.executed, 52);
        assert_eq!(counts.executed(&[WHOLE]), 52);
        let lines: Vec<_> =
            found.lines.iter().map(|(file, line, sum, text)| (*file, *line, *sum, text.as_deref())).collect();
        assert_eq!(
            lines,
            [
                (0, 3, Some(25), Some("line 3")),
                (0, 4, None, Some("line 4")),
                (0, 5, Some(8), Some("line 5")),
                (1, 9, Some(19), None)
            ]
        );
        assert_eq!(found.code.iter().map(|row| row.4).collect::<Vec<_>>(), [0, 0, 3, 3, 2, 2]);
    }

    #[test]
    fn code_that_was_changed_is_a_row_of_its_own() {
        // Two instructions where the image has three; one that extends past the function; one from
        // between two instructions.
        let tables = tables(&[(100, 108, 2, 7), (116, 124, 3, 2), (102, 102, 1, 3)]);
        let counts = BlockCounts::new(&tables);
        let found = function_code(&[WHOLE], &counts, &mut decode, &mut |_| None);
        assert_eq!(found.executed, 7 * 2 + 2 * 3 + 3);
        assert_eq!(found.code.iter().map(|row| row.1).sum::<u64>(), found.executed);
        assert_eq!(found.lines.iter().filter_map(|line| line.2).sum::<u64>(), found.executed);
        assert_eq!(found.lines.last().map(|line| (line.0, line.2)), Some((-1, Some(20))));
        assert!(found.code.iter().any(|row| row.0 == "66" && row.1 == 3));
    }

    #[test]
    fn without_lines_there_is_code() {
        let mut bare = |range: Range<u64>| {
            decode(range).into_iter().map(|one| PlacedInstruction { place: None, ..one }).collect()
        };
        let tables = tables(&[(100, 108, 3, 10)]);
        let found = function_code(&[BEGINNING], &BlockCounts::new(&tables), &mut bare, &mut |_| None);
        assert!(found.lines.is_empty() && found.code.iter().all(|row| row.4 == -1));
        assert_eq!(found.executed, 30);
    }
}
