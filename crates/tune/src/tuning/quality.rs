//! Profiles of the work directory at the quality gate ([`kerntune_optimize::quality`]), and
//! transferred to another kernel.

use crate::{Error, Recipe, Result};
use kerntune_kernel::Kernel;
use kerntune_optimize::gcc_pgo;
use kerntune_optimize::quality::{self, GateInput, ProfileQuality, RecipeAnswer};
use kerntune_profile::{find, keep, merge, Manifest, Profile, MANIFEST_FILE};
use kerntune_work::WorkDir;
use std::path::{Path, PathBuf};

/// Checks profile `name` for a kernel, by default the one that was recorded.
///
/// The two halves of the training are `name` and `against`, or the parts of a merged profile of one
/// workload, or the recording's own halves, if it has any.
///
/// # Errors
/// Unknown profiles and kernels, and images that cannot be read. Refusals of the gate are part of
/// the result.
pub fn check(
    work: &WorkDir,
    name: &str,
    kernel: Option<&str>,
    recipe: Option<Recipe>,
    against: Option<&str>,
) -> Result<ProfileQuality> {
    let recording = Profile::load(&find(work, name)?.path)?;
    let id = &recording.manifest.kernel.id;
    if id.is_empty() {
        return Err(Error::NoKernel { profile: recording.manifest.id });
    }
    let (kernel, recorded) = match kernel {
        Some(kernel) => (kerntune_kernel::find(work, kernel)?, kerntune_kernel::find_recorded(work, id)?),
        None => (kerntune_kernel::find(work, id)?, None),
    };
    let refusal = recipe.and_then(|recipe| recipe.refusal(&kernel));
    let answer = |recipe: Recipe| RecipeAnswer { recipe: recipe.name(), refusal: refusal.as_ref() };
    let question = |halves| GateInput {
        recording: &recording,
        recorded: recorded.as_ref(),
        kernel: &kernel,
        recipe: recipe.map(answer),
        halves,
    };
    if let Some(against) = against {
        let other = Profile::load(&find(work, against)?.path)?;
        let what = format!("profiles {} and {}", recording.manifest.id, other.manifest.id);
        return Ok(quality::check(&question(Some((&what, [&recording, &other]))))?);
    }
    Ok(match halves_of_merged(work, &recording.manifest)? {
        Some([one, two]) => quality::check(&question(Some(("the profiles that were merged", [&one, &two]))))?,
        None => quality::check(&question(None))?,
    })
}

/// Checks counters of the instrumented kernel `gcov`, copied from it into these directories. `note`
/// receives messages about files that are left out.
///
/// # Errors
/// Refusals of the gate, and unknown kernels.
pub fn check_counters(
    work: &WorkDir,
    runs: &[gcc_pgo::WeightedRun],
    gcov: &str,
    note: &mut dyn FnMut(&str),
) -> Result<ProfileQuality> {
    Ok(gcc_pgo::check_profile(runs, &kerntune_kernel::find(work, gcov)?, note)?)
}

/// Returns whether `name` is a directory with counters, not a profile.
pub fn is_counters(name: &str) -> bool {
    let path = Path::new(name);
    path.is_dir() && !path.join(MANIFEST_FILE).is_file()
}

/// A profile transferred to another kernel.
#[derive(Debug)]
pub struct TransferredProfile {
    /// Directory of the new profile.
    pub path: PathBuf,
    /// Manifest of the new profile.
    pub manifest: Manifest,
    /// Shares of the counts that were matched and lost.
    pub quality: ProfileQuality,
}

/// Transfers profile `name` to the kernel `to` and keeps the result as a new profile.
///
/// # Errors
/// Unknown profiles and kernels; a recorded kernel that was deleted; less than `at_least` percent
/// of the executed code is the same in `to`.
pub fn transfer(work: &WorkDir, name: &str, to: &str, at_least: u64) -> Result<TransferredProfile> {
    let recording = Profile::load(&find(work, name)?.path)?;
    let recorded = kerntune_kernel::find(work, &recording.manifest.kernel.id)?;
    let to: Kernel = kerntune_kernel::find(work, to)?;
    let (profile, quality) = quality::transfer(&recording, &recorded, &to, at_least)?;
    let path = keep(work, &profile)?;
    Ok(TransferredProfile { path, manifest: profile.manifest, quality })
}

/// Adds up every other part of a merged profile. Returns `None` unless all parts exist and are of
/// one workload.
fn halves_of_merged(work: &WorkDir, manifest: &Manifest) -> Result<Option<[Profile; 2]>> {
    let part = |source: &String| {
        let (id, weight) = source.strip_prefix("profile ")?.split_once(" × ")?;
        let profile = Profile::load(&find(work, id).ok()?.path).ok()?;
        (profile.manifest.workload == manifest.workload).then_some((profile, weight.parse::<u64>().ok()?))
    };
    let parts: Option<Vec<(Profile, u64)>> = manifest.sources.iter().map(part).collect();
    let Some(parts) = parts.filter(|parts| parts.len() > 1) else { return Ok(None) };
    let half = |first: usize| {
        let parts: Vec<(&Profile, u64)> =
            parts.iter().skip(first).step_by(2).map(|(profile, weight)| (profile, *weight)).collect();
        merge(&parts)
    };
    Ok(Some([half(0)?, half(1)?]))
}
