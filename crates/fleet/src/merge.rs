//! Merging the profiles of a fleet into one.

use crate::{Error, FleetEntry, Result, Weights};
use kerntune_profile::{merge_manifests, Manifest, Profile, ProfileSum, Tables};
use kerntune_work::{interrupt, Progress};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of threads: each of them holds a sum in memory.
const MAX_THREADS: usize = 8;

/// The sum of a fleet's profiles.
#[derive(Debug)]
pub struct FleetMerge {
    /// The same profile, to the byte, as `profile merge` makes of these profiles in this order.
    pub profile: Profile,
    /// Number of profiles that were added up.
    pub parts: usize,
}

/// A profile of the fleet and its weight.
type WeightedEntry<'a> = (&'a FleetEntry, u64);

/// Adds up profiles, each times its weight, in the order given; weight 0 leaves a profile out. The
/// gates of [`merge_manifests`] are checked before any table is read. Each of `threads` threads has a
/// sum and one profile in memory; the result does not depend on their number.
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
    let weighted: Vec<WeightedEntry> = entries
        .iter()
        .map(|entry| (entry, weights.of(&entry.location)))
        .filter(|&(_, weight)| weight > 0)
        .collect();
    if weighted.is_empty() {
        return Err(nothing(entries));
    }
    let threads = threads.clamp(1, MAX_THREADS);
    // Manifests are merged all at once, so that the sum lists every profile and gates name the one
    // they refuse.
    let manifests = manifests(&weighted, threads, progress)?;
    let borrowed: Vec<(&Manifest, u64)> =
        manifests.iter().zip(&weighted).map(|(manifest, &(_, weight))| (manifest, weight)).collect();
    let manifest = merge_manifests(&borrowed)?;
    let tables = tables(&weighted, &manifests, threads, progress)?;
    Ok(FleetMerge { profile: Profile { manifest, tables }, parts: weighted.len() })
}

/// Reads the manifests of all profiles.
fn manifests(weighted: &[WeightedEntry], threads: usize, progress: &dyn Progress) -> Result<Vec<Manifest>> {
    let read = |share: &[WeightedEntry], done: &dyn Fn()| -> Result<Vec<Manifest>> {
        let one = |&(entry, _): &WeightedEntry| {
            interrupt::check()?;
            let manifest = entry.manifest()?;
            done();
            Ok(manifest)
        };
        share.iter().map(one).collect()
    };
    let shares = in_shares(weighted, threads, "reading manifests", progress, read)?;
    Ok(shares.into_iter().flatten().collect())
}

/// Adds up the tables: each thread those of neighbors.
fn tables(
    weighted: &[WeightedEntry],
    manifests: &[Manifest],
    threads: usize,
    progress: &dyn Progress,
) -> Result<Tables> {
    let parts: Vec<(WeightedEntry, &Manifest)> = weighted.iter().copied().zip(manifests).collect();
    let sum = |share: &[(WeightedEntry, &Manifest)], done: &dyn Fn()| -> Result<ProfileSum> {
        let mut sum = ProfileSum::default();
        for &((entry, weight), manifest) in share {
            interrupt::check()?;
            sum.add_stored(&entry.path, manifest, weight)?;
            done();
        }
        Ok(sum)
    };
    let sums = in_shares(&parts, threads, "merging profiles", progress, sum)?;
    let mut sums = sums.into_iter();
    let mut whole = sums.next().unwrap_or_default();
    for later in sums {
        whole.append(later)?;
    }
    Ok(whole.into_tables())
}

/// Divides items among threads, each a share of neighbors. Returns the results in the order of the
/// shares. `work` calls its second argument after each item.
fn in_shares<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    what: &str,
    progress: &dyn Progress,
    work: impl Fn(&[T], &dyn Fn()) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    progress.begin(what, Some(items.len() as u64));
    let done = AtomicU64::new(0);
    let count = || progress.at(done.fetch_add(1, Ordering::Relaxed) + 1);
    let results = std::thread::scope(|scope| {
        let (work, count) = (&work, &count);
        let share = items.len().div_ceil(threads).max(1);
        let running: Vec<_> =
            items.chunks(share).map(|share| scope.spawn(move || work(share, count))).collect();
        let ended = running.into_iter().map(|thread| thread.join().unwrap_or(Err(Error::Panicked)));
        ended.collect::<Result<Vec<R>>>()
    });
    progress.end();
    results
}

fn nothing(entries: &[FleetEntry]) -> Error {
    // The prefix is five levels above a profile.
    let path = entries.first().and_then(|entry| entry.path.ancestors().nth(5));
    Error::NothingFits { path: path.map_or_else(PathBuf::new, ToOwned::to_owned) }
}
