//! Path length comparison: paths that differ by a frame are aligned, and all paths sum to the path
//! length.

use crate::sample::{document_json, document_text};
use kerntune_profile::{
    Address, FunctionIndex, Instructions, KernelId, Manifest, PathKind, PathNode, Profile, RegionStats,
    Symbol, Tables, Ticks,
};
use kerntune_report::path_length::{document, PathLengthOptions};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const ROOT: u32 = PathNode::ROOT;
const OPERATIONS: u64 = 10;

/// Parent, kind, function by its number, calls, instructions.
pub type PathRow = (u32, PathKind, u32, u64, u64);

/// Creates the profile of a kernel with these functions and paths.
pub fn profile(functions: &[&str], paths: &[PathRow]) -> Profile {
    let symbol = |(at, name): (usize, &&str)| Symbol {
        function: FunctionIndex(at as u32),
        name: name.to_string(),
        address: Address(at as u64),
        size: 1,
        file: None,
        module: None,
    };
    let path = |(at, &(parent, kind, function, calls, net)): (usize, &PathRow)| PathNode {
        path: at as u32,
        parent,
        kind,
        comm: if kind == PathKind::Thread { "server".into() } else { String::new() },
        function: FunctionIndex(function),
        calls,
        self_ticks: Ticks(net),
        ..PathNode::default()
    };
    let sum = |kind: fn(PathKind) -> bool| -> u64 {
        paths.iter().filter(|node| kind(node.1)).map(|node| node.4).sum()
    };
    let (busy, user) = (sum(|_| true), sum(|kind| kind == PathKind::User));
    let region = RegionStats {
        name: "r".into(),
        elapsed_ticks: Ticks(busy),
        busy_ticks: Ticks(busy),
        user_ticks: Ticks(user),
        operations: OPERATIONS,
        kernel_instructions: Instructions(busy - user),
        user_instructions: Instructions(user),
        ..RegionStats::default()
    };
    let tables = Tables {
        symbols: functions.iter().enumerate().map(symbol).collect(),
        paths: paths.iter().enumerate().map(path).collect(),
        regions: vec![region],
        ..Tables::default()
    };
    let mut manifest = Manifest::new("p", KernelId::default(), "w", "emulator");
    manifest.exact = true;
    Profile { manifest, tables }
}

pub fn options() -> PathLengthOptions {
    PathLengthOptions { region: None, top: None, min_percent: 0.0 }
}

fn parsed(a: &Profile, b: &Profile) -> Value {
    document_json(document(a, b, &options()))
}

/// Reads a figure of both kernels.
fn pair(of: &Value) -> [i64; 2] {
    [0, 1].map(|side| of[side].as_i64().unwrap_or_else(|| panic!("{of}")))
}

