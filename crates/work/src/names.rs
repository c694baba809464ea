//! Checked names that come from files and may become part of a path.
//!
//! Text of a plan, a result, a manifest or an archive stays a `String` until one of these types has
//! checked it. Serde checks while reading, so a value of such a type is always a safe name: joined
//! to a directory it stays below that directory.
//!
//! ```
//! use kerntune_work::{Id, RelativePath};
//! assert!("0123456789abcdef".parse::<Id>().is_ok());
//! assert!("../victim".parse::<Id>().is_err());
//! assert!("patches/01-fix.patch".parse::<RelativePath>().is_ok());
//! assert!("patches/../../x".parse::<RelativePath>().is_err());
//! ```

use crate::Key;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::ffi::OsStr;
use std::fmt;
use std::ops::Deref;
use std::path::{Component, Path};
use std::str::FromStr;

/// Suffix of the name of a result that is being made.
pub(crate) const PARTIAL: &str = ".partial";
/// Maximum length of a file name, in bytes: `NAME_MAX` of Linux.
const NAME_MAX: usize = 255;
/// Maximum length of ids and labels, in bytes: names of locks and partial directories are some
/// characters longer.
const SHORT_MAX: usize = 200;
/// Maximum length of a relative path, in bytes: `PATH_MAX` of Linux, less the directory that it is
/// joined to.
const PATH_MAX: usize = 2048;
/// Maximum number of characters of a refused text in a message.
const SHOWN: usize = 80;

/// Error of a text that is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct NameError {
    text: String,
    expected: &'static str,
}

impl NameError {
    fn new(text: &str, expected: &'static str) -> Self {
        Self { text: text.chars().take(SHOWN).flat_map(char::escape_debug).collect(), expected }
    }
}

