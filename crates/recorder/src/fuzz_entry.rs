//! Entry point for fuzzing: what is read of the guest's memory.

use crate::loaded_code::LoadedTable;
use crate::loads::{read_module, read_symbols};
use kerntune_isa::{Register, StoppedCpu};
use kerntune_trace::loaded::{AreaLayout, ModuleLayout, SymbolsLayout};

/// Address of the first byte.
pub const BASE: u64 = 0xffff_ffff_c000_0000;
/// Offsets in the memory of the module's name and of the areas of its code.
const LAYOUT: (u32, [AreaLayout; 2]) =
    (0, [AreaLayout { base: 64, size: 72 }, AreaLayout { base: 80, size: 88 }]);
const SYMBOLS: SymbolsLayout = SymbolsLayout { table: 96, symbols: 0, count: 8, strings: 16 };

/// A CPU that sees these bytes from [`BASE`] on, and no other memory.
struct GuestMemory<'a>(&'a [u8]);

impl StoppedCpu for GuestMemory<'_> {
    fn register(&mut self, _: Register) -> u64 {
        BASE
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let at = usize::try_from(address.wrapping_sub(BASE)).unwrap_or(usize::MAX);
        let bytes = at.checked_add(into.len()).and_then(|end| self.0.get(at..end));
        bytes.map(|bytes| into.copy_from_slice(bytes)).is_some()
    }
}

/// Reads a module at the beginning of memory, and looks up what it has; loads it twice, and frees it.
pub fn guest_module(memory: &[u8]) {
    let mut cpu = GuestMemory(memory);
    let layout = ModuleLayout { name: LAYOUT.0, symbols: Some(SYMBOLS), areas: LAYOUT.1.to_vec() };
    let Some((name, areas)) = read_module(&layout, BASE, &mut cpu) else { return };
    let Some(symbols) = read_symbols(&SYMBOLS, BASE, &areas, &mut cpu) else { return };
    let mut table = LoadedTable::new(1, None);
    table.add_module(&name, &areas, symbols.clone());
    let count = table.functions().len();
    table.add_module(&name, &areas, symbols.clone());
    assert_eq!(count, table.functions().len(), "the same module at the same place");
    for symbol in &symbols {
        let function = table.containing(symbol.address).unwrap_or_default();
        assert!(table.kind(function).is_some(), "code of the module has a function");
    }
    areas.iter().for_each(|area| table.free(area.start));
    assert!(areas.iter().all(|area| table.containing(area.start).is_none()));
}
