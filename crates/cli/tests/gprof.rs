//! The call graph of a live kernel against GNU gprof, and a program's `gmon.out` through the
//! command line. Needs gcc and binutils; the kernel is shared as in `exact.rs`.

#[path = "../../convert/tests/support/gprof.rs"]
mod gprof;
mod support;

use kerntune_analyze::graph::{CallGraph, Propagation};
use kerntune_profile::Profile;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// Symbols of the export with their addresses in their names, as static functions share names; and
/// the name of each function of the profile.
fn unique(symbols: &str, profile: &Profile) -> (String, HashMap<usize, String>) {
    let mut by_place: HashMap<(u64, String), usize> = HashMap::new();
    let mut others: HashMap<String, usize> = HashMap::new();
    for symbol in &profile.tables.symbols {
        let name = symbol.name.replace(char::is_whitespace, "_");
        let at = symbol.function.get() as usize;
        match symbol.module.is_none() && symbol.size > 0 {
            true => by_place.insert((symbol.address.get(), name), at),
            false => others.insert(name, at),
        };
    }
    let mut names = HashMap::new();
    let mut text = String::new();
    for line in symbols.lines() {
        let (address, name) = line.split_once(" T ").unwrap();
        let place = (u64::from_str_radix(address, 16).unwrap(), name.to_string());
        let function = by_place.get(&place).or_else(|| others.get(name));
        let unique = if function.is_some() { format!("{name}@{address}") } else { name.to_string() };
        text += &format!("{address} T {unique}\n");
        function.map(|function| names.insert(*function, unique));
    }
    (text, names)
}

#[test]
fn a_live_kernels_graph_is_gprofs() {
    let kernel = support::base_kernel();
    let recorded = support::json(["record", "--kernel", &kernel, "--workload", "rr", "--json"]);
    let id = recorded["profile"].as_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let gmon = directory.path().join("gmon.out");
    support::run(["export", "gmon", id, "--output", gmon.to_str().unwrap()]);
    let profile = Profile::load(&support::work_dir().join("profiles").join(id)).unwrap();
    let symbols = std::fs::read_to_string(directory.path().join("gmon.out.symbols")).unwrap();
    let (symbols, names) = unique(&symbols, &profile);
    let unique = directory.path().join("unique");
    std::fs::write(&unique, symbols).unwrap();
    let vmlinux = support::work_dir().join("kernels").join(&kernel).join("vmlinux");
    let printed = gprof::parse(&gprof::gprof(&[Path::new("-S"), &unique, &vmlinux, &gmon]));
    let graph = CallGraph::of_tables(&profile.tables, |_| true, Propagation::Counts).unwrap();
    let name = |at: Option<usize>| at.map_or("<spontaneous>".into(), |at| names[&at].clone());
    let compared = gprof::compare(&graph, &printed, name, 1e3);
    println!("{compared:?}");
    // Whether a function calls itself is the kernel's business; the program below does.
    assert!(compared.functions > 500 && compared.cycles > 0, "{compared:?}");

    // What was measured: everything that nothing called has, together, all time of all calls.
    let exact = CallGraph::of_tables(&profile.tables, |_| true, Propagation::Exact).unwrap();
    assert_eq!(exact.cycles.len(), graph.cycles.len());
    let top: u64 = exact.arcs.iter().filter(|arc| arc.caller.is_none()).map(|arc| arc.total_ns()).sum();
    assert_eq!(top, exact.total_ns);
    for cycle in &exact.cycles {
        let members: Vec<_> = cycle.members.iter().map(|at| exact.functions[*at].name.as_str()).collect();
        println!("cycle of {} ns: {members:?}", cycle.total_ns());
    }
    for function in exact.functions.iter().filter(|function| function.self_calls > 0) {
        println!("{} calls itself {} times", function.name, function.self_calls);
    }
}

#[test]
fn a_programs_gmon_out_becomes_a_profile() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let source = "static volatile long sink;\n\
         __attribute__((noinline)) void leaf(void) { for (int i = 0; i < 100000; i++) sink += i; }\n\
         __attribute__((noinline)) void again(int n) { leaf(); if (n) again(n - 1); sink++; }\n\
         int main(void) { for (int i = 0; i < 100; i++) again(9); return 0; }\n";
    std::fs::write(dir.join("program.c"), source).unwrap();
    let build = ["-O1", "-pg", "-no-pie", "-fno-optimize-sibling-calls", "program.c", "-o", "program"];
    assert!(Command::new("gcc").args(build).current_dir(dir).status().unwrap().success());
    assert!(Command::new("./program").current_dir(dir).status().unwrap().success());
    let (image, gmon) = (dir.join("program"), dir.join("gmon.out"));
    let kerntune = |arguments: &[&str]| {
        let output = support::kerntune(arguments).env("KERNTUNE_DIR", dir.join("work")).output().unwrap();
        assert!(output.status.success(), "{}", support::said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let summary = kerntune(&["import", "gmon", image.to_str().unwrap(), gmon.to_str().unwrap(), "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!((&summary["exact"], &summary["workload"]), (&false.into(), &"gmon".into()));
    let graph = kerntune(&["report", "latest", "graph", "--function", "again"]);
    println!("{graph}\n{}", kerntune(&["report", "latest", "flat"]));
    assert!(graph.contains("100+900") && graph.contains("1,000/1,000"), "{graph}");
    assert!(kerntune(&["report", "latest", "functions"]).contains("leaf"));
    let exact = ["report", "latest", "graph", "--propagate", "exact"];
    let mut command = support::kerntune(exact);
    support::fails(command.env("KERNTUNE_DIR", dir.join("work")), 2, &["counted but not timed"]);
    let mut command = support::kerntune(["import", "gmon", gmon.to_str().unwrap(), image.to_str().unwrap()]);
    support::fails(command.env("KERNTUNE_DIR", dir.join("work")), 2, &["is no ELF file"]);
}
