//! Comparison with GNU gprof, for files that kerntune wrote and files that a program wrote. Needs
//! gcc and binutils.

use crate::gprof;
use crate::run::run;
use kerntune_analyze::graph::{CallGraph, Propagation};
use kerntune_convert::gmon::{export, import, Gmon, GmonRecord, GmonTarget};
use kerntune_profile::{Address, CallArc, CallKind, FunctionIndex, FunctionStats, Symbol, Tables, Ticks};
use std::path::Path;

fn symbol(number: u32, name: &str, address: u64, size: u64) -> Symbol {
    let (function, name) = (FunctionIndex(number), name.to_string());
    Symbol { function, name, address: Address(address), size, file: None, module: None }
}

/// Recursion (deep), a cycle of three with a recursive member (even, odd, third), a callee that two
/// callers share unequally, and one that never runs.
const PROGRAM: &str = r#"
static volatile unsigned long sink;
#define KEEP __attribute__((noinline, noclone, used))
static void KEEP spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * i; }
static void KEEP leaf(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink ^= i; spin(n / 2); }
static void KEEP deep(int n) { leaf(20000); if (n > 0) deep(n - 1); spin(10000); }
static void KEEP odd(int n);
static void KEEP third(int n);
static void KEEP even(int n) { spin(20000); if (n > 0) odd(n - 1); }
static void KEEP odd(int n) { leaf(10000); if (n > 0) third(n - 1); }
static void KEEP third(int n) { if (n % 4 == 1) third(n - 1); else if (n > 0) even(n - 1); spin(5000); }
static void KEEP never(int n) { odd(n); }
static void KEEP few(void) { for (int i = 0; i < 300; i++) leaf(200000); }
static void KEEP many(void) { for (int i = 0; i < 30000; i++) leaf(2000); }
int main(int argc, char **argv) {
    for (int i = 0; i < 200; i++) { deep(40); even(30); odd(11); }
    few(); many();
    if (argc > 5) never(argc);
    return 0;
}
"#;

/// Returns the functions of the image from `nm`.
fn functions(dir: &Path, image: &str) -> Vec<Symbol> {
    let text = run(dir, "nm", &["-n", "--defined-only", image]);
    let mut symbols: Vec<Symbol> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, "t" | "T", name] = words[..] else { continue };
        let address = u64::from_str_radix(address, 16).unwrap();
        // gprof ignores local names with dots.
        if name.contains('.') || symbols.last().is_some_and(|last| last.address.get() == address) {
            continue;
        }
        symbols.push(symbol(symbols.len() as u32, name, address, 16));
    }
    symbols
}

#[test]
fn a_programs_own_gmon_out_reads_as_gprof_reads_it() {
    for pie in ["-no-pie", "-pie"] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::write(dir.join("program.c"), PROGRAM).unwrap();
        let position = if pie == "-pie" { "-fPIE" } else { "-fno-pie" };
        run(
            dir,
            "gcc",
            &["-O1", "-pg", pie, position, "-fno-optimize-sibling-calls", "program.c", "-o", "program"],
        );
        run(dir, "./program", &[]);
        let printed = gprof::parse(&gprof::gprof(&[&dir.join("program"), &dir.join("gmon.out")]));
        let gmon = Gmon::parse(&std::fs::read(dir.join("gmon.out")).unwrap(), GmonTarget::LITTLE_64).unwrap();
        assert_eq!(Gmon::parse(&gmon.to_bytes(GmonTarget::LITTLE_64), GmonTarget::LITTLE_64).unwrap(), gmon);
        let imported = import(&[gmon], functions(dir, "program"), "program").unwrap();
        assert!(imported.ticks > 0, "no samples");
        let graph = CallGraph::of_tables(&imported.tables, |_| true, Propagation::Counts).unwrap();
        assert_eq!(CallGraph::suits(&imported.tables), Propagation::Counts);
        let name = |function: Option<usize>| {
            function.map_or("<spontaneous>".into(), |at| graph.functions[at].name.clone())
        };
        let compared = gprof::compare(&graph, &printed, name, 1e9);
        println!("{pie}: {} samples, {compared:?}", imported.ticks);
        assert!(compared.functions >= 9 && compared.cycles == 1 && compared.recursive == 2, "{compared:?}");
        let members: Vec<&str> =
            graph.cycles[0].members.iter().map(|m| graph.functions[*m].name.as_str()).collect();
        assert!(
            members.len() == 3 && ["even", "odd", "third"].iter().all(|name| members.contains(name)),
            "{members:?}"
        );
    }
}

