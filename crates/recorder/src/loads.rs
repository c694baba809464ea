//! Code that the kernel loads while it runs: learned where the kernel registers or frees it.
//!
//! These functions run rarely, so reading a module's symbols may allocate. The tables change nothing
//! in code that is already translated; QEMU translates code again after it was written.

use crate::io::{read_u32, read_u64};
use crate::loaded_code::CodeSymbol;
use crate::marks::text;
use crate::recorder::Recorder;
use kerntune_isa::{GuestIsa, Isa, StoppedCpu};
use kerntune_trace::loaded::{BpfLayout, LoadEvent, LoadSpec, ModuleLayout, SymbolsLayout, BPF, FTRACE};
use std::ops::Range;

/// Bytes of a module's name (`MODULE_NAME_LEN`), with the NUL.
const MODULE_NAME_BYTES: usize = 56;
/// Upper bound for a symbol's name (`KSYM_NAME_LEN`), with the NUL.
const SYMBOL_NAME_BYTES: usize = 512;
/// Upper bounds of what is read of one module; the largest modules have a tenth of it.
const MAX_SYMBOLS: usize = 1 << 20;
const MAX_STRINGS: usize = 1 << 26;
const MAX_AREA_BYTES: u64 = 1 << 30;
/// Size of an ELF symbol, and types of code in its low four bits of information.
const SYMBOL_BYTES: usize = 24;
const NO_TYPE: u8 = 0;
const FUNCTION: u8 = 2;
const PAGE: usize = 4096;
/// Kind of code that the kernel copied or made (`PERF_RECORD_KSYMBOL_TYPE_OOL`), and its name for
/// ftrace's.
const OUT_OF_LINE: u16 = 2;
const FTRACE_TRAMPOLINE: &str = "ftrace_trampoline";
/// Begins of names that no function has: marks of what precedes one, and names of our own.
const NO_FUNCTIONS: [&str; 3] = ["__pfx_", "__cfi_", "["];

/// Reads memory page by page, up to the first byte that cannot be read.
fn read_while(cpu: &mut dyn StoppedCpu, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let at = address.wrapping_add(bytes.len() as u64);
        let piece = (PAGE - at as usize % PAGE).min(length - bytes.len());
        let from = bytes.len();
        bytes.resize(from + piece, 0);
        if !cpu.read(at, &mut bytes[from..]) {
            bytes.truncate(from);
            break;
        }
    }
    bytes
}

/// Reads a NUL-terminated name of at most so many bytes; `None` if it is empty.
fn read_name(cpu: &mut dyn StoppedCpu, address: u64, length: usize) -> Option<String> {
    printable(&read_while(cpu, address, length))
}

/// Returns the text up to a NUL; `None` if it is empty or not plain.
fn printable(bytes: &[u8]) -> Option<String> {
    let name = text(bytes);
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())).then_some(name)
}

/// Reads a module's name and the areas of its code.
pub fn read_module(
    layout: &ModuleLayout,
    module: u64,
    cpu: &mut dyn StoppedCpu,
) -> Option<(String, Vec<Range<u64>>)> {
    let name = read_name(cpu, module.wrapping_add(layout.name.into()), MODULE_NAME_BYTES)?;
    let mut areas = Vec::new();
    for area in &layout.areas {
        let base = read_u64(cpu, module, area.base)?;
        let end = base.checked_add(read_u32(cpu, module, area.size)?.into())?;
        let overlaps = areas.iter().any(|other: &Range<u64>| base < other.end && other.start < end);
        if GuestIsa::is_kernel(base) && base < end && end - base <= MAX_AREA_BYTES && !overlaps {
            areas.push(base..end);
        }
    }
    Some((name, areas))
}

