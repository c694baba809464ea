//! Numbers of either byte order, and places in a file.

use super::{Result, TraceDatError};
use std::io::{Read, Seek, SeekFrom};

/// Largest part of a file's description, in bytes.
const LARGEST: u64 = 1 << 28;

/// Byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    pub big: bool,
}

impl Order {
    /// Decodes up to 8 bytes.
    #[inline]
    pub fn number(self, bytes: &[u8]) -> u64 {
        match (<[u8; 8]>::try_from(bytes), <[u8; 4]>::try_from(bytes), self.big) {
            (Ok(bytes), _, false) => u64::from_le_bytes(bytes),
            (Ok(bytes), _, true) => u64::from_be_bytes(bytes),
            (_, Ok(bytes), false) => u32::from_le_bytes(bytes).into(),
            (_, Ok(bytes), true) => u32::from_be_bytes(bytes).into(),
            (_, _, big) => {
                let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
                match big {
                    true => bytes.iter().take(8).fold(0, add),
                    false => bytes.iter().take(8).rev().fold(0, add),
                }
            }
        }
    }

    #[inline]
    pub fn u32(self, bytes: &[u8]) -> u32 {
        self.number(bytes) as u32
    }
}

/// Reader of a file's description at a position.
pub struct Cursor<'a, R> {
    pub file: &'a mut R,
    pub at: u64,
    /// Size of the file.
    pub size: u64,
    pub order: Order,
}

impl<R: Read + Seek> Cursor<'_, R> {
    /// Reads `count` bytes.
    pub fn bytes(&mut self, count: u64, what: &'static str) -> Result<Vec<u8>> {
        let to = self.at.saturating_add(count);
        if count > LARGEST && to <= self.size {
            let what = format!("{what} claims to have {count} bytes");
            return Err(TraceDatError::Damaged { at: self.at, what });
        }
        if to > self.size {
            return Err(TraceDatError::Truncated { what, from: self.at, to, size: self.size });
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        // The size was checked against that of the file.
        let mut bytes = vec![0; count as usize];
        self.file.read_exact(&mut bytes)?;
        self.at = to;
        Ok(bytes)
    }

    pub fn number(&mut self, count: u64, what: &'static str) -> Result<u64> {
        let bytes = self.bytes(count, what)?;
        Ok(self.order.number(&bytes))
    }

    /// Reads a text that ends with a zero.
    pub fn text(&mut self, what: &'static str) -> Result<String> {
        const LONGEST: u64 = 256;
        let room = LONGEST.min(self.size.saturating_sub(self.at));
        let from = self.at;
        let bytes = self.bytes(room, what)?;
        let length = bytes
            .iter()
            .position(|byte| *byte == 0)
            .ok_or_else(|| TraceDatError::Damaged { at: from, what: format!("{what} does not end") })?;
        self.at = from + length as u64 + 1;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    /// Reads bytes after their size, a number of `width` bytes.
    pub fn sized(&mut self, width: u64, what: &'static str) -> Result<Vec<u8>> {
        let count = self.number(width, what)?;
        self.bytes(count, what)
    }

    /// Expects these bytes.
    pub fn expect(&mut self, expected: &[u8], what: &'static str) -> Result<()> {
        let at = self.at;
        match self.bytes(expected.len() as u64, what)? == expected {
            true => Ok(()),
            false => Err(TraceDatError::Damaged { at, what: format!("{what} is missing") }),
        }
    }
}
