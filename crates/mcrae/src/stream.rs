//! Records of a stream, from a file or an endless line. Only an incomplete record is in memory.

use super::dump::{text_record, DumpByteOrder, DumpError, DumpRecord, RECORD_BYTES};
use std::io::{self, Read};

/// Format of the records in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFormat {
    /// Five bytes per record.
    Records(DumpByteOrder),
    /// One line `TAG TIME` per record.
    Text,
    /// Two bytes per record, with a tag below 16384: the upper seven bits with bit 7 set, then the
    /// lower seven (`KT_TAGS_UART`). The time is that of arrival.
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
/// Period of the counter in microseconds.
const ROUND: u64 = 1 << 24;

/// Decoder of bytes that arrive in pieces.
#[derive(Debug, Clone)]
pub struct RecordDecoder {
    form: StreamFormat,
    /// Bytes of an incomplete record.
    rest: Vec<u8>,
    lines: usize,
    passed_over: u64,
}

impl RecordDecoder {
    /// Creates a decoder at the beginning of a stream.
    pub fn new(form: StreamFormat) -> Self {
        Self { form, rest: Vec::new(), lines: 0, passed_over: 0 }
    }

    /// Decodes the next bytes and appends complete records to `out`. `now` is the time of arrival
    /// in µs from any origin; only [`StreamFormat::Uart`] uses it.
    ///
    /// # Errors
    /// [`DumpError::Line`] for a line that is no record.
    pub fn push(&mut self, bytes: &[u8], now: u64, out: &mut Vec<DumpRecord>) -> Result<(), DumpError> {
        match self.form {
            StreamFormat::Records(order) => {
                for byte in bytes {
                    self.rest.push(*byte);
                    if let Ok(raw) = <[u8; RECORD_BYTES]>::try_from(self.rest.as_slice()) {
                        out.push(DumpRecord::of_bytes(raw, order));
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
                    } else if let Some(high) = self.rest.pop() {
                        let tag = u16::from(high) << 7 | u16::from(*byte);
                        out.push(DumpRecord { tag, time: (now % ROUND) as u32 });
                    } else {
                        self.passed_over += 1;
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

    fn line(&mut self, out: &mut Vec<DumpRecord>) -> Result<(), DumpError> {
        let line = std::mem::take(&mut self.rest);
        self.lines += 1;
        let text = String::from_utf8_lossy(&line);
        out.extend(text_record(&text, self.lines)?);
        Ok(())
    }

    fn wrong(&self, reason: &'static str) -> DumpError {
        let text = String::from_utf8_lossy(&self.rest).chars().take(40).collect();
        DumpError::Line { line: self.lines + 1, text, reason }
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
    pub fn new(input: R, form: StreamFormat) -> Self {
        Self {
            input,
            decoder: Some(RecordDecoder::new(form)),
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
                let rest = decoder.finish(&mut records).map_err(wrong)?;
                if rest > 0 && records_form {
                    return Err(wrong(DumpError::Rest(rest)));
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
        let (mut decoder, mut out) = (RecordDecoder::new(form), Vec::new());
        for (piece, now) in pieces.iter().zip((0..).step_by(7)) {
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
    fn a_file_is_read_as_it_is_asked_for() {
        let bytes: Vec<u8> =
            (0..50_000u32).flat_map(|n| [n as u8, 0x80, n as u8, (n >> 8) as u8, 0]).collect();
        let form = guess_format(bytes.as_slice(), DumpByteOrder::Little).unwrap();
        assert_eq!(form, StreamFormat::Records(DumpByteOrder::Little));
        let records: Vec<DumpRecord> =
            RecordReader::new(bytes.as_slice(), form).map(Result::unwrap).collect();
        assert_eq!(records, TagDump::read(&bytes, DumpByteOrder::Little).unwrap().records);
        let mut cut = RecordReader::new(&bytes[..12], form);
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
