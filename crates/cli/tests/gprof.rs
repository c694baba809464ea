//! Compares the call graph of a recorded kernel with GNU gprof, and imports a program's `gmon.out`.
//! Needs gcc and binutils; the kernel is shared as in `exact.rs`.

use crate::support::{self, gprof, unique};
use kerntune_analyze::graph::{ArcChanges, AutoCut, CallGraph, Propagation};
use kerntune_kernel::{CodeCalls, Symbols, UnresolvedCalls};
use kerntune_profile::Profile;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use unique::unique;

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
    let named = directory.path().join("unique");
    std::fs::write(&named, symbols).unwrap();
    let vmlinux = support::work_dir().join("kernels").join(&kernel).join("vmlinux");
    let printed = gprof::parse(&gprof::gprof(&[Path::new("-S"), &named, &vmlinux, &gmon]));
    let graph = CallGraph::of_tables(&profile.tables, |_| true, Propagation::Counts).unwrap();
    let name = |at: Option<usize>| at.map_or("<spontaneous>".into(), |at| names[&at].clone());
    let compared = gprof::compare(&graph, &printed, name, 1e3);
    println!("{compared:?}");
    // A kernel may have no recursive function; the program below does.
    assert!(compared.functions > 500 && compared.cycles > 0, "{compared:?}");

    // As measured: the functions that nothing called have all time of all calls.
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

/// gprof's `-k` and ours must remove the same arc and leave the same times.
#[test]
fn what_is_cut_is_cut_as_gprof_cuts_it() {
    let kernel = support::base_kernel();
    let recorded = support::json(["record", "--kernel", &kernel, "--workload", "rr", "--json"]);
    let id = recorded["profile"].as_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let gmon = directory.path().join("gmon.out");
    support::run(["export", "gmon", id, "--output", gmon.to_str().unwrap()]);
    let profile = Profile::load(&support::work_dir().join("profiles").join(id)).unwrap();
    let symbols = std::fs::read_to_string(directory.path().join("gmon.out.symbols")).unwrap();
    let (symbols, names) = unique(&symbols, &profile);
    let named = directory.path().join("unique");
    std::fs::write(&named, symbols).unwrap();
    let vmlinux = support::work_dir().join("kernels").join(&kernel).join("vmlinux");
    let auto = ArcChanges { auto: Some(AutoCut { max_percent: 100 }), ..ArcChanges::default() };
    let of = |propagation, changes: &ArcChanges| {
        CallGraph::of_tables_with(&profile.tables, |_| true, propagation, changes).unwrap()
    };
    let plain = of(Propagation::Counts, &ArcChanges::default());
    let graph = of(Propagation::Counts, &auto);
    let cut: BTreeSet<(usize, usize)> = graph.cuts().map(|arc| (arc.caller.unwrap(), arc.callee)).collect();
    assert!(!plain.cycles.is_empty() && graph.cycles.is_empty() && !cut.is_empty());
    // gprof removes an arc from all figures.
    let mut command = Command::new("gprof");
    command.arg("-b");
    for (from, to) in &cut {
        command.arg("-k").arg(format!("{}/{}", names[from], names[to]));
    }
    let output = command.arg("-S").args([&named, &vmlinux, &gmon]).output().unwrap();
    let printed = gprof::parse(&String::from_utf8(output.stdout).unwrap());
    assert!(printed.cycles.is_empty(), "{:?}", printed.cycles.keys());
    for (at, function) in graph.functions.iter().enumerate().filter(|(_, function)| !function.is_idle()) {
        // A function that was called only over removed arcs has no entry if it has no time; gprof
        // counts it anyway.
        let Some(entry) = printed.entries.get(&names[&at]) else { continue };
        let theirs = (entry.line.own, entry.line.descendants);
        let ours = (function.self_ns as f64 / 1e3, function.descendants_ns as f64 / 1e3);
        let same = |a: f64, b: f64| (a - b).abs() <= 0.011 + 2e-6 * b;
        assert!(same(ours.0, theirs.0) && same(ours.1, theirs.1), "{}: {ours:?} {theirs:?}", names[&at]);
    }
    // As measured no time is lost: functions that nothing called, and removed arcs, have all time
    // together.
    let exact = of(Propagation::Exact, &auto);
    let top = exact.arcs.iter().filter(|arc| arc.caller.is_none() || arc.tie.is_cut());
    assert_eq!(top.map(|arc| arc.total_ns()).sum::<u64>(), exact.total_ns);
    let text = support::run(["report", id, "graph", "--cut", "auto:100", "--top", "1"]);
    let calls: u64 = graph.cuts().map(|arc| arc.calls).sum();
    println!("{text}");
    assert!(
        text.contains(&format!("Cut: {} arc", cut.len())) && text.contains("0 cycles are left"),
        "{text}"
    );
    let json = support::json(["report", id, "graph", "--cut", "auto:100", "--json"]);
    let told: u64 = json["cuts"].as_array().unwrap().iter().map(|cut| cut["calls"].as_u64().unwrap()).sum();
    assert_eq!(told, calls);
    let mut none = support::kerntune(["report", id, "graph", "--cut", "nobody_*/nothing"]);
    support::fails(&mut none, 2, &["nobody_*/nothing"]);
}

