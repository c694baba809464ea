//! Merging several profiles into one.

use crate::Result;
use kerntune_profile::{find, keep, Manifest, Profile};
use kerntune_work::WorkDir;
use std::path::PathBuf;

/// One of the merged profiles.
#[derive(Debug)]
pub struct MergedPart {
    /// Manifest of the profile.
    pub manifest: Manifest,
    /// Factor by which its counts were multiplied.
    pub weight: u64,
    /// Share of the busy time of the sum, 0 to 1: a long run counts more than a short one.
    pub busy_share: f64,
}

/// The sum of several profiles.
#[derive(Debug)]
pub struct MergeResult {
    /// Directory of the new profile.
    pub path: PathBuf,
    /// Manifest of the new profile.
    pub manifest: Manifest,
    /// Merged profiles, in the order given.
    pub parts: Vec<MergedPart>,
}

/// Adds up profiles of one kernel, given by name and weight, and keeps the sum as a new profile.
///
/// # Errors
/// Unknown profiles, and those of different kernels.
pub fn merge(work: &WorkDir, parts: &[(&str, u64)]) -> Result<MergeResult> {
    let mut profiles = Vec::new();
    for (name, weight) in parts {
        profiles.push((Profile::load(&find(work, name)?.path)?, *weight));
    }
    let borrowed: Vec<(&Profile, u64)> =
        profiles.iter().map(|(profile, weight)| (profile, *weight)).collect();
    let merged = kerntune_profile::merge(&borrowed)?;
    let path = keep(work, &merged)?;
    let busy = merged.manifest.busy_ticks.get().max(1) as f64;
    let part = |(profile, weight): (Profile, u64)| {
        let busy_share = profile.manifest.busy_ticks.get() as f64 * weight as f64 / busy;
        MergedPart { manifest: profile.manifest, weight, busy_share }
    };
    Ok(MergeResult { path, manifest: merged.manifest, parts: profiles.into_iter().map(part).collect() })
}
