//! Instruction stream: every instruction of a part of a run with its memory accesses, stored in
//! `instructions.kt` on request.
//!
//! All numbers are little endian. The file begins with magic `KTINSNS\0` and version u32. The rest
//! is compressed by zstd and consists of records that begin with a byte:
//!
//! | byte | record |
//! |---|---|
//! | 1 | definition of an instruction: number u32, address u64, length u8, its bytes |
//! | 2 | execution of an instruction: number u32 |
//! | 3 | read: address u64 |
//! | 4 | write: address u64 |
//! | 5 | end of the stream: executed instructions u64 |
//!
//! An access belongs to the instruction executed before it. A repeated string instruction is
//! executed once for each repetition.

use crate::{check_version, Error, VERSION};
use serde::{Deserialize, Serialize};
use std::io::{self, BufReader, Read, Write};

const MAGIC: [u8; 8] = *b"KTINSNS\0";
const WHAT: &str = "instruction stream";
const HEADER: usize = MAGIC.len() + 4;
/// Maximum length of an instruction, in bytes.
pub const MAX_INSN_BYTES: usize = 15;

/// Instructions to write to the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSpec {
    /// Name of the regions to write, with their nested regions; `None` for all regions.
    pub region: Option<String>,
    /// Maximum number of executed instructions; later ones are not written.
    pub instructions: u64,
}

/// Record of an instruction stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamRecord {
    /// Definition of an instruction, before its first execution.
    Instruction {
        /// Number of the instruction in the file, ascending from 0.
        number: u32,
        /// Virtual address of the instruction.
        address: u64,
        /// Number of valid bytes in `bytes`.
        length: u8,
        /// Machine code of the instruction.
        bytes: [u8; MAX_INSN_BYTES],
    },
    /// Execution of the instruction with this number.
    Execute(u32),
    /// Read of memory at this virtual address.
    Read(u64),
    /// Write of memory at this virtual address.
    Write(u64),
    /// End of the stream.
    End {
        /// Number of executed instructions in the stream.
        instructions: u64,
    },
}

/// Writes the uncompressed head of a file.
///
/// # Errors
/// Those of the writer.
pub fn write_head(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())
}

/// Builds a file from encoded records, without checking them.
///
/// # Errors
/// Those of writing to memory; none are expected.
pub fn pack(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    write_head(&mut file)?;
    file.extend(zstd::encode_all(records, 1)?);
    Ok(file)
}

impl StreamRecord {
    /// Appends the encoded record.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match *self {
            StreamRecord::Instruction { number, address, length, bytes } => {
                out.write_all(&[1])?;
                out.write_all(&number.to_le_bytes())?;
                out.write_all(&address.to_le_bytes())?;
                let length = length.min(MAX_INSN_BYTES as u8);
                out.write_all(&[length])?;
                out.write_all(&bytes[..length.into()])
            }
            StreamRecord::Execute(number) => {
                let [a, b, c, d] = number.to_le_bytes();
                out.write_all(&[2, a, b, c, d])
            }
            StreamRecord::Read(address) => long(3, address, out),
            StreamRecord::Write(address) => long(4, address, out),
            StreamRecord::End { instructions } => long(5, instructions, out),
        }
    }
}

fn long(kind: u8, value: u64, out: &mut impl Write) -> io::Result<()> {
    let mut bytes = [kind; 9];
    bytes[1..].copy_from_slice(&value.to_le_bytes());
    out.write_all(&bytes)
}

/// Reader of an instruction stream.
pub struct StreamReader<R: Read> {
    from: BufReader<zstd::Decoder<'static, BufReader<R>>>,
    /// Decompressed bytes read so far.
    at: usize,
    /// Number of instructions defined so far.
    known: u32,
    executed: u64,
    is_over: bool,
}

