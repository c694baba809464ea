//! Storage of a profile as a directory: one Parquet file for each table, and a manifest with their
//! hashes.

use crate::manifest::{Manifest, TableFile, SCHEMA_NAME};
use crate::tables::{is_rare, Tables, SCHEMA};
use crate::{Error, Profile, Result};
use bytes::Bytes;
use kerntune_work::{
    checked, is_out_of_memory, note_use, read_file, seal, write_atomic, write_json, Hash, IoContext,
    RESULT_FILE,
};
use parquet::errors::ParquetError;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Kind of results in the work directory: `.kerntune/profiles/`.
pub const KIND: &str = "profiles";

/// File name of the manifest in a profile's directory.
pub const MANIFEST_FILE: &str = "manifest.json";

impl Profile {
    /// Writes the profile into `dir`, an existing directory (see [`kerntune_work::StagedResult`]).
    /// Writes the tables first and the manifest last, so that a directory with a manifest is
    /// complete. Returns the written manifest with its list of files. The same profile always gives
    /// the same bytes.
    pub fn save(&self, dir: &Path) -> Result<Manifest> {
        let manifest_path = dir.join(MANIFEST_FILE);
        if manifest_path.exists() {
            fs::remove_file(&manifest_path).at("replace", &manifest_path)?;
        }
        let mut files = BTreeMap::new();
        self.tables.encode(|table| {
            write_atomic(&table_path(dir, table.name), &table.bytes)?;
            let file = TableFile {
                rows: table.rows,
                bytes: table.bytes.len() as u64,
                blake3: Hash::of(&table.bytes),
            };
            files.insert(table.name.to_owned(), file);
            Ok(())
        })?;
        let manifest = Manifest { schema: SCHEMA_NAME.into(), tables: files, ..self.manifest.clone() };
        write_json(&manifest_path, &manifest)?;
        seal(dir, KIND, &manifest.id, &[])?;
        Ok(manifest)
    }

    /// Loads a profile; returns an error if a file is not the one that the manifest names.
    pub fn load(dir: &Path) -> Result<Self> {
        let manifest = load_manifest(dir)?;
        let tables = load_tables(dir, &manifest, WantedTables::ALL)?;
        note_use(&dir.join(RESULT_FILE));
        Ok(Self { manifest, tables })
    }
}

/// Tables to load.
pub(crate) struct WantedTables {
    /// Names of the tables; `None` for all. A table needs those that it refers to.
    pub names: Option<&'static [&'static str]>,
    /// Rows of a table of symbols with the same hash, if the caller has read one: this one is then
    /// checked, and stays empty.
    pub known_symbols: Option<usize>,
}

impl WantedTables {
    /// Every table, decoded.
    pub const ALL: Self = Self { names: None, known_symbols: None };

    fn is_wanted(&self, table: &str) -> bool {
        self.names.is_none_or(|names| names.contains(&table))
    }

    fn is_decoded(&self, table: &str) -> bool {
        table != "symbols" || self.known_symbols.is_none()
    }
}

/// Loads tables of the profile in `dir`, whose manifest this is; the others are empty.
///
/// # Errors
/// A file that is not the one that the manifest names; a row that refers to none.
pub(crate) fn load_tables(dir: &Path, manifest: &Manifest, wanted: WantedTables) -> Result<Tables> {
    let tables = Tables::decode(
        |table| match wanted.is_wanted(table) {
            true => Ok(read_table(dir, manifest, table)?.filter(|_| wanted.is_decoded(table))),
            false => Ok(None),
        },
        |table, source| undecoded(table_path(dir, table), source),
    )?;
    let symbols = wanted.known_symbols.unwrap_or(tables.symbols.len());
    match tables.broken_reference(symbols) {
        Some((table, what)) => Err(Error::Damaged { path: table_path(dir, table), what }),
        None => Ok(tables),
    }
}

/// Loads the manifest of a profile without its tables.
///
/// # Errors
/// The directory holds no profile of this version, or the manifest was changed after it was
/// written.
pub fn load_manifest(dir: &Path) -> Result<Manifest> {
    let path = dir.join(MANIFEST_FILE);
    let bytes = match read_file(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(Error::NotAProfile { path: dir.to_owned(), missing: MANIFEST_FILE });
        }
        other => other.at("read", &path)?,
    };
    // Check the schema first: another version's manifest may lack fields of this one.
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|source| Error::Manifest { path: path.clone(), source })?;
    let found = value.get("schema").and_then(|schema| schema.as_str()).unwrap_or_default();
    if found != SCHEMA_NAME {
        return Err(Error::Schema { path, found: found.to_owned(), expected: SCHEMA_NAME });
    }
    checked(dir, &[MANIFEST_FILE])?;
    let manifest: Manifest =
        serde_json::from_value(value).map_err(|source| Error::Manifest { path: path.clone(), source })?;
    let is_known = |name: &String| SCHEMA.iter().any(|table| table.name == name);
    match manifest.tables.keys().find(|name| !is_known(name)) {
        Some(name) => {
            Err(Error::Damaged { path, what: format!("`{}` is no table of a profile", name.escape_debug()) })
        }
        None => Ok(manifest),
    }
}

/// Checks every file of a profile, also those beside its tables, against the saved hashes, and the
/// tables against each other.
///
/// # Errors
/// The first file or row that does not match.
pub fn verify(dir: &Path) -> Result<Manifest> {
    let profile = Profile::load(dir)?;
    checked(dir, &[])?;
    Ok(profile.manifest)
}

fn undecoded(path: PathBuf, source: ParquetError) -> Error {
    match is_out_of_memory(&source) {
        true => Error::Memory { path, source },
        false => Error::Decode { path, source },
    }
}

fn table_path(dir: &Path, table: &str) -> PathBuf {
    dir.join(format!("{table}.parquet"))
}

/// Returns the bytes of a table after checking them against the manifest; `None` for a rare table
/// without a file.
fn read_table(dir: &Path, manifest: &Manifest, table: &'static str) -> Result<Option<Bytes>> {
    debug_assert!(SCHEMA.iter().any(|schema| schema.name == table));
    let path = table_path(dir, table);
    let damaged = |what: String| Error::Damaged { path: path.clone(), what };
    let Some(expected) = manifest.tables.get(table) else {
        if is_rare(table) {
            return Ok(None);
        }
        return Err(damaged(format!("{MANIFEST_FILE} does not name it")));
    };
    let bytes = match read_file(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(damaged("it is missing".into())),
        other => other.at("read", &path)?,
    };
    if bytes.len() as u64 != expected.bytes {
        return Err(damaged(format!(
            "it has {} bytes, {MANIFEST_FILE} says {}",
            bytes.len(),
            expected.bytes
        )));
    }
    if Hash::of(&bytes) != expected.blake3 {
        return Err(damaged(format!("it is not the file that {MANIFEST_FILE} names (another BLAKE3 hash)")));
    }
    Ok(Some(Bytes::from(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_does_not_blame_the_profile() {
        let zstd = std::io::Error::other("Allocation error : not enough memory");
        let error = undecoded("p/functions.parquet".into(), zstd.into());
        assert!(matches!(error, Error::Memory { .. }) && is_out_of_memory(&error));
        let text = error.to_string();
        assert!(text.starts_with("there is not enough memory to read p/functions.parquet"), "{text}");
        assert!(!text.contains("remove"), "{text}");
        let damaged = undecoded("p/functions.parquet".into(), ParquetError::General("odd".into()));
        assert!(matches!(damaged, Error::Decode { .. }));
    }
}
