//! Difference of two kernels of which one has inlined functions that the other has not.

use crate::sample::{document_json, document_text};
use kerntune_profile::{
    Address, FunctionIndex, FunctionStats, Instructions, KernelId, Manifest, PathKind, PathNode, Profile,
    RegionStats, Symbol, Tables, Ticks,
};
use kerntune_report::diff::{self, DiffOptions, InlinedFunctions};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Path from the thread's root, `a b c`, with the calls and the self time at its end.
type PathLine = (&'static str, u64, u64);

/// Creates the profile of a kernel with these functions and paths.
fn profile(kernel: &str, symbols: &[&str], lines: &[PathLine]) -> Profile {
    let kernel = KernelId { id: kernel.into(), label: kernel.into(), version: "6.12".into() };
    let mut tables = Tables::default();
    for (at, name) in symbols.iter().enumerate() {
        tables.symbols.push(Symbol {
            function: FunctionIndex(at as u32),
            name: name.to_string(),
            address: Address(at as u64),
            size: 1,
            file: None,
            module: None,
        });
    }
    let node = |parent: u32, at: usize, kind: PathKind, function: FunctionIndex| PathNode {
        path: at as u32,
        parent,
        kind,
        comm: if kind == PathKind::Thread { "t".into() } else { String::new() },
        function,
        ..PathNode::default()
    };
    tables.paths.push(node(PathNode::ROOT, 0, PathKind::Thread, FunctionIndex::NONE));
    let mut found: HashMap<String, u32> = HashMap::new();
    for (path, calls, net) in lines {
        let (mut parent, mut whole) = (0, String::new());
        for name in path.split(' ') {
            whole = format!("{whole} {name}");
            let index = symbols.iter().position(|symbol| *symbol == name).expect(name);
            parent = *found.entry(whole.clone()).or_insert_with(|| {
                let at = tables.paths.len();
                tables.paths.push(node(parent, at, PathKind::Function, FunctionIndex(index as u32)));
                at as u32
            });
        }
        let end = &mut tables.paths[parent as usize];
        end.calls += calls;
        end.self_ticks.0 += net;
    }
    for (at, _) in symbols.iter().enumerate() {
        let function = FunctionIndex(at as u32);
        let rows = || tables.paths.iter().filter(|row| row.function == function);
        if rows().next().is_none() {
            continue;
        }
        let (calls, net) = (rows().map(|row| row.calls).sum(), rows().map(|row| row.self_ticks.0).sum());
        tables.functions.push(FunctionStats {
            function,
            calls,
            ended: calls,
            self_ticks: Ticks(net),
            ended_self_ticks: Ticks(net),
            total_ticks: Ticks(net),
            max_ticks: Ticks(net),
            slowest_ticks: Ticks(net),
            ..FunctionStats::default()
        });
    }
    let busy: u64 = lines.iter().map(|(_, _, net)| net).sum();
    tables.regions.push(RegionStats {
        name: "all".into(),
        elapsed_ticks: Ticks(busy),
        busy_ticks: Ticks(busy),
        operations: 100,
        kernel_instructions: Instructions(busy),
        ..RegionStats::default()
    });
    let mut manifest = Manifest::new("p", kernel, "w", "emulator");
    manifest.capture.functions = true;
    Profile { manifest, tables }
}

fn document(one: &Profile, other: &Profile, options: &DiffOptions) -> Value {
    document_json(diff::document(one, other, options))
}

/// Lists the moves as `function -> into (kernel, why): self calls`.
fn shown(one: &Profile, other: &Profile, inlined: [Option<&InlinedFunctions>; 2]) -> Vec<String> {
    let options = DiffOptions { inlined: inlined.map(|table| table.cloned()), ..DiffOptions::default() };
    let json = document(one, other, &options);
    let line = |moved: &Value| {
        let word = |field: &str| moved[field].as_str().unwrap().to_string();
        format!(
            "{} -> {} ({}, {}): {} {}",
            word("function"),
            word("into"),
            word("inlined_in"),
            word("known_by"),
            moved["self"],
            moved["calls"]
        )
    };
    json["moved"].as_array().unwrap().iter().map(line).collect()
}

/// Lists the paths of both by name, as `a b: self self`.
fn paths(one: &Profile, other: &Profile) -> Vec<String> {
    let json = document(one, other, &DiffOptions { paths: true, ..DiffOptions::default() });
    let line = |row: &Value| {
        let names: Vec<&str> =
            row["path"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        format!("{}: {} {}", names.join(" "), row["self"][0], row["self"][1])
    };
    let mut lines: Vec<String> = json["rows"].as_array().unwrap().iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn a_function_without_a_symbol_counts_as_its_caller() {
    let one = profile("a", &["f", "g", "h"], &[("f", 9, 50), ("f g", 9, 30), ("f g h", 9, 10)]);
    let other = profile("b", &["f", "h"], &[("f", 9, 78), ("f h", 9, 10)]);
    assert_eq!(shown(&one, &other, [None, None]), ["g -> f (B, no-symbol): [30,0] [9,0]"]);
    assert_eq!(paths(&one, &other), ["t f h: 10 10", "t f: 80 78", "t: 0 0"]);
    assert_eq!(shown(&other, &one, [None, None]), ["g -> f (A, no-symbol): [0,30] [0,9]"]);
}

#[test]
fn a_caller_that_calls_less_has_inlined_the_rest() {
    let symbols = ["f", "g", "k"];
    let one = profile("a", &symbols, &[("f", 100, 50), ("f g", 300, 90), ("k", 9, 1), ("k g", 5, 7)]);
    let other = profile("b", &symbols, &[("f", 100, 120), ("f g", 3, 2), ("k", 9, 1), ("k g", 5, 7)]);
    assert_eq!(shown(&one, &other, [None, None]), ["g -> f (B, fewer-calls): [90,2] [300,3]"]);
    // Few calls, or few of many, may differ by chance.
    for (calls, same) in [(12, true), (280, true), (200, false)] {
        let other = profile("b", &symbols, &[("f", 100, 50), ("f g", calls, 90)]);
        let base =
            profile("a", &symbols, &[("f", 100, 50), ("f g", if same && calls < 20 { 1 } else { 300 }, 90)]);
        assert_eq!(shown(&base, &other, [None, None]).is_empty(), same, "{calls}");
    }
    // The caller itself ran less.
    let other = profile("b", &symbols, &[("f", 50, 25), ("f g", 150, 45)]);
    assert_eq!(shown(&one, &other, [None, None]), Vec::<String>::new());
    // The caller ran often without the callee that it had in its few runs in the other kernel.
    let [often, seldom] = [("a", vec![("f", 60, 30)]), ("b", vec![("f", 6, 3), ("f g", 6, 40)])]
        .map(|(kernel, lines)| profile(kernel, &symbols, &lines));
    assert_eq!(shown(&often, &seldom, [None, None]), Vec::<String>::new());
    assert_eq!(shown(&seldom, &often, [None, None]), Vec::<String>::new());
}

#[test]
fn line_tables_have_the_last_word() {
    let symbols = ["f", "g"];
    let one = profile("a", &symbols, &[("f", 100, 50), ("f g", 300, 9000)]);
    let other = profile("b", &symbols, &[("f", 100, 120)]);
    let table = |names: &[&str]| -> InlinedFunctions {
        BTreeMap::from([("f".to_string(), names.iter().map(|name| name.to_string()).collect())])
    };
    let (with, without) = (table(&["g"]), table(&["other"]));
    assert_eq!(shown(&one, &other, [None, Some(&with)]), ["g -> f (B, line-tables): [9000,0] [300,0]"]);
    assert!(shown(&one, &other, [None, Some(&without)]).is_empty(), "it was not called");

    // A function that only returns leaves no instruction that a line table could name.
    let one = profile("a", &symbols, &[("f", 100, 50), ("f g", 300, 600)]);
    let moved = ["g -> f (B, fewer-calls): [600,0] [300,0]"];
    assert_eq!(shown(&one, &other, [None, Some(&without)]), moved);
    // The other kernel calls the function, so line tables would show it.
    let other = profile("b", &symbols, &[("f", 100, 120), ("f g", 20, 40)]);
    assert!(shown(&one, &other, [None, Some(&without)]).is_empty());
}

#[test]
fn a_frame_that_one_kernel_lost_is_between_and_not_inlined_twice() {
    let symbols = ["f", "m", "g"];
    let one = profile("a", &symbols, &[("f", 99, 50), ("f m", 99, 5), ("f m g", 99, 30)]);
    let other = profile("b", &symbols, &[("f", 99, 54), ("f g", 99, 30)]);
    assert_eq!(shown(&one, &other, [None, None]), ["m -> f (B, fewer-calls): [5,0] [99,0]"]);
    assert_eq!(paths(&one, &other), ["t f g: 30 30", "t f: 55 54", "t: 0 0"]);
}

#[test]
fn callers_come_before_what_they_call() {
    // f has inlined m, where m calls g; from k, m is called without g.
    let symbols = ["f", "k", "m", "g"];
    let one = profile(
        "a",
        &symbols,
        &[("f", 99, 1), ("f m", 99, 5), ("f m g", 99, 30), ("k", 60, 2), ("k m", 60, 3)],
    );
    let other = profile("b", &symbols, &[("f", 99, 6), ("f g", 99, 30), ("k", 60, 2), ("k m", 60, 3)]);
    assert_eq!(shown(&one, &other, [None, None]), ["m -> f (B, fewer-calls): [5,0] [99,0]"]);
}

/// ThinLTO inlines functions into callers of other files, and makes static ones global under a new
/// name; Propeller moves cold blocks into a `.cold` part. Neither changes the work done.
#[test]
fn names_and_pieces_that_thinlto_and_propeller_make_are_the_function_itself() {
    // Made global and called as before.
    let base = profile("a", &["f", "g"], &[("f", 100, 50), ("f g", 300, 90)]);
    let thin = profile("b", &["f", "g.llvm.8123"], &[("f", 100, 50), ("f g.llvm.8123", 300, 80)]);
    assert_eq!(shown(&base, &thin, [None, None]), Vec::<String>::new());
    assert_eq!(paths(&base, &thin), ["t f g: 90 80", "t f: 50 50", "t: 0 0"]);
    // Made global, since a caller in another file inlines it, in most places.
    let thin = profile("b", &["f", "g.llvm.8123"], &[("f", 100, 130), ("f g.llvm.8123", 3, 1)]);
    assert_eq!(shown(&base, &thin, [None, None]), ["g -> f (B, fewer-calls): [90,1] [300,3]"]);
    assert_eq!(paths(&base, &thin), ["t f: 140 131", "t: 0 0"]);
    // Split in two: a jump to the second part is neither a call nor a step of a path, and both
    // parts' callees belong to both.
    let base = profile("a", &["f", "h"], &[("f", 100, 50), ("f h", 40, 9)]);
    let split = profile(
        "b",
        &["f", "f.cold", "h"],
        &[("f", 100, 40), ("f f.cold", 20, 8), ("f f.cold h", 20, 4), ("f h", 20, 5)],
    );
    assert_eq!(shown(&base, &split, [None, None]), Vec::<String>::new());
    assert_eq!(paths(&base, &split), ["t f h: 9 9", "t f: 50 48", "t: 0 0"]);
    // Inlined into a caller of another file, whose cold part has the rare half of it.
    let base = profile("a", &["f", "g", "h"], &[("f", 100, 50), ("f g", 100, 30), ("f g h", 20, 9)]);
    let both =
        profile("b", &["f", "f.cold", "h"], &[("f", 100, 70), ("f f.cold", 20, 6), ("f f.cold h", 20, 9)]);
    assert_eq!(shown(&base, &both, [None, None]), ["g -> f (B, no-symbol): [30,0] [100,0]"]);
    assert_eq!(paths(&base, &both), ["t f h: 9 9", "t f: 80 76", "t: 0 0"]);
    // Split there, and called whole from elsewhere under its new name, with a cold part of its own.
    let base =
        profile("a", &["f", "k", "g"], &[("f", 99, 50), ("f g", 99, 30), ("k", 60, 5), ("k g", 60, 20)]);
    let thin = profile(
        "b",
        &["f", "k", "g.llvm.7", "g.llvm.7.cold"],
        &[("f", 99, 78), ("k", 60, 5), ("k g.llvm.7", 60, 15), ("k g.llvm.7 g.llvm.7.cold", 2, 4)],
    );
    assert_eq!(paths(&base, &thin), ["t f: 80 78", "t k g: 20 19", "t k: 5 5", "t: 0 0"]);
}

#[test]
fn a_function_that_is_said_to_be_from_two_files_is_one() {
    let mut one = profile("a", &["f", "g"], &[("f", 99, 50), ("f g", 99, 30)]);
    let mut other = profile("b", &["f", "g", "g"], &[("f", 99, 50), ("f g", 99, 31)]);
    let files = |profile: &mut Profile, files: &[&str]| {
        for (symbol, file) in profile.tables.symbols.iter_mut().zip(files) {
            symbol.file = Some(file.to_string());
        }
    };
    files(&mut one, &["a/f.c", "a/g.c"]);
    files(&mut other, &["a/f.c", "x/wrong.c", "y/wrong.c"]);
    // A third function of the name runs in the other kernel, so that only source files distinguish
    // them.
    let at = other.tables.paths.len() as u32;
    other.tables.paths.push(PathNode {
        path: at,
        function: FunctionIndex(2),
        self_ticks: Ticks(0),
        calls: 0,
        ..other.tables.paths[2].clone()
    });
    let rows = |as_compiled: bool| -> Vec<String> {
        let json = document(&one, &other, &DiffOptions { as_compiled, ..DiffOptions::default() });
        let rows = json["rows"].as_array().unwrap().iter().filter(|row| row["name"] == "g");
        let mut nets: Vec<String> = rows.map(|row| row["self"].to_string()).collect();
        nets.retain(|net| net != "[0,0]");
        nets.sort();
        nets
    };
    assert_eq!((rows(true), rows(false)), (vec!["[0,31]".into(), "[30,0]".into()], vec!["[30,31]".into()]));
}

#[test]
fn the_text_says_what_went_where() {
    let one = profile("a", &["f", "g", "h"], &[("f", 9, 50), ("f g", 9, 30), ("f g h", 9, 10)]);
    let other = profile("b", &["f", "h"], &[("f", 9, 78), ("f h", 9, 10)]);
    let text = document_text(diff::document(&one, &other, &DiffOptions::default()));
    let table = text.split_once("\n\n").unwrap().1;
    let expected = "\
net A  net B  net B - A    % of                    elapsed B - A
   ns     ns         ns  change  calls A  calls B             ns  function
   80     78         -2  100.00        9        9            +28  f  with g
   10     10          0    0.00        9        9              0  h
   90     88         -2  100.00                                   total

Inlined in one kernel and not in the other: each counts as its caller in both, and is in its row above
net A  net B                    inlined
   ns     ns  calls A  calls B  in       known by   function, and what it counts as
   30      0        9        0  B        no symbol  g -> f
--as-compiled keeps the functions of each kernel as compiled
";
    assert_eq!(table, expected);
    let as_compiled = DiffOptions { as_compiled: true, ..DiffOptions::default() };
    let text = document_text(diff::document(&one, &other, &as_compiled));
    assert!(text.contains("   30      0        -30") && !text.contains("Inlined"), "{text}");
}

#[test]
fn one_kernel_inlines_nothing_that_it_does_not_inline() {
    let one = profile("a", &["f", "g"], &[("f", 100, 50), ("f g", 300, 90)]);
    let other = profile("a", &["f", "g"], &[("f", 100, 50)]);
    assert!(shown(&one, &other, [None, None]).is_empty());
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn any_profile(kernel: &'static str) -> impl Strategy<Value = Profile> {
    let path = proptest::collection::vec(0..NAMES.len(), 1..7);
    let lines = proptest::collection::vec((path, 0..400u64, 0..1_000u64), 0..40);
    let has = proptest::collection::vec(any::<bool>(), NAMES.len());
    (lines, has).prop_map(move |(lines, has)| {
        let kept: Vec<(String, u64, u64)> = lines
            .into_iter()
            .filter(|(path, ..)| path.iter().all(|at| has[*at]))
            .map(|(path, calls, net)| {
                (path.iter().map(|at| NAMES[*at]).collect::<Vec<_>>().join(" "), calls, net)
            })
            .collect();
        let symbols: Vec<&str> = (0..NAMES.len()).filter(|at| has[*at]).map(|at| NAMES[at]).collect();
        // Leaked because the test's lines are static: some kilobytes.
        let lines: Vec<PathLine> =
            kept.into_iter().map(|(path, calls, net)| (&*path.leak(), calls, net)).collect();
        profile(kernel, &symbols, &lines)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_moves_is_neither_lost_nor_doubled(one in any_profile("a"), other in any_profile("b")) {
        // The difference itself checks that the rows sum to the whole.
        let by_function = document(&one, &other, &DiffOptions::default());
        let by_path = document(&one, &other, &DiffOptions { paths: true, ..DiffOptions::default() });
        // Rows and paths agree on each function.
        let sums = |json: &Value| -> BTreeMap<String, [i64; 4]> {
            let mut sums: BTreeMap<String, [i64; 4]> = BTreeMap::new();
            for row in json["rows"].as_array().unwrap().iter().filter(|row| row["calls"].is_array()) {
                let sum = sums.entry(row["name"].as_str().unwrap().to_string()).or_default();
                for (at, figure) in [&row["self"][0], &row["self"][1], &row["calls"][0], &row["calls"][1]]
                    .into_iter()
                    .enumerate()
                {
                    sum[at] += figure.as_i64().unwrap();
                }
            }
            sums.retain(|_, sum| *sum != [0; 4]);
            sums
        };
        prop_assert_eq!(sums(&by_function), sums(&by_path));
        let compiled = document(&one, &other, &DiffOptions { as_compiled: true, ..DiffOptions::default() });
        prop_assert_eq!(&compiled["change"], &by_function["change"]);
        prop_assert_eq!(compiled["moved"].as_array().unwrap().len(), 0);
    }
}
