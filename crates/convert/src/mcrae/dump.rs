//! The profiler's memory: records in the order in which they were stored.

/// Bytes of a record: a 16-bit tag and a 24-bit time.
pub const RECORD_BYTES: usize = 5;
/// Records that the memory of McRae's prototype holds. A dump of so many is of a box that was full.
pub const FULL: usize = 16_384;
/// Times are below this.
const TIME_LIMIT: u64 = 1 << 24;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The event tag.
    pub tag: u16,
    /// What the microsecond counter showed; it wraps at 2^24.
    pub time: u32,
}

impl Record {
    /// The record as five bytes, least significant first.
    pub fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let (tag, time) = (self.tag.to_le_bytes(), self.time.to_le_bytes());
        [tag[0], tag[1], time[0], time[1], time[2]]
    }

    pub(super) fn of_bytes(raw: [u8; RECORD_BYTES], order: Order) -> Self {
        match order {
            Order::Little => Self {
                tag: u16::from_le_bytes([raw[0], raw[1]]),
                time: u32::from_le_bytes([raw[2], raw[3], raw[4], 0]),
            },
            Order::Big => Self {
                tag: u16::from_be_bytes([raw[0], raw[1]]),
                time: u32::from_be_bytes([0, raw[2], raw[3], raw[4]]),
            },
        }
    }
}

/// Which byte of a tag and of a time comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The least significant, as kerntune's recorder writes.
    #[default]
    Little,
    /// The most significant.
    Big,
}

/// What can be wrong with a dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// Nothing was recorded.
    #[error("there is no record in it")]
    Empty,
    /// The end of a record is missing.
    #[error(
        "it has {0} bytes, which is no multiple of the {RECORD_BYTES} of a record: it was cut, or is no dump"
    )]
    Cut(usize),
    /// The same of a file that is not in memory.
    #[error("it ends with {0} bytes of a record, which has {RECORD_BYTES}: it was cut, or is no dump")]
    Rest(u64),
    /// A line of the text form that is none.
    #[error("line {line}: `{text}`: {reason}; a line is TAG TIME, decimal or 0x…, time in microseconds below 2^24")]
    Line {
        /// From 1.
        line: usize,
        /// The line.
        text: String,
        /// What is wrong.
        reason: &'static str,
    },
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// In order.
    pub records: Vec<Record>,
}

impl Dump {
    /// Reads records of five bytes, or lines `TAG TIME` if all of it is text.
    pub fn read(bytes: &[u8], order: Order) -> Result<Self, DumpError> {
        // A tag below 2,304 or above 32,511 has a byte that no text has.
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

    fn from_binary(bytes: &[u8], order: Order) -> Result<Self, DumpError> {
        let records = bytes.chunks_exact(RECORD_BYTES);
        if !records.remainder().is_empty() {
            return Err(DumpError::Cut(bytes.len()));
        }
        let record =
            |raw: &[u8]| Record::of_bytes(<[u8; RECORD_BYTES]>::try_from(raw).unwrap_or_default(), order);
        Ok(Self { records: records.map(record).collect() })
    }

    fn from_text(text: &str) -> Result<Self, DumpError> {
        let mut records = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            records.extend(text_record(line, number)?);
        }
        Ok(Self { records })
    }

    /// The records as five bytes each, least significant first.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.records.iter().flat_map(|record| record.to_bytes()).collect()
    }

    /// Whether it may be one of a box whose memory was full.
    pub fn is_full(&self) -> bool {
        self.records.len() == FULL
    }
}

/// The record of a line, `number` of its text; none for an empty one or a remark.
pub(super) fn text_record(line: &str, number: usize) -> Result<Option<Record>, DumpError> {
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
    Ok(Some(Record { tag, time: time as u32 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_orders_and_text_say_the_same() {
        let expected = vec![Record { tag: 600, time: 0x01_0203 }, Record { tag: 601, time: 0xff_ffff }];
        let little = [0x58, 0x02, 0x03, 0x02, 0x01, 0x59, 0x02, 0xff, 0xff, 0xff];
        let big = [0x02, 0x58, 0x01, 0x02, 0x03, 0x02, 0x59, 0xff, 0xff, 0xff];
        let text = b"# the same\n600 66051\n\n0x259\t0xffffff # last\n";
        assert_eq!(Dump::read(&little, Order::Little).unwrap().records, expected);
        assert_eq!(Dump::read(&big, Order::Big).unwrap().records, expected);
        assert_eq!(Dump::read(text, Order::Big).unwrap().records, expected);
    }

    #[test]
    fn what_is_no_dump_is_refused() {
        let error = |bytes: &[u8]| Dump::read(bytes, Order::Little).unwrap_err().to_string();
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
            let records: Vec<Record> = records.into_iter().map(|(tag, time)| Record { tag, time }).collect();
            let dump = Dump { records };
            let bytes = dump.to_bytes();
            // All of it printable is possible, and then it is text.
            prop_assume!(std::str::from_utf8(&bytes).is_err() || bytes.contains(&0));
            prop_assert_eq!(Dump::read(&bytes, Order::Little).unwrap(), dump);
        }

        #[test]
        fn foreign_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..100), big in any::<bool>()) {
            let _ = Dump::read(&bytes, if big { Order::Big } else { Order::Little });
        }
    }
}