/// Reads the symbols of a module's code.
pub fn read_symbols(
    layout: &SymbolsLayout,
    module: u64,
    areas: &[Range<u64>],
    cpu: &mut dyn StoppedCpu,
) -> Option<Vec<CodeSymbol>> {
    let table = read_u64(cpu, module, layout.table)?;
    let count = read_u32(cpu, table, layout.count)? as usize;
    let (symbols, strings) = (read_u64(cpu, table, layout.symbols)?, read_u64(cpu, table, layout.strings)?);
    if count > MAX_SYMBOLS {
        return None;
    }
    let bytes = read_while(cpu, symbols, count * SYMBOL_BYTES);
    let word =
        |record: &[u8], at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap_or_default());
    let code = bytes.chunks_exact(SYMBOL_BYTES).filter_map(|record| {
        let kind = record[4] & 15;
        let address = word(record, 8);
        let is_code = matches!(kind, NO_TYPE | FUNCTION) && areas.iter().any(|area| area.contains(&address));
        let name = word(record, 0) as u32 as usize;
        is_code.then_some((name, address, word(record, 16), kind == FUNCTION))
    });
    let code: Vec<_> = code.filter(|(name, ..)| *name < MAX_STRINGS).collect();
    let Some(last) = code.iter().map(|(name, ..)| *name).max() else { return Some(Vec::new()) };
    let names = read_while(cpu, strings, last + SYMBOL_NAME_BYTES);
    let named = code.into_iter().filter_map(|(name, address, size, is_function)| {
        let bytes = names.get(name..)?;
        let name = printable(&bytes[..bytes.len().min(SYMBOL_NAME_BYTES)])?;
        let is_other = NO_FUNCTIONS.iter().any(|preamble| name.starts_with(preamble));
        (!is_other).then_some(CodeSymbol { name, address, size, is_function })
    });
    Some(named.collect())
}

