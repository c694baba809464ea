//! Inlined functions of an image.

use crate::{Error, Result};
use kerntune_debuginfo::{Elf, MappedFile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Returns for each function of an image, by its name in the source, the functions inlined in it,
/// at any depth; `None` if the image has no debug information. Line tables with inlined calls are
/// enough (`-gmlt`, `-g1` of Clang).
///
/// # Errors
/// The file cannot be read, or its debug information is damaged.
pub fn inlined(image: &Path) -> Result<Option<BTreeMap<String, BTreeSet<String>>>> {
    let bytes = MappedFile::open(image).map_err(|source| Error::Image { path: image.into(), source })?;
    inlined_in(&bytes, &image.display().to_string())
}

/// Like [`inlined()`], for the contents of an image; `origin` is its name in messages.
///
/// # Errors
/// Not an ELF file, or its debug information is damaged.
pub fn inlined_in(image: &[u8], origin: &str) -> Result<Option<BTreeMap<String, BTreeSet<String>>>> {
    let read = || match Elf::parse(image)? {
        elf if elf.has_section(".debug_info") => elf.debug_info()?.inlined().map(Some),
        _ => Ok(None),
    };
    read().map_err(|error| Error::debug_info(origin, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const SOURCE: &str = "
static inline __attribute__((always_inline)) int inner(int x) { return x * 7 + 1; }
static inline __attribute__((always_inline)) int middle(int x) { return inner(x) ^ 3; }
__attribute__((noinline)) int apart(int x) { return x / 3; }
int outer(int x) { return middle(x) + apart(x); }
";

    #[test]
    fn what_a_compiler_inlined_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (source, image) = (dir.path().join("a.c"), dir.path().join("a.so"));
        std::fs::write(&source, SOURCE).unwrap();
        for (flags, has) in [(["-O2", "-g"], true), (["-O2", "-g0"], false)] {
            let built = Command::new("gcc")
                .args(flags)
                .args(["-shared", "-fPIC", "-o"])
                .args([&image, &source])
                .status();
            assert!(built.unwrap().success());
            let found = inlined(&image).unwrap();
            assert_eq!(found.is_some(), has);
            let Some(found) = found else { continue };
            assert_eq!(found["outer"].iter().collect::<Vec<_>>(), ["inner", "middle"]);
            assert!(found["apart"].is_empty());
        }
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let error = inlined_in(b"no image", "vmlinux").unwrap_err().to_string();
        assert!(error.starts_with("vmlinux: its debug information cannot be read"), "{error}");
    }
}