macro_rules! checked_name {
    ($(#[$doc:meta])* $name:ident, $is:path, $expected:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                match $is(&text) {
                    true => Ok(Self(text)),
                    false => Err(NameError::new(&text, $expected)),
                }
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<Path> for $name {
            fn as_ref(&self) -> &Path {
                Path::new(&self.0)
            }
        }

        impl AsRef<OsStr> for $name {
            fn as_ref(&self) -> &OsStr {
                OsStr::new(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                self.0.as_bytes()
            }
        }

        impl PartialEq<$name> for String {
            fn eq(&self, other: &$name) -> bool {
                *self == other.0
            }
        }

        impl PartialEq<String> for $name {
            fn eq(&self, other: &String) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_name! {
    /// Id of a result, a plan or a task: ASCII letters and digits, `.`, `_` and `-`; no leading
    /// dot, at most 200 bytes.
    Id, is_id, "the id of a result"
}

checked_name! {
    /// BLAKE3 hash: 64 lowercase hex digits.
    Hash, is_hash, "a BLAKE3 hash (64 hex digits)"
}

checked_name! {
    /// Commit of a git tree: 40 hex digits (SHA-1) or 64 (SHA-256).
    CommitHash, is_commit, "the hash of a git commit"
}

checked_name! {
    /// Name of one file: no `/`, no control characters, not `.` or `..`, at most 255 bytes.
    PlainName, is_plain_name, "the name of a file"
}

checked_name! {
    /// Label of a kernel, as chosen by users: letters, digits, blanks and `._-+=,:@%`; no leading
    /// dot, dash or blank, at most 200 bytes. It is safe between double quotation marks in a shell
    /// and stays on its line in a package's control file.
    Label, is_label, "a label (letters, digits, blanks and `._-+=,:@%`)"
}

checked_name! {
    /// Path below a directory: plain names with `/` between them, at most 2,048 bytes.
    RelativePath, is_relative_path, "a path below a directory"
}

/// Deserializes a name of type `N` into a field that stays `String`: `#[serde(deserialize_with =
/// "checked_text::<_, Id>")]`.
///
/// # Errors
/// [`NameError`], as an error of the deserializer.
pub fn checked_text<'de, D, N>(deserializer: D) -> Result<String, D::Error>
where
    D: serde::Deserializer<'de>,
    N: Deserialize<'de> + Into<String>,
{
    N::deserialize(deserializer).map(Into::into)
}

impl Id {
    /// Returns the id of the result that `key` names.
    pub fn of(key: &Key) -> Self {
        Self(key.id())
    }
}

impl Hash {
    /// Hashes these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        blake3::hash(bytes).into()
    }
}

impl From<blake3::Hash> for Hash {
    fn from(hash: blake3::Hash) -> Self {
        Self(hash.to_hex().to_string())
    }
}

/// Returns whether `text` is a valid [`Id`].
pub(crate) fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=SHORT_MAX).contains(&text.len())
        && text.chars().all(plain)
        && !text.starts_with('.')
        && !text.contains(PARTIAL)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && is_hex(text)
}

fn is_commit(text: &str) -> bool {
    [40, 64].contains(&text.len()) && is_hex(text)
}

fn is_plain_name(text: &str) -> bool {
    (1..=NAME_MAX).contains(&text.len())
        && ![".", ".."].contains(&text)
        && !text.chars().any(|c| c == '/' || c.is_control())
}

fn is_label(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || " ._-+=,:@%".contains(c);
    (1..=SHORT_MAX).contains(&text.len()) && text.chars().all(plain) && !text.starts_with(['.', '-', ' '])
}

fn is_relative_path(text: &str) -> bool {
    let path = Path::new(text);
    // `a//b` and `a/./b` also name `a/b`, but each path must have one text only.
    text.len() <= PATH_MAX
        && text.split('/').all(is_plain_name)
        && path.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that leave a directory, or mean something to a shell, a terminal or a file system.
    const HOSTILE: &[&str] = &[
        "",
        ".",
        "..",
        "../x",
        "a/../../x",
        "/etc/passwd",
        "a/",
        "a//b",
        "a/./b",
        "./a",
        "a\0b",
        "a\nb",
        "a\u{1b}[0m",
        "a/..",
    ];

    #[test]
    fn hostile_texts_are_no_names() {
        for text in HOSTILE {
            assert!(text.parse::<Id>().is_err(), "{text:?}");
            assert!(text.parse::<Hash>().is_err(), "{text:?}");
            assert!(text.parse::<CommitHash>().is_err(), "{text:?}");
            assert!(text.parse::<PlainName>().is_err(), "{text:?}");
            assert!(text.parse::<Label>().is_err(), "{text:?}");
            assert!(text.parse::<RelativePath>().is_err(), "{text:?}");
        }
        let long = "x".repeat(5000);
        assert!(long.parse::<PlainName>().is_err() && long.parse::<RelativePath>().is_err());
        for text in ["$(reboot)", "`x`", "a\"", "-n", "a;b"] {
            assert!(
                text.parse::<Label>().is_err() && text.parse::<Id>().is_err() || text == "-n",
                "{text:?}"
            );
        }
        assert!(".hidden".parse::<Id>().is_err() && "aa.partial".parse::<Id>().is_err());
    }

    #[test]
    fn ordinary_names_are_names() {
        for text in ["0123456789abcdef", "base", "a.b_c-d"] {
            assert!(text.parse::<Id>().is_ok() && text.parse::<Label>().is_ok(), "{text}");
        }
        assert!(["base-gcc-pgo+layout-rr", "gcc -O2", "né"].iter().all(|text| text.parse::<Label>().is_ok()));
        assert!("tolerances of mine.toml".parse::<PlainName>().is_ok());
        assert!("patches/01-fix.patch".parse::<RelativePath>().is_ok());
        let hash = blake3::hash(b"x").to_hex().to_string();
        assert_eq!(hash.parse::<Hash>().unwrap(), *hash);
        assert!(hash.to_uppercase().parse::<Hash>().is_err());
        assert!(hash[..40].parse::<CommitHash>().is_ok());
    }

    #[test]
    fn serde_checks_when_it_reads() {
        let ok: Vec<Id> = serde_json::from_str("[\"aa11\"]").unwrap();
        assert_eq!(serde_json::to_string(&ok).unwrap(), "[\"aa11\"]");
        let error = serde_json::from_str::<Id>("\"../victim\"").unwrap_err().to_string();
        assert!(error.contains("`../victim` is not the id of a result"), "{error}");
        let keyed = serde_json::from_str::<std::collections::BTreeMap<Hash, u8>>("{\"../precious\": 1}");
        assert!(keyed.is_err());
        let control = serde_json::from_str::<Label>("\"x\\nDepends: y\"").unwrap_err().to_string();
        assert!(control.contains("`x\\nDepends: y`"), "{control}");
    }
}
