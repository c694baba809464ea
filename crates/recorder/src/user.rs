//! Traced binaries of user code, recognized by the contents of their pages.

use kerntune_isa::StoppedCpu;
use kerntune_trace::{page_hash, BinarySpec, FunctionKind};
use std::collections::HashMap;

/// Size of a page, in bytes.
const PAGE: u64 = 4096;

/// Page of a traced binary, as mapped by a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryPage {
    binary: u32,
    /// Difference between file offset and address.
    slide: u64,
}

/// Functions of one binary by file offset.
struct TracedBinary {
    starts: Vec<u64>,
    ends: Vec<u64>,
    kinds: Vec<FunctionKind>,
    /// Number of the first function.
    first: u32,
}

/// All traced binaries.
pub struct TracedBinaries {
    list: Vec<TracedBinary>,
    /// Binary and file offset of each page, by hash.
    pages: HashMap<u64, (u32, u64)>,
    buffer: Box<[u8; PAGE as usize]>,
}

impl TracedBinaries {
    /// Creates the table; `first` is the number of the first function.
    pub fn new(specs: &[BinarySpec], first: u32) -> Result<Self, String> {
        let mut binaries = Self { list: Vec::new(), pages: HashMap::new(), buffer: Box::new([0; 4096]) };
        let mut next = first;
        for (spec, number) in specs.iter().zip(0..) {
            if let Some(pair) = spec.functions.windows(2).find(|pair| pair[0].address >= pair[1].address) {
                return Err(format!(
                    "the functions of {} are not in order at {:#x}",
                    spec.path, pair[1].address
                ));
            }
            for page in &spec.pages {
                binaries.pages.entry(page.hash).or_insert((number, page.offset));
            }
            binaries.list.push(TracedBinary {
                starts: spec.functions.iter().map(|f| f.address).collect(),
                ends: spec.functions.iter().map(|f| f.address + f.size.max(1)).collect(),
                kinds: spec.functions.iter().map(|f| f.kind).collect(),
                first: next,
            });
            next += spec.functions.len() as u32;
        }
        Ok(binaries)
    }

    /// Returns true if no binary is traced.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the page that contains `address`, if it belongs to a traced binary.
    pub fn identify(&mut self, address: u64, cpu: &mut dyn StoppedCpu) -> Option<BinaryPage> {
        if self.pages.is_empty() {
            return None;
        }
        let page = address & !(PAGE - 1);
        if !cpu.read(page, &mut self.buffer[..]) {
            return None;
        }
        let &(binary, offset) = self.pages.get(&page_hash(&self.buffer))?;
        Some(BinaryPage { binary, slide: offset.wrapping_sub(page) })
    }

    /// Returns the function that begins at `address` and the function that contains it. Code near a
    /// page is assumed to be mapped next to it, as loaders do.
    pub fn at(&self, page: BinaryPage, address: u64) -> (Option<u32>, Option<u32>) {
        let offset = address.wrapping_add(page.slide);
        let Some(binary) = self.list.get(page.binary as usize) else { return (None, None) };
        let Some(index) = binary.starts.partition_point(|&start| start <= offset).checked_sub(1) else {
            return (None, None);
        };
        if offset >= binary.ends[index] {
            return (None, None);
        }
        match binary.kinds[index] {
            FunctionKind::Part(owner) => (None, Some(binary.first + owner)),
            _ => {
                let number = binary.first + index as u32;
                ((binary.starts[index] == offset).then_some(number), Some(number))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_isa::Register;
    use kerntune_trace::{FunctionSpec, PageSpec};

    struct PageMemory(u64, [u8; 4096]);

    impl StoppedCpu for PageMemory {
        fn register(&mut self, _: Register) -> u64 {
            0
        }
        fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
            into.copy_from_slice(&self.1);
            address == self.0
        }
    }

    #[test]
    fn a_page_is_known_wherever_it_is_mapped() {
        let mut page = [0x90; 4096];
        page[100] = 1;
        let spec = |address, kind| FunctionSpec {
            address,
            size: 16,
            kind,
            skip: false,
            probe: None,
            conditional: false,
        };
        let binary = BinarySpec {
            path: "b".into(),
            pages: vec![PageSpec { offset: 0x3000, hash: page_hash(&page) }],
            functions: vec![
                spec(0x3010, FunctionKind::Plain),
                spec(0x3020, FunctionKind::Part(0)),
                spec(0x4000, FunctionKind::Plain),
            ],
        };
        let other =
            BinarySpec { path: "a".into(), pages: vec![], functions: vec![spec(1, FunctionKind::Plain)] };
        let mut binaries = TracedBinaries::new(&[other, binary], 50).unwrap();
        for base in [0x40_0000, 0x7fff_dead_b000] {
            let known = binaries.identify(base + 0x123, &mut PageMemory(base, page)).unwrap();
            assert_eq!(binaries.at(known, base + 0x10), (Some(51), Some(51)));
            assert_eq!(binaries.at(known, base + 0x1f), (None, Some(51)));
            assert_eq!(binaries.at(known, base + 0x20), (None, Some(51)));
            assert_eq!(binaries.at(known, base + 0x30), (None, None));
            assert_eq!(binaries.at(known, base), (None, None));
            assert_eq!(binaries.at(known, base + 0x1000), (Some(53), Some(53)));
        }
        assert_eq!(binaries.identify(0x5000, &mut PageMemory(0x6000, page)), None);
        page[0] = 0;
        assert_eq!(binaries.identify(0x6000, &mut PageMemory(0x6000, page)), None);
    }
}
