//! Dumps of BSD kernels. The tests have no BSD system, so no file here was written by one. A C
//! program with the structures of their headers writes the files (`bsd/layout.c`), and GNU gprof,
//! which knows 4.4BSD's format, reads the same from one. Needs gcc and binutils.

use crate::gprof;
use crate::run::run;
use kerntune_analyze::graph::{CallGraph, Propagation};
use kerntune_convert::gcda::ByteOrder;
use kerntune_convert::gmon::{import, Gmon, GmonRecord, GmonTarget, Histogram, RawArc};
use kerntune_profile::{Address, FunctionIndex, Symbol};
use std::path::Path;

/// The VAX, 4.2BSD's machine.
const VAX: GmonTarget = GmonTarget { byte_order: ByteOrder::Little, wide: false };
const LOW: u64 = 0x8000_1000;

fn laid_out(directory: &Path, kind: &str) -> Vec<u8> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bsd/layout.c");
    run(directory, "gcc", &["-O1", "-Wall", "-Wextra", "-Werror", source, "-o", "layout"]);
    run(directory, "./layout", &[kind, "dump"]);
    std::fs::read(directory.join("dump")).unwrap()
}

/// Contents that `layout.c` writes into every file.
fn expected(rate: u32, counter: u64) -> Gmon {
    let max = if counter == 2 { u32::from(u16::MAX) } else { 70_000 };
    let bin = |number: u32| match number {
        14 => max,
        number if number % 3 == 0 => number + 1,
        _ => 0,
    };
    let histogram = Histogram {
        low: LOW,
        high: LOW + 16 * counter * 2,
        rate,
        dimension: Histogram::dimension_of("seconds"),
        abbreviation: b's',
        bins: (0..16).map(bin).collect(),
    };
    let arc = |from, to, count| GmonRecord::Arc(RawArc { from, to, count });
    Gmon {
        records: vec![
            GmonRecord::Histogram(histogram),
            arc(LOW + 4, LOW + 0x20, 9),
            arc(LOW + 6, LOW + 0x20, 70_000),
            arc(0, LOW, 1),
        ],
    }
}

#[test]
fn what_the_headers_of_bsd_lay_out_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let wide = GmonTarget::LITTLE_64;
    for (kind, target, rate, counter) in [
        ("4.2bsd", VAX, 100, 2),
        ("4.4bsd", VAX, 1024, 2),
        ("4.4bsd-64", wide, 1024, 2),
        ("freebsd-16", wide, 1024, 2),
        ("freebsd-32", wide, 1024, 4),
        ("freebsd--64", wide, 1024, 8),
    ] {
        let bytes = laid_out(directory.path(), kind);
        let gmon = Gmon::parse(&bytes, target).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(gmon, expected(rate, counter), "{kind}");
        // In GNU's format the wide bin becomes several; their sum is the same.
        let symbols = || {
            let function = |number: u32| Symbol {
                function: FunctionIndex(number),
                name: format!("f{number}"),
                address: Address(LOW + u64::from(number) * 0x20),
                size: 0x20,
                file: None,
                module: None,
            };
            (0..8).map(function).collect::<Vec<_>>()
        };
        let again = Gmon::parse(&gmon.to_bytes(target), target).unwrap();
        let (ours, theirs) =
            (import(&[gmon], symbols(), "x").unwrap(), import(&[again], symbols(), "x").unwrap());
        assert_eq!(ours.tables.functions, theirs.tables.functions, "{kind}");
        assert_eq!(ours.ticks, 51 + if counter == 2 { 65_535 } else { 70_000 }, "{kind}");
    }
}

#[test]
fn what_they_do_not_lay_out_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let message = |bytes: &[u8], target| Gmon::parse(bytes, target).unwrap_err().to_string();
    let of_42 = laid_out(directory.path(), "4.2bsd");
    assert_eq!(
        message(&of_42[..of_42.len() - 2], VAX),
        "truncated at byte 78: an arc needs 2 more bytes; let the program write it again"
    );
    let odd = laid_out(directory.path(), "freebsd-24");
    assert!(message(&odd, GmonTarget::LITTLE_64).contains("counters of 24 bits"));
    let mut negative = laid_out(directory.path(), "freebsd--64");
    negative[40..48].copy_from_slice(&(-5i64).to_le_bytes());
    assert!(message(&negative, GmonTarget::LITTLE_64).contains("damaged at byte 40: a bin below 0"));
    negative[40..48].copy_from_slice(&(1i64 << 40).to_le_bytes());
    assert!(message(&negative, GmonTarget::LITTLE_64).contains("a bin of 1099511627776 ticks"));
}

/// A program's own `gmon.out`, converted to 4.4BSD's format, which GNU gprof reads too.
#[test]
fn gprof_reads_4_4bsds_form_as_we_do() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let source = "static volatile long sink;\n\
         __attribute__((noinline)) void leaf(void) { for (int i = 0; i < 100000; i++) sink += i; }\n\
         __attribute__((noinline)) void middle(int n) { leaf(); if (n) leaf(); sink++; }\n\
         int main(void) { for (int i = 0; i < 2000; i++) { middle(i & 1); leaf(); } return 0; }\n";
    std::fs::write(dir.join("program.c"), source).unwrap();
    run(dir, "gcc", &["-O1", "-pg", "-no-pie", "-fno-pie", "program.c", "-o", "program"]);
    run(dir, "./program", &[]);
    let gnu = Gmon::parse(&std::fs::read(dir.join("gmon.out")).unwrap(), GmonTarget::LITTLE_64).unwrap();
    let [GmonRecord::Histogram(of), arcs @ ..] = &gnu.records[..] else { panic!("no histogram first") };
    let mut bytes = Vec::new();
    bytes.extend(of.low.to_le_bytes());
    bytes.extend(of.high.to_le_bytes());
    let length = 40 + 2 * of.bins.len() as u32;
    bytes.extend([length, 0x0005_1879, of.rate, 0, 0, 0].map(u32::to_le_bytes).concat());
    bytes.extend(of.bins.iter().flat_map(|bin| (*bin as u16).to_le_bytes()));
    for record in arcs {
        let GmonRecord::Arc(arc) = record else { continue };
        bytes.extend([arc.from, arc.to, arc.count].map(u64::to_le_bytes).concat());
    }
    std::fs::write(dir.join("bsd.out"), &bytes).unwrap();
    let printed =
        gprof::gprof(&[Path::new("--file-format=4.4bsd"), &dir.join("program"), &dir.join("bsd.out")]);
    println!("{printed}");
    let symbols = run(dir, "nm", &["-n", "--defined-only", "program"]);
    let mut functions: Vec<Symbol> = Vec::new();
    for line in symbols.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, "t" | "T", name] = words[..] else { continue };
        let address = Address(u64::from_str_radix(address, 16).unwrap());
        if name.contains('.') || functions.last().is_some_and(|last| last.address == address) {
            continue;
        }
        let function = FunctionIndex(functions.len() as u32);
        functions.push(Symbol { function, name: name.into(), address, size: 16, file: None, module: None });
    }
    let gmon = Gmon::parse(&bytes, GmonTarget::LITTLE_64).unwrap();
    let imported = import(&[gmon], functions, "program").unwrap();
    let graph = CallGraph::of_tables(&imported.tables, |_| true, Propagation::Counts).unwrap();
    let name = |at: Option<usize>| at.map_or("<spontaneous>".into(), |at| graph.functions[at].name.clone());
    let compared = gprof::compare(&graph, &gprof::parse(&printed), name, 1e9);
    assert!(compared.functions >= 3 && compared.arcs >= 3, "{compared:?}");
}
