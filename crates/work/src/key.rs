//! Keys of results: all inputs, and the code that computes.

use crate::{open_file, IoContext, Result};
use serde::Serialize;
use std::path::Path;

/// Maximum length of a field that is kept as text; longer ones are kept as hashes.
const PLAIN: usize = 80;

/// Key of a result: named fields, in order, and the code that computes.
///
/// Results with equal keys are equal. The key is stored with the result (`result.json`), so that it
/// can be read and its id computed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    rule: String,
    code: String,
    fields: Vec<(String, String)>,
}

impl Key {
    /// Creates a key. `rule` names the kind of result and the version of its fields, for example
    /// `training/2`. `code` is the `CODE` of the crate that computes (`kerntune-code`), or empty if
    /// the version in `rule` is raised by hand.
    pub fn new(rule: &str, code: &str) -> Self {
        Self { rule: rule.to_owned(), code: code.to_owned(), fields: Vec::new() }
    }

    /// Adds a named field. Short plain text is kept as it is, anything else as its hash.
    pub fn field(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let plain = std::str::from_utf8(bytes).ok().filter(|text| {
            text.len() <= PLAIN && !text.starts_with(HASHED) && !text.contains(char::is_control)
        });
        let value = plain.map_or_else(|| hashed(&blake3::hash(bytes)), str::to_owned);
        self.fields.push((name.to_owned(), value));
        self
    }

    /// Adds a value by its serialized form ([`ContentHash::value`]).
    ///
    /// # Errors
    /// The value has no JSON form, such as a path that is not UTF-8.
    pub fn value(self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(self.field(name, serialized(name, value)?))
    }

    /// Adds the hash of a file's content.
    pub fn file(mut self, name: &str, path: &Path) -> Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let file = open_file(path).at("read", path)?;
        hasher.update_reader(file).at("read", path)?;
        self.fields.push((name.to_owned(), hashed(&hasher.finalize())));
        Ok(self)
    }

    /// Returns the id: the first 64 bits of the hash over rule, code and fields, as 16 hex digits.
    pub fn id(&self) -> String {
        let mut hash = ContentHash::new(&self.rule).field("code", &self.code);
        for (name, value) in &self.fields {
            hash = hash.field(name, value);
        }
        hash.finish()
    }

    /// Returns the kind of result and the version of its fields.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Returns the hash of the code; empty if `rule` has the version.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the fields, in order.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// Restores a stored key.
    pub(crate) fn kept(rule: String, code: String, fields: Vec<(String, String)>) -> Self {
        Self { rule, code, fields }
    }
}

const HASHED: &str = "blake3:";

fn hashed(hash: &blake3::Hash) -> String {
    format!("{HASHED}{}", hash.to_hex())
}

/// Returns the canonical form of a value: JSON on one line, with fields in the order of the type.
fn serialized(name: &str, value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(std::io::Error::from).at("serialize", name)
}

/// BLAKE3 hash over named fields, for things named by content that are not results. Name and length
/// of each field are hashed too, so moving bytes between fields changes the hash.
#[derive(Clone)]
pub struct ContentHash {
    inner: blake3::Hasher,
}

impl ContentHash {
    /// Creates a hash. `domain` names what is hashed and the version of the rule, for example
    /// `config/1`.
    pub fn new(domain: &str) -> Self {
        let mut inner = blake3::Hasher::new();
        inner.update(domain.as_bytes());
        Self { inner }
    }

    /// Adds a named field.
    pub fn field(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.inner.update(format!("\n{name}:{}:", bytes.len()).as_bytes());
        self.inner.update(bytes);
        self
    }

    /// Adds a list: the number of its items, then each of them. An optional value is a list of at
    /// most one.
    pub fn list<T: AsRef<[u8]>>(self, name: &str, items: impl IntoIterator<Item = T>) -> Self {
        let items: Vec<T> = items.into_iter().collect();
        let counted = self.field(name, items.len().to_string());
        items.iter().fold(counted, |hash, item| hash.field(name, item))
    }

    /// Adds a value by its serialized form: JSON on one line, with fields in the order of the type.
    ///
    /// # Errors
    /// The value has no JSON form, such as a path that is not UTF-8.
    pub fn value(self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(self.field(name, serialized(name, value)?))
    }

    /// Adds the hash of a file's content.
    pub fn file(self, name: &str, path: &Path) -> Result<Self> {
        let mut sub = blake3::Hasher::new();
        let file = open_file(path).at("read", path)?;
        sub.update_reader(file).at("read", path)?;
        Ok(self.field(name, sub.finalize().as_bytes()))
    }

    /// Returns the first 64 bits as 16 hex digits: short enough to type, long enough for a work
    /// directory.
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
    fn lists_and_values_differ_by_their_items() {
        let list = |items: &[&str]| ContentHash::new("t").list("x", items).finish();
        let all = [list(&[]), list(&[""]), list(&["a"]), list(&["a", ""]), list(&["", "a"])];
        assert!(all.iter().enumerate().all(|(at, one)| !all[..at].contains(one)));
        let key = Key::new("t/1", "").value("words", &["a", "b"]).unwrap();
        assert_eq!(key.fields()[0].1, "[\"a\",\"b\"]");
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
