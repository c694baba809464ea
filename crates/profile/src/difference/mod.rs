//! How two profiles differ, function by function and path by path, so that the parts sum exactly to
//! the whole.

mod functions;
mod names;
mod paths;
#[cfg(test)]
mod tests;

pub use functions::FunctionDifference;
pub use names::source_name;
pub use paths::{PathDifference, PathFigures, PathLabel};

use crate::{Profile, Scope, ScopeTotals};

/// How the second of two profiles differs from the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The whole of both.
    pub totals: [ScopeTotals; 2],
    /// Every function that ran in one of them; net times are what each adds to the whole.
    pub functions: Vec<FunctionDifference>,
    /// Busy time that is in no row of `functions`, nor user or unattributed: 0 in a sound profile.
    pub function_rest: [i128; 2],
    /// Every call path of one of them, parents before children; net times are what each adds to the
    /// whole. User and unattributed time are paths.
    pub paths: Vec<PathDifference>,
    /// Busy time that is in no row of `paths`: 0 in a sound profile, all of it in one without paths.
    pub path_rest: [i128; 2],
}

impl Difference {
    /// Change of the elapsed time, from base to other: what all parts sum to.
    pub fn change(&self) -> i128 {
        change(self.totals.map(|whole| i128::from(whole.elapsed_ns.0)))
    }

    /// The parts of the elapsed time that no function has: idle, user, unattributed, and what is
    /// left; each as its time in both.
    pub fn beside_functions(&self) -> [(&'static str, [i128; 2]); 4] {
        [
            ("[idle]", self.totals.map(|whole| i128::from(whole.idle_ns.0))),
            ("[user]", self.totals.map(|whole| i128::from(whole.user_ns.0))),
            ("[unattributed]", self.totals.map(|whole| i128::from(whole.unattributed_ns.0))),
            ("[in no function]", self.function_rest),
        ]
    }

    /// The parts of the elapsed time that no path has.
    pub fn beside_paths(&self) -> [(&'static str, [i128; 2]); 2] {
        [("[idle]", self.totals.map(|whole| i128::from(whole.idle_ns.0))), ("[in no path]", self.path_rest)]
    }

    /// Whether the parts sum to the whole on both sides, which they always must: functions first,
    /// then paths.
    pub fn sums(&self) -> [bool; 2] {
        let sums = |rows: [i128; 2], beside: &[(&str, [i128; 2])]| {
            (0..2).all(|side| {
                let parts: i128 = rows[side] + beside.iter().map(|(_, times)| times[side]).sum::<i128>();
                parts == i128::from(self.totals[side].busy_ns.0) + i128::from(self.totals[side].idle_ns.0)
            })
        };
        let functions = [0, 1].map(|side| self.functions.iter().map(|row| row.net(side)).sum());
        let paths = [0, 1].map(|side| self.paths.iter().map(|row| row.figures[side].net_ns).sum());
        [sums(functions, &self.beside_functions()), sums(paths, &self.beside_paths())]
    }
}

/// From base to other.
fn change([base, other]: [i128; 2]) -> i128 {
    other - base
}

/// Compares two profiles over all their regions; of the same kernel or of two.
pub fn difference(base: &Profile, other: &Profile) -> Difference {
    difference_within([base, other], [&Scope::all(&base.tables), &Scope::all(&other.tables)])
}

/// Compares some regions of two profiles, base first.
pub fn difference_within(profiles: [&Profile; 2], scopes: [&Scope; 2]) -> Difference {
    let sides = [0, 1].map(|side| functions::Side::new(profiles[side], scopes[side]));
    let (functions, rows) = functions::join(&sides);
    let paths = paths::join(profiles, scopes, &rows);
    let totals = [0, 1].map(|side| scopes[side].totals(profiles[side]));
    let rest =
        |side: usize, rows: i128, beside: u64| i128::from(totals[side].busy_ns.0) - i128::from(beside) - rows;
    // From the tables and not from what was joined, so that a row lost in joining does not go unseen.
    let in_functions = |side: usize| -> i128 {
        let rows = profiles[side].tables.functions.iter().filter(|row| scopes[side].contains(row.region));
        rows.map(|row| i128::from(row.net_ns.0)).sum()
    };
    let in_paths = |side: usize| -> i128 {
        let rows = profiles[side].tables.paths.iter().filter(|row| scopes[side].contains(row.region));
        rows.map(|row| i128::from(row.net_ns.0)).sum()
    };
    let beside = |side: usize| totals[side].user_ns.0.saturating_add(totals[side].unattributed_ns.0);
    Difference {
        totals,
        functions,
        function_rest: [0, 1].map(|side| rest(side, in_functions(side), beside(side))),
        paths,
        path_rest: [0, 1].map(|side| rest(side, in_paths(side), 0)),
    }
}
