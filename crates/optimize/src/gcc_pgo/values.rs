//! Kernel patches for value counters: targets of indirect calls, divisors, sizes of copies.
//!
//! The kernel's own gcov lacks the functions that GCC's `-fprofile-values` calls; patches add them
//! (`embedded/kernel/README.md`). They also go into the source of the tuned kernel, where nothing of them is
//! compiled: GCC's checksums contain the lines of a function's source, so both kernels need the
//! same tree.

use crate::Result;
use kerntune_kernel::{Arch, BuildRequest, ImportedSource, Kernel, PatchSet};
use kerntune_work::{ContentHash, NoProgress, WorkDir};
use std::path::{Path, PathBuf};

/// Kernel patches that value counters need, as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePatches {
    patches: Vec<PathBuf>,
    hashes: Vec<String>,
}

impl ValuePatches {
    /// Returns the patches for the source and architecture of `kernel`; `None` if there are none.
    /// Patches of another series are tried on the source.
    ///
    /// # Errors
    /// A source that is gone, if its series has no patches of its own; patches that cannot be
    /// written.
    pub fn of(work: &WorkDir, kernel: &Kernel) -> Result<Option<Self>> {
        let of = &kernel.manifest;
        let own = PatchSet::gcov_values(&of.version);
        let set = match (own, of.arch) {
            (_, Arch::Um) => None,
            (Some(own), _) => Some(own),
            (None, _) => {
                let source = of.source.origin.parse()?;
                PatchSet::fitting("gcov-values", &ImportedSource::import(work, &source, &NoProgress)?)?
            }
        };
        let Some(set) = set else { return Ok(None) };
        set.borrowed(&of.version).iter().for_each(|sentence| work.note(sentence));
        let patches = set.write(work)?;
        let hashes = patches.iter().map(|path| hash_of(path)).collect::<Result<_>>()?;
        Ok(Some(Self { patches, hashes }))
    }

    /// Adds the patches to the source of `request`, unless they are there.
    pub(super) fn add_to(&self, request: &mut BuildRequest) -> Result<()> {
        let own: Vec<String> = request.patches.iter().map(|path| hash_of(path)).collect::<Result<_>>()?;
        let missing = self.patches.iter().zip(&self.hashes).filter(|(_, hash)| !own.contains(hash));
        request.patches.extend(missing.map(|(path, _)| path.clone()));
        Ok(())
    }
}

fn hash_of(path: &Path) -> Result<String> {
    Ok(ContentHash::new("patch/1").file("patch", path)?.finish())
}
