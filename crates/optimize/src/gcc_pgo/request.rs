//! What to build: the gcov kernel before the training, the tuned kernel after it.

use super::{check_compiler, Exclusions, PreparedProfile, Values, INSTRUMENTED, NAME};
use crate::Result;
use kerntune_kernel::{fragment, BuildRequest, Kernel};

/// Flags of the tuned kernel, for every object of the kernel proper.
///
/// `-fprofile-use` is left with all that GCC turns on with it: unrolling, peeling, tail duplication
/// and cloning act only where the counts say that it is hot, and without value counters the value
/// transformations (`-fvpt`) find nothing to do.
const USE_FLAGS: &[&str] = &[
    "-fprofile-use",
    // Counters of one function can disagree: interrupts, and more than one processor.
    "-fprofile-correction",
    // GCC says in the log what did not match; `prove` reads it there. An object that was never
    // instrumented has no counters, and that is no failure.
    "-Wmissing-profile",
    "-Wno-error=missing-profile",
    "-Wcoverage-mismatch",
    "-Wno-error=coverage-mismatch",
];

/// What `prove` reads in the log beside these: which values GCC used.
const SAY_VALUES: &str = "-fopt-info-optimized-ipa";

/// The gcov kernel to train: `base` with arc counters, and counters of `values` if they are given, in
/// every object that can bear them.
///
/// `kernel` is what `base` was built to; its version selects the `exclusions`. The objects are
/// kept: their `.gcno` files tell which build counters are from.
///
/// # Errors
/// As [`check_compiler`]; patches that cannot be read.
pub fn instrumented_request(
    base: &BuildRequest,
    kernel: &Kernel,
    exclusions: &Exclusions,
    values: Option<&Values>,
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

/// The same kernel with gcov and no object that counts: what an instrumented kernel that fails is held against.
pub fn without_counters(mut instrumented: BuildRequest) -> BuildRequest {
    instrumented.make_vars.retain(|(name, _)| name != "CFLAGS_GCOV");
    instrumented.make_vars.push(("CFLAGS_GCOV".into(), String::new()));
    instrumented.label = format!("{}-plain", instrumented.label);
    instrumented
}

/// The tuned kernel: `base` compiled with the profile.
///
/// `kernel` is what `base` was built to, `values` what the gcov kernel was built with. The label is
/// that of `base` with `-gcc-pgo`; set another to list it under the workload's name.
///
/// # Errors
/// As [`instrumented_request`].
pub fn tuned_request(
    base: &BuildRequest,
    kernel: &Kernel,
    profile: &PreparedProfile,
    values: Option<&Values>,
) -> Result<BuildRequest> {
    check_compiler(&base.compiler)?;
    let mut request = base.clone();
    if let Some(values) = values {
        values.add_to(&mut request)?;
        add_lines(&mut request.kcflags, [SAY_VALUES.to_string()]);
    }
    add_lines(&mut request.kcflags, USE_FLAGS.iter().map(|f| f.to_string()));
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