/// Direct calls and jumps between functions in the output of `objdump -d`: places by caller and
/// callee, and places without a target by caller.
type GprofListing = (BTreeMap<(usize, usize), (u32, u32)>, BTreeMap<usize, (u32, u32)>, BTreeSet<usize>);

fn objdump(vmlinux: &Path, symbols: &Symbols) -> GprofListing {
    let begins: HashMap<u64, usize> =
        symbols.functions().iter().enumerate().map(|(at, function)| (function.address, at)).collect();
    let mut shown = GprofListing::default();
    let mut child = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(vmlinux)
        .stdout(Stdio::piped())
        .spawn()
        .expect("objdump of binutils");
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some((address, text)) = line.split_once(":\t") else { continue };
        let Ok(address) = u64::from_str_radix(address.trim(), 16) else { continue };
        let words: Vec<&str> = text
            .split_whitespace()
            .skip_while(|word| {
                ["notrack", "bnd", "cs", "ds", "es", "ss", "fs", "gs", "repz", "data16"].contains(word)
                    || word.ends_with(",pt")
                    || word.ends_with(",pn")
            })
            .collect();
        let Some(mnemonic) = words.first() else { continue };
        if words.contains(&"(bad)") {
            // An instruction that this objdump does not know (`lkgs`), after which its output is
            // wrong.
            shown.2.extend(symbols.lookup(address).map(|owner| symbols.whole(owner)));
        }
        let is_call = mnemonic.starts_with("call");
        if !is_call && !mnemonic.starts_with('j') {
            continue;
        }
        let Some(owner) = symbols.lookup(address) else { continue };
        let caller = symbols.whole(owner);
        let place = |places: &mut (u32, u32)| match is_call {
            true => places.0 += 1,
            false => places.1 += 1,
        };
        let operand = words.get(1).copied().unwrap_or_default();
        if operand.starts_with('*') {
            if is_call || !operand.contains(',') {
                place(shown.1.entry(caller).or_default());
            }
            continue;
        }
        let Ok(target) = u64::from_str_radix(operand, 16) else { continue };
        let Some(&callee) = begins.get(&target) else { continue };
        if symbols.functions()[callee].part_of.is_some() || callee == caller && !is_call {
            continue;
        }
        place(shown.0.entry((caller, callee)).or_default());
    }
    assert!(child.wait().unwrap().success());
    shown
}

