//! Build requests: the gcov kernel before the training, the tuned kernel after it.

use super::probe::USE_FLAGS;
use super::{check_compiler, Exclusions, GccPgoProfile, ValuePatches, INSTRUMENTED, NAME};
use crate::Result;
use kerntune_kernel::{fragment, BuildRequest, Kernel, ObjectGroup};

/// Flag that inlines hot calls further. GCC's limit of 15 at `-O2` is for calls of which nothing is
/// known: a small function that took in its cold callee fitted into no caller (docs/recipes.md).
const INLINE_HOT_CALLS: &str = "--param=max-inline-insns-auto=120";

/// Flag for code that the training did not run: functions without counts are compiled as if there
/// were no profile. Without it they are compiled for size.
pub(super) const PARTIAL_TRAINING: &str = "-fprofile-partial-training";

/// Compilation of code that the training did not run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UntrainedCode {
    /// As in the base kernel.
    #[default]
    AsBase,
    /// For size, and apart from the rest. The kernel is smaller, and other work is slower.
    Size,
}

impl UntrainedCode {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::AsBase => "base",
            Self::Size => "size",
        }
    }
}

/// Flag that makes GCC report the used values as well, for `prove`.
const SAY_VALUES: &str = "-fopt-info-optimized-ipa";

/// Returns the request for the gcov kernel: `base` with arc counters, and with value counters if
/// `values` is given, in every object that can have them.
///
/// `kernel` is the kernel built from `base`; its version selects the `exclusions`. The objects are
/// kept: their `.gcno` files identify the build that counters come from.
///
/// # Errors
/// Errors of [`check_compiler`]; patches that cannot be read.
pub fn instrumented_request(
    base: &BuildRequest,
    kernel: &Kernel,
    exclusions: &Exclusions,
    values: Option<&ValuePatches>,
) -> Result<BuildRequest> {
    check_compiler(&base.compiler)?;
    let mut request = base.clone();
    add_lines(&mut request.extra, fragment::lines(fragment::GCOV));
    if let Some(values) = values {
        add_lines(&mut request.extra, fragment::lines(fragment::GCOV_VALUES));
        values.add_to(&mut request)?;
    }
    request.make_vars.retain(|(name, _)| name != "CFLAGS_GCOV");
    request.make_vars.push(exclusions.make_var(&kernel.manifest.version, values.is_some()));
    request.profile_dir = None;
    request.profile_id = None;
    request.label = format!("{}-gcov", base.label);
    request.recipe = Some(INSTRUMENTED.into());
    request.base_id = Some(kernel.manifest.id.clone());
    request.keep_objects = true;
    Ok(request)
}

/// Returns the request for a kernel with arc counters in the objects `only`, which a recording of it
/// fills ([`write_counters`](super::write_counters)). It has the configuration of `base`, and but for
/// these objects those of `kernel`, which was built from `base`.
///
/// # Errors
/// As [`instrumented_request`].
pub fn counted_request(
    base: &BuildRequest,
    kernel: &Kernel,
    exclusions: &Exclusions,
    only: &[String],
) -> Result<BuildRequest> {
    check_compiler(&base.compiler)?;
    let mut request = base.clone();
    request.make_vars.push(exclusions.static_make_var(&kernel.manifest.version, only));
    request.label = format!("{}-counted", base.label);
    request.recipe = Some(INSTRUMENTED.into());
    request.base_id = Some(kernel.manifest.id.clone());
    request.keep_objects = true;
    request.begin_with = Some(kernel.dir.clone());
    Ok(request)
}

/// Returns the request for the same kernel with gcov and no instrumented object, for comparison
/// with an instrumented kernel that fails.
pub fn without_counters(mut instrumented: BuildRequest) -> BuildRequest {
    instrumented.make_vars.retain(|(name, _)| name != "CFLAGS_GCOV");
    instrumented.make_vars.push(("CFLAGS_GCOV".into(), String::new()));
    instrumented.label = format!("{}-plain", instrumented.label);
    instrumented
}

/// Returns the request for the tuned kernel: `base` compiled with the profile. With
/// [`UntrainedCode::AsBase`] these are the objects with counts, and all others are the base
/// kernel's. `untrained` is `None` for a kernel with `-fprofile-use` alone, as the kernel's
/// documentation has it.
///
/// `kernel` is the kernel built from `base`, `values` the patches of the gcov kernel. The label is
/// that of `base` with `-gcc-pgo`; set another one to list it under the workload's name.
///
/// # Errors
/// As [`instrumented_request`].
pub fn tuned_request(
    base: &BuildRequest,
    kernel: &Kernel,
    profile: &GccPgoProfile,
    values: Option<&ValuePatches>,
    untrained: Option<UntrainedCode>,
) -> Result<BuildRequest> {
    check_compiler(&base.compiler)?;
    let mut request = base.clone();
    if let Some(values) = values {
        values.add_to(&mut request)?;
    }
    let inline = untrained.map(|_| INLINE_HOT_CALLS);
    let flags = values.map(|_| SAY_VALUES).into_iter().chain(USE_FLAGS.iter().copied()).chain(inline);
    match untrained.unwrap_or(UntrainedCode::Size) {
        UntrainedCode::Size => add_lines(&mut request.kcflags, flags.map(str::to_owned)),
        UntrainedCode::AsBase => {
            let flags = flags.chain([PARTIAL_TRAINING]).map(str::to_owned).collect();
            let counted = profile.counts()?.into_iter().filter(|object| object.total() > 0);
            let objects = counted.map(|object| object.object).collect();
            request.object_groups.push(ObjectGroup { objects, flags });
            request.begin_with = Some(kernel.dir.clone());
        }
    }
    request.profile_dir = Some(profile.tree());
    request.profile_id = Some(profile.id.clone());
    request.label = format!("{}-{NAME}", base.label);
    request.recipe = Some(NAME.into());
    request.base_id = Some(kernel.manifest.id.clone());
    Ok(request)
}

fn add_lines(to: &mut Vec<String>, lines: impl IntoIterator<Item = String>) {
    for line in lines {
        if !to.contains(&line) {
            to.push(line);
        }
    }
}
