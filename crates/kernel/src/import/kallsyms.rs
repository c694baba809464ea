//! The kernel's own symbol table (kallsyms), read from the bytes of its image.
//!
//! The tables have no header and no pointer to them. `scripts/kallsyms.c` writes them into
//! `.rodata`: the number of symbols, their names as strings of tokens, marks (the position of each
//! 256th name), the 256 tokens, their positions, and a 32-bit offset for each address. The ten
//! digits are tokens of themselves, one after the other, which is where the search begins. Offsets
//! stand before the names up to Linux 6.3 and behind the tokens later. They count from a base
//! behind them, up to 6.14 with negative numbers to leave those of per-CPU variables absolute, and
//! in 7.x from their own place.

use crate::import::image_elf::ImageElf;
use std::collections::HashSet;

/// Fewer symbols are taken for other data. Linux has tens of thousands.
const MIN_SYMBOLS: usize = 1000;
const MAX_SYMBOLS: usize = 8 << 20;
/// Names between two marks.
const MARK_EVERY: usize = 256;
/// Longest token, in bytes.
const MAX_TOKEN: usize = 128;
/// Limit of names that are read in search of the first. Real images need a few million.
const MAX_STEPS: usize = 64 << 20;

/// Symbol of the kernel's own table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageSymbol {
    /// Letter of its kind, as `nm` prints it.
    pub kind: u8,
    pub name: String,
    pub address: u64,
}

/// Reads the table. `None` if the image has none, or one of an unknown form.
pub(crate) fn find(image: &ImageElf) -> Option<Vec<ImageSymbol>> {
    let (base, data) = image.section(".rodata")?;
    let tokens = Tokens::find(data)?;
    let names = Names::find(data, tokens.begin)?;
    let texts: Vec<Vec<u8>> = names.entries(data).map(|entry| tokens.expand(data, entry)).collect();
    let stext = texts.iter().position(|text| text.get(1..) == Some(b"_stext"))?;
    let is_right = |all: &Vec<u64>| {
        let code = image.section_at(all[stext]).is_some_and(|section| section.code);
        code && all.windows(2).all(|pair| pair[0] <= pair[1])
    };
    let addresses = addresses(data, base, &names, tokens.end).find(is_right)?;
    let symbol = |(text, address): (&Vec<u8>, u64)| {
        let (kind, name) = text.split_first()?;
        Some(ImageSymbol { kind: *kind, name: String::from_utf8_lossy(name).into_owned(), address })
    };
    texts.iter().zip(addresses).map(symbol).collect()
}

/// Reads a number of 32 bits.
fn word(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Pieces of names, with their positions behind them.
struct Tokens {
    begin: usize,
    /// End of the positions.
    end: usize,
    /// Position of each token in the data, and its length.
    all: Vec<(usize, usize)>,
}

impl Tokens {
    fn find(data: &[u8]) -> Option<Self> {
        const DIGITS: &[u8] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00";
        let places = data.windows(DIGITS.len()).enumerate().filter(|(_, found)| *found == DIGITS);
        places.map(|(at, _)| at).find_map(|at| Self::around(data, at))
    }

    /// Reads the table whose token for the digit 0 is at `zero`, if the positions behind it agree.
    fn around(data: &[u8], zero: usize) -> Option<Self> {
        let mut begin = zero;
        for _ in 0..b'0' {
            let last = begin.checked_sub(1)?;
            let from = last.saturating_sub(MAX_TOKEN);
            begin = from + data[from..last].iter().rposition(|byte| *byte == 0)? + 1;
        }
        let (mut all, mut at) = (Vec::with_capacity(256), begin);
        for _ in 0..256 {
            let length = data.get(at..)?.iter().take(MAX_TOKEN).position(|byte| *byte == 0)?;
            all.push((at, length));
            at += length + 1;
        }
        let positions: Vec<u8> = all.iter().flat_map(|(at, _)| ((at - begin) as u16).to_le_bytes()).collect();
        let index =
            (at..at + 8).find(|at| data.get(*at..).is_some_and(|rest| rest.starts_with(&positions)))?;
        Some(Self { begin, end: index + positions.len(), all })
    }

    /// Returns letter and name of a symbol.
    fn expand(&self, data: &[u8], entry: &[u8]) -> Vec<u8> {
        let tokens = entry.iter().filter_map(|token| self.all.get(usize::from(*token)));
        tokens.filter_map(|(at, length)| data.get(*at..at + length)).flatten().copied().collect()
    }
}

/// Names of all symbols, as strings of tokens.
struct Names {
    /// Position of their number.
    count_at: usize,
    count: usize,
    /// Position of the first.
    begin: usize,
}

impl Names {
    /// Looks backward from the tokens for a number that as many names and their marks follow.
    fn find(data: &[u8], tokens: usize) -> Option<Self> {
        let data = &data[..tokens];
        let mut steps = 0;
        let pairs = mark_pairs(data);
        for count_at in (0..tokens / 4).rev().map(|at| at * 4) {
            let count = word(data, count_at)? as usize;
            // Each name has at least its length and a token.
            if !(MIN_SYMBOLS..=MAX_SYMBOLS).contains(&count) || count * 2 > tokens - count_at {
                continue;
            }
            let behind = count_at + 4;
            let mut begins = [behind, behind.next_multiple_of(8)].into_iter();
            let found = begins.find_map(|begin| {
                let names = Self { count_at, count, begin };
                names.has_marks(data, &pairs, &mut steps).then_some(names)
            });
            if found.is_some() || steps > MAX_STEPS {
                return found;
            }
        }
        None
    }

    fn has_marks(&self, data: &[u8], pairs: &HashSet<(u32, u32)>, steps: &mut usize) -> bool {
        let (mut at, mut marks) = (self.begin, Vec::<u32>::new());
        for number in 0..self.count {
            if number % MARK_EVERY == 0 {
                marks.push((at - self.begin) as u32);
                if marks.len() == 3 && !pairs.contains(&(marks[1], marks[2])) {
                    return false;
                }
            }
            *steps += 1;
            match entry(data, at) {
                Some((_, end)) => at = end,
                None => return false,
            }
        }
        let marks: Vec<u8> = marks.into_iter().flat_map(u32::to_le_bytes).collect();
        [4, 8]
            .iter()
            .any(|align| data.get(at.next_multiple_of(*align)..).is_some_and(|rest| rest.starts_with(&marks)))
    }

    /// Returns the tokens of each name.
    fn entries<'data>(&self, data: &'data [u8]) -> impl Iterator<Item = &'data [u8]> {
        let mut at = self.begin;
        (0..self.count).map_while(move |_| {
            let (tokens, end) = entry(data, at)?;
            at = end;
            Some(tokens)
        })
    }
}

