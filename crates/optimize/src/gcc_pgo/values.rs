//! Kernel patches for value counters: targets of indirect calls, divisors, sizes of copies.
//!
//! The kernel's own gcov lacks the functions that GCC's `-fprofile-values` calls; patches add them
//! (`embedded/kernel/README.md`). They also go into the source of the tuned kernel, where nothing of them is
//! compiled: GCC's checksums contain the lines of a function's source, so both kernels need the
//! same tree.

use crate::Result;
use kerntune_kernel::{Arch, BuildRequest, Kernel, PatchSet};
use kerntune_work::{ContentHash, WorkDir};
use std::path::{Path, PathBuf};

/// Kernel patches that value counters need, as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePatches {
    patches: Vec<PathBuf>,
    hashes: Vec<String>,
}

impl ValuePatches {
    /// Returns the patches for the version and architecture of `kernel`; `None` if there are none.
    pub fn of(work: &WorkDir, kernel: &Kernel) -> Result<Option<Self>> {
        let of = &kernel.manifest;
        let set = PatchSet::gcov_values(&of.version).filter(|_| of.arch == Arch::X86_64);
        let Some(set) = set else { return Ok(None) };
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