/// Errors of reading an instruction stream.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum StreamError {
    #[error(transparent)]
    Format(#[from] Error),
    #[error("the {WHAT} cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl<R: Read> StreamReader<R> {
    /// Opens a stream and checks its head.
    ///
    /// # Errors
    /// The file has another format or version, ends early, or cannot be read.
    pub fn new(mut from: R) -> Result<Self, StreamError> {
        let mut head = [0; HEADER];
        let mut have = 0;
        while have < HEADER {
            match from.read(&mut head[have..])? {
                0 => return Err(Error::Truncated { what: WHAT, at: have }.into()),
                read => have += read,
            }
        }
        let mut magic = [0; 8];
        magic.copy_from_slice(&head[..8]);
        if magic != MAGIC {
            return Err(Error::Magic { what: WHAT, found: magic }.into());
        }
        check_version(WHAT, u32::from_le_bytes([head[8], head[9], head[10], head[11]]))?;
        let from = BufReader::new(zstd::Decoder::new(from)?);
        Ok(Self { from, at: 0, known: 0, executed: 0, is_over: false })
    }

    /// Reads the next record; `None` after the end.
    ///
    /// # Errors
    /// The file ends early, holds an invalid record, or its end states another number of executed
    /// instructions.
    #[allow(clippy::should_implement_trait, reason = "an iterator would go on after an error")]
    pub fn next(&mut self) -> Result<Option<StreamRecord>, StreamError> {
        if self.is_over {
            return Ok(None);
        }
        let began = self.at;
        let [kind] = self.bytes::<1>()?;
        let step = match kind {
            1 => {
                let number = u32::from_le_bytes(self.bytes()?);
                if number != self.known {
                    return Err(self.invalid(number.into(), began));
                }
                let address = u64::from_le_bytes(self.bytes()?);
                let [length] = self.bytes::<1>()?;
                if length == 0 || usize::from(length) > MAX_INSN_BYTES {
                    return Err(self.invalid(length.into(), began));
                }
                let mut bytes = [0; MAX_INSN_BYTES];
                self.fill(&mut bytes[..length.into()])?;
                self.known += 1;
                StreamRecord::Instruction { number, address, length, bytes }
            }
            2 => {
                let number = u32::from_le_bytes(self.bytes()?);
                if number >= self.known {
                    return Err(self.invalid(number.into(), began));
                }
                self.executed += 1;
                StreamRecord::Execute(number)
            }
            // An access needs an instruction before it.
            3 | 4 if self.executed == 0 => return Err(self.invalid(kind.into(), began)),
            3 => StreamRecord::Read(u64::from_le_bytes(self.bytes()?)),
            4 => StreamRecord::Write(u64::from_le_bytes(self.bytes()?)),
            5 => {
                let instructions = u64::from_le_bytes(self.bytes()?);
                if instructions != self.executed {
                    return Err(self.invalid(instructions, began));
                }
                self.is_over = true;
                StreamRecord::End { instructions }
            }
            other => return Err(self.invalid(other.into(), began)),
        };
        Ok(Some(step))
    }

    fn invalid(&self, found: u64, at: usize) -> StreamError {
        Error::Invalid { what: WHAT, found, at }.into()
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], StreamError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<(), StreamError> {
        let mut have = 0;
        while have < into.len() {
            match self.from.read(&mut into[have..])? {
                0 => return Err(Error::Truncated { what: WHAT, at: self.at + have }.into()),
                read => have += read,
            }
        }
        self.at += have;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(steps: &[StreamRecord]) -> Vec<u8> {
        let mut records = Vec::new();
        for step in steps {
            step.write(&mut records).unwrap();
        }
        pack(&records).unwrap()
    }

    fn nop(number: u32) -> StreamRecord {
        let mut bytes = [0; MAX_INSN_BYTES];
        bytes[0] = 0x90;
        StreamRecord::Instruction { number, address: 0x1000 + u64::from(number), length: 1, bytes }
    }

    fn read(file: &[u8]) -> Result<Vec<StreamRecord>, StreamError> {
        let mut reader = StreamReader::new(file)?;
        let mut steps = Vec::new();
        while let Some(step) = reader.next()? {
            steps.push(step);
        }
        Ok(steps)
    }

    #[test]
    fn what_is_written_is_read() {
        let steps = [
            nop(0),
            StreamRecord::Execute(0),
            StreamRecord::Read(7),
            StreamRecord::Write(u64::MAX),
            nop(1),
            StreamRecord::Execute(1),
            StreamRecord::Execute(0),
            StreamRecord::End { instructions: 3 },
        ];
        assert_eq!(read(&file(&steps)).unwrap(), steps);
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let good = [nop(0), StreamRecord::Execute(0), StreamRecord::End { instructions: 1 }];
        for (steps, words) in [
            (&good[..2], "ends in the middle"),
            (&[nop(1)], "holds 1"),
            (&[nop(0), StreamRecord::Execute(1)], "holds 1 at byte 15"),
            (&[StreamRecord::Read(1)], "holds 3"),
            (&[nop(0), StreamRecord::Execute(0), StreamRecord::End { instructions: 2 }], "holds 2"),
            (&[], "ends in the middle"),
        ] {
            let error = read(&file(steps)).unwrap_err().to_string();
            assert!(error.contains(words), "{words:?} is not in {error}");
        }
        assert!(read(b"ELF").unwrap_err().to_string().contains("ends in the middle"));
        assert!(read(b"0123456789abcdef").unwrap_err().to_string().contains("not a kerntune"));
        let mut other = file(&good);
        other[8] ^= 1;
        assert!(read(&other).unwrap_err().to_string().contains("version"));
        let mut damaged = file(&good);
        damaged[HEADER] ^= 0xff;
        assert!(matches!(read(&damaged), Err(StreamError::Io(_))));
    }
}
