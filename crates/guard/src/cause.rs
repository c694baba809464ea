//! Explains why a row is longer in one kernel than in another, by functions and call paths. The
//! parts sum exactly to the whole (pure).

use crate::deferred::{begins, DeferralClass};
use crate::{Error, Result};
use kerntune_profile::{
    add_up, difference_within, upwards, PathFrame, Profile, ProfileDifference, RegionScope, TreeChildren,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Function names along a call path, outermost first.
pub type CallPath = Vec<String>;

/// A function in both profiles. Counts are sums over all operations of the row; pairs are base and
/// new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedFunction {
    /// Name of the function in the source.
    pub function: String,
    /// Source file, if known.
    pub file: Option<String>,
    /// Self instructions, without deferred work.
    pub instructions: [i128; 2],
    /// Number of calls, without those in deferred work.
    pub calls: [i128; 2],
    /// Call path with the largest change, from the system call on.
    pub path: CallPath,
    /// Change of the self instructions on that path.
    pub path_change: i128,
    /// Description of the change.
    pub what: String,
    /// Changed lines in the source, if both sources are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<crate::lines::FunctionLocation>,
}

impl ChangedFunction {
    /// Returns the change of the self instructions.
    pub fn change(&self) -> i128 {
        self.instructions[1] - self.instructions[0]
    }
}

/// Parts of a call path that got longer while others got shorter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compensation {
    /// Path to the function below which both happened; empty at the root.
    pub within: CallPath,
    /// Parts that got longer, by their total instructions, the largest change first.
    pub longer: Vec<(String, i128)>,
    /// Parts that got shorter, the largest change first.
    pub shorter: Vec<(String, i128)>,
    /// Compensated instructions: the smaller of the two sums.
    pub instructions: i128,
}

/// Breakdown of a row's change. Pairs are base and new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowCauses {
    /// Number of operations.
    pub operations: [u64; 2],
    /// Kernel instructions of the operations themselves, without deferred work.
    pub own: [i128; 2],
    /// All functions, the largest change first.
    pub functions: Vec<ChangedFunction>,
    /// Part of `own` in no function: the instruction by which each return to user code leaves the
    /// kernel, and code without a symbol.
    pub elsewhere: [i128; 2],
    /// Change of `own` that functions and `elsewhere` do not explain; always 0.
    pub rest: i128,
    /// Instructions of deferred work, by class.
    #[serde(rename = "put_off")]
    pub deferred: BTreeMap<DeferralClass, [i128; 2]>,
    /// Compensated changes, the largest first.
    #[serde(rename = "made_up")]
    pub compensated: Vec<Compensation>,
}

