//! Requests for a kernel that counts, for the training here and for a machine elsewhere.

use crate::{Result, Session};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{instrumented_request, without_counters, Exclusions, ValuePatches};

/// Returns the patches that add value counters, if they are `wanted`. Notes it if there are none for
/// this kernel.
///
/// # Errors
/// Patches that cannot be written to the work directory.
pub fn value_patches(session: &Session, base: &Kernel, wanted: bool) -> Result<Option<ValuePatches>> {
    if !wanted {
        return Ok(None);
    }
    let patches = ValuePatches::of(session.work, base)?;
    if patches.is_none() {
        let of = &base.manifest;
        session.progress.note(&format!(
            "no patches profile values in Linux {} for {}: arcs alone are counted",
            of.version, of.arch
        ));
    }
    Ok(patches)
}

/// Returns the request of the instrumented kernel of `base`, which is built by `asked`. Objects
/// of our own list are left out as well.
///
/// # Errors
/// A compiler other than GCC.
pub fn with_counters(
    asked: &BuildRequest,
    base: &Kernel,
    exclusions: &Exclusions,
    values: Option<&ValuePatches>,
) -> Result<BuildRequest> {
    Ok(instrumented_request(asked, base, &Exclusions::maintained()?.and(exclusions), values)?)
}

/// Returns the request of the same kernel without an object that counts.
///
/// # Errors
/// A compiler other than GCC.
pub fn counting_nothing(
    asked: &BuildRequest,
    base: &Kernel,
    values: Option<&ValuePatches>,
) -> Result<BuildRequest> {
    Ok(without_counters(instrumented_request(asked, base, &Exclusions::NONE, values)?))
}
