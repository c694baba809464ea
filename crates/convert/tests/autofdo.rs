//! Round trip through LLVM: llvm-profgen converts the text, and llvm-profdata prints the same
//! counts. Needs clang-19 and llvm-19.

use crate::run::run;
use kerntune_convert::autofdo::{BranchRecords, SampleProfile, UnsymbolizedProfile};
use kerntune_profile::{Address, Block, Edge, EdgeKind, FunctionIndex, Instructions, Symbol, Tables};
use std::fs;
use std::path::Path;

/// Straight code, so that the blocks are known: only the call of `leaf` divides `work`.
const PROGRAM: &str = "\
int sink;
__attribute__((noinline)) int leaf(int x)
{
\treturn x * 3 + sink;
}
static inline int twice(int x)
{
\treturn x * x + sink;
}
__attribute__((noinline)) int work(int x)
{
\tsink = leaf(x + 1);
\treturn twice(x) + sink;
}
int main(int c, char **v)
{
\treturn work(c) & 1;
}
";

/// Returns the program's functions: name, address, size.
fn functions(dir: &Path) -> Vec<Symbol> {
    let text = run(dir, "llvm-nm-19", &["-n", "--print-size", "--defined-only", "t"]);
    let mut symbols = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, size, "t" | "T", name] = words[..] else { continue };
        symbols.push(Symbol {
            function: FunctionIndex(symbols.len() as u32),
            name: name.into(),
            address: Address(u64::from_str_radix(address, 16).unwrap()),
            size: u64::from_str_radix(size, 16).unwrap(),
            file: None,
            module: None,
        });
    }
    symbols
}

/// Returns the address of the only call (e8 and four bytes) from `from` to `to`.
fn call(image: &[u8], from: &Symbol, to: &Symbol) -> u64 {
    // In position-independent programs of lld and GNU ld an address differs from its offset in the
    // file; this program is linked so that both are equal.
    let code = &image[from.address.get() as usize..][..from.size as usize];
    let found = (0..code.len() - 4).find(|&at| {
        let distance = i32::from_le_bytes(code[at + 1..at + 5].try_into().unwrap());
        code[at] == 0xe8
            && from.address.get().wrapping_add_signed(at as i64 + 5 + i64::from(distance)) == to.address.get()
    });
    from.address.get() + found.unwrap() as u64
}

fn block(start: u64, last: u64, end: u64, count: u64) -> Block {
    let instructions = Instructions(3);
    Block { start: Address(start), last: Address(last), count, instructions, bytes: end - start }
}

fn build(dir: &Path) -> Vec<Symbol> {
    fs::write(dir.join("t.c"), PROGRAM).unwrap();
    let flags = ["-O2", "-g", "-fdebug-info-for-profiling", "-mllvm", "-enable-fs-discriminator=true"];
    run(dir, "clang-19", &[&flags[..], &["t.c", "-o", "t"]].concat());
    functions(dir)
}

#[test]
fn llvm_reads_the_counts_that_were_put_in() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let symbols = build(dir);
    let find = |name: &str| symbols.iter().find(|symbol| symbol.name == name).unwrap().clone();
    let (leaf, work, main) = (find("leaf"), find("work"), find("main"));
    let call = call(&fs::read(dir.join("t")).unwrap(), &work, &leaf);

    let start = |symbol: &Symbol| symbol.address.get();
    let end = |symbol: &Symbol| symbol.address.get() + symbol.size;
    // The last instruction of each is a `ret`, one byte.
    let blocks = vec![
        block(start(&leaf), end(&leaf) - 1, end(&leaf), 1_000_000_007),
        block(start(&work), call, call + 5, 1_000_000_007),
        block(call + 5, end(&work) - 1, end(&work), 1_000_000_000),
    ];
    let edge = |source, target: &Symbol, count, kind| Edge {
        source: Address(source),
        target: target.address,
        count,
        kind,
    };
    let edges = vec![
        edge(start(&main) + 1, &work, 77, EdgeKind::Call),
        edge(call, &leaf, 1_000_000_007, EdgeKind::Call),
    ];
    let tables = Tables { symbols, blocks, edges, ..Tables::default() };
    let unsymbolized = UnsymbolizedProfile::of(&tables).unwrap();
    let mut text = Vec::new();
    unsymbolized.write(&mut text).unwrap();
    fs::write(dir.join("counts.txt"), text).unwrap();
    let profgen = ["--binary=t", "--unsymbolized-profile=counts.txt", "--use-offset=0", "--output=t.afdo"];
    run(dir, "llvm-profgen-19", &profgen);

    let shown = run(dir, "llvm-profdata-19", &["show", "--sample", "--function=leaf", "t.afdo"]);
    let total = 1_000_000_007 * leaf.size;
    assert!(shown.starts_with(&format!("Function: leaf: {total}, 1000000007, ")), "{shown}");
    assert!(shown.contains("2: 1000000007"), "{shown}");

    let text = run(dir, "llvm-profdata-19", &["merge", "--sample", "--text", "t.afdo", "--output=-"]);
    let profile = SampleProfile::parse(&text).unwrap();
    let of = |name: &str| profile.functions.iter().find(|f| f.name == name).unwrap();
    assert_eq!((of("leaf").head, of("leaf").max), (1_000_000_007, 1_000_000_007));
    let work_total = (call + 5 - start(&work)) * 1_000_000_007 + (end(&work) - call - 5) * 1_000_000_000;
    assert_eq!((of("work").head, of("work").total), (77, work_total), "{text}");
    assert_eq!(of("work").inlined, 1, "{text}");
    // Every executed byte is in a function of the profile.
    assert_eq!(profile.total(), unsymbolized.executed_bytes);
}

