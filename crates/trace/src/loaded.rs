//! Code that the kernel loads or makes while it runs: modules, BPF programs and trampolines.
//!
//! The recorder learns of it where the kernel does: at the functions that register or free it. Each
//! function gets the next number after those of user code, so that no number depends on what is
//! loaded later, and an address that is used again is another function from then on.

use crate::pattern::FunctionPattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Module name of BPF programs, trampolines and dispatchers.
pub const BPF: &str = "bpf";

/// Module name of ftrace's trampolines, as in `/proc/kallsyms`.
pub const FTRACE: &str = "__builtin__ftrace";

/// Description of how the kernel loads code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Functions that load or free code.
    pub points: Vec<LoadPoint>,
    /// Layout of modules; needed for [`LoadEvent::Module`].
    pub module: Option<ModuleLayout>,
    /// Layout of a `struct bpf_ksym`; needed for [`LoadEvent::Bpf`] and [`LoadEvent::BpfFreed`].
    pub bpf: Option<BpfLayout>,
    /// Functions of loaded code that are traced; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<LoadSelection>,
}

/// Patterns for functions of loaded code ([`FunctionPattern`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSelection {
    /// Functions to trace; empty for all.
    pub only: Vec<String>,
    /// Functions to leave out.
    pub skip: Vec<String>,
    /// Source paths of modules by their names.
    pub paths: BTreeMap<String, String>,
}

impl LoadSelection {
    /// Checks whether a function is traced.
    pub fn traces(&self, name: &str, module: &str) -> bool {
        let path = self.paths.get(module).map(String::as_str);
        let any = |patterns: &[String]| {
            patterns.iter().any(|text| FunctionPattern::parse(text).matches([name].into_iter(), path))
        };
        (self.only.is_empty() || any(&self.only)) && !any(&self.skip)
    }
}

/// Function at whose entry code is loaded or freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Address of its first instruction.
    pub address: u64,
    /// Effect of the function.
    pub event: LoadEvent,
}

/// Effect of a function on the kernel's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadEvent {
    /// The first argument is the `struct module` that is about to be initialized.
    Module,
    /// The first argument is memory of code that is about to be freed.
    Freed,
    /// The first argument is the `struct bpf_ksym` of code that is about to be used.
    Bpf,
    /// The first argument is the `struct bpf_ksym` of code that is no longer used.
    BpfFreed,
    /// The kernel makes a trampoline or frees it. Arguments are a kind, the address, the size in
    /// bytes, whether it goes, and the name.
    Trampoline,
}

/// Byte offsets that lead from a `struct module` to its symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleLayout {
    /// `name` in `struct module`.
    pub name: u32,
    /// Symbol table; `None` without `CONFIG_KALLSYMS`.
    pub symbols: Option<SymbolsLayout>,
    /// Memory of code, permanent and of initialization.
    pub areas: Vec<AreaLayout>,
}

/// Byte offsets of a module's symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolsLayout {
    /// `kallsyms` in `struct module`, a pointer to `struct mod_kallsyms`.
    pub table: u32,
    /// `symtab` in `struct mod_kallsyms`, a pointer to ELF symbols.
    pub symbols: u32,
    /// `num_symtab` in `struct mod_kallsyms`.
    pub count: u32,
    /// `strtab` in `struct mod_kallsyms`, a pointer to their names.
    pub strings: u32,
}

/// Byte offsets in `struct module` of a memory area with code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AreaLayout {
    /// Address, a pointer.
    pub base: u32,
    /// Size, 4 bytes.
    pub size: u32,
}

/// Byte offsets in `struct bpf_ksym`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BpfLayout {
    /// `start`.
    pub start: u32,
    /// `end`.
    pub end: u32,
    /// `name`, NUL-terminated.
    pub name: u32,
}

/// Code that was loaded during a run, written by the recorder if there was any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedCode {
    /// Functions in the order of their numbers, of which the first is
    /// [`Recording::first_loaded`](crate::Recording::first_loaded).
    pub functions: Vec<LoadedFunction>,
}

/// Function of loaded code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedFunction {
    /// Name of the symbol; `[MODULE]` for code of a module that no symbol covers.
    pub name: String,
    /// Name of the module, [`BPF`] or [`FTRACE`].
    pub module: String,
    /// Address of the first instruction.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
}
