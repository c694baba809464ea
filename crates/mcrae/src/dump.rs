//! Contents of the profiler's memory: records in the order in which they were stored.

/// Bytes of a record: a 16-bit tag and a 24-bit time.
pub const RECORD_BYTES: usize = 5;
/// Records that the memory of McRae's prototype holds. A dump of this length comes from a full
/// memory.
pub const FULL: usize = 16_384;
/// Exclusive limit of times.
const TIME_LIMIT: u64 = 1 << 24;

/// Recorded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpRecord {
    /// Event tag.
    pub tag: u16,
    /// Value of the microsecond counter, which wraps at 2^24.
    pub time: u32,
}

impl DumpRecord {
    /// Returns the record as five bytes, least significant first.
    pub fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let (tag, time) = (self.tag.to_le_bytes(), self.time.to_le_bytes());
        [tag[0], tag[1], time[0], time[1], time[2]]
    }

    pub(super) fn of_bytes(raw: [u8; RECORD_BYTES], order: DumpByteOrder) -> Self {
        match order {
            DumpByteOrder::Little => Self {
                tag: u16::from_le_bytes([raw[0], raw[1]]),
                time: u32::from_le_bytes([raw[2], raw[3], raw[4], 0]),
            },
            DumpByteOrder::Big => Self {
                tag: u16::from_be_bytes([raw[0], raw[1]]),
                time: u32::from_be_bytes([0, raw[2], raw[3], raw[4]]),
            },
        }
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
        "it has {0} bytes, which is no multiple of the {RECORD_BYTES} of a record: it was cut, or is no dump"
    )]
    Cut(usize),
    #[error("it ends with {0} bytes of a record, which has {RECORD_BYTES}: it was cut, or is no dump")]
    Rest(u64),
    #[error("line {line}: `{text}`: {reason}; a line is TAG TIME, decimal or 0x…, time in microseconds below 2^24")]
    Line { line: usize, text: String, reason: &'static str },
}

/// Dump of the profiler's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagDump {
    /// Records, in order.
    pub records: Vec<DumpRecord>,
}

impl TagDump {
    /// Reads records of five bytes, or lines `TAG TIME` if all bytes are text.
    pub fn read(bytes: &[u8], order: DumpByteOrder) -> Result<Self, DumpError> {
        // Tags below 2,304 and above 32,511 have a byte that text does not contain.
        let printable = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        let dump = match std::str::from_utf8(bytes) {
            Ok(text) if bytes.iter().all(printable) => Self::from_text(text)?,
            _ => Self::from_binary(bytes, order)?,
        };
        if dump.records.is_empty() {
            return Err(DumpError::Empty);
        }
        Ok(dump)
    }

    fn from_binary(bytes: &[u8], order: DumpByteOrder) -> Result<Self, DumpError> {
        let records = bytes.chunks_exact(RECORD_BYTES);
        if !records.remainder().is_empty() {
            return Err(DumpError::Cut(bytes.len()));
        }
        let record =
            |raw: &[u8]| DumpRecord::of_bytes(<[u8; RECORD_BYTES]>::try_from(raw).unwrap_or_default(), order);
        Ok(Self { records: records.map(record).collect() })
    }

    fn from_text(text: &str) -> Result<Self, DumpError> {
        let mut records = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            records.extend(text_record(line, number)?);
        }
        Ok(Self { records })
    }

    /// Returns the records as five bytes each, least significant first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.records.iter().flat_map(|record| record.to_bytes()).collect()
    }

    /// Checks whether the dump may come from a full memory, so that later events are missing.
    pub fn is_full(&self) -> bool {
        self.records.len() == FULL
    }
}

/// Parses line `number` of the text form; `None` for an empty line or a comment.
pub(super) fn text_record(line: &str, number: usize) -> Result<Option<DumpRecord>, DumpError> {
    let wrong = |reason| DumpError::Line { line: number, text: line.to_owned(), reason };
    let before = line.split_once('#').map_or(line, |(before, _)| before);
    let mut words = before.split_whitespace();
    let Some(tag) = words.next() else { return Ok(None) };
    let (Some(time), None) = (words.next(), words.next()) else {
        return Err(wrong("it has not two words"));
    };
    let value = |word: &str| match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    };
    let (Some(tag), Some(time)) = (value(tag), value(time)) else {
        return Err(wrong("that is no number"));
    };
    let tag = u16::try_from(tag).map_err(|_| wrong("the tag is above 65535"))?;
    if time >= TIME_LIMIT {
        return Err(wrong("the time is above 16777215"));
    }
    Ok(Some(DumpRecord { tag, time: time as u32 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_orders_and_text_say_the_same() {
        let expected =
            vec![DumpRecord { tag: 600, time: 0x01_0203 }, DumpRecord { tag: 601, time: 0xff_ffff }];
        let little = [0x58, 0x02, 0x03, 0x02, 0x01, 0x59, 0x02, 0xff, 0xff, 0xff];
        let big = [0x02, 0x58, 0x01, 0x02, 0x03, 0x02, 0x59, 0xff, 0xff, 0xff];
        let text = b"# the same\n600 66051\n\n0x259\t0xffffff # last\n";
        assert_eq!(TagDump::read(&little, DumpByteOrder::Little).unwrap().records, expected);
        assert_eq!(TagDump::read(&big, DumpByteOrder::Big).unwrap().records, expected);
        assert_eq!(TagDump::read(text, DumpByteOrder::Big).unwrap().records, expected);
    }

    #[test]
    fn what_is_no_dump_is_refused() {
        let error = |bytes: &[u8]| TagDump::read(bytes, DumpByteOrder::Little).unwrap_err().to_string();
        assert!(error(b"").contains("no record"));
        assert!(error(b"# nothing\n").contains("no record"));
        assert!(error(&[0, 1, 2, 3]).contains("4 bytes"));
        assert!(error(b"600 1\n600\n").contains("line 2"));
        assert!(error(b"600 16777216\n").contains("16777215"));
        assert!(error(b"65536 0\n").contains("65535"));
        assert!(error(b"hello world\n").contains("no number"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            records in prop::collection::vec((any::<u16>(), 0u32..1 << 24), 1..50)
        ) {
            let records: Vec<DumpRecord> = records.into_iter().map(|(tag, time)| DumpRecord { tag, time }).collect();
            let dump = TagDump { records };
            let bytes = dump.to_bytes();
            // Records may happen to be printable; then they are read as text.
            prop_assume!(std::str::from_utf8(&bytes).is_err() || bytes.contains(&0));
            prop_assert_eq!(TagDump::read(&bytes, DumpByteOrder::Little).unwrap(), dump);
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..100), big in any::<bool>()) {
            let _ = TagDump::read(&bytes, if big { DumpByteOrder::Big } else { DumpByteOrder::Little });
        }
    }
}
