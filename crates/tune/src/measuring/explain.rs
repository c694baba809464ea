//! Explanation of a difference: instructions by function on two kernels, with code sizes, inlining
//! and splitting. The parts sum to the whole.

use crate::measuring::compare::{compare, CompareEffort};
use crate::runs::model::Model;
use crate::{Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{Kernel, Symbols};
use kerntune_profile::{difference, source_name, FunctionDifference, Profile};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// A function of the source with all its copies in the image, on both kernels (base, tuned).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionChange {
    /// Name in the source.
    pub function: String,
    /// Source file; `None` if unknown.
    pub file: Option<String>,
    /// Instructions in the function itself.
    pub instructions: [u64; 2],
    /// Branches taken in the function.
    pub taken_branches: [u64; 2],
    /// Number of calls.
    pub calls: [u64; 2],
    /// Bytes of code without cold parts.
    pub bytes: [u64; 2],
    /// Bytes of cold parts.
    pub cold_bytes: [u64; 2],
    /// Descriptions of the change: inlined, split, resized.
    pub what: Vec<String>,
}

impl FunctionChange {
    /// Returns the change in instructions from base to tuned kernel.
    pub fn change(&self) -> i128 {
        i128::from(self.instructions[1]) - i128::from(self.instructions[0])
    }
}

/// Difference of two kernels by function. The rows and the remainders sum to the totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainResult {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// Name of the workload.
    pub workload: String,
    /// Ids of the kernels.
    pub kernels: [String; 2],
    /// Labels of the kernels.
    pub labels: [String; 2],
    /// Functions, largest change first.
    pub functions: Vec<FunctionChange>,
    /// Kernel instructions of no row: of unknown functions, and the instruction by which each
    /// return to user code leaves the kernel, which ends the time of its function.
    pub elsewhere: [i64; 2],
    /// Branches taken in no function of the rows: labels of assembly, functions that did not end.
    pub taken_elsewhere: [u64; 2],
    /// Kernel instructions of all marked regions: the total of `compare`.
    pub instructions: [u64; 2],
    /// Branches taken in the kernel in all marked regions.
    pub taken_branches: [u64; 2],
}

/// Runs the workload on both kernels, or finds the recordings, and explains the difference.
///
/// # Errors
/// Those of the recordings and of the images.
pub fn explain(
    session: &Session,
    kernels: [&Kernel; 2],
    workload: &Workload,
    model: &Model,
) -> Result<ExplainResult> {
    let compared = compare(session, kernels[0], kernels[1], workload, model, CompareEffort::default())?;
    let profiles = [Profile::load(&compared.base.path)?, Profile::load(&compared.tuned.path)?];
    let images = [ImageCounts::of(kernels[0], &profiles[0])?, ImageCounts::of(kernels[1], &profiles[1])?];
    Ok(take_apart(kernels, &workload.name, [&profiles[0], &profiles[1]], &images))
}

/// Code sizes and taken branches of each function of the source.
#[derive(Debug, Default)]
struct ImageCounts {
    bytes: HashMap<String, u64>,
    cold: HashMap<String, u64>,
    taken: HashMap<String, u64>,
    /// Branches taken outside of functions.
    taken_elsewhere: u64,
}

impl ImageCounts {
    fn of(kernel: &Kernel, profile: &Profile) -> Result<Self> {
        let symbols = Symbols::load(&kernel.vmlinux())?;
        let mut image = Self::default();
        for function in symbols.functions() {
            let (name, cold) = source_name(&function.name);
            let sizes = if cold { &mut image.cold } else { &mut image.bytes };
            *sizes.entry(name.to_string()).or_default() += function.size;
        }
        for edge in &profile.tables.edges {
            match symbols.lookup(edge.source.get()).and_then(|at| symbols.functions().get(at)) {
                Some(function) => {
                    let name = source_name(&function.name).0;
                    *image.taken.entry(name.to_string()).or_default() += edge.count;
                }
                None => image.taken_elsewhere += edge.count,
            }
        }
        Ok(image)
    }
}

