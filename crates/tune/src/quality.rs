//! Profiles of the work directory at the gate ([`kerntune_optimize::quality`]), and carried to another kernel.

use crate::{Error, Recipe, Result};
use kerntune_kernel::Kernel;
use kerntune_optimize::gcc_pgo;
use kerntune_optimize::quality::{self, Quality, Question};
use kerntune_profile::{find, keep, merge, Manifest, Profile, MANIFEST_FILE};
use kerntune_work::WorkDir;
use std::path::{Path, PathBuf};

/// Asks the gate about profile `name` for a kernel (that which was recorded if none is named).
///
/// The halves of the training are `name` and `against`, or the parts of a merged profile if they are of one
/// workload; otherwise a recording's own, if it has any.
///
/// # Errors
/// Unknown profiles and kernels, and images that cannot be read. What the gate refuses is in the answer.
pub fn check(
    work: &WorkDir,
    name: &str,
    kernel: Option<&str>,
    recipe: Option<Recipe>,
    against: Option<&str>,
) -> Result<Quality> {
    let recording = Profile::load(&find(work, name)?.path)?;
    let id = &recording.manifest.kernel.id;
    if id.is_empty() {
        return Err(Error::NoKernel { profile: recording.manifest.id });
    }
    let (kernel, recorded) = match kernel {
        Some(kernel) => (kerntune_kernel::find(work, kernel)?, kerntune_kernel::find_recorded(work, id)?),
        None => (kerntune_kernel::find(work, id)?, None),
    };
    let question = |halves| Question {
        recording: &recording,
        recorded: recorded.as_ref(),
        kernel: &kernel,
        recipe: recipe.map(Recipe::asking),
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

/// Asks the gate about counters of the instrumented kernel `gcov`, as they were brought out into these directories.
///
/// # Errors
/// Whatever the gate refuses, and unknown kernels.
pub fn check_counters(work: &WorkDir, runs: &[PathBuf], gcov: &str) -> Result<Quality> {
    Ok(gcc_pgo::check_profile(runs, &kerntune_kernel::find(work, gcov)?)?)
}

/// Whether `name` is a directory that is no profile: counters.
pub fn is_counters(name: &str) -> bool {
    let path = Path::new(name);
    path.is_dir() && !path.join(MANIFEST_FILE).is_file()
}

/// A profile that was carried.
#[derive(Debug)]
pub struct CarriedProfile {
    /// The new profile's directory.
    pub path: PathBuf,
    /// What it holds.
    pub manifest: Manifest,
    /// What was matched and lost.
    pub quality: Quality,
}

/// Carries profile `name` to the kernel `to` and keeps it beside the others.
///
/// # Errors
/// Unknown profiles and kernels, a recorded kernel that is not there any more, and if less than `at_least` percent of
/// what it executed is the same in `to`.
pub fn carry(work: &WorkDir, name: &str, to: &str, at_least: u64) -> Result<CarriedProfile> {
    let recording = Profile::load(&find(work, name)?.path)?;
    let recorded = kerntune_kernel::find(work, &recording.manifest.kernel.id)?;
    let to: Kernel = kerntune_kernel::find(work, to)?;
    let (profile, quality) = quality::carry(&recording, &recorded, &to, at_least)?;
    let path = keep(work, &profile)?;
    Ok(CarriedProfile { path, manifest: profile.manifest, quality })
}

/// The parts of a merged profile, every other one added up, if all are there and of one workload.
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
