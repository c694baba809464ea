//! Who can call whom: the calls and jumps between functions that stand in a kernel's code.

use crate::raw_symbols::{read, CodeSection};
use crate::{Error, Result, Symbols};
use kerntune_isa::{Ending, Guest, Isa, TargetRole};
use kerntune_work::IoContext;
use object::{ReadCache, ReadRef};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;

/// Calls of one function by another, by index in [`Symbols::functions`]. What stands in a part of a function that the
/// compiler put elsewhere is that function's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodeCall {
    /// Who calls.
    pub caller: usize,
    /// Who is called.
    pub callee: usize,
    /// Places with a call.
    pub calls: u32,
    /// Places with a jump, always or on a condition, to the callee's first instruction: a tail call.
    pub jumps: u32,
}

/// Places in a function of which the code does not say whom they call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Calls through a register or memory.
    pub calls: u32,
    /// Jumps through a register or memory, but for those of a `switch`.
    pub jumps: u32,
    /// Calls and jumps whose target is written into the code while the kernel runs (static calls).
    pub patched: u32,
}

/// The calls in a kernel's code. What is patched into it while it boots (alternatives) is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeCalls {
    /// By caller, then by callee.
    pub calls: Vec<CodeCall>,
    /// By caller; only functions that have such places.
    pub unknown: BTreeMap<usize, Unknown>,
}

impl CodeCalls {
    /// Reads the code of an ELF file whose functions are `symbols`.
    ///
    /// # Errors
    /// The file cannot be read or is no ELF file.
    pub fn load(vmlinux: &Path, symbols: &Symbols) -> Result<Self> {
        let file = File::open(vmlinux).at("open", vmlinux)?;
        Self::parse(&ReadCache::new(file), vmlinux, symbols)
    }

    /// The same from bytes in memory or a cache over a file; `path` is for error messages.
    ///
    /// # Errors
    /// The bytes are no ELF file.
    pub fn parse<'data, R: ReadRef<'data>>(data: R, path: &Path, symbols: &Symbols) -> Result<Self> {
        let (_, sections) =
            read(data).map_err(|e| Error::Elf { path: path.to_owned(), reason: e.to_string() })?;
        let begins = Begins::of(symbols);
        let mut found: BTreeMap<(usize, usize), CodeCall> = BTreeMap::new();
        let mut unknown: BTreeMap<usize, Unknown> = BTreeMap::new();
        let mut ordered: Vec<&CodeSection> = sections.values().collect();
        ordered.sort_by_key(|section| section.start);
        let mut done = 0;
        for (index, function) in symbols.functions().iter().enumerate() {
            let caller = symbols.whole(index);
            for (address, code) in code(data, &ordered, function.address.max(done), function.end()) {
                // Assembly has functions inside of functions; none is read twice.
                done = done.max(address.saturating_add(code.len() as u64));
                for insn in Guest::instructions(code, address) {
                    let (target, is_call) = match Guest::ending(&insn).0 {
                        Ending::Call { target } => (target, true),
                        Ending::Jump { target } => (target, false),
                        _ => continue,
                    };
                    let caller = match symbols.lookup(insn.address) {
                        Some(inner) if inner != index => symbols.whole(inner),
                        _ => caller,
                    };
                    let Some(target) = target else {
                        if is_call || !Guest::is_table_jump(&insn) {
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
                    // A jump within a function is a loop, or goes to the part that stands elsewhere.
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
struct Begins {
    at: HashMap<u64, usize>,
    roles: Vec<TargetRole>,
}

impl Begins {
    fn of(symbols: &Symbols) -> Self {
        let functions = symbols.functions();
        let at = functions.iter().enumerate().map(|(index, function)| (function.address, index)).collect();
        Self { at, roles: functions.iter().map(|function| Guest::target_role(&function.name)).collect() }
    }

    fn function(&self, address: u64) -> Option<usize> {
        self.at.get(&address).copied()
    }

    fn role(&self, function: usize) -> TargetRole {
        self.roles.get(function).copied().unwrap_or(TargetRole::Function)
    }
}

/// The bytes of a range of addresses, in each section that has some of them, as far as they are in the file.
fn code<'data, R: ReadRef<'data>>(
    data: R,
    sections: &[&CodeSection],
    begin: u64,
    end: u64,
) -> Vec<(u64, &'data [u8])> {
    let bytes = |section: &&CodeSection| {
        let (from, to) = (begin.max(section.start), end.min(section.end));
        let size = to.checked_sub(from).filter(|size| *size > 0)?;
        let offset = section.offset.checked_add(from - section.start)?;
        Some((from, data.read_bytes_at(offset, size).ok()?))
    };
    sections.iter().filter_map(bytes).collect()
}
