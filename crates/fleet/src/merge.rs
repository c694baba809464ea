//! Merging the profiles of a fleet into one.

use crate::merge_tree::MergeTree;
use crate::{Error, FleetEntry, Result, Weights};
use kerntune_profile::{Profile, Tables};
use kerntune_work::{interrupt, Progress};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of threads: more of them hold more profiles in memory and read no faster.
const MAX_THREADS: usize = 8;

/// The sum of a fleet's profiles.
#[derive(Debug)]
pub struct FleetMerge {
    /// The same profile, to the byte, as `profile merge` makes of these profiles in this order.
    pub profile: Profile,
    /// Number of profiles that were added up.
    pub parts: usize,
}

/// Adds up profiles, each times its weight, in the order given; weight 0 leaves a profile out. The
/// gates of [`kerntune_profile::merge`] are checked before any table is read. Each of `threads`
/// threads reads and adds with a few dozen profiles in memory; the result does not depend on their
/// number.
///
/// # Errors
/// Profiles of different kernels; sampled and exact profiles together; a damaged file, by its name;
/// nothing to merge; an interrupt.
pub fn merge(
    entries: &[FleetEntry],
    weights: &Weights,
    threads: usize,
    progress: &dyn Progress,
) -> Result<FleetMerge> {
    let weighted: Vec<(&FleetEntry, u64)> = entries
        .iter()
        .map(|entry| (entry, weights.of(&entry.location)))
        .filter(|&(_, weight)| weight > 0)
        .collect();
    if weighted.is_empty() {
        return Err(nothing(entries));
    }
    // Manifests are merged all at once, so that the sum lists every profile and gates name the one
    // they refuse.
    let mut heads = Vec::with_capacity(weighted.len());
    for &(entry, weight) in &weighted {
        interrupt::check()?;
        heads.push((Profile { manifest: entry.manifest()?, tables: Tables::default() }, weight));
    }
    let borrowed: Vec<(&Profile, u64)> = heads.iter().map(|(head, weight)| (head, *weight)).collect();
    let manifest = kerntune_profile::merge(&borrowed)?.manifest;
    drop(heads);

    progress.begin("merging profiles", Some(weighted.len() as u64));
    let tables = tables(&weighted, threads, progress);
    progress.end();
    Ok(FleetMerge { profile: Profile { manifest, tables: tables? }, parts: weighted.len() })
}

/// Adds up the tables: each thread sums neighbors in a tree, and one tree sums their results.
fn tables(weighted: &[(&FleetEntry, u64)], threads: usize, progress: &dyn Progress) -> Result<Tables> {
    let threads = threads.clamp(1, MAX_THREADS).min(weighted.len());
    let done = AtomicU64::new(0);
    let work = |part: &[(&FleetEntry, u64)]| -> Result<Option<Profile>> {
        let mut tree = MergeTree::default();
        for &(entry, weight) in part {
            interrupt::check()?;
            tree.push(entry.load()?, weight)?;
            progress.at(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
        tree.finish()
    };
    let parts = std::thread::scope(|scope| {
        let size = weighted.len().div_ceil(threads);
        let running: Vec<_> =
            weighted.chunks(size).map(|part| scope.spawn(move || work_on(&work, part))).collect();
        let ended = running.into_iter().map(|thread| thread.join().unwrap_or(Err(Error::Panicked)));
        ended.collect::<Result<Vec<_>>>()
    })?;
    let mut tree = MergeTree::default();
    for part in parts.into_iter().flatten() {
        tree.push(part, 1)?;
    }
    Ok(tree.finish()?.map(|sum| sum.tables).unwrap_or_default())
}

/// Calls a closure that several threads share.
fn work_on<A: ?Sized, T>(work: &(impl Fn(&A) -> T + Sync), part: &A) -> T {
    work(part)
}

fn nothing(entries: &[FleetEntry]) -> Error {
    // The prefix is five levels above a profile.
    let path = entries.first().and_then(|entry| entry.path.ancestors().nth(5));
    Error::NothingFits { path: path.map_or_else(PathBuf::new, ToOwned::to_owned) }
}