/// Breaks down the change of a row between two profiles.
///
/// # Errors
/// A row that one of them does not have; parts that do not sum to the whole, which is a bug of
/// kerntune.
pub fn causes(profiles: [&Profile; 2], row: &str) -> Result<RowCauses> {
    let scope = |side: usize| {
        let profile: &Profile = profiles[side];
        RegionScope::named(&profile.tables, row)
            .ok_or_else(|| Error::NoRow { profile: profile.manifest.id.clone(), row: row.to_owned() })
    };
    let scopes = [scope(0)?, scope(1)?];
    let difference = difference_within(profiles, [&scopes[0], &scopes[1]]);
    let totals = [0, 1].map(|side| i128::from(scopes[side].totals(profiles[side]).kernel_instructions));
    let nodes = PathNodes::of(&difference);
    let mut deferred: BTreeMap<DeferralClass, [i128; 2]> = BTreeMap::new();
    let mut parts: BTreeMap<usize, FunctionTotals> = BTreeMap::new();
    for (at, path) in difference.paths.iter().enumerate() {
        if path.frame == PathFrame::User {
            continue;
        }
        let net = path.figures.map(|figures| figures.self_ticks);
        if let Some(class) = nodes.class[at] {
            add(deferred.entry(class).or_default(), net);
        } else if let PathFrame::Function(function) = path.frame {
            parts.entry(function).or_default().add(at, net, path.figures.map(|figures| figures.calls));
        }
    }
    deferred.retain(|_, sums| *sums != [0, 0]);
    let mut own = totals;
    deferred.values().for_each(|sums| own = [own[0] - sums[0], own[1] - sums[1]]);
    let mut functions: Vec<ChangedFunction> =
        parts.iter().map(|(function, part)| part.changed(&difference, *function)).collect();
    functions.sort_by(|a, b| {
        (b.change().unsigned_abs(), &a.function).cmp(&(a.change().unsigned_abs(), &b.function))
    });
    let sum = |side: usize| functions.iter().map(|row| row.instructions[side]).sum::<i128>();
    let elsewhere = [own[0] - sum(0), own[1] - sum(1)];
    let rest = (own[1] - own[0])
        - functions.iter().map(ChangedFunction::change).sum::<i128>()
        - (elsewhere[1] - elsewhere[0]);
    // Returns to user code count in no function, so this may be positive but never negative.
    if rest != 0 || elsewhere.iter().any(|count| *count < 0) {
        return Err(Error::Sum {
            row: row.to_owned(),
            rest: if rest != 0 { rest } else { elsewhere[0].min(elsewhere[1]) },
        });
    }
    let operations = [0, 1].map(|side| scopes[side].totals(profiles[side]).operations);
    let compensated = compensated(&difference, &nodes);
    Ok(RowCauses { operations, own, functions, elsewhere, rest, deferred, compensated })
}

fn add(sums: &mut [i128; 2], more: [i128; 2]) {
    *sums = [sums[0] + more[0], sums[1] + more[1]];
}

/// The call paths of a difference as a tree, by index.
struct PathNodes<'a> {
    class: Vec<Option<DeferralClass>>,
    name: Vec<&'a str>,
    children: Vec<Vec<usize>>,
    /// Total instructions of a path and those below it, without deferred work.
    elapsed: Vec<[i128; 2]>,
}

impl<'a> PathNodes<'a> {
    fn of(difference: &'a ProfileDifference) -> Self {
        let count = difference.paths.len();
        let mut nodes = Self {
            class: Vec::with_capacity(count),
            name: Vec::with_capacity(count),
            children: TreeChildren::new(&difference.paths).of,
            elapsed: Vec::with_capacity(count),
        };
        for path in &difference.paths {
            let name: &str = match &path.frame {
                PathFrame::Unattributed => "[in no function]",
                frame => difference.function(frame).map_or(frame.kind().stand_in(), |row| &row.name),
            };
            let caller =
                path.parent.filter(|parent| is_function(difference, *parent)).map(|at| nodes.name[at]);
            let above = path.parent.and_then(|parent| nodes.class[parent]);
            let own = match &path.frame {
                PathFrame::Function(_) => begins(name, caller),
                PathFrame::Idle => Some(DeferralClass::Idle),
                _ => None,
            };
            let class = above.or(own);
            let counts = class.is_none() && path.frame != PathFrame::User;
            let self_ticks = path.figures.map(|figures| figures.self_ticks);
            nodes.class.push(class);
            nodes.name.push(name);
            nodes.elapsed.push(if counts { self_ticks } else { [0; 2] });
        }
        let parent = |at: usize, _: &_| difference.paths[at].parent.unwrap_or(usize::MAX);
        add_up(&mut nodes.elapsed, parent, |above, below| add(above, *below));
        nodes
    }

    fn change(&self, at: usize) -> i128 {
        self.elapsed[at][1] - self.elapsed[at][0]
    }
}

/// Returns the functions from the root to this path.
fn path(difference: &ProfileDifference, at: usize) -> CallPath {
    let mut names: CallPath = upwards(&difference.paths, at)
        .filter(|path| matches!(path.frame, PathFrame::Function(_) | PathFrame::Interrupt))
        .map(|path| difference.name(&path.frame).into_owned())
        .collect();
    names.reverse();
    names
}

