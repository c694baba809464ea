//! Records as they arrive, from a file or from a line that never ends: what is in memory is the piece of one that has not
//! come whole.

use super::dump::{text_record, DumpError, Order, Record, RECORD_BYTES};
use std::io::{self, Read};

/// How records are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Five bytes each.
    Records(Order),
    /// A line each: `TAG TIME`.
    Text,
    /// Two bytes each, of a tag below 16384: the upper seven bits with bit 7 set, and the lower seven (`KT_TAGS_UART`).
    /// The time is that of arrival.
    Uart,
}

/// Bytes of a line of text at most; one has some twenty.
const LINE: usize = 1024;
/// The counter begins again after so many microseconds.
const ROUND: u64 = 1 << 24;

/// Bytes to records.
#[derive(Debug, Clone)]
pub struct Decoder {
    form: Form,
    /// The beginning of a record.
    rest: Vec<u8>,
    lines: usize,
    passed_over: u64,
}

impl Decoder {
    /// For a stream from its beginning on.
    pub fn new(form: Form) -> Self {
        Self { form, rest: Vec::new(), lines: 0, passed_over: 0 }
    }

    /// Takes the next bytes, which came at `now` (µs, of any beginning; only [`Form::Uart`] asks), and appends the records
    /// that are whole to `out`.
    ///
    /// # Errors
    /// [`DumpError::Line`] for a line that is no record's.
    pub fn push(&mut self, bytes: &[u8], now: u64, out: &mut Vec<Record>) -> Result<(), DumpError> {
        match self.form {
            Form::Records(order) => {
                for byte in bytes {
                    self.rest.push(*byte);
                    if let Ok(raw) = <[u8; RECORD_BYTES]>::try_from(self.rest.as_slice()) {
                        out.push(Record::of_bytes(raw, order));
                        self.rest.clear();
                    }
                }
            }
            Form::Text => {
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
            Form::Uart => {
                for byte in bytes {
                    if byte & 0x80 != 0 {
                        self.passed_over += self.rest.len() as u64;
                        self.rest = vec![byte & 0x7f];
                    } else if let Some(high) = self.rest.pop() {
                        let tag = u16::from(high) << 7 | u16::from(*byte);
                        out.push(Record { tag, time: (now % ROUND) as u32 });
                    } else {
                        self.passed_over += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// The stream has ended: the last line of a text needs no end. Returns the bytes of no whole record.
    ///
    /// # Errors
    /// As [`Decoder::push`].
    pub fn finish(mut self, out: &mut Vec<Record>) -> Result<u64, DumpError> {
        if self.form == Form::Text {
            self.line(out)?;
        }
        Ok(self.passed_over + self.rest.len() as u64)
    }

    fn line(&mut self, out: &mut Vec<Record>) -> Result<(), DumpError> {
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

/// The form of a file's bytes: text if all of them are of text, else records.
///
/// # Errors
/// Reading fails.
pub fn guess(mut input: impl Read, order: Order) -> io::Result<Form> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        // A tag below 2,304 or above 32,511 has a byte that no text has.
        match input.read(&mut buffer)? {
            0 => return Ok(Form::Text),
            count => {
                let printable = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
                if !buffer.get(..count).unwrap_or_default().iter().all(printable) {
                    return Ok(Form::Records(order));
                }
            }
        }
    }
}

/// The records of a file, read as they are asked for. What is wrong with one is an error of kind `InvalidData` with a
/// [`DumpError`] in it; after it there are no more.
pub struct Records<R> {
    input: R,
    decoder: Option<Decoder>,
    buffer: Vec<u8>,
    ready: std::vec::IntoIter<Record>,
}

impl<R: Read> Records<R> {
    /// From the beginning of `input`.
    pub fn new(input: R, form: Form) -> Self {
        Self {
            input,
            decoder: Some(Decoder::new(form)),
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
                let records_form = matches!(decoder.form, Form::Records(_));
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

impl<R: Read> Iterator for Records<R> {
    type Item = io::Result<Record>;

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
    use crate::mcrae::Dump;
    use proptest::prelude::*;

    /// The records of bytes that arrive in pieces, and how many bytes were of none.
    fn pieces(form: Form, pieces: &[&[u8]]) -> Result<(Vec<Record>, u64), DumpError> {
        let (mut decoder, mut out) = (Decoder::new(form), Vec::new());
        for (piece, now) in pieces.iter().zip((0..).step_by(7)) {
            decoder.push(piece, now, &mut out)?;
        }
        let rest = decoder.finish(&mut out)?;
        Ok((out, rest))
    }

    #[test]
    fn pieces_are_joined() {
        let record = |tag, time| Record { tag, time };
        let (records, rest) =
            pieces(Form::Records(Order::Little), &[&[0x58, 0x02, 3], &[2, 1, 0x59], &[2, 0]]).unwrap();
        assert_eq!((records, rest), (vec![record(600, 0x01_0203)], 3));
        let (records, rest) = pieces(Form::Text, &[b"600 1\n60", b"1 2\n# x\n", b"0x10 3"]).unwrap();
        assert_eq!((records, rest), (vec![record(600, 1), record(601, 2), record(16, 3)], 0));
        // 600 is 4 · 128 + 88; a lone low byte, and a high byte that another follows, are of no tag.
        let (records, rest) = pieces(Form::Uart, &[&[5, 0x84], &[88, 0x90, 0x84], &[89]]).unwrap();
        assert_eq!((records, rest), (vec![record(600, 7), record(601, 14)], 2));
        assert!(pieces(Form::Text, &[b"600\n"]).unwrap_err().to_string().contains("line 1"));
        assert!(pieces(Form::Text, &[&[b'7'; 5000]]).unwrap_err().to_string().contains("longer"));
    }

    #[test]
    fn a_file_is_read_as_it_is_asked_for() {
        let bytes: Vec<u8> =
            (0..50_000u32).flat_map(|n| [n as u8, 0x80, n as u8, (n >> 8) as u8, 0]).collect();
        let form = guess(bytes.as_slice(), Order::Little).unwrap();
        assert_eq!(form, Form::Records(Order::Little));
        let records: Vec<Record> = Records::new(bytes.as_slice(), form).map(Result::unwrap).collect();
        assert_eq!(records, Dump::read(&bytes, Order::Little).unwrap().records);
        let mut cut = Records::new(&bytes[..12], form);
        assert!(cut.next().unwrap().is_ok() && cut.next().unwrap().is_ok());
        assert!(cut.next().unwrap().unwrap_err().to_string().contains("2 bytes"));
        assert!(cut.next().is_none());
        assert_eq!(guess(&b"600 1\n"[..], Order::Big).unwrap(), Form::Text);
    }

    proptest! {
        #[test]
        fn foreign_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
            for form in [Form::Records(Order::Big), Form::Text, Form::Uart] {
                let (a, b) = bytes.split_at(at.index(bytes.len() + 1));
                let whole = pieces(form, &[&bytes]);
                if form != Form::Uart {
                    prop_assert_eq!(pieces(form, &[a, b]), whole);
                }
            }
        }
    }
}
