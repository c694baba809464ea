//! Values beside arcs: who is called indirectly, by what is divided, how much is copied.
//!
//! The kernel's own gcov has none of the functions that GCC's `-fprofile-values` calls. Patches add
//! them (`kernel/README.md`). They go into the source of the tuned kernel, too, where nothing of them
//! is compiled: GCC's checksums hold the lines of a function's source, and the tree of the one has to be
//! that of the other.

use crate::Result;
use kerntune_kernel::{Arch, BuildRequest, Kernel, PatchSet};
use kerntune_work::{ContentHash, WorkDir};
use std::path::{Path, PathBuf};

/// What a recipe needs to profile values: the kernel patches, as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    patches: Vec<PathBuf>,
    hashes: Vec<String>,
}

impl Values {
    /// For kernels of the version and the architecture of `kernel`; None if there are no patches for it.
    pub fn of(work: &WorkDir, kernel: &Kernel) -> Result<Option<Self>> {
        let of = &kernel.manifest;
        let set = PatchSet::gcov_values(&of.version).filter(|_| of.arch == Arch::X86_64);
        let Some(set) = set else { return Ok(None) };
        let patches = set.write(work)?;
        let hashes = patches.iter().map(|path| hash_of(path)).collect::<Result<_>>()?;
        Ok(Some(Self { patches, hashes }))
    }

    /// Adds the patches to what `request` is built from, unless they are among its own.
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
