//! Parser of GNU's format, and a reader of numbers for all formats.

use super::*;

/// Bytes with a position. Every read names its purpose for the error.
pub(super) struct ByteReader<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
    pub target: GmonTarget,
}

impl<'a> ByteReader<'a> {
    pub fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// Returns the next `count` items of `size` bytes. A count beyond the end allocates nothing.
    pub fn take(&mut self, count: u64, size: u64, what: &'static str) -> Result<&'a [u8]> {
        let needed = count.saturating_mul(size);
        let left = self.left() as u64;
        let taken = usize::try_from(needed).ok().and_then(|needed| self.bytes.get(self.at..)?.get(..needed));
        let Some(taken) = taken else {
            return Err(Error::Truncated { at: self.bytes.len(), what, needed: needed.saturating_sub(left) });
        };
        self.at += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, 1, what)?);
        Ok(array)
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32> {
        let bytes = self.array(what)?;
        Ok(match self.target.byte_order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    pub fn address(&mut self, what: &'static str) -> Result<u64> {
        if !self.target.wide {
            return Ok(self.u32(what)?.into());
        }
        let bytes = self.array(what)?;
        Ok(match self.target.byte_order {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        })
    }

    /// Reads `count` bins of `size` bytes each, signed or unsigned.
    pub fn bins(&mut self, count: u64, size: usize, signed: bool) -> Result<Vec<u32>> {
        let (order, begin) = (self.target.byte_order, self.at);
        let bytes = self.take(count, size as u64, "the bins of a histogram")?;
        let bin = |(number, bytes): (usize, &[u8])| {
            let value = match order {
                ByteOrder::Little => bytes.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)),
                ByteOrder::Big => bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)),
            };
            let negative = signed && value >> (8 * size.min(8) - 1) == 1;
            u32::try_from(value).ok().filter(|_| !negative).ok_or_else(|| Error::Damaged {
                at: begin + number * size,
                what: match negative {
                    true => {
                        "a bin below 0: the kernel took its own cost away from it, and more than there was"
                            .into()
                    }
                    false => format!("a bin of {value} ticks: nothing runs so long"),
                },
            })
        };
        bytes.chunks_exact(size.max(1)).enumerate().map(bin).collect()
    }
}

pub(super) fn parse(bytes: &[u8], target: GmonTarget) -> Result<Gmon> {
    let mut input = ByteReader { bytes, at: MAGIC.len(), target };
    let version = input.u32("the header")?;
    if version != VERSION {
        return Err(Error::Version(version));
    }
    input.take(HEADER as u64 - 8, 1, "the header")?;
    let mut records = Vec::new();
    while !input.is_done() {
        let at = input.at;
        let [tag] = input.array("a record's tag")?;
        records.push(match tag {
            TAG_HISTOGRAM => GmonRecord::Histogram(histogram(&mut input, at)?),
            TAG_ARC => GmonRecord::Arc(RawArc {
                from: input.address("an arc")?,
                to: input.address("an arc")?,
                count: input.u32("an arc")?.into(),
            }),
            TAG_BLOCKS => GmonRecord::Blocks(blocks(&mut input)?),
            other => {
                let what = format!("a record of unknown kind {other} (0 histogram, 1 arc, 2 basic blocks)");
                return Err(Error::Damaged { at, what });
            }
        });
    }
    Ok(Gmon { records })
}

fn histogram(input: &mut ByteReader, at: usize) -> Result<Histogram> {
    let what = "the header of a histogram";
    let (low, high) = (input.address(what)?, input.address(what)?);
    let (count, rate) = (input.u32(what)?, input.u32(what)?);
    let dimension = input.array(what)?;
    let [abbreviation] = input.array(what)?;
    let damaged = |what: String| Err(Error::Damaged { at, what });
    if i32::try_from(count).is_err() || i32::try_from(rate).is_err() {
        return damaged(format!("a histogram of {count} bins with {rate} ticks per unit"));
    }
    if count > 0 && (low >= high || rate == 0) {
        return damaged(format!("a histogram from {low:#x} to {high:#x} with {rate} ticks per unit"));
    }
    Ok(Histogram { low, high, rate, dimension, abbreviation, bins: input.bins(count.into(), 2, false)? })
}

fn blocks(input: &mut ByteReader) -> Result<Vec<(u64, u64)>> {
    let what = "a table of basic blocks";
    let count = input.u32(what)?;
    let size = if input.target.wide { 16 } else { 8 };
    let taken = input.take(count.into(), size, what)?;
    let mut rows = ByteReader { bytes: taken, at: 0, target: input.target };
    let mut blocks = Vec::new();
    while !rows.is_done() {
        blocks.push((rows.address(what)?, rows.address(what)?));
    }
    Ok(blocks)
}