/// Functions of all sorts: names that gprof does not read from an image, one without an address, of
/// two bytes, at an odd address, with more than 16 and more than 32 bits of time.
fn tables() -> Tables {
    let symbols = vec![
        symbol(0, "main", 0x40_1000, 100),
        symbol(1, "even.part.0", 0x40_1080, 30),
        symbol(2, "odd.isra.0", 0x40_10a0, 16),
        symbol(3, "leaf", 0x40_10b1, 20),
        symbol(4, "tiny", 0x40_10c6, 2),
        symbol(5, "[unknown code]", 0, 0),
        symbol(6, "interrupt", 0x40_2000, 64),
        symbol(7, "idle", 0x40_2040, 64),
    ];
    let net = [(0, 70_001), (1, 65_536), (2, 5_000_000_000), (3, 123_456_789), (4, 99), (5, 4_242), (6, 77)];
    let functions = net.map(|(function, net)| FunctionStats {
        function: FunctionIndex(function),
        self_ticks: Ticks(net),
        ..FunctionStats::default()
    });
    let none = u32::MAX;
    let calls = [
        (none, 0, 1),
        (0, 1, 10),
        (1, 2, 500),
        (2, 1, 490),
        (2, 2, 5),
        (1, 3, 3_000),
        (0, 3, 1_000),
        (3, 4, 6_000_000_000),
        (none, 6, 30),
        (6, 3, 7),
        (0, 5, 3),
        (5, 3, 11),
        (none, 3, 2),
    ];
    let arcs = calls.map(|(caller, callee, calls)| CallArc {
        region: 0,
        caller: FunctionIndex(caller),
        callee: FunctionIndex(callee),
        how: CallKind::Call,
        calls,
        ended: calls,
        total_ticks: Ticks(1),
    });
    Tables { symbols, functions: functions.into(), arcs: arcs.into(), ..Tables::default() }
}

#[test]
fn what_we_write_gprof_reads_as_we_do() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("empty.c"), "int main(void) { return 0; }\n").unwrap();
    run(dir, "gcc", &["empty.c", "-o", "image"]);
    let tables = tables();
    let exported = export(&tables, |_| true).unwrap();
    assert_eq!((exported.tick_ns, exported.left_out_ns), (1, 0));
    std::fs::write(dir.join("gmon.out"), exported.gmon.to_bytes(GmonTarget::LITTLE_64)).unwrap();
    std::fs::write(dir.join("symbols"), &exported.symbols).unwrap();
    let text =
        gprof::gprof(&[Path::new("-S"), &dir.join("symbols"), &dir.join("image"), &dir.join("gmon.out")]);
    println!("{text}");
    let graph = CallGraph::of_tables(&tables, |_| true, Propagation::Counts).unwrap();
    let name = |at: Option<usize>| {
        at.map_or("<spontaneous>".into(), |at| graph.functions[at].name.replace(' ', "_"))
    };
    let compared = gprof::compare(&graph, &gprof::parse(&text), name, 1e3);
    assert_eq!(compared, gprof::GprofComparison { functions: 7, arcs: 9, cycles: 1, recursive: 1 });
    // The importer reads what the exporter wrote.
    let symbols = exported.symbols.lines().zip(0..).map(|(line, number)| {
        let (address, name) = line.split_once(" T ").unwrap();
        symbol(number, name, u64::from_str_radix(address, 16).unwrap(), 16)
    });
    let again = import(&[exported.gmon], symbols.collect(), "again").unwrap();
    assert_eq!(again.busy_ticks, graph.total_ns);
    assert_eq!(again.lost_calls, 0);
    for row in &tables.functions {
        let name = name(Some(row.function.get() as usize));
        let same =
            again.tables.functions.iter().find(|other| again.tables.name(other.function) == name).unwrap();
        assert_eq!(same.self_ticks, row.self_ticks, "{name}");
    }
}

#[test]
fn a_regions_time_alone_and_a_coarser_tick() {
    let mut tables = tables();
    assert!(export(&tables, |_| false).unwrap().gmon.records.is_empty());
    tables.functions[4].self_ticks = Ticks(u64::MAX / 4_000_000);
    let exported = export(&tables, |_| true).unwrap();
    assert_eq!(exported.tick_ns, 1_000_000);
    let GmonRecord::Histogram(histogram) = &exported.gmon.records[0] else { panic!() };
    assert_eq!((histogram.dimension_text().as_str(), histogram.tick_ns()), ("milliseconds", Ok(1e6)));
}
