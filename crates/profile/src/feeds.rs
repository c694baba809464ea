//! Kinds of counts that a profile can have, and the recipes that each of them can feed.
//!
//! This is the only table of the kind: recipes refuse a profile, and `advise` proposes a recipe, by it.
//! `docs/recipes.md` has the same rows (`documented_as_declared` checks it).
//!
//! ```
//! use kerntune_profile::{recipes_fed_by, CountKind};
//! assert_eq!(recipes_fed_by(&[CountKind::CallArcs]), ["layout", "kernel relink"]);
//! ```

use crate::{Manifest, Profile};
use std::fmt;

/// Kind of counts that a recipe can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountKind {
    /// Counters that a compiler put into the kernel (`.gcda`).
    Counters,
    /// Executed blocks and taken branches.
    Blocks,
    /// Samples of the instruction that ran, without branches.
    Instructions,
    /// Number of calls for each pair of caller and callee.
    CallArcs,
    /// Samples with the stack of calls at that moment.
    CallChains,
}

impl fmt::Display for CountKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counters => "counters of an instrumented kernel",
            Self::Blocks => "executed blocks and taken branches",
            Self::Instructions => "sampled instructions",
            Self::CallArcs => "call counts by caller",
            Self::CallChains => "sampled call chains",
        })
    }
}

/// Source of profiles: a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileSource {
    /// Name of the source.
    pub name: &'static str,
    /// Commands that make such a profile.
    pub commands: &'static str,
    /// Kinds of counts that the profile has.
    pub kinds: &'static [CountKind],
}

/// All sources of profiles.
pub const PROFILE_SOURCES: &[ProfileSource] = &[
    ProfileSource {
        name: "exact recording",
        commands: "`record`",
        kinds: &[CountKind::Blocks, CountKind::CallArcs],
    },
    ProfileSource {
        name: "exact recording without edges",
        commands: "`record --no-edges`",
        kinds: &[CountKind::CallArcs],
    },
    ProfileSource {
        name: "branch records",
        commands: "`record --live --branches`, `live start --branches`, `import perf`",
        kinds: &[CountKind::Blocks],
    },
    ProfileSource {
        name: "samples of instructions",
        commands: "`import perf --instructions`",
        kinds: &[CountKind::Instructions],
    },
    ProfileSource {
        name: "calls counted by kgmon or gmon",
        commands: "`record --live --calls`, `live start --calls`, `import gmon`",
        kinds: &[CountKind::CallArcs, CountKind::CallChains],
    },
    ProfileSource {
        name: "samples of the running kernel",
        commands: "`record --live`, `live dump`",
        kinds: &[CountKind::CallChains],
    },
    ProfileSource {
        name: "counters of an instrumented kernel",
        commands: "`gcov collect`, a copy of `/sys/kernel/debug/gcov`",
        kinds: &[CountKind::Counters],
    },
];

/// Needs of a recipe: a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecipeNeeds {
    /// First part of the recipe's name, or the command that takes a profile.
    pub recipe: &'static str,
    /// Kinds of counts of which one is enough, best first.
    pub takes: &'static [CountKind],
}

/// Orders of functions need to know who calls whom, and nothing about the inside of functions.
const ORDER: &[CountKind] = &[CountKind::Blocks, CountKind::CallArcs, CountKind::CallChains];

/// Needs of all recipes. Modifiers (`+layout`, `+propeller`) record the kernel before them on their
/// own.
pub const RECIPE_NEEDS: &[RecipeNeeds] = &[
    RecipeNeeds { recipe: "gcc-pgo", takes: &[CountKind::Counters] },
    RecipeNeeds { recipe: "clang-autofdo", takes: &[CountKind::Blocks, CountKind::Instructions] },
    RecipeNeeds { recipe: "bolt", takes: &[CountKind::Blocks] },
    RecipeNeeds { recipe: "layout", takes: ORDER },
    RecipeNeeds { recipe: "kernel relink", takes: ORDER },
];

/// Returns the names of the recipes to which one of these kinds of counts is enough.
pub fn recipes_fed_by(kinds: &[CountKind]) -> Vec<&'static str> {
    let fed = RECIPE_NEEDS.iter().filter(|row| row.takes.iter().any(|kind| kinds.contains(kind)));
    fed.map(|row| row.recipe).collect()
}

/// Returns the sentence of a recipe that refuses a profile with these kinds of counts; `None` if it
/// takes one of them. `recipe` may have modifiers, and only its first part matters.
///
/// ```
/// use kerntune_profile::{lacking, CountKind};
/// assert_eq!(lacking("layout", &[CountKind::CallChains]), None);
/// assert_eq!(
///     lacking("bolt", &[CountKind::CallChains]).unwrap(),
///     "it has sampled call chains, and bolt needs executed blocks and taken branches; it can feed layout, kernel relink"
/// );
/// ```
pub fn lacking(recipe: &str, kinds: &[CountKind]) -> Option<String> {
    let first = recipe.split('+').next().unwrap_or(recipe);
    let takes = RECIPE_NEEDS.iter().find(|row| row.recipe == first).map_or(&[][..], |row| row.takes);
    if takes.is_empty() || takes.iter().any(|kind| kinds.contains(kind)) {
        return None;
    }
    let needs = listed(takes, " or ");
    let fed = recipes_fed_by(kinds);
    Some(match kinds {
        [] => format!("it has no counts that a recipe reads, and {first} needs {needs}"),
        kinds => {
            format!(
                "it has {}, and {first} needs {needs}; it can feed {}",
                listed(kinds, " and "),
                fed.join(", ")
            )
        }
    })
}

