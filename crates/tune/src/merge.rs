//! One profile of several.

use crate::Result;
use kerntune_profile::{find, keep, Manifest, Profile};
use kerntune_work::WorkDir;
use std::path::PathBuf;

/// One of the profiles that were added up.
#[derive(Debug)]
pub struct Part {
    /// Where it comes from.
    pub manifest: Manifest,
    /// What it was multiplied with.
    pub weight: u64,
    /// Its share of the busy time of the sum, 0 to 1: a long run weighs more than a short one.
    pub busy_share: f64,
}

/// The sum.
#[derive(Debug)]
pub struct Merged {
    /// The new profile's directory.
    pub path: PathBuf,
    /// What it holds.
    pub manifest: Manifest,
    /// What it was made of, in the order given.
    pub parts: Vec<Part>,
}

/// Adds up profiles of one kernel (name and weight) and keeps the sum beside them.
///
/// # Errors
/// Unknown profiles, and those of different kernels.
pub fn merge(work: &WorkDir, parts: &[(&str, u64)]) -> Result<Merged> {
    let mut profiles = Vec::new();
    for (name, weight) in parts {
        profiles.push((Profile::load(&find(work, name)?.path)?, *weight));
    }
    let borrowed: Vec<(&Profile, u64)> =
        profiles.iter().map(|(profile, weight)| (profile, *weight)).collect();
    let merged = kerntune_profile::merge(&borrowed)?;
    let path = keep(work, &merged)?;
    let busy = merged.manifest.busy_ns.get().max(1) as f64;
    let part = |(profile, weight): (Profile, u64)| {
        let busy_share = profile.manifest.busy_ns.get() as f64 * weight as f64 / busy;
        Part { manifest: profile.manifest, weight, busy_share }
    };
    Ok(Merged { path, manifest: merged.manifest, parts: profiles.into_iter().map(part).collect() })
}
