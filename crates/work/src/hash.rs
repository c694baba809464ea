//! Names of results, made from what went into them.

use crate::{IoContext, Result};
use std::fs::File;
use std::path::Path;

/// A BLAKE3 hash over named fields. The name and length of each field go in with it, so that
/// moving bytes from one field to the next changes the result.
#[derive(Clone)]
pub struct ContentHash {
    inner: blake3::Hasher,
}

impl ContentHash {
    /// `domain` names what is hashed and the version of the rule, for example `kernel/1`.
    pub fn new(domain: &str) -> Self {
        let mut inner = blake3::Hasher::new();
        inner.update(domain.as_bytes());
        Self { inner }
    }

    /// Adds one named field.
    pub fn field(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.inner.update(format!("\n{name}:{}:", bytes.len()).as_bytes());
        self.inner.update(bytes);
        self
    }

    /// Adds the contents of a file, streamed.
    pub fn file(self, name: &str, path: &Path) -> Result<Self> {
        let mut sub = blake3::Hasher::new();
        let file = File::open(path).at("read", path)?;
        sub.update_reader(file).at("read", path)?;
        Ok(self.field(name, sub.finalize().as_bytes()))
    }

    /// The first 64 bits as 16 hex digits: short enough to type, enough for a work directory.
    pub fn finish(self) -> String {
        self.inner.finalize().to_hex()[..16].to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_together() {
        let a = ContentHash::new("t").field("x", "ab").field("y", "c").finish();
        let b = ContentHash::new("t").field("x", "a").field("y", "bc").finish();
        assert_ne!(a, b);
        assert_eq!(a.len(), 16);
    }
}
