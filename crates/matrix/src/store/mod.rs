//! Where plans, claims and results are: objects by name, of which one can be made only if nobody made it.

mod directory;
mod remote;
pub(crate) mod wire;

pub use directory::Directory;
pub use remote::{Remote, HELPER};

use crate::{Error, Result};
use std::path::Path;

/// Objects by name (`results/1a2b.json`). What [`Store::put_new`] made is whole, and the same for everybody.
pub trait Store: Send + Sync {
    /// Its address.
    fn url(&self) -> String;

    /// An object; none if there is none.
    ///
    /// # Errors
    /// A store that does not answer.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Makes an object unless there is one of that name. Whether it is ours.
    ///
    /// # Errors
    /// A store that does not answer, or is full.
    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool>;

    /// Makes an object, or replaces it.
    ///
    /// # Errors
    /// As [`Store::put_new`].
    fn put(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// The names that begin with `start`, sorted.
    ///
    /// # Errors
    /// A store that does not answer.
    fn list(&self, start: &str) -> Result<Vec<String>>;

    /// Removes an object, if it is there.
    ///
    /// # Errors
    /// A store that does not answer.
    fn delete(&self, name: &str) -> Result<()>;
}

/// The store at this address: a directory, or a URL (`s3://bucket/prefix`, `file:///…`) that the helper program reaches.
///
/// # Errors
/// A directory that cannot be made; a helper that is not there, or does not reach the store.
pub fn open(address: &str) -> Result<Box<dyn Store>> {
    match address.split_once("://") {
        Some(_) => Ok(Box::new(Remote::open(address)?)),
        None => Ok(Box::new(Directory::open(Path::new(address))?)),
    }
}

/// The store at this address, if something is in it: for who only looks. Nothing is made.
///
/// # Errors
/// [`Error::NoStore`]; a helper that is not there, or does not reach the store.
pub fn existing(address: &str) -> Result<Box<dyn Store>> {
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
