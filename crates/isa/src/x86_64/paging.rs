//! The kernel's address space and its page tables (Documentation/arch/x86/x86_64/mm.rst; Intel's
//! manual, volume 3, 5.5).

use super::registers;
use crate::{AddressSpace, StoppedCpu};

const LEVEL_4: AddressSpace = AddressSpace {
    direct: (0xffff_8880_0000_0000, 0xffff_c880_0000_0000),
    mapped: (0xffff_c900_0000_0000, 0xffff_e900_0000_0000),
    page_structs: (0xffff_ea00_0000_0000, 0xffff_eb00_0000_0000),
    image: (IMAGE, MODULES),
    modules: (MODULES, MODULES_END),
    levels: 4,
};
const LEVEL_5: AddressSpace = AddressSpace {
    direct: (0xff11_0000_0000_0000, 0xff91_0000_0000_0000),
    mapped: (0xffa0_0000_0000_0000, 0xffd2_0000_0000_0000),
    page_structs: (0xffd4_0000_0000_0000, 0xffd6_0000_0000_0000),
    levels: 5,
    ..LEVEL_4
};
const IMAGE: u64 = 0xffff_ffff_8000_0000;
/// For an image of at most 512 MiB, as it is without KASLR.
const MODULES: u64 = 0xffff_ffff_a000_0000;
const MODULES_END: u64 = 0xffff_ffff_ff00_0000;

/// Base-2 logarithm of the smallest page size.
const SMALL: u8 = 12;
const PRESENT: u64 = 1;
const LARGE: u64 = 1 << 7;
const FRAME: u64 = 0x000f_ffff_ffff_f000;

/// Returns the layout of the running kernel's address space. Not valid for a kernel with randomized
/// memory regions.
pub fn address_space(cpu: &mut dyn StoppedCpu) -> AddressSpace {
    // The first megabyte has memory in every machine.
    match cpu.read(LEVEL_5.direct.0 + 0x1000, &mut [0]) {
        true => LEVEL_5,
        false => LEVEL_4,
    }
}

/// Returns the physical address of the page table in use.
pub fn page_table(cpu: &mut dyn StoppedCpu) -> u64 {
    cpu.register(registers::CR3) & FRAME
}

/// Returns the base-2 logarithm of the size of the page at `address`; of the smallest size if the
/// address is not mapped.
pub fn page_shift(space: &AddressSpace, table: u64, address: u64, cpu: &mut dyn StoppedCpu) -> u8 {
    let mut table = table;
    for level in (2..=space.levels).rev() {
        let index = address >> (12 + 9 * (level - 1)) & 0x1ff;
        let mut entry = [0; 8];
        if !cpu.read(space.direct.0.wrapping_add(table + index * 8), &mut entry) {
            return SMALL;
        }
        let entry = u64::from_le_bytes(entry);
        if entry & PRESENT == 0 {
            return SMALL;
        }
        if level <= 3 && entry & LARGE != 0 {
            return SMALL + 9 * (level as u8 - 1);
        }
        table = entry & FRAME;
    }
    SMALL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Register;
    use std::collections::HashMap;

    /// Page table entries by their address in the direct mapping.
    struct PageTables(HashMap<u64, u64>);

    impl StoppedCpu for PageTables {
        fn register(&mut self, _: Register) -> u64 {
            0x1000 | 0xfff
        }

        fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
            let entry = self.0.get(&address);
            entry.is_some_and(|entry| {
                into.copy_from_slice(&entry.to_le_bytes()[..into.len()]);
                true
            })
        }
    }

    #[test]
    fn the_tables_say_how_large_a_page_is() {
        let direct = LEVEL_4.direct.0;
        let mut cpu = PageTables(HashMap::from([
            (direct + 0x1000 + 8, 0x2003),
            (direct + 0x2000, 0x3003),
            (direct + 0x3000, 0x20_0083),
            (direct + 0x3008, 0x4003),
            (direct + 0x2008, 0x4000_0083),
            (direct + 0x2010, 0),
        ]));
        let space = address_space(&mut cpu);
        assert_eq!(space, LEVEL_4);
        let table = page_table(&mut cpu);
        assert_eq!(table, 0x1000);
        let base = 1 << 39;
        let mut shift = |address| page_shift(&space, table, address, &mut cpu);
        assert_eq!([shift(base), shift(base + 0x1f_ffff)], [21; 2]);
        assert_eq!(shift(base + 0x20_0000), 12, "a table of small pages");
        assert_eq!(shift(base + (1 << 30)), 30, "a page of 1 GiB");
        assert_eq!([shift(base + (2 << 30)), shift(0)], [12; 2], "nothing there");
    }

    #[test]
    fn five_levels_are_seen_by_where_memory_is() {
        let direct = LEVEL_5.direct.0;
        // One more table at the top than with four levels.
        let mut cpu = PageTables(HashMap::from([
            (direct + 0x1000, 0x2003),
            (direct + 0x2000, 0x3003),
            (direct + 0x3000, 0x4003),
            (direct + 0x4000, 0x20_0083),
        ]));
        let space = address_space(&mut cpu);
        assert_eq!((space, space.levels), (LEVEL_5, 5));
        assert_eq!(page_shift(&space, 0x1000, 0x1f_ffff, &mut cpu), 21);
    }
}