#[test]
fn what_the_code_has_is_what_objdump_shows() {
    let kernel = support::base_kernel();
    let vmlinux = support::work_dir().join("kernels").join(&kernel).join("vmlinux");
    let symbols = Symbols::load(&vmlinux).unwrap();
    let ours = CodeCalls::load(&vmlinux, &symbols).unwrap();
    let (direct, indirect, astray) = objdump(&vmlinux, &symbols);
    let name = |at: usize| symbols.functions()[at].name.as_str();
    // Thunks and trampolines are no callees; there are few kinds.
    let is_thunk = |at: usize| ["__x86_", "__SCT__"].iter().any(|begin| name(at).starts_with(begin));
    let theirs: BTreeMap<(usize, usize), (u32, u32)> =
        direct.into_iter().filter(|((_, callee), _)| !is_thunk(*callee)).collect();
    let found: BTreeMap<(usize, usize), (u32, u32)> =
        ours.calls.iter().map(|call| ((call.caller, call.callee), (call.calls, call.jumps))).collect();
    assert!(astray.len() <= 5, "{} functions that objdump cannot read", astray.len());
    let differs = |key: &&(usize, usize)| found.get(key) != theirs.get(key) && !astray.contains(&key.0);
    let mut different = found
        .keys()
        .chain(theirs.keys())
        .filter(differs)
        .map(|&(from, to)| (name(from), name(to), found.get(&(from, to)), theirs.get(&(from, to))));
    assert_eq!(different.next(), None);
    let sum =
        |part: fn(&(u32, u32)) -> u32| theirs.values().map(|places| u64::from(part(places))).sum::<u64>();
    println!("{} arcs, {} calls, {} jumps", theirs.len(), sum(|p| p.0), sum(|p| p.1));
    assert!(theirs.len() > 30_000);
    for (at, places) in indirect.iter().filter(|(at, _)| !astray.contains(at)) {
        let UnresolvedCalls { calls, jumps, .. } = ours.unknown.get(at).copied().unwrap_or_default();
        assert!(calls >= places.0 && jumps >= places.1, "{}: {places:?}, {calls} {jumps}", name(*at));
    }
    let count =
        |part: fn(&UnresolvedCalls) -> u32| ours.unknown.values().map(|u| u64::from(part(u))).sum::<u64>();
    println!(
        "{} indirect calls, {} jumps, {} patched",
        count(|u| u.calls),
        count(|u| u.jumps),
        count(|u| u.patched)
    );
    // Every recorded call that can be read from the code must be among the static calls.
    let recorded = support::json(["record", "--kernel", &kernel, "--workload", "rr", "--json"]);
    let id = recorded["profile"].as_str().unwrap();
    let text = support::run(["report", id, "graph", "--static", "--function", "tcp_v4_rcv"]);
    println!("{text}");
    assert!(
        text.contains("0/0") && text.contains("indirect call") && text.contains("Arcs in the code"),
        "{text}"
    );
    let json = support::json(["report", id, "graph", "--static", "--function", "tcp_v4_rcv", "--json"]);
    let entry = &json["entries"][0];
    let never = entry["children"].as_array().unwrap().iter().filter(|child| child["calls"] == 0).count();
    assert!(never > 10 && entry["unknown"]["calls"].as_u64().unwrap() > 0, "{entry}");
    let plain = support::json(["report", id, "graph", "--function", "tcp_v4_rcv", "--json"]);
    assert_eq!(plain["entries"][0]["descendants"], entry["descendants"]);
    // Like gprof's -c, such arcs form cycles: in a kernel nearly all functions become one.
    let bound = support::json(["report", id, "graph", "--static=cycles", "--json"]);
    let members = |entry: &serde_json::Value| entry["members"].as_array().map_or(0, Vec::len);
    let largest = bound["entries"].as_array().unwrap().iter().map(members).max();
    assert!(largest.unwrap() > 500, "{largest:?}");
    let other = std::env::current_exe().unwrap();
    let mut foreign =
        support::kerntune(["report", id, "graph", "--static", "--image", other.to_str().unwrap()]);
    support::fails(&mut foreign, 2, &["another build"]);
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
    support::fails(command.env("KERNTUNE_DIR", dir.join("work")), 2, &["is not an ELF file"]);
}

