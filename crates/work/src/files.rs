//! Files that are written atomically.

use crate::{create_new, fault, read_file, Error, IoContext, Result};
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes a temporary file and renames it, so that readers see the old or the new content, never a
/// part.
///
/// # Errors
/// A file that cannot be written; the temporary file is removed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = dir.join(format!(".{name}.{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = create_new(&aside)?;
        fault::point("write")?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fault::point("written")?;
        fs::rename(&aside, path)?;
        fault::point("renamed")
    };
    write().map_err(|source| {
        let _ = fs::remove_file(&aside);
        Error::Io { action: "write", path: path.to_owned(), source }
    })
}

/// Writes a value by [`write_atomic`], as indented JSON with a final newline.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    write_atomic(path, &to_json(path, value)?)
}

fn to_json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|source| Error::Json { path: path.to_owned(), source })?;
    text.push(b'\n');
    Ok(text)
}

/// Reads a JSON file whose field `schema` must be `schema`. The field is checked first, since a
/// file of another version may lack fields of this one.
///
/// # Errors
/// [`Error::Schema`] for a file of another version; [`Error::Json`] for one that cannot be parsed.
pub fn read_versioned<T: DeserializeOwned>(path: &Path, schema: &'static str) -> Result<T> {
    let bytes = read_file(path).at("read", path)?;
    let value = serde_json::from_slice(&bytes);
    check_schema(value.map_err(|source| Error::Json { path: path.to_owned(), source })?, path, schema)
}

/// Checks the schema of a JSON value and converts it.
pub(crate) fn check_schema<T: DeserializeOwned>(
    value: serde_json::Value,
    path: &Path,
    schema: &'static str,
) -> Result<T> {
    let found = value.get("schema").and_then(|found| found.as_str());
    if found != Some(schema) {
        let found = found.unwrap_or("none").to_owned();
        return Err(Error::Schema { path: path.to_owned(), found, expected: schema });
    }
    serde_json::from_value(value).map_err(|source| Error::Json { path: path.to_owned(), source })
}

/// Text around the value of a sealed file. Together they are JSON.
const BEGIN: &str = "{\n\"blake3\": \"";
const OF: &str = "\",\n\"of\": ";
const END: &str = "}\n";

/// Writes `{"blake3": …, "of": VALUE}` by [`write_atomic`]: the value with the hash of its text.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_sealed(path: &Path, value: &impl Serialize) -> Result<()> {
    write_atomic(path, &sealed(&to_json(path, value)?))
}

/// Returns the bytes of a sealed file with this value, for use without a file. Fails if JSON cannot
/// hold the value.
pub fn seal_bytes(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(sealed(&text))
}

fn sealed(text: &[u8]) -> Vec<u8> {
    let hash = blake3::hash(text).to_hex();
    [BEGIN.as_bytes(), hash.as_bytes(), OF.as_bytes(), text, END.as_bytes()].concat()
}

/// Reads a file that [`write_sealed`] wrote.
///
/// # Errors
/// [`Error::Seal`] if the file was changed.
pub fn read_sealed<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = read_file(path).at("read", path)?;
    parse_sealed(&bytes, path)
}

/// Parses the bytes of a sealed file; `path` is for the message.
///
/// # Errors
/// As [`read_sealed`].
pub fn parse_sealed<T: DeserializeOwned>(bytes: &[u8], path: &Path) -> Result<T> {
    let text = sealed_text(bytes).ok_or_else(|| Error::Seal { path: path.to_owned() })?;
    serde_json::from_slice(text).map_err(|source| Error::Json { path: path.to_owned(), source })
}

/// Returns the text of the value if its hash is the stored one.
fn sealed_text(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(BEGIN.as_bytes())?.strip_suffix(END.as_bytes())?;
    let (hash, rest) = rest.split_at_checked(64)?;
    let text = rest.strip_prefix(OF.as_bytes())?;
    (blake3::hash(text).to_hex().as_bytes() == hash).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_write_replaces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_written_aside_goes_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (path, victim) = (dir.path().join("f"), dir.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        let aside = dir.path().join(format!(".f.{}", std::process::id()));
        std::os::unix::fs::symlink(&victim, &aside).unwrap();
        write_atomic(&path, b"one").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn no_bit_of_a_sealed_file_can_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.json");
        let value = vec![("busy".to_string(), 86), ("idle".to_string(), 14)];
        write_sealed(&path, &value).unwrap();
        assert_eq!(read_sealed::<Vec<(String, i32)>>(&path).unwrap(), value);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            assert!(parse_sealed::<Vec<(String, i32)>>(&bytes, &path).is_err(), "bit {at}");
        }
        for length in 0..whole.len() {
            assert!(parse_sealed::<Vec<(String, i32)>>(&whole[..length], &path).is_err(), "{length} bytes");
        }
    }
}