fn take_apart(
    kernels: [&Kernel; 2],
    workload: &str,
    profiles: [&Profile; 2],
    images: &[ImageCounts; 2],
) -> ExplainResult {
    let difference = difference(profiles[0], profiles[1]);
    // Static functions of one name are several rows that the image cannot distinguish: the first
    // row has the branches of all.
    let mut told = HashSet::new();
    let mut functions: Vec<FunctionChange> = difference
        .functions
        .iter()
        .map(|row| {
            let first = told.insert(source_name(&row.name).0);
            changed(row, images, first)
        })
        .collect();
    functions.sort_by(|a, b| {
        (b.change().unsigned_abs(), &a.function).cmp(&(a.change().unsigned_abs(), &b.function))
    });
    let instructions = profiles.map(kernel_instructions);
    let elsewhere = elsewhere(instructions, &functions);
    let taken =
        [0, 1].map(|side: usize| images[side].taken.values().sum::<u64>() + images[side].taken_elsewhere);
    let in_rows = |side: usize| functions.iter().map(|row| row.taken_branches[side]).sum::<u64>();
    ExplainResult {
        schema: "kerntune-explain/2",
        workload: workload.to_string(),
        kernels: kernels.map(|kernel| kernel.manifest.id.clone()),
        labels: kernels.map(|kernel| kernel.manifest.label.clone()),
        instructions,
        taken_elsewhere: [0, 1].map(|side| taken[side] - in_rows(side)),
        taken_branches: taken,
        functions,
        elsewhere,
    }
}

/// Returns the instructions that are in no row.
fn elsewhere(instructions: [u64; 2], rows: &[FunctionChange]) -> [i64; 2] {
    let sum = |side: usize| rows.iter().map(|row| i128::from(row.instructions[side])).sum::<i128>();
    [0, 1].map(|side| (i128::from(instructions[side]) - sum(side)) as i64)
}

/// Sums up the outermost regions, whose counters include nested regions.
fn kernel_instructions(profile: &Profile) -> u64 {
    let outermost = profile.tables.regions.iter().filter(|region| region.depth == 0);
    outermost.map(|region| region.kernel_instructions.get()).fold(0, u64::saturating_add)
}

fn changed(row: &FunctionDifference, images: &[ImageCounts; 2], first: bool) -> FunctionChange {
    let whole = |value: i128| u64::try_from(value).unwrap_or_default();
    let of = |map: &HashMap<String, u64>| map.get(source_name(&row.name).0).copied().unwrap_or_default();
    let mut changed = FunctionChange {
        function: row.name.clone(),
        file: row.file.clone(),
        instructions: [0, 1].map(|side| whole(row.self_ticks(side))),
        taken_branches: [0, 1].map(|side| if first { of(&images[side].taken) } else { 0 }),
        calls: [0, 1].map(|side| whole(row.calls(side))),
        bytes: [0, 1].map(|side| of(&images[side].bytes)),
        cold_bytes: [0, 1].map(|side| of(&images[side].cold)),
        what: Vec::new(),
    };
    changed.what = describe_change(&changed, &row.symbols);
    changed
}

/// Describes the change of a function, most important first.
fn describe_change(row: &FunctionChange, symbols: &[Vec<String>; 2]) -> Vec<String> {
    let mut words = Vec::new();
    let [before, after] = row.calls;
    if before > 0 && after == 0 {
        words.push("inlined everywhere".to_string());
    } else if before > after && (before - after) * 100 > before {
        words.push(format!("inlined in {} % of its calls", (before - after) * 100 / before));
    } else if after > before && before == 0 {
        words.push("no longer inlined".to_string());
    } else if after > before && (after - before) * 100 > before {
        words.push(format!("called {} % more: inlined less", (after - before) * 100 / before));
    }
    let copies: Vec<&str> =
        symbols[1].iter().map(String::as_str).filter(|name| !symbols[0].iter().any(|s| s == name)).collect();
    if before > 0 && after > 0 && copies.iter().any(|name| *name != row.function) {
        words.push(format!("as {}", copies.join(", ")));
    }
    match row.cold_bytes {
        [0, cold] if cold > 0 => words.push(format!("split: {cold} bytes apart")),
        [cold, 0] if cold > 0 && row.bytes[1] > 0 => words.push("no longer split".into()),
        _ => {}
    }
    let [small, large] = row.bytes;
    if small > 0 && large > 0 {
        let percent = 100.0 * (large as f64 / small as f64 - 1.0);
        if percent.abs() >= 10.0 {
            words.push(format!("{percent:+.0} % bytes"));
        }
    }
    words
}