fn is_function(difference: &ProfileDifference, at: usize) -> bool {
    difference.paths[at].frame.function().is_some()
}

/// Sums over all paths of a function.
#[derive(Default)]
struct FunctionTotals {
    instructions: [i128; 2],
    calls: [i128; 2],
    /// Path with the largest change, and its self instructions.
    max: Option<(usize, [i128; 2])>,
}

impl FunctionTotals {
    fn add(&mut self, at: usize, net: [i128; 2], calls: [i128; 2]) {
        add(&mut self.instructions, net);
        add(&mut self.calls, calls);
        let by = |net: [i128; 2]| (net[1] - net[0]).unsigned_abs();
        if self.max.is_none_or(|(_, known)| by(net) > by(known)) {
            self.max = Some((at, net));
        }
    }

    fn changed(&self, difference: &ProfileDifference, function: usize) -> ChangedFunction {
        let row = difference.functions.get(function);
        let (path, path_change) =
            self.max.map_or_else(Default::default, |(at, net)| (path(difference, at), net[1] - net[0]));
        ChangedFunction {
            function: row.map_or_else(String::new, |row| row.name.clone()),
            file: row.and_then(|row| row.file.clone()),
            instructions: self.instructions,
            calls: self.calls,
            path,
            path_change,
            what: describe_change(self.instructions, self.calls),
            source: None,
        }
    }
}

/// Describes the change of a function.
fn describe_change(instructions: [i128; 2], calls: [i128; 2]) -> String {
    let each = |side: usize| instructions[side] as f64 / calls[side].max(1) as f64;
    let times = calls[1] as f64 / calls[0].max(1) as f64;
    match (calls, instructions) {
        ([0, 0], [before, after]) if before == after => String::new(),
        ([0, 0], _) => "the calls began before the row".into(),
        ([0, _], [0, _]) => "new on this path, or no longer inlined".into(),
        ([_, 0], [_, 0]) => "gone from this path, or inlined".into(),
        _ if (times - 1.0).abs() >= 0.005 && calls[0] > 0 => format!("called {times:.2} times as often"),
        _ if instructions[0] == instructions[1] => String::new(),
        _ => format!("{:+.1} instructions a call", each(1) - each(0)),
    }
}

