//! What is known of each translated block.

use kerntune_isa::{Flow, Refusal};
use kerntune_trace::counts::EdgeKind;
use std::collections::HashMap;

/// One translated block.
#[derive(Debug, Clone)]
pub struct BlockInfo {
    /// Address of the first instruction.
    pub start: u64,
    /// Address of the last instruction.
    pub last: u64,
    /// Address after the last instruction.
    pub end: u64,
    /// Offsets of the instructions from `start`.
    pub offsets: Box<[u16]>,
    /// Where the jump that ends it leads, if the instruction says so; else 0.
    pub target: u64,
    /// How it ends.
    pub flow: Flow,
    /// Which exceptions of its last instruction count it.
    pub refusal: Refusal,
    /// Whether it is user code.
    pub user: bool,
    /// Distinguishes user pages of one address and different content; 0 for the kernel.
    pub space: u64,
}

impl BlockInfo {
    /// Number of instructions.
    pub fn instructions(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// The address of the instruction that has `rest` instructions to the end, itself included.
    #[inline]
    pub fn address_of(&self, rest: u64) -> Option<u64> {
        let index = self.instructions().checked_sub(rest)?;
        self.offsets.get(index as usize).map(|&offset| self.start + u64::from(offset))
    }

    /// The number of instructions before the one at `address`, if there is one.
    pub fn position(&self, address: u64) -> Option<u64> {
        let offset = u16::try_from(address.checked_sub(self.start)?).ok()?;
        self.offsets.binary_search(&offset).ok().map(|index| index as u64)
    }
}

/// Bits of an address within its page.
const IN_PAGE: u64 = 0xfff;

impl BlockInfo {
    /// The same where the block's page may be mapped at another address than that at which it was translated:
    /// QEMU uses a block of user code for all processes that map its page.
    pub fn position_in_page(&self, address: u64) -> Option<u64> {
        self.position(self.start & !IN_PAGE | address & IN_PAGE)
    }
}

/// What is asked of a block each time that a branch leaves it, in a byte: what is known of all of them fits into no cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayOut(u8);

impl WayOut {
    const BRANCH: u8 = 1;
    const RETURN: u8 = 2;
    const USER: u8 = 4;

    fn of(block: &BlockInfo) -> Self {
        let way = match block.flow {
            Flow::Branch(EdgeKind::Return) => Self::BRANCH | Self::RETURN,
            Flow::Branch(_) => Self::BRANCH,
            _ => 0,
        };
        Self(way | if block.user { Self::USER } else { 0 })
    }

    /// Whether it ends with a branch.
    #[inline]
    pub fn is_branch(self) -> bool {
        self.0 & Self::BRANCH != 0
    }

    /// Whether that is a return.
    #[inline]
    pub fn is_return(self) -> bool {
        self.0 & Self::RETURN != 0
    }

    /// Whether it is user code.
    #[inline]
    pub fn is_user(self) -> bool {
        self.0 & Self::USER != 0
    }
}

/// All blocks, by number. Number 0 is "none".
pub struct Blocks {
    list: Vec<BlockInfo>,
    /// Of each block.
    ways_out: Vec<WayOut>,
    by_key: HashMap<(u64, u16, u64), u32>,
    /// The kernel block that was translated last among those that have an instruction at an address and
    /// an end that is every block's.
    ending: HashMap<u64, u32>,
}

impl Blocks {
    pub fn new() -> Self {
        let none = BlockInfo {
            start: 0,
            last: 0,
            end: 0,
            target: 0,
            offsets: Box::new([]),
            flow: Flow::Opaque,
            refusal: Refusal::NONE,
            user: true,
            space: 0,
        };
        Self {
            ways_out: vec![WayOut::of(&none)],
            list: vec![none],
            by_key: HashMap::new(),
            ending: HashMap::new(),
        }
    }

    /// The number of a block, new or known.
    pub fn intern(&mut self, block: BlockInfo) -> u32 {
        let key = (block.start, block.offsets.len() as u16, block.space);
        let next = self.list.len() as u32;
        let id = *self.by_key.entry(key).or_insert(next);
        if !block.user && block.flow != Flow::Straight {
            let addresses = block.offsets.iter().map(|&offset| block.start + u64::from(offset));
            self.ending.extend(addresses.map(|address| (address, id)));
        }
        let way_out = WayOut::of(&block);
        match (self.list.get_mut(id as usize), self.ways_out.get_mut(id as usize)) {
            // The kernel patches itself: same place, same length, other code.
            (Some(known), Some(way)) => (*known, *way) = (block, way_out),
            _ => {
                self.list.push(block);
                self.ways_out.push(way_out);
            }
        }
        id
    }

    /// A kernel block that has an instruction at the address and ends with one that ends every block: the
    /// one translated last, as the kernel patches itself. All that are valid end with the same instruction.
    pub fn ending(&self, address: u64) -> Option<u32> {
        self.ending.get(&address).copied()
    }

    /// The first `instructions` instructions of block `id`, as a block of its own.
    pub fn prefix(&mut self, id: u32, instructions: u64) -> Option<u32> {
        let whole = self.get(id)?;
        let offsets: Box<[u16]> = whole.offsets.get(..instructions as usize)?.into();
        let last = *offsets.last()?;
        let part = BlockInfo {
            last: whole.start + u64::from(last),
            end: whole.start + u64::from(*whole.offsets.get(instructions as usize)?),
            offsets,
            flow: Flow::Straight,
            refusal: Refusal::NONE,
            ..whole.clone()
        };
        Some(self.intern(part))
    }

    /// A block by number.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&BlockInfo> {
        self.list.get(id as usize)
    }

    /// How a block is left, by number.
    #[inline]
    pub fn way_out(&self, id: u32) -> Option<WayOut> {
        self.ways_out.get(id as usize).copied()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &BlockInfo> {
        self.list.iter()
    }

    /// How many numbers are in use.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_block_is_its_prefix() {
        let mut blocks = Blocks::new();
        let id = blocks.intern(BlockInfo {
            start: 100,
            last: 107,
            end: 110,
            target: 0,
            offsets: Box::new([0, 3, 7]),
            flow: Flow::Straight,
            refusal: Refusal::NONE,
            user: false,
            space: 0,
        });
        assert_eq!(blocks.get(id).and_then(|b| b.position(103)), Some(1));
        assert_eq!(blocks.get(id).and_then(|b| b.position(104)), None);
        let at = |rest| blocks.get(id).and_then(|b| b.address_of(rest));
        assert_eq!([at(4), at(3), at(1), at(0)], [None, Some(100), Some(107), None]);
        let part = blocks.prefix(id, 2).unwrap();
        let part = blocks.get(part).unwrap();
        assert_eq!((part.start, part.last, part.end, part.instructions()), (100, 103, 107, 2));
        assert_eq!(blocks.prefix(id, 0), None);
        assert_eq!(blocks.prefix(id, 3), None);
    }
}
