//! Comparison with lld, which implements C3 (`hfsort`) and cache-directed sort independently.
//!
//! An assembly file with one section per function is assembled with gcc and linked with a call
//! graph. The order of the symbols in the result is lld's. `KERNTUNE_LD_LLD` names a linker other
//! than `ld.lld-19`.

use kerntune_layout::order::{
    c3, cdsort, C3Config, CallGraph, CdsortConfig, GraphArc, GraphFunction, OrderAlgorithm, Placement,
    PlacementOrder,
};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "support/synthetic.rs"]
mod synthetic;

/// Directory of this test run, removed at the end.
struct ScratchDir(PathBuf);

impl ScratchDir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kerntune-lld-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Self(path)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // A leftover in the temporary directory is no reason to fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the linker, without which this test cannot run.
fn linker() -> String {
    let named = std::env::var("KERNTUNE_LD_LLD").ok();
    let candidates = named.into_iter().chain(["ld.lld-19".to_owned(), "ld.lld".to_owned()]);
    let found = candidates.into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    found.expect("neither ld.lld-19 nor ld.lld runs here; `scripts/setup` installs lld-19")
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Assembles an object with a section and a symbol `f<index>` for each function.
fn assemble(graph: &CallGraph, directory: &Path) -> PathBuf {
    let mut text = String::new();
    for (index, GraphFunction { size, alignment, .. }) in graph.functions().iter().enumerate() {
        writeln!(
            text,
            ".section .text.f{index},\"ax\",@progbits\n.balign {alignment}\n.globl f{index}\n\
             .type f{index},@function\nf{index}:\n.skip {size},0x90\n.size f{index},{size}"
        )
        .expect("text");
    }
    let (source, object) = (directory.join("functions.s"), directory.join("functions.o"));
    std::fs::write(&source, text).expect("written");
    run(Command::new("gcc").arg("-c").arg(&source).arg("-o").arg(&object));
    object
}

/// Returns the order in which lld places the functions of `graph`.
fn order_of_lld(graph: &CallGraph, object: &Path, directory: &Path, algorithm: &str) -> PlacementOrder {
    let mut calls = String::new();
    for arc in graph.arcs() {
        writeln!(calls, "f{} f{} {}", arc.caller, arc.callee, arc.weight).expect("text");
    }
    let (list, linked) = (directory.join("calls"), directory.join(format!("linked-{algorithm}")));
    std::fs::write(&list, calls).expect("written");
    run(Command::new(linker())
        .args(["-e", "f0", "--noinhibit-exec"])
        .arg(format!("--call-graph-profile-sort={algorithm}"))
        .arg(format!("--call-graph-ordering-file={}", list.display()))
        .arg(object)
        .arg("-o")
        .arg(&linked));
    let symbols = run(Command::new("nm").arg("-n").arg(&linked));
    let names = symbols.lines().filter_map(|line| line.split_whitespace().nth(2)?.strip_prefix('f'));
    let order: Vec<usize> = names.filter_map(|name| name.parse().ok()).collect();
    assert_eq!(order.len(), graph.functions().len(), "lld kept each function");
    PlacementOrder::new(order).expect("each function once")
}

/// Graphs: seed, functions, arcs, share of hot functions, alignment.
const GRAPHS: [(u64, usize, usize, f64, u64); 6] = [
    (1, 300, 600, 0.5, 1),
    (2, 1000, 5000, 0.3, 1),
    (3, 2000, 4000, 0.6, 1),
    (4, 4000, 30_000, 0.25, 1),
    (5, 500, 8000, 0.9, 1),
    // As in a kernel; lld takes sizes without padding.
    (6, 1500, 6000, 0.4, 16),
];

fn aligned(graph: &CallGraph, alignment: u64) -> CallGraph {
    let functions = graph.functions().iter().map(|function| function.aligned(alignment)).collect();
    CallGraph::new(functions, graph.arcs().to_vec()).expect("a graph")
}

/// Returns the share of hot functions with the same predecessor in both orders.
fn same_predecessor(one: &PlacementOrder, other: &PlacementOrder, hot: usize) -> f64 {
    let mut before = vec![usize::MAX; other.as_slice().len()];
    other.as_slice().windows(2).for_each(|pair| before[pair[1]] = pair[0]);
    let same = one.as_slice()[..hot].windows(2).filter(|pair| before[pair[1]] == pair[0]).count();
    same as f64 / (hot - 1) as f64
}

#[test]
fn orders_score_as_well_as_llds_under_every_objective_of_theirs() {
    println!(
        "graph; algorithm; ours; lld's: expected same page (4 KiB), locality, call distance; order shared"
    );
    for (seed, functions, arcs, hot_share, alignment) in GRAPHS {
        let scratch = ScratchDir::new(&format!("graph-{seed}"));
        let graph = aligned(&synthetic::kernel_like(seed, functions, arcs, hot_share), alignment);
        let object = assemble(&graph, &scratch.0);
        let [hfsort, cds] = ["hfsort", "cdsort"].map(|name| order_of_lld(&graph, &object, &scratch.0, name));
        let ours = (c3(&graph, &C3Config::default()), cdsort(&graph, &CdsortConfig::default()));
        let ph = OrderAlgorithm::PettisHansen.order(&graph);
        let hot = (functions as f64 * hot_share) as usize;
        let score = |order: &PlacementOrder| {
            let placement = Placement::new(&graph, order).expect("a layout");
            let same_page = placement.expected_same_page_weight(4096);
            (same_page, placement.cache_locality(&CdsortConfig::default()).total, placement.call_distance())
        };
        println!("{seed}; input; {:?}", score(&PlacementOrder::of_input(&graph)));
        println!("{seed}; pettis-hansen; {:?}", score(&ph));
        for (name, ours, theirs) in [("c3", &ours.0, &hfsort), ("cdsort", &ours.1, &cds)] {
            let shared = same_predecessor(ours, theirs, hot);
            println!("{seed}; {name}; {:?}; {:?}; {:.1} %", score(ours), score(theirs), 100.0 * shared);
        }
        let (own, theirs) = (score(&ours.0), score(&hfsort));
        assert!(own.0 >= 0.99 * theirs.0, "graph {seed}, c3: {own:?}, lld {theirs:?}");
        let (own, theirs) = (score(&ours.1), score(&cds));
        assert!(own.1 >= 0.99 * theirs.1, "graph {seed}, cdsort: {own:?}, lld {theirs:?}");
    }
}

/// Renumbers the functions by their first appearance in the arcs, as lld does, and makes all
/// weights and sizes different. lld and kerntune then break the remaining ties in the same way.
fn in_order_of_appearance(graph: &CallGraph) -> CallGraph {
    let mut numbers = vec![usize::MAX; graph.functions().len()];
    let mut seen = Vec::new();
    let ends = graph.arcs().iter().flat_map(|arc| [arc.caller, arc.callee]);
    for function in ends.chain(0..graph.functions().len()) {
        if numbers[function] == usize::MAX {
            numbers[function] = seen.len();
            seen.push(function);
        }
    }
    let arcs = graph.arcs().iter().zip(0..);
    let arcs: Vec<GraphArc> = arcs
        .map(|(arc, i)| GraphArc::new(numbers[arc.caller], numbers[arc.callee], arc.weight * 128 + i % 128))
        .collect();
    let mut functions: Vec<GraphFunction> = seen
        .iter()
        .zip(0..)
        .map(|(&function, i)| GraphFunction::new(graph.functions()[function].size * 8 + i % 8, 0))
        .collect();
    arcs.iter().for_each(|arc| functions[arc.callee].weight += arc.weight);
    CallGraph::new(functions, arcs).expect("a graph")
}

#[test]
fn where_the_rules_fix_the_order_it_is_llds() {
    for seed in 0..8 {
        let scratch = ScratchDir::new(&format!("fixed-{seed}"));
        let graph = in_order_of_appearance(&synthetic::kernel_like(100 + seed, 60, 100, 0.8));
        let object = assemble(&graph, &scratch.0);
        for (name, algorithm) in [("hfsort", OrderAlgorithm::C3), ("cdsort", OrderAlgorithm::Cdsort)] {
            let theirs = order_of_lld(&graph, &object, &scratch.0, name);
            assert_eq!(algorithm.order(&graph), theirs, "graph {seed}, {name}");
        }
    }
}
