//! Records of a stream, from a file or an endless line. Only an incomplete record is in memory.

use super::dump::{text_record, DumpByteOrder, DumpError, DumpRecord};
use kerntune_trace::TagLayout;
use std::io::{self, Read};

/// Format of the records in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFormat {
    /// As many bytes per record as its layout has: five of McRae's.
    Records(DumpByteOrder),
    /// One line `TAG TIME` per record.
    Text,
    /// Seven bits of the tag in each byte, the upper ones first, and bit 7 set in the first byte
    /// (`KT_TAGS_UART`). Tags of 16 bits are below 16384 and take two bytes, wider ones as many as
    /// they need. The time is that of arrival.
    Uart,
}

impl StreamFormat {
    /// Returns the format's name, which is the same in all versions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Records(DumpByteOrder::Little) => "records-little",
            Self::Records(DumpByteOrder::Big) => "records-big",
            Self::Text => "text",
            Self::Uart => "uart",
        }
    }
}

/// Maximum length of a line in bytes; a record has some twenty.
const LINE: usize = 1024;
/// Bytes of a tag of 16 bits on a UART.
const UART_BYTES: usize = 2;

/// Decoder of bytes that arrive in pieces.
#[derive(Debug, Clone)]
pub struct RecordDecoder {
    form: StreamFormat,
    layout: TagLayout,
    /// Complete records so far.
    records: u64,
    /// Bytes of an incomplete record.
    rest: Vec<u8>,
    lines: usize,
    passed_over: u64,
}

impl RecordDecoder {
    /// Creates a decoder at the beginning of a stream.
    pub fn new(form: StreamFormat, layout: TagLayout) -> Self {
        Self { form, layout, records: 0, rest: Vec::new(), lines: 0, passed_over: 0 }
    }

