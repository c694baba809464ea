//! Source files of a kernel, from the work directory, from an unchanged source tree, or from a
//! commit.

use crate::tree::GitTree;
use kerntune_kernel::{ImportedSource, Kernel, KernelSource};
use kerntune_work::{NoProgress, WorkDir};
use std::path::{Component, Path, PathBuf};

/// Largest size of a source file to read.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Location of a kernel's source.
#[derive(Debug, Clone)]
pub enum SourceTexts {
    /// A directory.
    Directory(PathBuf),
    /// A commit, by its hash.
    Commit(GitTree, String),
    /// No longer available.
    Gone,
}

impl SourceTexts {
    /// Locates the source of a kernel that was built here.
    pub fn of(work: &WorkDir, kernel: &Kernel) -> Self {
        let source = &kernel.manifest.source;
        if let Some(directory) = work.find("sources", &source.hash) {
            return Self::Directory(directory);
        }
        let origin = Path::new(&source.origin);
        if !source.patches.is_empty() || !origin.is_dir() {
            return Self::Gone;
        }
        match ImportedSource::import(work, &KernelSource::Directory(origin.to_owned()), &NoProgress) {
            Ok(now) if now.hash() == source.hash => Self::Directory(now.dir().to_owned()),
            _ => Self::Gone,
        }
    }

    /// Reads a file by its path from the top of the source.
    pub fn read(&self, file: &str) -> Option<String> {
        let path = Path::new(file);
        if path.components().any(|part| !matches!(part, Component::Normal(_))) {
            return None;
        }
        match self {
            Self::Directory(directory) => {
                let path = directory.join(path);
                let small = path.metadata().is_ok_and(|what| what.is_file() && what.len() <= MAX_FILE_BYTES);
                let bytes = small.then(|| std::fs::read(path).ok()).flatten()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            Self::Commit(tree, commit) => tree.file(commit, file).ok(),
            Self::Gone => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_source_are_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.c"), "int a;\n").unwrap();
        let texts = SourceTexts::Directory(dir.path().to_owned());
        assert_eq!(texts.read("a.c").as_deref(), Some("int a;\n"));
        for path in ["../a.c", "/etc/passwd", "b.c", ""] {
            assert_eq!(texts.read(path), None, "{path}");
        }
        assert_eq!(SourceTexts::Gone.read("a.c"), None);
    }
}
