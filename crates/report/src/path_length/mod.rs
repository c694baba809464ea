//! Change of an operation's path length between two kernels, by call path.
//!
//! `diff --paths` compares paths literally, so that an additional frame changes every path below
//! it. Here paths that differ by a frame are aligned: a function that the other kernel lacks counts
//! as its caller, and so does one through which one kernel calls what the other calls directly.
//! Both are named beside the caller. Every kernel instruction is at one path, and the paths sum to
//! the path length of both; the remainder is checked to be 0.

mod align;
mod document;

pub use document::{document, SCHEMA};

use crate::view::scope;
use crate::{Error, Result};
use align::{AlignedPath, AlignedPaths};
use kerntune_profile::{difference_within, PathFrame, Profile, ProfileDifference};

/// Options of the path length comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct PathLengthOptions {
    /// Restricts both profiles to the regions of this name; `None` for all.
    pub region: Option<String>,
    /// Largest number of rows of the table of single paths; `None` for all.
    pub top: Option<usize>,
    /// Smallest change of a line in the tree, in per cent of the first kernel's path length.
    pub min_percent: f64,
}

/// Aligned paths of both profiles, with their sums.
struct PathLengthDiff {
    difference: ProfileDifference,
    aligned: AlignedPaths,
    /// Operations of both; never 0.
    operations: [i128; 2],
    /// Kernel instructions of both.
    whole: [i128; 2],
    /// User instructions of both.
    user: [i128; 2],
}

fn find(profiles: [&Profile; 2], options: &PathLengthOptions) -> Result<PathLengthDiff> {
    let region = options.region.as_deref();
    let scopes = [scope(profiles[0], region)?, scope(profiles[1], region)?];
    if let Some(profile) = profiles.iter().find(|profile| !profile.manifest.exact) {
        return Err(Error::NotExact { profile: profile.manifest.id.clone() });
    }
    let difference = difference_within(profiles, [&scopes[0], &scopes[1]]);
    let operations = difference.totals.map(|whole| i128::from(whole.operations));
    if operations.contains(&0) {
        return Err(Error::NothingPerOperation);
    }
    let whole = difference.totals.map(|whole| i128::from(whole.kernel_instructions));
    let mut aligned = AlignedPaths::new(profiles, &difference);
    // A path counts as user code from the end of the last kernel function; the recorder counted the
    // kernel's share of it.
    let user = [0, 1].map(|side| {
        let regions = &profiles[side].tables.regions;
        let counted =
            |region: &u32| regions.get(*region as usize).map(|row| i128::from(row.user_instructions.get()));
        scopes[side].outermost().iter().filter_map(counted).sum::<i128>()
    });
    aligned.add_way_back([0, 1].map(|side| aligned.user[side] - user[side]));
    // The expected sum is not computed from the paths, so that a row lost in joining is detected.
    let sums = [0, 1].map(|side| {
        let own = aligned.places.iter().map(|place| place.instructions()[side]);
        own.sum::<i128>()
    });
    if let Some(side) = [0, 1].into_iter().find(|side| sums[*side] != whole[*side]) {
        return Err(Error::Sum { parts: sums[side], whole: whole[side] });
    }
    sort(&mut aligned, operations);
    Ok(PathLengthDiff { difference, aligned, operations, whole, user })
}

/// Sorts children by their change per operation.
fn sort(aligned: &mut AlignedPaths, operations: [i128; 2]) {
    let key: Vec<(std::cmp::Reverse<u128>, usize)> = aligned
        .places
        .iter()
        .enumerate()
        .map(|(at, place)| (std::cmp::Reverse(weight(place.total, operations)), at))
        .collect();
    aligned.roots.sort_by_key(|at| key[*at]);
    aligned.places.iter_mut().for_each(|place| place.children.sort_by_key(|at| key[*at]));
}

/// Returns a key in the order of the change per operation, in exact integers: b/m − a/n has the
/// order of bn − am.
fn weight([a, b]: [i128; 2], operations: [i128; 2]) -> u128 {
    (b * operations[0] - a * operations[1]).unsigned_abs()
}

impl PathLengthDiff {
    /// Returns the paths in preorder with their depths, greatest change first among siblings.
    fn in_order(&self) -> Vec<(usize, usize)> {
        let mut out = Vec::with_capacity(self.aligned.places.len());
        let mut next: Vec<(usize, usize)> = self.aligned.roots.iter().rev().map(|root| (*root, 0)).collect();
        while let Some((at, depth)) = next.pop() {
            out.push((at, depth));
            next.extend(self.aligned.places[at].children.iter().rev().map(|child| (*child, depth + 1)));
        }
        out
    }

    /// Returns the change per operation of a pair of sums.
    fn change(&self, [a, b]: [i128; 2]) -> f64 {
        b as f64 / self.operations[1] as f64 - a as f64 / self.operations[0] as f64
    }

    fn name(&self, place: &AlignedPath) -> String {
        match &place.frame {
            PathFrame::User => "[way back to user code]".into(),
            frame => self.difference.name(frame).into_owned(),
        }
    }

    fn function(&self, row: usize) -> String {
        self.difference.functions.get(row).map_or(String::new(), |function| function.name.clone())
    }

    /// Returns the names from the root.
    fn path(&self, at: usize) -> Vec<String> {
        let mut names = Vec::new();
        let mut next = Some(at);
        while let Some(place) = next.and_then(|at| self.aligned.places.get(at)) {
            names.push(self.name(place));
            next = place.parent;
        }
        names.reverse();
        names
    }
}