    /// Decodes the next bytes and appends complete records to `out`. `now` is the time of arrival
    /// in ns from any origin; only [`StreamFormat::Uart`] uses it.
    ///
    /// # Errors
    /// [`DumpError::Line`] for a line that is no record, [`DumpError::Wide`] for bytes that are none.
    pub fn push(&mut self, bytes: &[u8], now: u64, out: &mut Vec<DumpRecord>) -> Result<(), DumpError> {
        match self.form {
            StreamFormat::Records(order) => {
                for byte in bytes {
                    self.rest.push(*byte);
                    if self.rest.len() == self.layout.record_bytes() {
                        self.records += 1;
                        out.push(DumpRecord::of_bytes(&self.rest, order, self.layout, self.records)?);
                        self.rest.clear();
                    }
                }
            }
            StreamFormat::Text => {
                for byte in bytes {
                    if *byte == b'\n' {
                        self.line(out)?;
                    } else if self.rest.len() < LINE {
                        self.rest.push(*byte);
                    } else {
                        return Err(self.wrong("it is longer than any record"));
                    }
                }
            }
            StreamFormat::Uart => {
                for byte in bytes {
                    if byte & 0x80 != 0 {
                        self.passed_over += self.rest.len() as u64;
                        self.rest = vec![byte & 0x7f];
                    } else if self.rest.is_empty() {
                        self.passed_over += 1;
                    } else {
                        self.rest.push(*byte);
                        self.uart_record(now, out);
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the stream; the last line of a text needs no line end. Returns the number of bytes that
    /// are in no record.
    ///
    /// # Errors
    /// Those of [`RecordDecoder::push`].
    pub fn finish(mut self, out: &mut Vec<DumpRecord>) -> Result<u64, DumpError> {
        if self.form == StreamFormat::Text {
            self.line(out)?;
        }
        Ok(self.passed_over + self.rest.len() as u64)
    }

    /// Takes the bytes of a tag, if it is complete.
    fn uart_record(&mut self, now: u64, out: &mut Vec<DumpRecord>) {
        let bytes = match self.layout.tag_bits() {
            16 => UART_BYTES,
            bits => bits.div_ceil(7) as usize,
        };
        if self.rest.len() < bytes {
            return;
        }
        let tag = self.rest.iter().fold(0u128, |tag, byte| tag << 7 | u128::from(*byte));
        match u64::try_from(tag) {
            Ok(tag) if tag <= self.layout.max_tag() => {
                out.push(DumpRecord { tag, time: self.layout.ticks(now) });
            }
            _ => self.passed_over += self.rest.len() as u64,
        }
        self.rest.clear();
    }

    fn line(&mut self, out: &mut Vec<DumpRecord>) -> Result<(), DumpError> {
        let line = std::mem::take(&mut self.rest);
        self.lines += 1;
        let text = String::from_utf8_lossy(&line);
        out.extend(text_record(&text, self.lines, self.layout)?);
        Ok(())
    }

    fn wrong(&self, reason: &'static str) -> DumpError {
        let text = String::from_utf8_lossy(&self.rest).chars().take(40).collect();
        DumpError::Line { line: self.lines + 1, text, reason: reason.into() }
    }
}

/// Guesses the format of a file: text if all bytes are text, otherwise records.
///
/// # Errors
/// Reading fails.
pub fn guess_format(mut input: impl Read, order: DumpByteOrder) -> io::Result<StreamFormat> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        // Tags below 2,304 and above 32,511 have a byte that text does not contain.
        match input.read(&mut buffer)? {
            0 => return Ok(StreamFormat::Text),
            count => {
                let printable = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
                if !buffer.get(..count).unwrap_or_default().iter().all(printable) {
                    return Ok(StreamFormat::Records(order));
                }
            }
        }
    }
}

/// Records of a file, read on demand. A bad record is an error of kind `InvalidData` that holds a
/// [`DumpError`]; no records follow it.
pub struct RecordReader<R> {
    input: R,
    decoder: Option<RecordDecoder>,
    buffer: Vec<u8>,
    ready: std::vec::IntoIter<DumpRecord>,
}

impl<R: Read> RecordReader<R> {
    /// Reads from the beginning of `input`.
    pub fn new(input: R, form: StreamFormat, layout: TagLayout) -> Self {
        Self {
            input,
            decoder: Some(RecordDecoder::new(form, layout)),
            buffer: vec![0; 1 << 16],
            ready: Vec::new().into_iter(),
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        let Some(decoder) = &mut self.decoder else { return Ok(false) };
        let count = match self.input.read(&mut self.buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            read => read?,
        };
        let mut records = Vec::new();
        let wrong = |error: DumpError| io::Error::new(io::ErrorKind::InvalidData, error);
        if count == 0 {
            if let Some(decoder) = self.decoder.take() {
                let records_form = matches!(decoder.form, StreamFormat::Records(_));
                let record = decoder.layout.record_bytes();
                let rest = decoder.finish(&mut records).map_err(wrong)?;
                if rest > 0 && records_form {
                    return Err(wrong(DumpError::Rest { rest, record }));
                }
            }
        } else {
            let bytes = self.buffer.get(..count).unwrap_or_default();
            decoder.push(bytes, 0, &mut records).map_err(wrong)?;
        }
        self.ready = records.into_iter();
        Ok(true)
    }
}

impl<R: Read> Iterator for RecordReader<R> {
    type Item = io::Result<DumpRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.ready.next() {
                return Some(Ok(record));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.decoder = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TagDump;
    use proptest::prelude::*;

    /// Returns the records of bytes that arrive in pieces, and the number of bytes in no record.
    fn pieces(form: StreamFormat, pieces: &[&[u8]]) -> Result<(Vec<DumpRecord>, u64), DumpError> {
        let (mut decoder, mut out) = (RecordDecoder::new(form, TagLayout::MCRAE), Vec::new());
        for (piece, now) in pieces.iter().zip((0..).step_by(7_000)) {
            decoder.push(piece, now, &mut out)?;
        }
        let rest = decoder.finish(&mut out)?;
        Ok((out, rest))
    }

    #[test]
    fn pieces_are_joined() {
        let record = |tag, time| DumpRecord { tag, time };
        let (records, rest) =
            pieces(StreamFormat::Records(DumpByteOrder::Little), &[&[0x58, 0x02, 3], &[2, 1, 0x59], &[2, 0]])
                .unwrap();
        assert_eq!((records, rest), (vec![record(600, 0x01_0203)], 3));
        let (records, rest) = pieces(StreamFormat::Text, &[b"600 1\n60", b"1 2\n# x\n", b"0x10 3"]).unwrap();
        assert_eq!((records, rest), (vec![record(600, 1), record(601, 2), record(16, 3)], 0));
        // 600 is 4 · 128 + 88; a lone low byte, and a high byte followed by another, are in no
        // record.
        let (records, rest) = pieces(StreamFormat::Uart, &[&[5, 0x84], &[88, 0x90, 0x84], &[89]]).unwrap();
        assert_eq!((records, rest), (vec![record(600, 7), record(601, 14)], 2));
        assert!(pieces(StreamFormat::Text, &[b"600\n"]).unwrap_err().to_string().contains("line 1"));
        assert!(pieces(StreamFormat::Text, &[&[b'7'; 5000]]).unwrap_err().to_string().contains("longer"));
    }

    #[test]
    fn wide_tags_take_more_bytes_of_a_uart() {
        let layout = TagLayout::new(32, 32, 1000).unwrap();
        let (mut decoder, mut out) = (RecordDecoder::new(StreamFormat::Uart, layout), Vec::new());
        // 65,538 = 4 · 2^14 + 2, then a tag of 35 bits, which is none.
        decoder.push(&[0x80, 0, 4, 0, 2, 0xff, 0x7f, 0x7f, 0x7f, 0x7f, 0x80], 9, &mut out).unwrap();
        assert_eq!(out, [DumpRecord { tag: 65_538, time: 9 }]);
        assert_eq!(decoder.finish(&mut out), Ok(6));
    }

    #[test]
    fn a_file_is_read_as_it_is_asked_for() {
        let bytes: Vec<u8> =
            (0..50_000u32).flat_map(|n| [n as u8, 0x80, n as u8, (n >> 8) as u8, 0]).collect();
        let form = guess_format(bytes.as_slice(), DumpByteOrder::Little).unwrap();
        assert_eq!(form, StreamFormat::Records(DumpByteOrder::Little));
        let records: Vec<DumpRecord> =
            RecordReader::new(bytes.as_slice(), form, TagLayout::MCRAE).map(Result::unwrap).collect();
        assert_eq!(records, TagDump::read(&bytes, DumpByteOrder::Little, TagLayout::MCRAE).unwrap().records);
        let mut cut = RecordReader::new(&bytes[..12], form, TagLayout::MCRAE);
        assert!(cut.next().unwrap().is_ok() && cut.next().unwrap().is_ok());
        assert!(cut.next().unwrap().unwrap_err().to_string().contains("2 bytes"));
        assert!(cut.next().is_none());
        assert_eq!(guess_format(&b"600 1\n"[..], DumpByteOrder::Big).unwrap(), StreamFormat::Text);
    }

    proptest! {
        #[test]
        fn foreign_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
            for form in [StreamFormat::Records(DumpByteOrder::Big), StreamFormat::Text, StreamFormat::Uart] {
                let (a, b) = bytes.split_at(at.index(bytes.len() + 1));
                let whole = pieces(form, &[&bytes]);
                if form != StreamFormat::Uart {
                    prop_assert_eq!(pieces(form, &[a, b]), whole);
                }
            }
        }
    }
}