/// Returns the second and third number of whatever may be marks: 0 and two that grow. Names are read
/// to the end only if theirs are among them.
fn mark_pairs(data: &[u8]) -> HashSet<(u32, u32)> {
    let words: Vec<u32> =
        data.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_le_bytes)).collect();
    let marks = words.windows(3).filter(|of| of[0] == 0 && of[1] > 0 && of[1] < of[2] && of[2] < 1 << 18);
    marks.map(|of| (of[1], of[2])).collect()
}

/// Returns the tokens of the name at this position, and its end. A length above 127 has two bytes.
fn entry(data: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let first = usize::from(*data.get(at)?);
    let (length, begin) = match first & 0x80 {
        0 => (first, at + 1),
        _ => (first & 0x7f | usize::from(*data.get(at + 1)?) << 7, at + 2),
    };
    Some((data.get(begin..begin + length)?, begin + length)).filter(|_| length > 0)
}

/// Returns the addresses in each form that they may have, in order of the names.
fn addresses<'a>(
    data: &'a [u8],
    base: u64,
    names: &Names,
    tokens_end: usize,
) -> impl Iterator<Item = Vec<u64>> + 'a {
    let bytes = names.count * 4;
    let long = |at: usize| Some(u64::from_le_bytes(data.get(at..at + 8)?.try_into().ok()?));
    let behind = [tokens_end.next_multiple_of(8), tokens_end.next_multiple_of(4)];
    let before = names.count_at.checked_sub(8);
    let of_old = before.and_then(|at| Some((at.checked_sub(bytes.next_multiple_of(8))?, long(at)?)));
    let based = behind.map(|at| Some((at, long((at + bytes).next_multiple_of(8))?)));
    let offsets = move |at: usize| {
        let words = data.get(at..at + bytes)?.chunks_exact(4);
        Some(words.map(|word| word.try_into().map_or(0, u32::from_le_bytes)))
    };
    let from_base = [based[0], based[1], of_old].into_iter().flatten().flat_map(move |(at, base)| {
        let plain = offsets(at).map(|all| all.map(|offset| base.wrapping_add(offset.into())).collect());
        // What is not negative is the address of a per-CPU variable, or another constant.
        let mixed = |offset: u32| match offset as i32 {
            negative @ ..=-1 => base.wrapping_sub(1).wrapping_sub(i64::from(negative) as u64),
            constant => constant as u64,
        };
        [plain, offsets(at).map(|all| all.map(mixed).collect())]
    });
    let from_place = behind.into_iter().map(move |at| {
        let place = |(number, offset): (u64, u32)| {
            base.wrapping_add(at as u64 + number * 4).wrapping_add(i64::from(offset as i32) as u64)
        };
        offsets(at).map(|all| (0..).zip(all).map(place).collect())
    });
    from_base.chain(from_place).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::test_image::{image, KallsymsForm, BASE, SYMBOLS};

    #[test]
    fn the_three_forms_of_linux_6_and_7_are_read() {
        for form in [KallsymsForm::Linux61, KallsymsForm::Linux612, KallsymsForm::Linux73] {
            let bytes = image(form);
            let found = find(&ImageElf::parse(&bytes).unwrap()).unwrap();
            let code: Vec<&ImageSymbol> = found.iter().filter(|symbol| symbol.kind != b'A').collect();
            assert_eq!(code.len(), SYMBOLS, "{form:?}");
            assert_eq!((code[0].name.as_str(), code[0].address, code[0].kind), ("_stext", BASE, b'T'));
            let last = code[SYMBOLS - 1];
            assert_eq!((last.name.as_str(), last.address), ("_etext", BASE + 16 * (SYMBOLS as u64 - 1)));
            let constants = found.iter().filter(|symbol| symbol.kind == b'A' && symbol.address == 0).count();
            assert_eq!(constants, usize::from(form != KallsymsForm::Linux73));
        }
    }

    #[test]
    fn a_damaged_table_is_none() {
        let whole = image(KallsymsForm::Linux612);
        for at in (0x1000..whole.len()).step_by(997) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            if let Ok(elf) = ImageElf::parse(&damaged) {
                let _ = find(&elf);
            }
        }
        let none = whole.iter().map(|byte| if *byte == b'7' { b'x' } else { *byte }).collect::<Vec<u8>>();
        assert_eq!(find(&ImageElf::parse(&none).unwrap()), None);
    }
}
