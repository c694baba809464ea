//! The store of a dry run: what it has is read, and what is put into it stays in memory.

use super::Store;
use crate::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A store in which nothing is created; `None` stands for one that does not exist yet.
pub struct DryRunStore {
    address: String,
    existing: Option<Box<dyn Store>>,
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl DryRunStore {
    /// Creates the store of a dry run over the store at an address.
    pub fn new(address: &str, existing: Option<Box<dyn Store>>) -> Self {
        Self { address: address.to_owned(), existing, objects: Mutex::default() }
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for DryRunStore {
    fn url(&self) -> String {
        self.existing.as_ref().map_or_else(|| self.address.clone(), |store| store.url())
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match (self.objects().get(name), &self.existing) {
            (Some(bytes), _) => Ok(Some(bytes.clone())),
            (None, Some(store)) => store.get(name),
            (None, None) => Ok(None),
        }
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let is_new = self.get(name)?.is_none();
        if is_new {
            self.put(name, bytes)?;
        }
        Ok(is_new)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.objects().insert(name.to_owned(), bytes.to_owned());
        Ok(())
    }

    fn list(&self, start: &str) -> Result<Vec<String>> {
        let existing = self.existing.as_ref().map(|store| store.list(start)).transpose()?;
        let objects = self.objects();
        let names = objects.keys().filter(|name| name.starts_with(start)).cloned();
        let names: BTreeSet<String> = names.chain(existing.into_iter().flatten()).collect();
        Ok(names.into_iter().collect())
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.objects().remove(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::DirectoryStore;

    #[test]
    fn what_is_put_is_seen_and_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let existing = DirectoryStore::open(dir.path()).unwrap();
        existing.put("plans/a", b"1").unwrap();
        let store = DryRunStore::new("x", Some(Box::new(existing)));
        assert!(!store.put_new("plans/a", b"2").unwrap() && store.put_new("plans/b", b"2").unwrap());
        assert_eq!(store.list("plans/").unwrap(), ["plans/a", "plans/b"]);
        assert_eq!(store.get("plans/b").unwrap().as_deref(), Some(&b"2"[..]));
        let on_disk = DirectoryStore::open(dir.path()).unwrap().list("").unwrap();
        assert_eq!(on_disk, ["plans/a"]);
    }
}
