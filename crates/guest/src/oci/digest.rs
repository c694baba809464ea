//! SHA-256 digests of an image, and readers that compute them.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, Read};

/// A digest in the form `sha256:` and 64 lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest(String);

const ALGORITHM: &str = "sha256:";

impl Digest {
    /// Checks a digest; the only form that may become part of a path.
    pub fn parse(text: &str) -> io::Result<Self> {
        let is_hex =
            |hex: &str| hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match text.strip_prefix(ALGORITHM).is_some_and(is_hex) {
            true => Ok(Self(text.to_owned())),
            false => Err(io::Error::other(format!("`{}` is no SHA-256 digest", shown(text)))),
        }
    }

    /// Returns the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from(Sha256::digest(bytes).as_slice())
    }

    fn from(hash: &[u8]) -> Self {
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self(format!("{ALGORITHM}{hex}"))
    }

    /// Returns the whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the digits.
    pub fn hex(&self) -> &str {
        &self.0[ALGORITHM.len()..]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reader that hashes what passes through, with a limit of bytes.
pub(super) struct HashedReader<R> {
    inner: R,
    hash: Sha256,
    left: u64,
}

impl<R: Read> HashedReader<R> {
    pub fn new(inner: R, limit: u64) -> Self {
        Self { inner, hash: Sha256::new(), left: limit }
    }

    /// Reads the rest and checks the digest of all.
    pub fn check(mut self, expected: &Digest) -> io::Result<()> {
        io::copy(&mut self, &mut io::sink())?;
        let found = Digest::from(self.hash.finalize().as_slice());
        match found == *expected {
            true => Ok(()),
            false => Err(io::Error::other(format!("the bytes of {expected} have the digest {found}"))),
        }
    }
}

impl<R: Read> Read for HashedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(count as u64)
            .ok_or_else(|| io::Error::other("it is larger than an image may be"))?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

/// Returns a foreign text for a message: one line, not too long.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}
