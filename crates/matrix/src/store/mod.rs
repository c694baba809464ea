//! Stores of plans, claims and results: named objects that only one machine can create.

mod directory;
mod dry_run;
mod remote;
pub(crate) mod wire;

pub use directory::DirectoryStore;
pub use dry_run::DryRunStore;
pub use remote::{RemoteStore, HELPER};

use crate::{Error, Result};
use std::path::Path;

/// Named objects (`results/1a2b.json`). An object that [`Store::put_new`] created is complete and
/// the same for all machines.
pub trait Store: Send + Sync {
    /// Returns the store's address.
    fn url(&self) -> String;

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    /// A store that does not answer.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Creates an object unless its name exists; returns whether it was created.
    ///
    /// # Errors
    /// A store that does not answer, or is full.
    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool>;

    /// Creates or replaces an object.
    ///
    /// # Errors
    /// As [`Store::put_new`].
    fn put(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Returns the names that begin with `start`, sorted.
    ///
    /// # Errors
    /// A store that does not answer.
    fn list(&self, start: &str) -> Result<Vec<String>>;

    /// Deletes an object, if it exists.
    ///
    /// # Errors
    /// A store that does not answer.
    fn delete(&self, name: &str) -> Result<()>;
}

/// Opens the store at an address: a directory, or a URL (`s3://bucket/prefix`, `file:///…`) that
/// the helper program reaches.
///
/// # Errors
/// A directory that cannot be created; a helper that is missing, or does not reach the store.
pub fn open(address: &str) -> Result<Box<dyn Store>> {
    match address.split_once("://") {
        Some(_) => Ok(Box::new(RemoteStore::open(address)?)),
        None => Ok(Box::new(DirectoryStore::open(Path::new(address))?)),
    }
}

/// Opens a store for reading: it must exist and have objects.
///
/// # Errors
/// [`Error::NoStore`]; a helper that is missing, or does not reach the store.
pub fn open_existing(address: &str) -> Result<Box<dyn Store>> {
    let no_store = || Error::NoStore { store: address.to_owned() };
    if !address.contains("://") && !Path::new(address).is_dir() {
        return Err(no_store());
    }
    let store = open(address)?;
    match store.list("")?.is_empty() {
        true => Err(no_store()),
        false => Ok(store),
    }
}
