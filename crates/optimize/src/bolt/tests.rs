//! Tests with a program at a kernel's address, which BOLT takes for a kernel.

use super::guard::withheld;
use super::image::ElfImage;
use super::*;
use crate::{test_kernel, PreparedResult, RecipeProof};
use kerntune_kernel::{Kernel, Symbols};
use kerntune_profile::{
    Address, Block, Edge, EdgeKind, FunctionIndex, Instructions, KernelId, Manifest, Profile, Symbol, Tables,
};
use kerntune_work::WorkDir;
use std::fmt::Write;
use std::fs;
use std::process::Command;
use tempfile::TempDir;

/// Functions whose usual path is the longer one.
const FUNCTIONS: u64 = 12;
/// Executions of each function.
const COUNT: u64 = 1000;

/// Source: `cold` is the fall-through, `hot` the branch target. A table that BOLT does not know
/// refers into `guarded`.
fn source() -> String {
    let body = |name: &str| {
        format!(
            ".globl {name}\n.type {name}, @function\n.p2align 6\n{name}:\n\ttest %edi, %edi\n\tjne .Lhot_{name}\n\
             .Lcold_{name}:\n\txor %eax, %eax\n\tnot %eax\n\tret\n\
             .Lhot_{name}:\n\tlea 1(%rdi), %eax\n\tjmp .Lend_{name}\n\tint3\n.Lend_{name}:\n\tret\n\
             .size {name}, . - {name}\n"
        )
    };
    let mut text = String::from(".text\n");
    (0..FUNCTIONS).for_each(|i| text.push_str(&body(&format!("f{i}"))));
    text.push_str(&body("guarded"));
    text.push_str(".globl _start\n.type _start, @function\n_start:\n");
    (0..FUNCTIONS).for_each(|i| writeln!(text, "\tcall f{i}").unwrap());
    text.push_str("\tcall guarded\n\tret\n.size _start, . - _start\n");
    // Like interrupts in a kernel: stubs of each vector under one label, which BOLT takes for one
    // function.
    text.push_str(".p2align 3\nirq_entries_start:\n\tpush $0x20\n\tjmp _start\n\tnop\n");
    text.push_str(".section runtime_table, \"a\"\n\t.long .Lcold_guarded - .\n");
    text.push_str(&bug_table(12));
    text.push_str(".section .note.GNU-stack, \"\"\n");
    text
}

/// Returns a table with an entry of `bytes` for each function.
fn bug_table(bytes: usize) -> String {
    let entry = |i: u64| format!("\t.long .Lcold_f{i} - .\n\t.zero {}\n", bytes - 4);
    let entries: String = (0..FUNCTIONS).map(entry).collect();
    format!(".section __bug_table, \"a\"\n{entries}")
}

struct Fixture {
    dir: TempDir,
    work: WorkDir,
    base: Kernel,
}

impl Fixture {
    fn new() -> Self {
        Self::of(&source())
    }

    fn of(source: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = test_kernel::kernel(&dir.path().join("kernel"), "k1", "6.12.117");
        fs::create_dir_all(&base.dir).unwrap();
        fs::write(base.config(), "CONFIG_X86_64=y\n").unwrap();
        fs::write(dir.path().join("all.s"), source).unwrap();
        let script = "ENTRY(_start) PHDRS { text PT_LOAD FLAGS(5); } SECTIONS { . = 0xffffffff81000000; \
                      .text : { _stext = .; *(.text) _etext = .; } :text \
                      runtime_table : { *(runtime_table) } :text \
                      __bug_table : { *(__bug_table) } :text }\n";
        fs::write(dir.path().join("all.ld"), script).unwrap();
        let output = Command::new("gcc")
            .current_dir(dir.path())
            .args(["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,-T,all.ld", "all.s", "-o"])
            .arg(base.vmlinux())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        Self { dir, work, base }
    }

    /// Recording in which every function is called and jumps over the cold code.
    fn recording(&self) -> Profile {
        let table = Symbols::load(&self.base.vmlinux()).unwrap();
        let mut tables = Tables::default();
        for (function, number) in table.functions().iter().zip(0..) {
            let (name, address) = (function.name.clone(), Address(function.address));
            let (size, function) = (function.size, FunctionIndex(number));
            tables.symbols.push(Symbol { function, name, address, size, file: None, module: None });
        }
        for function in table.functions().iter().filter(|f| !f.name.starts_with("_start")) {
            let at = |offset: u64| Address(function.address + offset);
            let caller = Address(table.address_of("_start").unwrap());
            let block = |start, last, bytes, instructions| {
                let instructions = Instructions(instructions);
                Block { start: at(start), last: at(last), count: COUNT, instructions, bytes }
            };
            let edge = |source, target, kind| Edge { source, target, count: COUNT, kind };
            // test 2, jne 2, xor 2, not 2, ret 1, lea 3, jmp 2, int3 1, ret 1
            tables.blocks.extend([block(0, 2, 4, 2), block(9, 12, 5, 2), block(15, 15, 1, 1)]);
            tables.edges.push(edge(caller, at(0), EdgeKind::Call));
            tables.edges.push(edge(at(2), at(9), EdgeKind::Conditional));
            tables.edges.push(edge(at(12), at(15), EdgeKind::Jump));
        }
        let id = self.base.manifest.id.clone();
        let kernel = KernelId { id, label: "base".into(), version: "6.12.117".into() };
        Profile { manifest: Manifest::new("r1", kernel, "rr", "emulator"), tables }
    }

