//! One profile of many.

use crate::tree::Tree;
use crate::{Entry, Error, Result, Weights};
use kerntune_profile::{Profile, Tables};
use kerntune_work::{interrupt, Progress};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// More threads hold more profiles in memory, and read no faster.
const MOST_THREADS: usize = 8;

/// The sum of a fleet's profiles.
#[derive(Debug)]
pub struct Merged {
    /// As `profile merge` of the same profiles in the same order would have it, to the byte.
    pub profile: Profile,
    /// How many were added up.
    pub parts: usize,
}

/// Adds up profiles, each times its weight, in the order given; those of weight 0 are left out. Gates are those of
/// [`kerntune_profile::merge`], and are asked before any table is read. `threads` of them read and add at once, each with a few
/// dozen profiles in memory; the result does not depend on their number.
///
/// # Errors
/// Profiles of different kernels, sampled and exact ones; a file that is damaged, by its name; nothing to merge; an interrupt.
pub fn merge(
    entries: &[Entry],
    weights: &Weights,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Merged> {
    let weighted: Vec<(&Entry, u64)> = entries
        .iter()
        .map(|entry| (entry, weights.of(&entry.place)))
        .filter(|&(_, weight)| weight > 0)
        .collect();
    if weighted.is_empty() {
        return Err(nothing(entries));
    }
    // What all say of themselves is added up at once: no part of the sum is told of, and gates name what was added.
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
    Ok(Merged { profile: Profile { manifest, tables: tables? }, parts: weighted.len() })
}

/// The sum of the tables: a tree for each thread, of neighbours, and one of their sums.
fn tables(weighted: &[(&Entry, u64)], threads: usize, progress: &dyn Progress) -> Result<Tables> {
    let threads = threads.clamp(1, MOST_THREADS).min(weighted.len());
    let done = AtomicU64::new(0);
    let work = |part: &[(&Entry, u64)]| -> Result<Option<Profile>> {
        let mut tree = Tree::default();
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
    let mut tree = Tree::default();
    for part in parts.into_iter().flatten() {
        tree.push(part, 1)?;
    }
    Ok(tree.finish()?.map(|sum| sum.tables).unwrap_or_default())
}

/// Calls what several threads share.
fn work_on<A: ?Sized, T>(work: &(impl Fn(&A) -> T + Sync), part: &A) -> T {
    work(part)
}

fn nothing(entries: &[Entry]) -> Error {
    // The prefix is five levels above a profile.
    let path = entries.first().and_then(|entry| entry.path.ancestors().nth(5));
    Error::NothingFits { path: path.map_or_else(PathBuf::new, ToOwned::to_owned) }
}