/// Finds changes that others beside them compensate.
///
/// The parts of a path are the function itself and its callees. A call that exists on one side only
/// may have been inlined into the function, or replaced by another such call; so all of these count
/// as one part.
fn compensated(difference: &ProfileDifference, nodes: &PathNodes) -> Vec<Compensation> {
    let mut found = Vec::new();
    for at in 0..difference.paths.len() {
        if nodes.class[at].is_some() || !is_function(difference, at) {
            continue;
        }
        let figures = difference.paths[at].figures;
        let mut parts = vec![(nodes.name[at].to_owned(), figures[1].self_ticks - figures[0].self_ticks)];
        // The function itself and calls on one side only: their instructions may just have moved.
        let mut moved = parts[0].1;
        let mut movable: Vec<usize> = vec![0];
        for &child in nodes.children[at].iter().filter(|&&child| nodes.class[child].is_none()) {
            let change = nodes.change(child);
            let calls = difference.paths[child].figures.map(|figures| figures.calls);
            if (calls[0] == 0) != (calls[1] == 0) {
                moved += change;
                movable.push(parts.len());
            }
            if change != 0 {
                parts.push((nodes.name[child].to_owned(), change));
            } else if movable.last() == Some(&parts.len()) {
                movable.pop();
            }
        }
        if movable.len() > 1 {
            // All that may have moved is one part.
            let rest: Vec<(String, i128)> = (0..parts.len())
                .filter(|part| !movable.contains(part))
                .map(|part| parts[part].clone())
                .collect();
            parts = rest;
            parts.push((nodes.name[at].to_owned(), moved));
        }
        let mut longer: Vec<_> = parts.iter().filter(|(_, change)| *change > 0).cloned().collect();
        let mut shorter: Vec<_> = parts.iter().filter(|(_, change)| *change < 0).cloned().collect();
        longer.sort_by_key(|(_, change)| -change);
        shorter.sort_by_key(|(_, change)| *change);
        let sum = |parts: &[(String, i128)]| parts.iter().map(|(_, change)| change.abs()).sum::<i128>();
        let instructions = sum(&longer).min(sum(&shorter));
        if instructions > 0 {
            found.push(Compensation { within: path(difference, at), longer, shorter, instructions });
        }
    }
    found.sort_by(|a, b| (b.instructions, &a.within).cmp(&(a.instructions, &b.within)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{rows, tests::profile};

    type PathRows<'a> = &'a [(&'a [&'a str], u64, u64)];

    fn of(base: PathRows, new: PathRows) -> RowCauses {
        let profiles = [profile(&[("r", 10, base)]), profile(&[("r", 10, new)])];
        let found = causes([&profiles[0], &profiles[1]], "r").unwrap();
        for (side, profile) in profiles.iter().enumerate() {
            assert_eq!(i128::from(rows(profile, &[]).unwrap()[0].own()), found.own[side]);
        }
        assert_eq!(found.rest, 0);
        found
    }

    #[test]
    fn parts_sum_to_the_whole_and_name_their_path() {
        let found = of(
            &[
                (&["rr", "sys", "send"], 10, 1_000),
                (&["rr", "sys", "send", "slow"], 1, 50),
                (&["interrupt", "asm_sysvec_apic_timer_interrupt"], 3, 900),
            ],
            &[
                (&["rr", "sys", "send"], 10, 1_020),
                (&["rr", "sys", "send", "slow"], 2, 100),
                (&["interrupt", "asm_sysvec_apic_timer_interrupt"], 1, 300),
            ],
        );
        assert_eq!((found.own, found.deferred[&DeferralClass::Timer]), ([1_050, 1_120], [900, 300]));
        let [slow, send, ..] = &found.functions[..] else { panic!("{found:?}") };
        assert_eq!((slow.function.as_str(), slow.change()), ("slow", 50));
        assert_eq!(
            (&slow.path[..], slow.what.as_str()),
            (&["sys".into(), "send".into(), "slow".into()][..], "called 2.00 times as often")
        );
        assert_eq!((send.change(), send.what.as_str()), (20, "+2.0 instructions a call"));
        assert_eq!(slow.file.as_deref(), Some("kernel/slow.c"));
        assert!(found.compensated.is_empty());
    }

    #[test]
    fn what_is_made_up_for_is_found() {
        let found = of(
            &[(&["rr", "sys", "send"], 10, 1_000), (&["rr", "sys", "receive"], 10, 1_000)],
            &[(&["rr", "sys", "send"], 10, 1_100), (&["rr", "sys", "receive"], 10, 890)],
        );
        let [of] = &found.compensated[..] else { panic!("{found:?}") };
        assert_eq!((of.within.join(">"), of.instructions), ("sys".into(), 100));
        assert_eq!((&of.longer[0], &of.shorter[0]), (&("send".into(), 100), &("receive".into(), -110)));
    }

    #[test]
    fn what_is_inlined_or_renamed_is_not_made_up_for() {
        // Inlined: the caller has the instructions of the callee.
        let inlined = of(
            &[(&["rr", "sys"], 10, 500), (&["rr", "sys", "helper"], 10, 100)],
            &[(&["rr", "sys"], 10, 600)],
        );
        assert_eq!(inlined.compensated, []);
        let renamed = of(
            &[(&["rr", "sys"], 10, 500), (&["rr", "sys", "old"], 10, 100)],
            &[(&["rr", "sys"], 10, 500), (&["rr", "sys", "new"], 10, 100)],
        );
        assert_eq!(renamed.compensated, []);
        // Another layout changes nothing.
        let same = of(&[(&["rr", "sys"], 10, 500)], &[(&["rr", "sys"], 10, 500)]);
        assert!(same.compensated.is_empty() && same.functions.iter().all(|row| row.change() == 0));
    }
}