/// GNU gprof also finds calls in code (`-c`), on x86-64 only those to higher addresses.
#[test]
fn a_programs_code_has_what_gprof_finds_in_it_and_more() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let source = "static volatile long sink;\n#define ALONE __attribute__((noinline))\n\
         ALONE void early(void) { for (int i = 0; i < 100000; i++) sink += i; }\nALONE void late(void);\n\
         ALONE void middle(int n) { for (int i = 0; i < 300000; i++) sink += i; if (n > 100) late(); if (n > 200) early(); }\n\
         ALONE void late(void) { for (int i = 0; i < 100000; i++) sink += i; }\n\
         int main(int count, char **words) { (void)words; for (int i = 0; i < 50; i++) middle(count); early(); late(); return 0; }\n";
    std::fs::write(dir.join("program.c"), source).unwrap();
    let build = ["-O1", "-pg", "-no-pie", "-fno-pie", "-fno-toplevel-reorder", "program.c", "-o", "program"];
    assert!(Command::new("gcc").args(build).current_dir(dir).status().unwrap().success());
    assert!(Command::new("./program").current_dir(dir).status().unwrap().success());
    let (image, gmon) = (dir.join("program"), dir.join("gmon.out"));
    let printed = gprof::parse(&gprof::gprof(&[Path::new("-c"), &image, &gmon]));
    let theirs = &printed.entries["middle"].children;
    let line = &theirs["late"];
    assert_eq!((theirs.len(), line.calls, line.other), (1, 0, 1), "{theirs:?}");
    let kerntune = |arguments: &[&str]| {
        let output = support::kerntune(arguments).env("KERNTUNE_DIR", dir.join("work")).output().unwrap();
        assert!(output.status.success(), "{}", support::said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let image = image.to_str().unwrap();
    kerntune(&["import", "gmon", image, gmon.to_str().unwrap()]);
    let graph = ["report", "latest", "graph", "--function", "middle", "--static", "--image", image, "--json"];
    let ours: serde_json::Value = serde_json::from_str(&kerntune(&graph)).unwrap();
    let children = ours["entries"][0]["children"].as_array().unwrap();
    let of = |name: &str| children.iter().find(|child| child["name"] == name).unwrap();
    for name in ["late", "early"] {
        assert_eq!((&of(name)["calls"], &of(name)["total_calls"]), (&0.into(), &1.into()), "{children:?}");
    }
    let mut no_image = support::kerntune(["report", "latest", "graph", "--static"]);
    support::fails(no_image.env("KERNTUNE_DIR", dir.join("work")), 2, &["--image"]);
}

#[test]
fn calls_that_inlining_may_save_are_direct_calls_of_the_code() {
    let kernel = support::base_kernel();
    let vmlinux = support::work_dir().join("kernels").join(&kernel).join("vmlinux");
    let symbols = Symbols::load(&vmlinux).unwrap();
    let (direct, ..) = objdump(&vmlinux, &symbols);
    let name = |at: usize| symbols.functions()[at].name.as_str();
    let shown: BTreeSet<(&str, &str)> = direct
        .iter()
        .filter(|(_, places)| places.0 > 0)
        .map(|((from, to), _)| (name(*from), name(*to)))
        .collect();
    let recorded = support::json(["record", "--kernel", &kernel, "--workload", "rr", "--json"]);
    let id = recorded["profile"].as_str().unwrap();
    let report = |more: &[&str]| support::json([&["report", id, "inline", "--json"], more].concat());
    let pairs = report(&["--by-caller"]);
    let text = |row: &serde_json::Value, field: &str| row[field].as_str().unwrap().to_string();
    let rows = pairs["candidates"].as_array().unwrap();
    let absent: Vec<(String, String)> = rows
        .iter()
        .map(|row| (text(row, "caller"), text(row, "function")))
        .filter(|(caller, function)| !shown.contains(&(caller.as_str(), function.as_str())))
        .collect();
    println!("{} pairs, absent from the file: {absent:?}", rows.len());
    // The kernel patches some calls through trampolines to direct ones when it boots.
    assert!(rows.len() > 500 && absent.len() * 50 < rows.len(), "{absent:?}");

    // The sums are the same by function, and no function has more calls than it was called.
    let functions = report(&[]);
    for field in ["calls", "small_calls", "saved", "kernel_instructions"] {
        assert_eq!(functions[field], pairs[field], "{field}");
    }
    let flat = support::json(["report", id, "functions", "--json"]);
    let calls: HashMap<&str, u64> = HashMap::from_iter(
        flat["functions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["name"].as_str().unwrap(), row["calls"].as_u64().unwrap())),
    );
    for row in functions["candidates"].as_array().unwrap() {
        let name = row["function"].as_str().unwrap();
        assert!(row["calls"].as_u64().unwrap() <= calls[name], "{row}");
    }
}
