//! Contents of the profiler's memory: records in the order in which they were stored.

use kerntune_trace::TagLayout;

/// Records that the memory of McRae's prototype holds. A dump of this length comes from a full
/// memory.
pub const FULL: usize = 16_384;

/// Recorded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpRecord {
    /// Event tag.
    pub tag: u64,
    /// Value of the counter, which wraps at the width of the clock.
    pub time: u64,
}

impl DumpRecord {
    /// Reads the bytes of a record.
    ///
    /// # Errors
    /// [`DumpError::Wide`]: a field has more bits than the layout says.
    pub(super) fn of_bytes(
        raw: &[u8],
        order: DumpByteOrder,
        layout: TagLayout,
        number: u64,
    ) -> Result<Self, DumpError> {
        let value = |bytes: &[u8]| {
            let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
            match order {
                DumpByteOrder::Little => bytes.iter().rev().fold(0, add),
                DumpByteOrder::Big => bytes.iter().fold(0, add),
            }
        };
        let (tag, time) = raw.split_at(layout.tag_bytes().min(raw.len()));
        let record = Self { tag: value(tag), time: value(time) };
        for (what, value, max) in
            [("tag", record.tag, layout.max_tag()), ("time", record.time, layout.max_time())]
        {
            if value > max {
                return Err(DumpError::Wide { number, what, value, max });
            }
        }
        Ok(record)
    }
}

/// Byte order of tags and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DumpByteOrder {
    /// Least significant byte first, as kerntune's recorder writes.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// Defect of a dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum DumpError {
    #[error("there is no record in it")]
    Empty,
    #[error(
        "it has {bytes} bytes, which is no multiple of the {record} of a record: it was cut, is no dump, or its records have other widths (--tag-bits, --clock-bits)"
    )]
    Cut { bytes: usize, record: usize },
    #[error("it ends with {rest} bytes of a record, which has {record}: it was cut, is no dump, or its records have other widths (--tag-bits, --clock-bits)")]
    Rest { rest: u64, record: usize },
    #[error("record {number}: the {what} {value} is above {max}: the records have other widths (--tag-bits, --clock-bits) or the other byte order")]
    Wide { number: u64, what: &'static str, value: u64, max: u64 },
    #[error("line {line}: `{text}`: {reason}; a line is TAG TIME, decimal or 0x…")]
    Line { line: usize, text: String, reason: String },
}

/// Dump of the profiler's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagDump {
    /// Records, in order.
    pub records: Vec<DumpRecord>,
    /// Widths of tags and times, and the length of a tick.
    pub layout: TagLayout,
}

impl TagDump {
    /// Reads records of bytes, or lines `TAG TIME` if all bytes are text.
    pub fn read(bytes: &[u8], order: DumpByteOrder, layout: TagLayout) -> Result<Self, DumpError> {
        // Tags below 2,304 and above 32,511 have a byte that text does not contain.
        let printable = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        let records = match std::str::from_utf8(bytes) {
            Ok(text) if bytes.iter().all(printable) => from_text(text, layout)?,
            _ => from_binary(bytes, order, layout)?,
        };
        if records.is_empty() {
            return Err(DumpError::Empty);
        }
        Ok(Self { records, layout })
    }

    /// Returns the records as bytes, least significant first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.records.iter().flat_map(|record| self.layout.record(record.tag, record.time)).collect()
    }

    /// Checks whether the dump may come from a full memory, so that later events are missing.
    pub fn is_full(&self) -> bool {
        self.records.len() == FULL
    }
}

fn from_binary(bytes: &[u8], order: DumpByteOrder, layout: TagLayout) -> Result<Vec<DumpRecord>, DumpError> {
    let records = bytes.chunks_exact(layout.record_bytes());
    if !records.remainder().is_empty() {
        return Err(DumpError::Cut { bytes: bytes.len(), record: layout.record_bytes() });
    }
    records.zip(1..).map(|(raw, number)| DumpRecord::of_bytes(raw, order, layout, number)).collect()
}

fn from_text(text: &str, layout: TagLayout) -> Result<Vec<DumpRecord>, DumpError> {
    let mut records = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        records.extend(text_record(line, number, layout)?);
    }
    Ok(records)
}

