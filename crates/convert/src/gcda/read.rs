//! Parser: bytes to [`Gcda`].

use super::version::GcdaLayout;
use super::*;
use crate::{Error, Result};

pub(super) fn parse(bytes: &[u8]) -> Result<Gcda> {
    let byte_order = match bytes.first_chunk::<4>() {
        Some(magic) if u32::from_le_bytes(*magic) == MAGIC => ByteOrder::Little,
        Some(magic) if u32::from_be_bytes(*magic) == MAGIC => ByteOrder::Big,
        _ => return Err(Error::NotGcda { found: bytes[..bytes.len().min(4)].to_vec() }),
    };
    let mut words = WordReader { bytes, at: 4, byte_order };
    let version = GcovVersion(words.u32("the header")?);
    let layout = version.layout().ok_or(Error::Version(version))?;
    let stamp = words.u32("the header")?;
    let checksum = if layout.has_checksum { words.u32("the header")? } else { 0 };
    let mut gcda = Gcda {
        byte_order,
        version,
        stamp,
        checksum,
        summary: None,
        functions: Vec::new(),
        end_marker: false,
    };
    while words.at < bytes.len() {
        let at = words.at;
        let tag = words.u32("a record tag")?;
        if tag == 0 {
            gcda.end_marker = true;
            let after = bytes.len() - words.at;
            // libgcov leaves such a tail when it writes a shorter profile over a longer one. But a
            // tag that was lost to damage looks the same, and all functions behind it would be
            // lost.
            return if after == 0 {
                Ok(gcda)
            } else {
                damaged(at, format!("{after} bytes follow the end marker"))
            };
        }
        let length = words.u32("a record length")?;
        record(&mut gcda, &mut words, layout, RecordHeader { at, tag, length })?;
    }
    Ok(gcda)
}

/// Tag and length of a record, and its position.
#[derive(Clone, Copy)]
struct RecordHeader {
    at: usize,
    tag: u32,
    length: u32,
}

fn record(gcda: &mut Gcda, words: &mut WordReader, layout: GcdaLayout, header: RecordHeader) -> Result<()> {
    let RecordHeader { at, tag, length } = header;
    if tag == TAG_OBJECT_SUMMARY {
        if gcda.summary.is_some() || !gcda.functions.is_empty() {
            return damaged(at, "a program summary that is not the first record");
        }
        expect_length(header, "a program summary", SUMMARY_WORDS * layout.word_length)?;
        gcda.summary = Some(ObjectSummary {
            runs: words.u32("the program summary")?,
            sum_max: words.u32("the program summary")?,
        });
    } else if tag == TAG_FUNCTION {
        let mut function = GcdaFunction::default();
        if length != 0 {
            expect_length(header, "a function record", FUNCTION_WORDS * layout.word_length)?;
            function.ident = words.u32("a function record")?;
            function.lineno_checksum = words.u32("a function record")?;
            function.cfg_checksum = words.u32("a function record")?;
            if function.is_absent() {
                return damaged(at, "a function with ident 0");
            }
        }
        gcda.functions.push(function);
    } else if let Some(kind) = CounterKind::from_tag(tag, layout.kinds) {
        let Some(function) = gcda.functions.last_mut().filter(|f| !f.is_absent()) else {
            return damaged(at, format!("{kind:?} counters before any function"));
        };
        if function.counters.last().is_some_and(|before| before.kind >= kind) {
            return damaged(at, format!("{kind:?} counters out of order in function {}", function.ident));
        }
        let values = values(words, layout, header)?;
        function.counters.push(CounterRecord { kind, values });
    } else {
        return damaged(at, format!("unknown record tag {tag:#010x}"));
    }
    Ok(())
}

fn values(words: &mut WordReader, layout: GcdaLayout, header: RecordHeader) -> Result<CounterValues> {
    let signed = header.length as i32;
    let counter_length = 2 * layout.word_length;
    let length = signed.unsigned_abs();
    if length % counter_length != 0 {
        return damaged(header.at, format!("counter length {signed} is not a multiple of {counter_length}"));
    }
    let count = length / counter_length;
    if signed < 0 {
        return Ok(CounterValues::Zeros(count));
    }
    words.need(u64::from(count) * 8, "a counter record")?;
    let mut listed = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let low = words.u32("a counter")?;
        let high = words.u32("a counter")?;
        listed.push((u64::from(high) << 32 | u64::from(low)) as i64);
    }
    Ok(CounterValues::Listed(listed))
}

fn expect_length(header: RecordHeader, what: &str, length: u32) -> Result<()> {
    if header.length == length {
        Ok(())
    } else {
        damaged(header.at, format!("{what} of length {}, not {length}", header.length))
    }
}

fn damaged<T>(at: usize, what: impl Into<String>) -> Result<T> {
    Err(Error::Damaged { at, what: what.into() })
}

/// Reader of the file as words.
struct WordReader<'a> {
    bytes: &'a [u8],
    at: usize,
    byte_order: ByteOrder,
}

impl WordReader<'_> {
    fn need(&self, bytes: u64, what: &'static str) -> Result<()> {
        let there = (self.bytes.len() - self.at) as u64;
        match bytes.checked_sub(there) {
            None | Some(0) => Ok(()),
            Some(needed) => Err(Error::Truncated { at: self.bytes.len(), what, needed }),
        }
    }

    fn u32(&mut self, what: &'static str) -> Result<u32> {
        self.need(4, what)?;
        let word = self.bytes[self.at..].first_chunk::<4>().copied().unwrap_or_default();
        self.at += 4;
        Ok(match self.byte_order {
            ByteOrder::Little => u32::from_le_bytes(word),
            ByteOrder::Big => u32::from_be_bytes(word),
        })
    }
}
