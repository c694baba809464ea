//! The instrumented kernel of a kernel, for a machine that trains it with its own work.

use super::optimize::request_of;
use crate::recipe_parts::exclude::{build_excluding_broken, BuildVariants, ExcludedObjects};
use crate::recipe_parts::instrumented::{counting_nothing, value_patches, with_counters};
use crate::{Result, Session};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::Exclusions;

/// Builds the kernel whose counters `optimize --gcda` takes for `base`. `values` adds value counters. If
/// `base` has modules, they count as well.
///
/// # Errors
/// A tuned kernel, a compiler other than GCC, and those of builds.
pub fn instrument(session: &Session, base: &Kernel, values: bool, exclusions: &Exclusions) -> Result<Kernel> {
    let asked = BuildRequest { jobs: session.jobs, ..request_of(session.work, base)? };
    let values = value_patches(session, base, values)?;
    let request = |exclusions: &Exclusions| with_counters(&asked, base, exclusions, values.as_ref());
    let plain = counting_nothing(&asked, base, values.as_ref())?;
    let excluded = ExcludedObjects::open(exclusions, None)?;
    let variants =
        BuildVariants { base, excluded: &excluded, request: &request, plain: &plain, tuned_only: false };
    build_excluding_broken(session, &variants)
}