    fn tuned(&self, name: &str, vmlinux: &[u8], carries: Option<&str>) -> Kernel {
        let mut tuned = self.base.clone();
        tuned.dir = self.dir.path().join(name);
        fs::create_dir_all(&tuned.dir).unwrap();
        fs::write(tuned.vmlinux(), vmlinux).unwrap();
        tuned.manifest.rewrite_id = carries.map(str::to_string);
        tuned
    }
}

#[test]
fn what_is_jumped_to_comes_next_and_the_image_is_asked() {
    let fixture = Fixture::new();
    let made = rewrite(&fixture.work, &fixture.recording(), &fixture.base).unwrap();
    assert_eq!(BoltRewrite::load(&made.dir).unwrap(), made);
    assert_eq!(rewrite(&fixture.work, &fixture.recording(), &fixture.base).unwrap(), made, "found again");
    assert_eq!((made.summary.withheld, made.summary.branches), (1, 3 * COUNT * (FUNCTIONS + 1)));

    let bytes = fs::read(made.vmlinux()).unwrap();
    let tuned = fixture.tuned("tuned", &bytes, Some(&made.id));
    let proof = prove(&fixture.base, &made, &tuned).unwrap();
    proof.verdict().unwrap();
    let (functions, share) = proof.share(FunctionFate::Rewritten);
    assert_eq!(functions, FUNCTIONS, "{proof:?}");
    assert!((share - FUNCTIONS as f64 / (FUNCTIONS + 1) as f64).abs() < 1e-9, "{proof:?}");
    assert_eq!(proof.share(FunctionFate::Referred).0, 1, "{proof:?}");
    assert!(proof.to_string().contains("guarded (runtime_table)"), "{proof}");
    let skipped = fs::read_to_string(made.dir.join("skip.txt")).unwrap();
    let stubs = "guarded(/.*)?\nirq_entries_start(/.*)?\n";
    assert_eq!(skipped, stubs, "what BOLT calls the stubs of interrupts, too");
    // The lea, which runs, is behind the test and its branch.
    let (image, symbols) =
        (ElfImage::load(&made.vmlinux(), "k").unwrap(), Symbols::load(&made.vmlinux()).unwrap());
    let text = image.section(".text").unwrap();
    let at = |name: &str| (symbols.address_of(name).unwrap() - text.address) as usize;
    let lea = [0x8d, 0x47, 0x01];
    assert_eq!(image.contents(text)[at("f3") + 4..][..3], lea);
    assert_eq!(image.contents(text)[at("guarded") + 9..][..3], lea, "where it was");

    // Unchanged, rewritten by another rewriting, and changed in a wrong place.
    let plain = fs::read(fixture.base.vmlinux()).unwrap();
    let proof = prove(&fixture.base, &made, &fixture.tuned("plain", &plain, None)).unwrap();
    let refused = proof.verdict().unwrap_err().to_string();
    for reason in ["carries the rewriting none", "rewrote 0 of the 13 functions", "12 left as they were"] {
        assert!(refused.contains(reason), "{refused}");
    }
    let mut strayed = bytes.clone();
    let found =
        strayed.windows(9).rposition(|code| code == [0x85, 0xff, 0x75, 5, 0x31, 0xc0, 0xf7, 0xd0, 0xc3]);
    strayed[found.unwrap() + 8] = 0x90;
    let proof = prove(&fixture.base, &made, &fixture.tuned("strayed", &strayed, Some(&made.id))).unwrap();
    let refused = proof.verdict().unwrap_err().to_string();
    assert!(refused.contains("1 bytes of code are different where nothing was to be"), "{refused}");
}

#[test]
fn what_a_table_refers_into_is_withheld() {
    let fixture = Fixture::new();
    let image = ElfImage::load(&fixture.base.vmlinux(), "k").unwrap();
    let symbols = Symbols::load(&fixture.base.vmlinux()).unwrap();
    let held = withheld(&image, &symbols);
    let mut named: Vec<_> =
        held.iter().map(|(&index, why)| (symbols.functions()[index].name.as_str(), why)).collect();
    named.sort_by_key(|(name, _)| *name);
    let table = WithholdingReason::Referred("runtime_table".into());
    assert_eq!(named, [("_start:0x20", &WithholdingReason::Assembly), ("guarded", &table)]);
}

#[test]
fn what_cannot_be_rewritten_is_refused() {
    let fixture = Fixture::new();
    let refused = |recording: &Profile, kernel: &Kernel| {
        rewrite(&fixture.work, recording, kernel).unwrap_err().to_string()
    };
    let mut other = fixture.recording();
    other.manifest.kernel.id = "k2".into();
    assert!(refused(&other, &fixture.base).contains("not of label-of-k1"));
    let mut empty = fixture.recording();
    empty.tables.blocks.clear();
    assert!(refused(&empty, &fixture.base).contains("--no-edges"));
    let mut again = fixture.base.clone();
    again.manifest.rewrite_id = Some("r".into());
    assert!(refused(&fixture.recording(), &again).contains("was rewritten already"));
    for (bytes, found) in [(16, "entries of 16 bytes (struct bug_entry)"), (28, "entries of no known size")] {
        let other = Fixture::of(&source().replace(&bug_table(12), &bug_table(bytes)));
        let error = refused(&other.recording(), &other.base);
        assert!(error.contains("__bug_table") && error.contains(found), "{error}");
    }
    fs::write(fixture.base.config(), "CONFIG_X86_NEED_RELOCS=y\n").unwrap();
    assert!(refused(&fixture.recording(), &fixture.base).contains("CONFIG_RANDOMIZE_BASE"));
}
