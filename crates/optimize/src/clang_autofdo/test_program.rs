//! Test program that stands in for a kernel: real functions of an image, invented counts.

use crate::test_kernel;
use kerntune_kernel::{Kernel, Symbols};
use kerntune_profile::{
    Address, Block, Edge, EdgeKind, FunctionIndex, Instructions, KernelId, Manifest, Profile, Symbol, Tables,
};
use kerntune_work::WorkDir;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub const BASE_FLAGS: &[&str] = &[
    "-gmlt",
    "-fdebug-info-for-profiling",
    "-mllvm=-enable-fs-discriminator=true",
    "-mllvm=-improved-fs-discriminator=true",
];

/// Source with forty functions that run, each among others that do not.
fn source() -> String {
    let mut text = String::from("int puts(const char *);\nint sink;\n");
    let mut calls = String::new();
    for i in 0..40 {
        for name in ["ran", "never", "rare"] {
            writeln!(
                text,
                "__attribute__((noinline)) void {name}{i}(int x)\n{{\n\tif (x == -{i})\n\t\tputs(\"a\");\n\
                 \tfor (int k = 0; k < x % 7; k++)\n\t\tsink ^= k * {i};\n}}"
            )
            .unwrap();
        }
        writeln!(calls, "\tran{i}(c);\n\tif (c > 9)\n\t\tnever{i}(c);\n\tif (c > 10)\n\t\trare{i}(c);")
            .unwrap();
    }
    format!("{text}int main(int c, char **v)\n{{\n{calls}\treturn 0;\n}}\n")
}

/// Linker script that puts hot code first, like the kernel's; a linker by default puts it last.
const ORDER: &str = "SECTIONS { .text.first : { *(.text.hot .text.hot.*) } } INSERT BEFORE .text;\n";

pub struct Fixture {
    pub dir: TempDir,
    pub work: WorkDir,
    pub base: Kernel,
}

impl Fixture {
    /// Creates the base kernel in `dir/kernel`, compiled with `flags`.
    pub fn new(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("all.c"), source()).unwrap();
        fs::write(dir.path().join("order.ld"), ORDER).unwrap();
        let base = test_kernel::kernel(&dir.path().join("kernel"), "k1", "6.12.117");
        compile(dir.path(), flags, &base.vmlinux());
        Self { work: WorkDir::open(dir.path().join("work")).unwrap(), dir, base }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles the source again and returns the compiler's messages.
    pub fn compile(&self, flags: &[&str], image: &Path) -> String {
        compile(self.dir.path(), flags, image)
    }

    /// Recording in which each of the functions `ran…` ran.
    pub fn recording(&self) -> Profile {
        let symbols: Vec<Symbol> = (Symbols::load(&self.base.vmlinux()).unwrap().functions().iter().zip(0..))
            .map(|(function, at)| Symbol {
                function: FunctionIndex(at),
                name: function.name.clone(),
                address: Address(function.address),
                size: function.size,
                file: Some("all.c".into()),
                module: None,
            })
            .collect();
        let main = symbols.iter().find(|symbol| symbol.name == "main").unwrap().address;
        let ran = || symbols.iter().filter(|symbol| symbol.name.starts_with("ran"));
        let blocks = ran().map(|symbol| Block {
            start: symbol.address,
            last: Address(symbol.address.get() + symbol.size - 1),
            count: 1_000_000,
            instructions: Instructions(9),
            bytes: symbol.size,
        });
        let edges = ran().map(|symbol| Edge {
            source: Address(main.get() + 4),
            target: symbol.address,
            count: 1_000_000,
            kind: EdgeKind::Call,
        });
        let (blocks, edges) = (blocks.collect(), edges.collect());
        let id = self.base.manifest.id.clone();
        let kernel = KernelId { id, label: "base".into(), version: "6.12.117".into() };
        Profile {
            manifest: Manifest::new("r1", kernel, "rr", "emulator"),
            tables: Tables { symbols, blocks, edges, ..Tables::default() },
        }
    }
}

/// Address at which the module of [`Fixture::add_module`] is loaded.
pub const MODULE_TEXT: u64 = 0xffff_ffff_c040_0000;

impl Fixture {
    /// Gives the kernel a module with two functions, compiled with `flags`, and the recording the
    /// counts of one of them.
    pub fn add_module(&self, flags: &[&str], recording: &mut Profile) {
        let source =
            "static const char info[] __attribute__((used, section(\".modinfo\"))) = \"license=GPL\";\n\
                      extern int printk(int);\n\
                      __attribute__((noinline)) int slow(int x)\n{\n\treturn printk(x) * 3;\n}\n\
                      __attribute__((noinline)) int fast(int x)\n{\n\treturn printk(x) + 5;\n}\n";
        fs::write(self.path("mod.c"), source).unwrap();
        let module = self.base.dir.join("lib/modules/6.12.117/kernel/drivers/mod.ko");
        fs::create_dir_all(module.parent().unwrap()).unwrap();
        fs::write(self.base.config(), "CONFIG_MODULES=y\n").unwrap();
        let output = Command::new("clang-19")
            .current_dir(self.dir.path())
            .args(["-O2", "-c", "-fno-pic", "-mcmodel=kernel", "mod.c", "-o"])
            .arg(&module)
            .args(flags)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = fs::read(&module).unwrap();
        let elf = kerntune_debuginfo::Elf::parse(&bytes).unwrap();
        let Tables { symbols, blocks, .. } = &mut recording.tables;
        for name in ["fast", "slow"] {
            let symbol = elf.symbols().map(Result::unwrap).find(|symbol| symbol.name == name).unwrap();
            let (address, size) = (Address(MODULE_TEXT + symbol.address), symbol.size);
            let (function, module) = (FunctionIndex(symbols.len() as u32), Some("mod".into()));
            symbols.push(Symbol { function, name: name.into(), address, size, file: None, module });
            if name == "fast" {
                let last = Address(address.get() + size - 1);
                let instructions = Instructions(3);
                blocks.push(Block { start: address, last, count: 2_000_000, instructions, bytes: size });
            }
        }
    }
}

fn compile(dir: &Path, flags: &[&str], image: &Path) -> String {
    fs::create_dir_all(image.parent().unwrap()).unwrap();
    let output = Command::new("clang-19")
        .current_dir(dir)
        .args(["-O2", "-fuse-ld=lld-19", "-Wl,-T,order.ld", "all.c", "-o"])
        .arg(image)
        .args(flags)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}
