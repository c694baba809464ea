//! Difference of two profiles by function and by call path. The parts sum exactly to the whole.

mod functions;
mod names;
mod paths;
#[cfg(test)]
mod tests;

pub use functions::FunctionDifference;
pub use names::source_name;
pub use paths::{PathDifference, PathFigures, RowFrame};

use crate::{thread_name, PathFrame, Profile, RegionScope, ScopeTotals};
use std::borrow::Cow;

/// Changes from a base profile to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileDifference {
    /// Totals of both profiles.
    pub totals: [ScopeTotals; 2],
    /// Every function that ran in one of the profiles; self times are its contribution to the
    /// whole.
    pub functions: Vec<FunctionDifference>,
    /// Busy time in no row of `functions`, in user mode, or unattributed: 0 in a sound profile.
    pub function_rest: [i128; 2],
    /// Every call path of one of the profiles, parents before children; self times are its
    /// contribution to the whole. User and unattributed time are paths too.
    pub paths: Vec<PathDifference>,
    /// Busy time in no row of `paths`: 0 in a sound profile, all of it in one without paths.
    pub path_rest: [i128; 2],
}

impl ProfileDifference {
    /// Returns the function of a frame, if it is one.
    pub fn function(&self, frame: &RowFrame) -> Option<&FunctionDifference> {
        self.functions.get(*frame.function()?)
    }

    /// Returns the display name of a frame.
    pub fn name<'a>(&'a self, frame: &'a RowFrame) -> Cow<'a, str> {
        match frame {
            PathFrame::Thread(comm) => thread_name(comm),
            PathFrame::Function(row) => self.functions.get(*row).map_or("", |row| &row.name).into(),
            _ => frame.kind().stand_in().into(),
        }
    }

    /// Returns the change of the elapsed time from base to other, which all parts sum to.
    pub fn change(&self) -> i128 {
        change(self.totals.map(|whole| i128::from(whole.elapsed_ticks.0)))
    }

    /// Returns the parts of the elapsed time outside of functions, each with its time in both
    /// profiles: idle, user, unattributed, and the rest.
    pub fn beside_functions(&self) -> [(&'static str, [i128; 2]); 4] {
        [
            ("[idle]", self.totals.map(|whole| i128::from(whole.idle_ticks.0))),
            ("[user]", self.totals.map(|whole| i128::from(whole.user_ticks.0))),
            ("[unattributed]", self.totals.map(|whole| i128::from(whole.unattributed_ticks.0))),
            ("[in no function]", self.function_rest),
        ]
    }

    /// Returns the parts of the elapsed time outside of paths, each with its time in both profiles.
    pub fn beside_paths(&self) -> [(&'static str, [i128; 2]); 2] {
        [
            ("[idle]", self.totals.map(|whole| i128::from(whole.idle_ticks.0))),
            ("[in no path]", self.path_rest),
        ]
    }

    /// Checks whether the parts sum to the whole on both sides, as they must: for functions, then
    /// for paths.
    pub fn sums(&self) -> [bool; 2] {
        let sums = |rows: [i128; 2], beside: &[(&str, [i128; 2])]| {
            (0..2).all(|side| {
                let parts: i128 = rows[side] + beside.iter().map(|(_, times)| times[side]).sum::<i128>();
                parts
                    == i128::from(self.totals[side].busy_ticks.0) + i128::from(self.totals[side].idle_ticks.0)
            })
        };
        let functions = [0, 1].map(|side| self.functions.iter().map(|row| row.self_ticks(side)).sum());
        let paths = [0, 1].map(|side| self.paths.iter().map(|row| row.figures[side].self_ticks).sum());
        [sums(functions, &self.beside_functions()), sums(paths, &self.beside_paths())]
    }
}

fn change([base, other]: [i128; 2]) -> i128 {
    other - base
}

/// Compares two profiles over all their regions; of the same kernel or of two.
pub fn difference(base: &Profile, other: &Profile) -> ProfileDifference {
    difference_within([base, other], [&RegionScope::all(&base.tables), &RegionScope::all(&other.tables)])
}

/// Compares some regions of two profiles, base first.
pub fn difference_within(profiles: [&Profile; 2], scopes: [&RegionScope; 2]) -> ProfileDifference {
    let sides = [0, 1].map(|side| functions::ProfileSide::new(profiles[side], scopes[side]));
    let (functions, rows) = functions::join(&sides);
    let paths = paths::join(profiles, scopes, &rows);
    let totals = [0, 1].map(|side| scopes[side].totals(profiles[side]));
    let rest = |side: usize, rows: i128, beside: u64| {
        i128::from(totals[side].busy_ticks.0) - i128::from(beside) - rows
    };
    // Sum the tables and not the matched rows, so that a row lost in matching shows.
    let in_functions = |side: usize| -> i128 {
        let rows = profiles[side].tables.functions.iter().filter(|row| scopes[side].contains(row.region));
        rows.map(|row| i128::from(row.self_ticks.0)).sum()
    };
    let in_paths = |side: usize| -> i128 {
        let rows = profiles[side].tables.paths.iter().filter(|row| scopes[side].contains(row.region));
        rows.map(|row| i128::from(row.self_ticks.0)).sum()
    };
    let beside = |side: usize| totals[side].user_ticks.0.saturating_add(totals[side].unattributed_ticks.0);
    ProfileDifference {
        totals,
        functions,
        function_rest: [0, 1].map(|side| rest(side, in_functions(side), beside(side))),
        paths,
        path_rest: [0, 1].map(|side| rest(side, in_paths(side), 0)),
    }
}