fn names(row: &Value) -> Vec<&str> {
    row["path"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// Lists `path: self of total, and its folded functions`, sorted, without an empty return path to
/// user code.
fn shown(a: &Profile, b: &Profile) -> Vec<String> {
    let part = |part: &Value| {
        let why = if part["why"] == "between" { " between" } else { "" };
        let (name, side) = (part["function"].as_str().unwrap(), part["only"].as_str().unwrap());
        format!(" {name}{why}@{side} {}", part["instructions"])
    };
    let line = |row: &Value| {
        let parts: String = row["parts"].as_array().unwrap().iter().map(part).collect();
        let [own, within] = ["instructions", "within"].map(|field| {
            let [a, b] = pair(&row[field]);
            format!("{a}→{b}")
        });
        format!("{}: {own} of {within}{parts}", names(row).join(" "))
    };
    let mut lines: Vec<String> = parsed(a, b)["paths"].as_array().unwrap().iter().map(line).collect();
    lines.retain(|line| !line.starts_with("[way back to user code]: 0→0"));
    lines.sort();
    lines
}

#[test]
fn a_function_that_moved_into_its_caller_is_a_part_of_it() {
    use PathKind::{Function, Thread, User};
    let a = profile(
        &["read", "copy", "check"],
        &[
            (ROOT, Thread, 0, 0, 0),
            (0, Function, 0, 5, 100),
            (1, Function, 2, 5, 30),
            (2, Function, 1, 7, 20),
        ],
    );
    // `check` is inlined, and `read` calls its callees.
    let b = profile(
        &["copy", "read"],
        &[(ROOT, Thread, 0, 0, 0), (0, Function, 1, 5, 125), (1, Function, 0, 7, 21), (0, User, 0, 0, 999)],
    );
    assert_eq!(
        shown(&a, &b),
        [
            "server read copy: 20→21 of 20→21",
            "server read: 130→125 of 150→146 check@A 30",
            "server: 0→0 of 150→146",
        ]
    );
    let text = document_text(document(&a, &b, &options()));
    assert!(text.contains("read (A: + check 3.00)"), "{text}");
    let rest = text.lines().find(|line| line.ends_with("  rest")).unwrap();
    assert_eq!(rest.split_whitespace().collect::<Vec<_>>(), ["0", "0", "0.0", "0.00", "rest"]);
}

#[test]
fn a_function_that_the_other_kernel_calls_without_is_passed_through() {
    use PathKind::{Function, Interrupt, Thread};
    let names = ["send", "queue", "xmit", "free"];
    let a = profile(
        &names,
        &[(ROOT, Thread, 0, 0, 0), (0, Function, 0, 5, 10), (1, Function, 2, 5, 50), (2, Function, 3, 1, 4)],
    );
    let b = profile(
        &names,
        &[
            (ROOT, Thread, 0, 0, 0),
            (0, Function, 0, 5, 11),
            (1, Function, 1, 5, 6),
            (2, Function, 2, 5, 40),
            (3, Function, 3, 1, 5),
            (2, Function, 3, 1, 2),
            (ROOT, Interrupt, 0, 0, 0),
            (6, Function, 1, 1, 3),
        ],
    );
    assert_eq!(
        shown(&a, &b),
        [
            "[interrupt] queue: 0→3 of 0→3",
            "[interrupt]: 0→0 of 0→3",
            "server send free: 0→2 of 0→2",
            "server send xmit free: 4→5 of 4→5",
            "server send xmit: 50→40 of 54→45",
            "server send: 10→17 of 64→64 queue between@B 6",
            "server: 0→0 of 64→64",
        ]
    );
}

/// A function with substantial work of its own is not folded.
#[test]
fn what_does_something_of_its_own_is_not_passed_through() {
    use PathKind::{Function, Thread};
    let names = ["send", "queue", "xmit"];
    let a = profile(&names, &[(ROOT, Thread, 0, 0, 0), (0, Function, 0, 5, 10), (1, Function, 2, 5, 50)]);
    let b = profile(
        &names,
        &[(ROOT, Thread, 0, 0, 0), (0, Function, 0, 5, 11), (1, Function, 1, 5, 41), (2, Function, 2, 5, 40)],
    );
    assert_eq!(
        shown(&a, &b),
        [
            "server send queue xmit: 0→40 of 0→40",
            "server send queue: 0→41 of 0→81",
            "server send xmit: 50→0 of 50→0",
            "server send: 10→11 of 60→92",
            "server: 0→0 of 60→92",
        ]
    );
}

#[test]
fn the_way_back_to_user_code_is_the_kernels() {
    use PathKind::{Function, Thread, User};
    let a = profile(&["a"], &[(ROOT, Thread, 0, 0, 0), (0, Function, 0, 5, 10), (0, User, 0, 0, 100)]);
    let mut b = a.clone();
    b.tables.regions[0].kernel_instructions = Instructions(13);
    b.tables.regions[0].user_instructions = Instructions(97);
    assert_eq!(
        shown(&a, &b),
        ["[way back to user code]: 0→3 of 0→3", "server a: 10→10 of 10→10", "server: 0→0 of 10→10"]
    );
}

#[test]
fn what_is_not_known_is_not_printed() {
    use PathKind::{Function, Thread};
    let whole = profile(&["a"], &[(ROOT, Thread, 0, 0, 0), (0, Function, 0, 5, 10)]);
    let refused = |other: &Profile| document(&whole, other, &options()).err().unwrap().to_string();
    let mut other = whole.clone();
    other.tables.regions[0].kernel_instructions = Instructions(11);
    assert_eq!(
        refused(&other),
        "the parts of the difference sum to 10 ns and not to 11 ns: please report this"
    );
    let mut other = whole.clone();
    other.tables.regions[0].operations = 0;
    assert!(refused(&other).starts_with("no operations were counted"));
    let mut other = whole.clone();
    other.manifest.exact = false;
    assert!(refused(&other).starts_with("profile p is not exact"));
}

const NAMES: [&str; 6] = ["a", "b", "b.isra.0", "c", "d", "e"];

fn any_profile() -> impl Strategy<Value = Profile> {
    let paths = prop::collection::vec((any::<u32>(), 0..6usize, 0..9u32, 0..3u64, 0..50u64), 0..60);
    (paths, 1..NAMES.len()).prop_map(|(paths, known)| {
        let node = |(at, (parent, kind, function, calls, net)): (usize, (u32, usize, u32, u64, u64))| {
            let parent = if at == 0 || parent % 5 == 0 { ROOT } else { parent % at as u32 };
            (parent, PathKind::ALL[kind], function % known as u32, calls, net)
        };
        let paths: Vec<PathRow> = paths.into_iter().enumerate().map(node).collect();
        // Another kernel has other functions.
        profile(&NAMES[NAMES.len() - known..], &paths)
    })
}

proptest! {
    #[test]
    fn paths_sum_to_the_path_length(a in any_profile(), b in any_profile()) {
        let found = parsed(&a, &b);
        prop_assert_eq!(pair(&found["rest"]), [0, 0]);
        let rows = found["paths"].as_array().unwrap();
        let within: BTreeMap<Vec<&str>, [i64; 2]> = rows.iter().map(|row| (names(row), pair(&row["within"]))).collect();
        let known: BTreeSet<Vec<&str>> = within.keys().cloned().collect();
        prop_assert_eq!(known.len(), rows.len(), "a path is one row");
        let (mut sums, mut roots) = ([0; 2], [0; 2]);
        let mut below: BTreeMap<Vec<&str>, [i64; 2]> = BTreeMap::new();
        for row in rows {
            let (path, own, all) = (names(row), pair(&row["instructions"]), pair(&row["within"]));
            let above = &path[..path.len() - 1];
            prop_assert!(above.is_empty() || known.contains(above));
            let to = if above.is_empty() { &mut roots } else { below.entry(above.to_vec()).or_default() };
            for side in 0..2 {
                sums[side] += own[side];
                to[side] += all[side];
            }
        }
        for row in rows {
            let (own, all) = (pair(&row["instructions"]), pair(&row["within"]));
            let below = below.get(&names(row)).copied().unwrap_or_default();
            prop_assert_eq!(all, [own[0] + below[0], own[1] + below[1]]);
        }
        let whole = [&a, &b].map(|profile| profile.tables.regions[0].kernel_instructions.get() as i64);
        prop_assert_eq!((sums, roots), (whole, whole));
        prop_assert!(document(&a, &b, &options()).is_ok());
    }

    #[test]
    fn a_profile_is_as_long_as_itself(a in any_profile()) {
        for row in parsed(&a, &a)["paths"].as_array().unwrap() {
            let (own, all) = (pair(&row["instructions"]), pair(&row["within"]));
            prop_assert_eq!((own[0], all[0]), (own[1], all[1]));
            prop_assert!(row["parts"].as_array().unwrap().is_empty());
        }
    }
}