/// Parses line `number` of the text form; `None` for an empty line or a comment.
pub(super) fn text_record(
    line: &str,
    number: usize,
    layout: TagLayout,
) -> Result<Option<DumpRecord>, DumpError> {
    let wrong = |reason: String| DumpError::Line { line: number, text: line.to_owned(), reason };
    let before = line.split_once('#').map_or(line, |(before, _)| before);
    let mut words = before.split_whitespace();
    let Some(tag) = words.next() else { return Ok(None) };
    let (Some(time), None) = (words.next(), words.next()) else {
        return Err(wrong("it has not two words".into()));
    };
    let value = |word: &str| match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    };
    let (Some(tag), Some(time)) = (value(tag), value(time)) else {
        return Err(wrong("that is no number".into()));
    };
    if tag > layout.max_tag() {
        let (max, bits) = (layout.max_tag(), layout.tag_bits());
        return Err(wrong(format!("the tag is above {max}, the greatest of {bits} bits (--tag-bits)")));
    }
    if time > layout.max_time() {
        let (max, bits) = (layout.max_time(), layout.clock_bits());
        return Err(wrong(format!("the time is above {max}, the greatest of {bits} bits (--clock-bits)")));
    }
    Ok(Some(DumpRecord { tag, time }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MCRAE: TagLayout = TagLayout::MCRAE;

    #[test]
    fn both_orders_and_text_say_the_same() {
        let expected =
            vec![DumpRecord { tag: 600, time: 0x01_0203 }, DumpRecord { tag: 601, time: 0xff_ffff }];
        let little = [0x58, 0x02, 0x03, 0x02, 0x01, 0x59, 0x02, 0xff, 0xff, 0xff];
        let big = [0x02, 0x58, 0x01, 0x02, 0x03, 0x02, 0x59, 0xff, 0xff, 0xff];
        let text = b"# the same\n600 66051\n\n0x259\t0xffffff # last\n";
        assert_eq!(TagDump::read(&little, DumpByteOrder::Little, MCRAE).unwrap().records, expected);
        assert_eq!(TagDump::read(&big, DumpByteOrder::Big, MCRAE).unwrap().records, expected);
        assert_eq!(TagDump::read(text, DumpByteOrder::Big, MCRAE).unwrap().records, expected);
    }

    #[test]
    fn what_is_no_dump_is_refused() {
        let error =
            |bytes: &[u8]| TagDump::read(bytes, DumpByteOrder::Little, MCRAE).unwrap_err().to_string();
        assert!(error(b"").contains("no record"));
        assert!(error(b"# nothing\n").contains("no record"));
        assert!(error(&[0, 1, 2, 3]).contains("4 bytes"));
        assert!(error(b"600 1\n600\n").contains("line 2"));
        assert!(error(b"600 16777216\n").contains("16777215"));
        assert!(error(b"65536 0\n").contains("65535"));
        assert!(error(b"hello world\n").contains("no number"));
    }

    #[test]
    fn wide_records_are_read_in_bytes_and_as_text() {
        let layout = TagLayout::new(20, 40, 1000).unwrap();
        let little = [0x02, 0x00, 0x01, 5, 0, 0, 0, 0xff];
        let big = [0x01, 0x00, 0x02, 0xff, 0, 0, 0, 5];
        let expected = vec![DumpRecord { tag: 0x1_0002, time: 0xff_0000_0005 }];
        let read = |bytes: &[u8], order| TagDump::read(bytes, order, layout);
        assert_eq!(read(&little, DumpByteOrder::Little).unwrap().records, expected);
        assert_eq!(read(&big, DumpByteOrder::Big).unwrap().records, expected);
        assert_eq!(read(b"65538 0xff00000005\n", DumpByteOrder::Big).unwrap().records, expected);
        // The tag has four bits that are no part of it.
        let error = read(&[0, 0, 0x10, 0, 0, 0, 0, 0], DumpByteOrder::Little).unwrap_err().to_string();
        assert!(error.contains("record 1") && error.contains("tag 1048576 is above 1048575"), "{error}");
        let error = read(b"1 0x10000000000\n", DumpByteOrder::Little).unwrap_err().to_string();
        assert!(error.contains("1099511627775, the greatest of 40 bits (--clock-bits)"), "{error}");
        let error = read(&little[..7], DumpByteOrder::Little).unwrap_err().to_string();
        assert!(error.contains("multiple of the 8 of a record"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            tag_bits in 16u32..=64,
            clock_bits in 16u32..=64,
            records in prop::collection::vec((any::<u64>(), any::<u64>()), 1..50)
        ) {
            let layout = TagLayout::new(tag_bits, clock_bits, 1).unwrap();
            let record = |(tag, time)| DumpRecord { tag: tag & layout.max_tag(), time: time & layout.max_time() };
            let dump = TagDump { records: records.into_iter().map(record).collect(), layout };
            let bytes = dump.to_bytes();
            // Records may happen to be printable; then they are read as text.
            prop_assume!(std::str::from_utf8(&bytes).is_err() || bytes.contains(&0));
            prop_assert_eq!(TagDump::read(&bytes, DumpByteOrder::Little, layout).unwrap(), dump);
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..100), big in any::<bool>()) {
            let _ = TagDump::read(&bytes, if big { DumpByteOrder::Big } else { DumpByteOrder::Little }, MCRAE);
        }
    }
}
