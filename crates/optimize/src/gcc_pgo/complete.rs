//! Check that a run exported the counters of every object of the kernel.

use crate::{Error, Result};
use kerntune_kernel::Kernel;
use std::path::{Path, PathBuf};

/// Checks that `has` accepts the counters (`kernel/fork.gcda`) of each instrumented object that put
/// a function into the kernel's image. A running kernel exports them all, executed or not.
///
/// Skips kernels without a list of sources. Skips modules, which export only while they are loaded.
///
/// # Errors
/// [`Error::Incomplete`].
pub(super) fn check(kernel: &Kernel, build: &Path, run: &Path, has: impl Fn(&Path) -> bool) -> Result<()> {
    let instrumented = |source: &String| build.join(source).with_extension("gcno").is_file();
    let expected: Vec<PathBuf> = kernel
        .source_files()?
        .iter()
        .filter(|source| instrumented(source))
        .map(|source| Path::new(source).with_extension("gcda"))
        .collect();
    let missing: Vec<&PathBuf> = expected.iter().filter(|name| !has(name)).collect();
    match missing.first() {
        None => Ok(()),
        Some(first) => Err(Error::Incomplete {
            dir: run.to_owned(),
            kernel: kernel.manifest.label.clone(),
            missing: missing.len(),
            expected: expected.len(),
            first: first.to_path_buf(),
        }),
    }
}
