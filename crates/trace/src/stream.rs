//! Every instruction of a part of a run with its accesses to memory: `instructions.kt`, written only where it was asked for.
//!
//! Little endian: magic `KTINSNS\0`, version u32; then, compressed by zstd, records that begin with a byte:
//!
//! | byte | record |
//! |---|---|
//! | 1 | an instruction is seen for the first time: number u32, address u64, length u8, its bytes |
//! | 2 | it is executed: number u32 |
//! | 3 | it reads: address u64 |
//! | 4 | it writes: address u64 |
//! | 5 | the end: executed instructions u64 |
//!
//! An access belongs to the instruction that was executed before it. A repeated string instruction is executed once for each
//! time that it repeats.

use crate::{Error, VERSION};
use serde::{Deserialize, Serialize};
use std::io::{self, BufReader, Read, Write};

const MAGIC: [u8; 8] = *b"KTINSNS\0";
const WHAT: &str = "instruction stream";
const HEADER: usize = MAGIC.len() + 4;
/// Bytes of the longest instruction.
pub const MOST_BYTES: usize = 15;

/// Which instructions are written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSpec {
    /// Those in regions of this name and in regions within them; in all regions if there is none.
    pub region: Option<String>,
    /// So many at most, the first ones.
    pub instructions: u64,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An instruction, before it is executed for the first time.
    Instruction {
        /// Its number in the file; numbers come in order, from 0.
        number: u32,
        /// Its virtual address.
        address: u64,
        /// How many of `bytes` it has.
        length: u8,
        /// Its bytes.
        bytes: [u8; MOST_BYTES],
    },
    /// The instruction of this number is executed.
    Execute(u32),
    /// It reads memory at this virtual address.
    Read(u64),
    /// It writes.
    Write(u64),
    /// Nothing comes after this.
    End {
        /// How many instructions were executed.
        instructions: u64,
    },
}

/// The head of a file, before what is compressed.
///
/// # Errors
/// What the writer says.
pub fn write_head(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())
}

/// A whole file of records that are written already, as they are: whether they are good ones is not asked.
///
/// # Errors
/// None that memory does not have.
pub fn pack(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    write_head(&mut file)?;
    file.extend(zstd::encode_all(records, 1)?);
    Ok(file)
}

impl Step {
    /// Appends the record.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match *self {
            Step::Instruction { number, address, length, bytes } => {
                out.write_all(&[1])?;
                out.write_all(&number.to_le_bytes())?;
                out.write_all(&address.to_le_bytes())?;
                let length = length.min(MOST_BYTES as u8);
                out.write_all(&[length])?;
                out.write_all(&bytes[..length.into()])
            }
            Step::Execute(number) => {
                let [a, b, c, d] = number.to_le_bytes();
                out.write_all(&[2, a, b, c, d])
            }
            Step::Read(address) => long(3, address, out),
            Step::Write(address) => long(4, address, out),
            Step::End { instructions } => long(5, instructions, out),
        }
    }
}

fn long(kind: u8, value: u64, out: &mut impl Write) -> io::Result<()> {
    let mut bytes = [kind; 9];
    bytes[1..].copy_from_slice(&value.to_le_bytes());
    out.write_all(&bytes)
}

/// Reads a stream step by step.
pub struct StreamReader<R: Read> {
    from: BufReader<zstd::Decoder<'static, BufReader<R>>>,
    /// Bytes read so far, of what is compressed.
    at: usize,
    /// Instructions that are known.
    known: u32,
    executed: u64,
    is_over: bool,
}

/// Why a stream cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// Bytes that are not what they should be.
    #[error(transparent)]
    Format(#[from] Error),
    /// A file that cannot be read, or that is not compressed as it should be.
    #[error("the {WHAT} cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl<R: Read> StreamReader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// Another file, or one of another version.
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
        let found = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if found != VERSION {
            return Err(Error::Version { what: WHAT, found }.into());
        }
        let from = BufReader::new(zstd::Decoder::new(from)?);
        Ok(Self { from, at: 0, known: 0, executed: 0, is_over: false })
    }

    /// The next record; `None` after the end.
    ///
    /// # Errors
    /// A file that stops in the middle, that holds what the format does not have, or whose end says another count.
    #[allow(clippy::should_implement_trait, reason = "an iterator would go on after an error")]
    pub fn next(&mut self) -> Result<Option<Step>, StreamError> {
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
                if length == 0 || usize::from(length) > MOST_BYTES {
                    return Err(self.invalid(length.into(), began));
                }
                let mut bytes = [0; MOST_BYTES];
                self.fill(&mut bytes[..length.into()])?;
                self.known += 1;
                Step::Instruction { number, address, length, bytes }
            }
            2 => {
                let number = u32::from_le_bytes(self.bytes()?);
                if number >= self.known {
                    return Err(self.invalid(number.into(), began));
                }
                self.executed += 1;
                Step::Execute(number)
            }
            // An access is somebody's.
            3 | 4 if self.executed == 0 => return Err(self.invalid(kind.into(), began)),
            3 => Step::Read(u64::from_le_bytes(self.bytes()?)),
            4 => Step::Write(u64::from_le_bytes(self.bytes()?)),
            5 => {
                let instructions = u64::from_le_bytes(self.bytes()?);
                if instructions != self.executed {
                    return Err(self.invalid(instructions, began));
                }
                self.is_over = true;
                Step::End { instructions }
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

    fn file(steps: &[Step]) -> Vec<u8> {
        let mut records = Vec::new();
        for step in steps {
            step.write(&mut records).unwrap();
        }
        pack(&records).unwrap()
    }

    fn nop(number: u32) -> Step {
        let mut bytes = [0; MOST_BYTES];
        bytes[0] = 0x90;
        Step::Instruction { number, address: 0x1000 + u64::from(number), length: 1, bytes }
    }

    fn read(file: &[u8]) -> Result<Vec<Step>, StreamError> {
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
            Step::Execute(0),
            Step::Read(7),
            Step::Write(u64::MAX),
            nop(1),
            Step::Execute(1),
            Step::Execute(0),
            Step::End { instructions: 3 },
        ];
        assert_eq!(read(&file(&steps)).unwrap(), steps);
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let good = [nop(0), Step::Execute(0), Step::End { instructions: 1 }];
        for (steps, words) in [
            (&good[..2], "ends in the middle"),
            (&[nop(1)], "holds 1"),
            (&[nop(0), Step::Execute(1)], "holds 1 at byte 15"),
            (&[Step::Read(1)], "holds 3"),
            (&[nop(0), Step::Execute(0), Step::End { instructions: 2 }], "holds 2"),
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
