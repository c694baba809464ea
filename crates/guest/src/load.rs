//! Loads workloads by path, by name, or from those that come with kerntune.

use crate::input::read_text;
use crate::problem::meant;
use crate::workload::Workload;
use crate::{reader, Error, Result};
use std::path::{Path, PathBuf};

/// Workloads that come with kerntune: name and text of the file.
pub const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/data/workloads.rs"));

impl Workload {
    /// Loads a workload file.
    ///
    /// # Errors
    /// A file that cannot be read; [`Error::Invalid`] with every problem in it.
    pub fn load(path: &Path) -> Result<Self> {
        Self::parse(&read_text("read workload", path)?, path)
    }

    /// Parses a workload's text; `path` names it in errors and gives the default name. Checks only
    /// the text: [`crate::check`] or building the image finds what the host lacks.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        reader::read(text, path)
            .map(|read| read.workload)
            .map_err(|problems| Error::Invalid { path: path.to_owned(), problems })
    }

    /// Finds a workload: a path (with a `/` or ending in `.toml`), or a name that is searched as
    /// `NAME.toml` in `dirs` and then among [`SHIPPED`].
    pub fn find(name_or_path: &str, dirs: &[PathBuf]) -> Result<Self> {
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            return Self::load(Path::new(name_or_path));
        }
        let file = format!("{name_or_path}.toml");
        if let Some(path) = dirs.iter().map(|dir| dir.join(&file)).find(|path| path.is_file()) {
            return Self::load(&path);
        }
        if let Some((_, text)) = SHIPPED.iter().find(|(name, _)| *name == name_or_path) {
            return Self::parse(text, Path::new(&file));
        }
        let mut searched: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
        searched.push("the shipped workloads".into());
        let files = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
        let files: Vec<String> = files
            .filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".toml")?.to_owned()))
            .collect();
        let shipped = SHIPPED.iter().map(|(name, _)| *name);
        let known: Vec<&str> = files.iter().map(String::as_str).chain(shipped).collect();
        let help = match meant(name_or_path, known.iter().copied()) {
            Some(near) => format!("did you mean {near}? `kerntune workload list` shows them all"),
            None => format!("known: {}", known.join(", ")),
        };
        Err(Error::NotFound { name: name_or_path.to_owned(), searched: searched.join(", "), help })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_workloads_are_good_and_found_by_name() {
        for (name, _) in SHIPPED {
            let workload = Workload::find(name, &[]).unwrap();
            assert_eq!(workload.name, *name);
            assert_ne!(workload.training, workload.measured, "training is not measuring");
        }
    }

    #[test]
    fn a_directory_comes_before_the_shipped_ones() {
        let dir = tempfile::tempdir().unwrap();
        let (_, rr) = SHIPPED.iter().find(|(name, _)| *name == "rr").unwrap();
        let text = rr.replacen("description = \"", "description = \"mine: ", 1);
        std::fs::write(dir.path().join("rr.toml"), text).unwrap();
        let found = Workload::find("rr", &[dir.path().to_owned()]).unwrap();
        assert!(found.description.starts_with("mine: "));
    }

    #[test]
    fn an_unknown_name_says_where_it_looked() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("mailserver.toml"), "").unwrap();
        let dirs = ["/nowhere".into(), dir.path().to_owned()];
        let said = |name: &str| Workload::find(name, &dirs).unwrap_err().to_string();
        let error = said("quake");
        assert!(error.contains("/nowhere") && error.contains("redis, remote, rr"), "{error}");
        for (wrong, right) in [("rediss", "redis"), ("postgres", "postgresql"), ("mail-server", "mailserver")]
        {
            assert!(said(wrong).contains(&format!("did you mean {right}?")), "{}", said(wrong));
        }
    }
}
