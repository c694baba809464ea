//! Static call graph: calls and jumps between functions in a kernel's code.

use crate::vmlinux::raw_symbols::read;
use crate::{Error, Result, Symbols};
use kerntune_debuginfo::{MappedFile, Section};
use kerntune_isa::{BlockEnding, GuestIsa, Isa, TargetRole};
use kerntune_work::IoContext;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Calls of one function by another, by index in [`Symbols::functions`]. Code in a split-off part
/// counts for the whole function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodeCall {
    /// Index of the caller.
    pub caller: usize,
    /// Index of the callee.
    pub callee: usize,
    /// Number of call instructions.
    pub calls: u32,
    /// Number of jumps to the callee's first instruction, conditional ones included: tail calls.
    pub jumps: u32,
}

/// Numbers of calls and jumps in a function whose target the code does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnresolvedCalls {
    /// Calls through a register or memory.
    pub calls: u32,
    /// Jumps through a register or memory, jumps of `switch` tables left out.
    pub jumps: u32,
    /// Calls and jumps whose target is patched into the code at run time (static calls).
    pub patched: u32,
}

/// Calls in a kernel's code as linked. Code patched in at boot (alternatives) is not included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeCalls {
    /// Resolved calls, sorted by caller, then by callee.
    pub calls: Vec<CodeCall>,
    /// Unresolved calls by caller; functions without any have no entry.
    pub unknown: BTreeMap<usize, UnresolvedCalls>,
}

impl CodeCalls {
    /// Reads the code of an ELF file whose functions are `symbols`.
    ///
    /// # Errors
    /// The file cannot be read or is no ELF file.
    pub fn load(vmlinux: &Path, symbols: &Symbols) -> Result<Self> {
        Self::parse(&MappedFile::open(vmlinux).at("open", vmlinux)?, vmlinux, symbols)
    }

    /// Reads the calls from bytes in memory; `path` is for error messages.
    ///
    /// # Errors
    /// The bytes are no ELF file.
    pub fn parse(data: &[u8], path: &Path, symbols: &Symbols) -> Result<Self> {
        let (_, sections) =
            read(data).map_err(|e| Error::Elf { path: path.to_owned(), reason: e.to_string() })?;
        let begins = FunctionStarts::of(symbols);
        let mut found: BTreeMap<(usize, usize), CodeCall> = BTreeMap::new();
        let mut unknown: BTreeMap<usize, UnresolvedCalls> = BTreeMap::new();
        let mut ordered: Vec<&Section> = sections.values().collect();
        ordered.sort_by_key(|section| section.start);
        let mut done = 0;
        for (index, function) in symbols.functions().iter().enumerate() {
            let caller = symbols.whole(index);
            for (address, code) in code(&ordered, function.address.max(done), function.end()) {
                // Assembly has functions inside functions; code is read only once.
                done = done.max(address.saturating_add(code.len() as u64));
                for insn in GuestIsa::instructions(code, address) {
                    let (target, is_call) = match GuestIsa::ending(&insn).0 {
                        BlockEnding::Call { target } => (target, true),
                        BlockEnding::Jump { target } => (target, false),
                        _ => continue,
                    };
                    let caller = match symbols.lookup(insn.address) {
                        Some(inner) if inner != index => symbols.whole(inner),
                        _ => caller,
                    };
                    let Some(target) = target else {
                        if is_call || !GuestIsa::is_table_jump(&insn) {
                            let places = unknown.entry(caller).or_default();
                            add(if is_call { &mut places.calls } else { &mut places.jumps });
                        }
                        continue;
                    };
                    let Some(callee) = begins.function(target) else { continue };
                    match begins.role(callee) {
                        TargetRole::Function => {}
                        TargetRole::Indirect => {
                            let places = unknown.entry(caller).or_default();
                            add(if is_call { &mut places.calls } else { &mut places.jumps });
                            continue;
                        }
                        TargetRole::Patched => {
                            add(&mut unknown.entry(caller).or_default().patched);
                            continue;
                        }
                        TargetRole::Return | TargetRole::Hook => continue,
                    }
                    let part = symbols.functions().get(callee).is_some_and(|f| f.part_of.is_some());
                    // A jump within a function is a loop, or leads to its split-off part.
                    if part || callee == caller && !is_call {
                        continue;
                    }
                    let new = CodeCall { caller, callee, ..CodeCall::default() };
                    let call = found.entry((caller, callee)).or_insert(new);
                    add(if is_call { &mut call.calls } else { &mut call.jumps });
                }
            }
        }
        Ok(Self { calls: found.into_values().collect(), unknown })
    }
}

fn add(count: &mut u32) {
    *count = count.saturating_add(1);
}

/// Functions by their first address.
struct FunctionStarts {
    at: HashMap<u64, usize>,
    roles: Vec<TargetRole>,
}

impl FunctionStarts {
    fn of(symbols: &Symbols) -> Self {
        let functions = symbols.functions();
        let at = functions.iter().enumerate().map(|(index, function)| (function.address, index)).collect();
        Self { at, roles: functions.iter().map(|function| GuestIsa::target_role(&function.name)).collect() }
    }

    fn function(&self, address: u64) -> Option<usize> {
        self.at.get(&address).copied()
    }

    fn role(&self, function: usize) -> TargetRole {
        self.roles.get(function).copied().unwrap_or(TargetRole::Function)
    }
}

/// Returns the bytes of an address range, section by section, as far as they are in the file.
fn code<'data>(sections: &[&Section<'data>], begin: u64, end: u64) -> Vec<(u64, &'data [u8])> {
    let bytes = |section: &&Section<'data>| {
        let (from, to) = (begin.max(section.start), end.min(section.end));
        let size = to.checked_sub(from).filter(|size| *size > 0)?;
        Some((from, section.bytes(from, size)?))
    };
    sections.iter().filter_map(bytes).collect()
}