fn listed(kinds: &[CountKind], between: &str) -> String {
    kinds.iter().map(CountKind::to_string).collect::<Vec<_>>().join(between)
}

impl Manifest {
    /// Returns the kinds of counts that the profile has, by what was captured.
    pub fn count_kinds(&self) -> Vec<CountKind> {
        let Self { capture, sampled, .. } = self;
        let counted = match sampled {
            Some(sampled) => sampled.calls.is_some(),
            None => capture.functions,
        };
        let kinds = [
            (CountKind::Blocks, capture.edges),
            (CountKind::Instructions, capture.instructions),
            (CountKind::CallArcs, counted),
            (CountKind::CallChains, capture.functions && sampled.is_some()),
        ];
        kinds.into_iter().filter_map(|(kind, has)| has.then_some(kind)).collect()
    }
}

impl Profile {
    /// Returns the kinds of counts that the profile has: those that were captured and are not empty.
    pub fn count_kinds(&self) -> Vec<CountKind> {
        let tables = &self.tables;
        let mut kinds = self.manifest.count_kinds();
        // An old or foreign manifest may not say what the tables have.
        let has_blocks = kinds.iter().any(|kind| matches!(kind, CountKind::Blocks | CountKind::Instructions));
        if !has_blocks && tables.blocks.iter().any(|block| block.count > 0) {
            kinds.insert(0, CountKind::Blocks);
        }
        kinds.retain(|kind| match kind {
            CountKind::Counters | CountKind::Blocks | CountKind::Instructions => true,
            CountKind::CallArcs => tables.arcs.iter().any(|arc| arc.calls > 0),
            CountKind::CallChains => tables.arcs.iter().any(|arc| arc.total_ticks.get() > 0),
        });
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallArc, KernelId, SamplingSummary, Tables, Ticks};

    fn sampled(calls: Option<&str>) -> SamplingSummary {
        SamplingSummary {
            source: "perf: cpu-clock".into(),
            samples: 1,
            sample_ns: Ticks(1),
            cpus: 1,
            wall_ns: Ticks(1),
            period: String::new(),
            bias: None,
            filter: None,
            calls: calls.map(str::to_owned),
            bound_bytes: 0,
        }
    }

    #[test]
    fn a_profile_has_the_kinds_of_its_source() {
        let mut manifest = Manifest::new("p", KernelId::default(), "w", "emulator");
        assert_eq!(manifest.count_kinds(), []);
        manifest.capture.functions = true;
        assert_eq!(manifest.count_kinds(), [CountKind::CallArcs]);
        manifest.capture.edges = true;
        assert_eq!(manifest.count_kinds(), [CountKind::Blocks, CountKind::CallArcs]);
        manifest.capture.edges = false;
        let instructions = crate::CaptureSummary { instructions: true, ..Default::default() };
        let of_instructions = Manifest { capture: instructions, ..manifest.clone() };
        assert_eq!(of_instructions.count_kinds(), [CountKind::Instructions]);
        manifest.sampled = Some(sampled(None));
        assert_eq!(manifest.count_kinds(), [CountKind::CallChains]);
        manifest.sampled = Some(sampled(Some("kgmon: calls of all functions")));
        assert_eq!(manifest.count_kinds(), [CountKind::CallArcs, CountKind::CallChains]);
        // Nothing was called while it was recorded.
        let mut tables = Tables::default();
        assert_eq!(Profile { manifest: manifest.clone(), tables: tables.clone() }.count_kinds(), []);
        tables.arcs.push(CallArc { total_ticks: Ticks(1), ..CallArc::default() });
        assert_eq!(Profile { manifest, tables }.count_kinds(), [CountKind::CallChains]);
    }

    #[test]
    fn recipes_refuse_by_the_table() {
        let text = lacking("clang-autofdo+layout", &[CountKind::CallArcs, CountKind::CallChains]).unwrap();
        assert!(
            text.contains("clang-autofdo needs executed blocks and taken branches or sampled instructions")
                && text.contains("feed layout"),
            "{text}"
        );
        assert_eq!(lacking("clang-autofdo+layout", &[CountKind::Blocks]), None);
        assert_eq!(lacking("clang-autofdo", &[CountKind::Instructions]), None);
        assert!(lacking("bolt", &[CountKind::Instructions]).unwrap().ends_with("it can feed clang-autofdo"));
        assert!(lacking("layout", &[CountKind::Counters]).unwrap().ends_with("it can feed gcc-pgo"));
        assert!(lacking("bolt", &[]).unwrap().contains("no counts"));
        // A recipe that is not in the table decides on its own.
        assert_eq!(lacking("stock-gcov", &[]), None);
    }

    /// Compares the table of the documentation with the declarations.
    #[test]
    fn documented_as_declared() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recipes.md");
        let text = std::fs::read_to_string(path).unwrap();
        for source in PROFILE_SOURCES {
            let fed = recipes_fed_by(source.kinds);
            let fed: Vec<String> = fed.iter().map(|recipe| format!("`{recipe}`")).collect();
            let kinds = listed(source.kinds, ", ");
            let row = format!("| {} | {} | {kinds} | {} |", source.name, source.commands, fed.join(", "));
            assert!(text.contains(&row), "docs/recipes.md has no row\n{row}");
        }
    }
}