/// Returns the address of the third instruction of `symbol`.
fn third(dir: &Path, symbol: &Symbol) -> u64 {
    let only = format!("--disassemble-symbols={}", symbol.name);
    let text = run(dir, "llvm-objdump-19", &["--no-show-raw-insn", &only, "t"]);
    let address = |line: &str| u64::from_str_radix(line.trim().split_once(": ")?.0, 16).ok();
    text.lines().filter_map(address).nth(2).unwrap()
}

#[test]
fn branch_records_and_counts_make_the_same_profile() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let symbols = build(dir);
    let find = |name: &str| symbols.iter().find(|symbol| symbol.name == name).unwrap().clone();
    let (leaf, work, main) = (find("leaf"), find("work"), find("main"));
    let image = fs::read(dir.join("t")).unwrap();
    let (to_leaf, to_work) = (call(&image, &work, &leaf), call(&image, &main, &work));
    let middle = third(dir, &leaf);

    let start = |symbol: &Symbol| symbol.address.get();
    let end = |symbol: &Symbol| symbol.address.get() + symbol.size;
    const RUNS: u64 = 1_000_000_007;
    // `leaf` was interrupted 3 times in its middle, and control came back there 5 times: 3 of them
    // balance the interruptions.
    let blocks = vec![
        block(start(&main), to_work, to_work + 5, RUNS),
        block(to_work + 5, end(&main) - 1, end(&main), RUNS),
        block(start(&work), to_leaf, to_leaf + 5, RUNS),
        block(to_leaf + 5, end(&work) - 1, end(&work), RUNS - 3),
        block(start(&leaf), middle - 1, middle, 3),
        block(start(&leaf), end(&leaf) - 1, end(&leaf), RUNS - 3),
        block(middle, end(&leaf) - 1, end(&leaf), 5),
    ];
    let edge =
        |source, target, count, kind| Edge { source: Address(source), target: Address(target), count, kind };
    let edges = vec![
        edge(0x10, start(&main), RUNS, EdgeKind::IndirectCall),
        edge(to_work, start(&work), RUNS, EdgeKind::Call),
        edge(to_leaf, start(&leaf), RUNS, EdgeKind::Call),
        edge(end(&leaf) - 1, to_leaf + 5, RUNS - 3, EdgeKind::Return),
        edge(end(&work) - 1, to_work + 5, RUNS, EdgeKind::Return),
    ];
    let mut tables = Tables { symbols, blocks, edges, ..Tables::default() };
    let both = |tables: &Tables| {
        let mut text = Vec::new();
        UnsymbolizedProfile::of(tables).unwrap().write(&mut text).unwrap();
        fs::write(dir.join("counts.txt"), &text).unwrap();
        text.clear();
        let written = BranchRecords::of(tables).unwrap().write(&mut text).unwrap();
        fs::write(dir.join("branches.txt"), &text).unwrap();
        let profile = |arguments: &[&str]| {
            run(dir, "llvm-profgen-19", &[&["--binary=t", "--output=t.afdo"], arguments].concat());
            run(dir, "llvm-profdata-19", &["show", "--sample", "t.afdo"]);
            run(dir, "llvm-profdata-19", &["merge", "--sample", "--text", "t.afdo", "--output=-"])
        };
        let counts = profile(&["--unsymbolized-profile=counts.txt", "--use-offset=0"]);
        (written, counts, profile(&["--perfscript=branches.txt"]))
    };
    let (written, counts, branches) = both(&tables);
    assert_eq!(written.branches, 5 * u128::from(RUNS) - 3);
    assert!(
        counts.contains(&format!(
            "leaf:{}:{RUNS}",
            RUNS * leaf.size - 3 * (end(&leaf) - middle) + 5 * (end(&leaf) - middle)
        )),
        "{counts}"
    );
    assert_eq!(counts, branches);

    // The only difference between the formats: a function entered without a branch.
    tables.edges[2].count -= 100;
    let (written, counts, branches) = both(&tables);
    assert_eq!(written.unexplained, 5 - 3 + 100);
    let head = |text: &str| {
        SampleProfile::parse(text).unwrap().functions.iter().find(|f| f.name == "leaf").map(|f| f.head)
    };
    assert_eq!((head(&counts), head(&branches)), (Some(RUNS - 100), Some(RUNS)));
}
