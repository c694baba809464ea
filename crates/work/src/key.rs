//! What names a result: everything that went into it, and the code that computed it.

use crate::{open_file, IoContext, Result};
use std::path::Path;

/// The longest text of a field that a key keeps as it is; of what is longer it keeps the hash.
const PLAIN: usize = 80;

/// The key of a result: named fields, in order, and the code that computes.
///
/// Two results with the same key are the same. The key is kept with the result (`result.json`), so that it can be
/// looked at and its id computed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    rule: String,
    code: String,
    fields: Vec<(String, String)>,
}

impl Key {
    /// `rule` names the kind of thing and the version of this list of fields, for example `training/2`. `code` names
    /// what computes: `CODE` of the crate that does (`kerntune-code`), or nothing where the version in `rule` is
    /// raised by hand.
    pub fn new(rule: &str, code: &str) -> Self {
        Self { rule: rule.to_owned(), code: code.to_owned(), fields: Vec::new() }
    }

    /// Adds one named field. Short plain text is kept as it is, anything else as its hash.
    pub fn field(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let plain = std::str::from_utf8(bytes).ok().filter(|text| {
            text.len() <= PLAIN && !text.starts_with(HASHED) && !text.contains(char::is_control)
        });
        let value = plain.map_or_else(|| hashed(&blake3::hash(bytes)), str::to_owned);
        self.fields.push((name.to_owned(), value));
        self
    }

    /// Adds the contents of a file, streamed.
    pub fn file(mut self, name: &str, path: &Path) -> Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let file = open_file(path).at("read", path)?;
        hasher.update_reader(file).at("read", path)?;
        self.fields.push((name.to_owned(), hashed(&hasher.finalize())));
        Ok(self)
    }

    /// The id: the first 64 bits of the hash over all of it, as 16 hex digits.
    pub fn id(&self) -> String {
        let mut hash = ContentHash::new(&self.rule).field("code", &self.code);
        for (name, value) in &self.fields {
            hash = hash.field(name, value);
        }
        hash.finish()
    }

    /// The kind of thing and the version of its list of fields.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What computes; nothing where `rule` says it.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The fields, in order.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// A key as it was kept.
    pub(crate) fn kept(rule: String, code: String, fields: Vec<(String, String)>) -> Self {
        Self { rule, code, fields }
    }
}

const HASHED: &str = "blake3:";

fn hashed(hash: &blake3::Hash) -> String {
    format!("{HASHED}{}", hash.to_hex())
}

/// A BLAKE3 hash over named fields, for what is named by content and is no result of its own. The name and length of
/// each field go in with it, so that moving bytes from one field to the next changes the result.
#[derive(Clone)]
pub struct ContentHash {
    inner: blake3::Hasher,
}

impl ContentHash {
    /// `domain` names what is hashed and the version of the rule, for example `config/1`.
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
        let file = open_file(path).at("read", path)?;
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

    #[test]
    fn a_key_names_rule_code_and_fields() {
        let key = |rule, code, value: &str| Key::new(rule, code).field("kernel", value).id();
        let plain = key("training/2", "c0de", "aa11");
        assert_eq!(key("training/2", "c0de", "aa11"), plain);
        assert_ne!(key("training/3", "c0de", "aa11"), plain);
        assert_ne!(key("training/2", "c0df", "aa11"), plain);
        assert_ne!(key("training/2", "c0de", "aa12"), plain);
    }

    #[test]
    fn long_and_binary_fields_are_kept_by_their_hash_and_cannot_be_forged_by_text() {
        let long = "x".repeat(200);
        let key = Key::new("t/1", "").field("long", &long).field("binary", [0xff, 0]);
        assert!(key.fields().iter().all(|(_, value)| value.starts_with(HASHED)), "{key:?}");
        let text = key.fields()[0].1.clone();
        assert_ne!(
            Key::new("t/1", "").field("long", text).id(),
            Key::new("t/1", "").field("long", &long).id()
        );
    }
}