/// Returns the rows with the largest changes that together make up `share` (0 to 1) of all changes.
pub fn max_changed(rows: &[FunctionChange], share: f64) -> &[FunctionChange] {
    let all: u128 = rows.iter().map(|row| row.change().unsigned_abs()).sum();
    let mut sum = 0;
    let enough = rows.iter().position(|row| {
        sum += row.change().unsigned_abs();
        sum as f64 >= all as f64 * share
    });
    &rows[..enough.map_or(rows.len(), |at| at + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{
        Address, FunctionIndex, FunctionTotals, Instructions, KernelId, Manifest, Symbol, Tables, Ticks,
    };

    fn row(calls: [u64; 2], bytes: [u64; 2], cold_bytes: [u64; 2]) -> FunctionChange {
        FunctionChange {
            function: "f".into(),
            file: None,
            instructions: [100, 40],
            taken_branches: [0, 0],
            calls,
            bytes,
            cold_bytes,
            what: Vec::new(),
        }
    }

    #[test]
    fn what_happened_is_told_in_words() {
        let plain = [vec!["f".to_string()], vec!["f".to_string()]];
        let words = |calls, bytes, cold| describe_change(&row(calls, bytes, cold), &plain);
        assert_eq!(words([10, 0], [64, 0], [0, 0]), ["inlined everywhere"]);
        assert_eq!(
            words([10, 5], [64, 64], [0, 32]),
            ["inlined in 50 % of its calls", "split: 32 bytes apart"]
        );
        assert_eq!(words([0, 7], [0, 64], [0, 0]), ["no longer inlined"]);
        assert_eq!(words([1000, 1001], [100, 150], [0, 0]), ["+50 % bytes"], "a call more is no news");
        let special = [vec!["f".to_string()], vec!["f.constprop.0".to_string()]];
        assert_eq!(describe_change(&row([5, 5], [64, 64], [0, 0]), &special), ["as f.constprop.0"]);
    }

    #[test]
    fn the_total_is_that_of_compare_and_the_parts_sum_to_it() {
        let profile = |instructions: [u64; 2], net: u64| {
            let region = |(at, instructions): (u32, u64)| kerntune_profile::RegionStats {
                region: at,
                name: format!("r{at}"),
                elapsed_ticks: Ticks(1_000),
                busy_ticks: Ticks(1_000),
                user_ticks: Ticks(100),
                unattributed_ticks: Ticks(7),
                operations: 1,
                depth: at,
                kernel_instructions: Instructions(instructions),
                user_instructions: Instructions(90),
                kernel_taken_branches: 1,
                ..kerntune_profile::RegionStats::default()
            };
            let function = FunctionIndex(0);
            let symbol = Symbol {
                function,
                name: "f".into(),
                address: Address(0x1000),
                size: 16,
                file: None,
                module: None,
            };
            let totals =
                FunctionTotals { self_ticks: Ticks(net), calls: 3, ..FunctionTotals::none(function) };
            let tables = Tables {
                // The second region lies within the first, whose counters include it.
                regions: (0..).zip(instructions).map(region).collect(),
                functions: vec![totals.row(0)],
                symbols: vec![symbol],
                ..Tables::default()
            };
            let mut manifest = Manifest::new("p", KernelId::default(), "w", "emulator");
            manifest.capture = kerntune_profile::CaptureSummary {
                functions: true,
                edges: true,
                model: true,
                weights: false,
                ..Default::default()
            };
            manifest.model = Some("generic".into());
            Profile { manifest, tables }
        };
        let profiles = [profile([910, 300], 893), profile([810, 200], 793)];
        let total = profiles.each_ref().map(kernel_instructions);
        let compared = profiles.each_ref().map(|profile| {
            let total = kerntune_compare::Measurement::from_profile(profile).unwrap().total;
            kerntune_compare::Metric::PathLength.count(&total).unwrap()
        });
        assert_eq!((total, total), ([910, 810], compared));
        let difference = difference(&profiles[0], &profiles[1]);
        let images = [ImageCounts::default(), ImageCounts::default()];
        let rows: Vec<FunctionChange> =
            difference.functions.iter().map(|row| changed(row, &images, true)).collect();
        // 893 in `f`, 7 in no function, and 10 on the way back to user code.
        assert_eq!(elsewhere(total, &rows), [17, 17]);
    }

    #[test]
    fn rows_that_make_up_most_of_the_change_are_telling() {
        let with = |change: u64| FunctionChange { instructions: [change, 0], ..row([1, 1], [1, 1], [0, 0]) };
        let rows = [with(80), with(15), with(4), with(1)];
        assert_eq!(max_changed(&rows, 0.95).len(), 2);
        assert_eq!(max_changed(&rows, 1.0).len(), 4);
        assert_eq!(max_changed(&[], 0.5).len(), 0);
    }
}