impl Recorder {
    /// Handles the beginning of a function that loads or frees code.
    pub fn on_load(&mut self, point: u32, cpu: &mut dyn StoppedCpu) {
        let Some(LoadSpec { points, module, bpf, .. }) = &self.loads else { return };
        let Some(point) = points.get(point as usize) else { return };
        let [argument, second] = GuestIsa::ARGUMENTS.map(|register| cpu.register(register));
        let loaded = &mut self.planner.functions.loaded;
        let bpf = |cpu: &mut dyn StoppedCpu| {
            let BpfLayout { start, end, name } = (*bpf)?;
            let range = read_u64(cpu, argument, start)?..read_u64(cpu, argument, end)?;
            let is_code = GuestIsa::is_kernel(range.start)
                && range.start < range.end
                && range.end - range.start <= MAX_AREA_BYTES;
            is_code.then(|| (read_name(cpu, argument.wrapping_add(name.into()), SYMBOL_NAME_BYTES), range))
        };
        let is_known = match point.event {
            LoadEvent::Freed => {
                loaded.free(argument);
                true
            }
            LoadEvent::BpfFreed => {
                if let Some((_, range)) = bpf(cpu) {
                    loaded.remove(range);
                }
                true
            }
            LoadEvent::Trampoline => {
                let [size, goes, name] = GuestIsa::FURTHER_ARGUMENTS.map(|register| cpu.register(register));
                let range = second..second.saturating_add(u64::from(size as u32));
                let is_code = argument as u16 == OUT_OF_LINE && GuestIsa::is_kernel(second);
                // Code of probes is entered in the middle, on behalf of the function that is probed.
                let name = read_name(cpu, name, SYMBOL_NAME_BYTES).filter(|name| name == FTRACE_TRAMPOLINE);
                match name.filter(|_| is_code) {
                    Some(_) if goes as u8 != 0 => loaded.remove(range),
                    Some(name) if !loaded.is_full() => loaded.add(name, FTRACE, range),
                    _ => {}
                }
                true
            }
            _ if loaded.is_full() => false,
            LoadEvent::Bpf => match bpf(cpu) {
                Some((Some(name), range)) => {
                    loaded.add(name, BPF, range);
                    true
                }
                _ => false,
            },
            LoadEvent::Module => {
                let read = module.as_ref().and_then(|layout| {
                    let (name, areas) = read_module(layout, argument, cpu)?;
                    let symbols = match &layout.symbols {
                        Some(of) => read_symbols(of, argument, &areas, cpu)?,
                        None => Vec::new(),
                    };
                    Some((name, areas, symbols))
                });
                read.map(|(name, areas, symbols)| loaded.add_module(&name, &areas, symbols)).is_some()
            }
        };
        self.unread_code += u64::from(!is_known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_isa::Register;
    use kerntune_trace::loaded::AreaLayout;

    const BASE: u64 = 0xffff_ffff_c000_0000;
    const LAYOUT: SymbolsLayout = SymbolsLayout { table: 64, symbols: 0, count: 8, strings: 16 };

    /// Memory from [`BASE`] on; nothing else can be read.
    struct Memory(Vec<u8>);

    impl Memory {
        fn put(&mut self, at: usize, bytes: &[u8]) {
            self.0[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    impl StoppedCpu for Memory {
        fn register(&mut self, _: Register) -> u64 {
            0
        }

        fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
            let at = address.wrapping_sub(BASE) as usize;
            let bytes = at.checked_add(into.len()).and_then(|end| self.0.get(at..end));
            bytes.map(|bytes| into.copy_from_slice(bytes)).is_some()
        }
    }

    /// A module at [`BASE`] with its table at 0x100, symbols at 0x200, names at the memory's end.
    fn module(names: &[u8], symbols: &[(u32, u8, u64, u64)]) -> Memory {
        let mut memory = Memory(vec![0; 8192]);
        memory.put(8, b"brd\0");
        let end = memory.0.len() - names.len();
        memory.put(end, names);
        memory.put(64, &(BASE + 0x100).to_le_bytes());
        memory.put(72, &(BASE + 0x1000).to_le_bytes());
        memory.put(80, &0x400_u32.to_le_bytes());
        memory.put(0x100, &(BASE + 0x200).to_le_bytes());
        memory.put(0x108, &(symbols.len() as u32).to_le_bytes());
        memory.put(0x110, &(BASE + end as u64).to_le_bytes());
        for (at, (name, kind, address, size)) in (0x200..).step_by(SYMBOL_BYTES).zip(symbols) {
            memory.put(at, &name.to_le_bytes());
            memory.put(at + 4, &[*kind]);
            memory.put(at + 8, &address.to_le_bytes());
            memory.put(at + 16, &size.to_le_bytes());
        }
        memory
    }

    #[test]
    fn symbols_of_code_are_read_up_to_the_end_of_memory() {
        let layout =
            ModuleLayout { name: 8, symbols: Some(LAYOUT), areas: vec![AreaLayout { base: 72, size: 80 }] };
        let code = BASE + 0x1000;
        let mut memory = module(
            b"\0brd_init\0__pfx_x\0\x01bad\0data\0",
            &[
                (1, FUNCTION, code, 16),
                (10, FUNCTION, code + 16, 16),
                (18, FUNCTION, code + 32, 16),
                (23, 1, code + 48, 8),
                (1, FUNCTION, code - 1, 8),
                (99_999, FUNCTION, code + 64, 8),
            ],
        );
        let (name, areas) = read_module(&layout, BASE, &mut memory).unwrap();
        assert_eq!((name.as_str(), areas.as_slice()), ("brd", std::slice::from_ref(&(code..code + 0x400))));
        let symbols = read_symbols(&LAYOUT, BASE, &areas, &mut memory).unwrap();
        let expected = CodeSymbol { name: "brd_init".into(), address: code, size: 16, is_function: true };
        assert_eq!(symbols, [expected]);
        memory.put(0x108, &u32::MAX.to_le_bytes());
        assert_eq!(read_symbols(&LAYOUT, BASE, &areas, &mut memory), None, "more than any module has");
        memory.put(64, &1_u64.to_le_bytes());
        assert_eq!(read_symbols(&LAYOUT, BASE, &areas, &mut memory), None, "no memory there");
        memory.put(8, b"\0");
        assert_eq!(read_module(&layout, BASE, &mut memory), None);
    }
}
