//! Compressed parts of a file of version 7.

use super::{Result, TraceDatError};
use flate2::read::ZlibDecoder;
use std::io::Read;

/// Largest section other than those of events, uncompressed, in bytes; symbols of a kernel have
/// up to some 20 MiB.
const LARGEST: u64 = 1 << 26;

/// Method of compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Zstd,
    Zlib,
}

impl Compression {
    pub fn of(name: &str) -> Result<Self> {
        match name {
            "none" => Ok(Self::None),
            "zstd" => Ok(Self::Zstd),
            "zlib" => Ok(Self::Zlib),
            other => Err(TraceDatError::Compression(format!("`{}`", other.escape_debug()))),
        }
    }

    /// Uncompresses to exactly `size` bytes.
    pub fn unpack(self, packed: &[u8], size: u64, at: u64) -> Result<Vec<u8>> {
        if size > LARGEST {
            let what = format!("a compressed part claims to have {size} bytes");
            return Err(TraceDatError::Damaged { at, what });
        }
        let mut bytes = Vec::new();
        // The vector grows with what is there, whatever the stated size is.
        let read = match self {
            Self::None => packed.take(size).read_to_end(&mut bytes),
            Self::Zstd => zstd::Decoder::new(packed).and_then(|it| it.take(size).read_to_end(&mut bytes)),
            Self::Zlib => ZlibDecoder::new(packed).take(size).read_to_end(&mut bytes),
        };
        match read {
            Ok(_) if bytes.len() as u64 == size => Ok(bytes),
            Ok(_) => {
                let what = format!("a compressed part has {} bytes instead of {size}", bytes.len());
                Err(TraceDatError::Damaged { at, what })
            }
            Err(error) => {
                Err(TraceDatError::Damaged { at, what: format!("a part cannot be uncompressed: {error}") })
            }
        }
    }
}
