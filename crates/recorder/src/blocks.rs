//! Table of translated blocks.

use kerntune_isa::{BlockFlow, CountedFaults};
use kerntune_trace::counts::BranchKind;
use std::collections::HashMap;

/// Translated block.
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
    /// Target of the final jump if the instruction contains it; otherwise 0.
    pub target: u64,
    /// Way in which the block ends.
    pub flow: BlockFlow,
    /// Exceptions of the last instruction for which the instruction counts as executed.
    pub counted_faults: CountedFaults,
    /// True for user code.
    pub user: bool,
    /// Number that separates user pages with the same address and different contents; 0 for the
    /// kernel.
    pub space: u64,
}

impl BlockInfo {
    /// Returns what the block stores in [`InlineCounters::block`](crate::InlineCounters::block) if its
    /// number is `id`: the number in the lower [`NUMBER_BITS`], and above it the [`BlockExit`].
    pub fn stored_number(&self, id: u32) -> u64 {
        (id | BlockExit::of(self).0 << NUMBER_BITS).into()
    }

    /// Returns the number of instructions.
    pub fn instructions(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// Returns the address of the instruction that has `rest` instructions to the end, including
    /// itself.
    #[inline]
    pub fn address_of(&self, rest: u64) -> Option<u64> {
        let index = self.instructions().checked_sub(rest)?;
        self.offsets.get(index as usize).map(|&offset| self.start + u64::from(offset))
    }

    /// Returns the number of instructions before the one at `address`, or `None` if no instruction
    /// begins there.
    pub fn position(&self, address: u64) -> Option<u64> {
        let offset = u16::try_from(address.checked_sub(self.start)?).ok()?;
        self.offsets.binary_search(&offset).ok().map(|index| index as u64)
    }
}

/// Mask of the address bits within a page.
const PAGE_OFFSET_MASK: u64 = 0xfff;

impl BlockInfo {
    /// Works like [`Self::position`] for a block whose page may be mapped at another address than
    /// at its translation: QEMU shares a block of user code among all processes that map its page.
    pub fn position_in_page(&self, address: u64) -> Option<u64> {
        self.position(self.start & !PAGE_OFFSET_MASK | address & PAGE_OFFSET_MASK)
    }
}

/// Bits of a stored number that are the block's number; a table of more blocks exceeds any memory.
/// Together with the exit they are one positive 32-bit constant, which one instruction can store.
const NUMBER_BITS: u32 = 28;

/// Returns the number of the block that stored it, see [`BlockInfo::stored_number`].
#[inline]
pub fn stored_id(stored: u64) -> u32 {
    stored as u32 & ((1 << NUMBER_BITS) - 1)
}

/// Properties of a block that are needed for each branch out of it. Generated code stores them with
/// the block's number, since a table of them exceeds the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockExit(u32);

impl BlockExit {
    const BRANCH: u32 = 1;
    const RETURN: u32 = 2;
    const USER: u32 = 4;

    /// Returns the exit of the block that stored its number, see [`BlockInfo::stored_number`].
    #[inline]
    pub fn of_stored(stored: u64) -> Self {
        Self(stored as u32 >> NUMBER_BITS)
    }

    fn of(block: &BlockInfo) -> Self {
        let way = match block.flow {
            BlockFlow::Branch(BranchKind::Return) => Self::BRANCH | Self::RETURN,
            BlockFlow::Branch(_) => Self::BRANCH,
            _ => 0,
        };
        Self(way | if block.user { Self::USER } else { 0 })
    }

    /// Returns true if the block ends with a branch.
    #[inline]
    pub fn is_branch(self) -> bool {
        self.0 & Self::BRANCH != 0
    }

    /// Returns true if the block ends with a return.
    #[inline]
    pub fn is_return(self) -> bool {
        self.0 & Self::RETURN != 0
    }

    /// Returns true for user code.
    #[inline]
    pub fn is_user(self) -> bool {
        self.0 & Self::USER != 0
    }
}

/// All blocks by number. Number 0 stands for no block.
pub struct BlockTable {
    list: Vec<BlockInfo>,
    by_key: HashMap<(u64, u16, u64), u32>,
    /// For each instruction address, the most recently translated kernel block that contains it and
    /// ends with an instruction that ends every block.
    ending: HashMap<u64, u32>,
}

impl BlockTable {
    pub fn new() -> Self {
        let none = BlockInfo {
            start: 0,
            last: 0,
            end: 0,
            target: 0,
            offsets: Box::new([]),
            flow: BlockFlow::Opaque,
            counted_faults: CountedFaults::NONE,
            user: true,
            space: 0,
        };
        Self { list: vec![none], by_key: HashMap::new(), ending: HashMap::new() }
    }

    /// Returns the number of a block, which may be a new one.
    pub fn intern(&mut self, block: BlockInfo) -> u32 {
        let key = (block.start, block.offsets.len() as u16, block.space);
        let next = self.list.len() as u32;
        let id = *self.by_key.entry(key).or_insert(next);
        if !block.user && block.flow != BlockFlow::Straight {
            let addresses = block.offsets.iter().map(|&offset| block.start + u64::from(offset));
            self.ending.extend(addresses.map(|address| (address, id)));
        }
        match self.list.get_mut(id as usize) {
            // The kernel patched itself: same place, same length, other code.
            Some(known) => *known = block,
            None => self.list.push(block),
        }
        id
    }

    /// Returns the most recently translated kernel block that contains an instruction at the
    /// address and ends with an instruction that ends every block. The most recent one is right, as
    /// the kernel patches itself. All valid ones end with the same instruction.
    pub fn ending(&self, address: u64) -> Option<u32> {
        self.ending.get(&address).copied()
    }

    /// Returns the first `instructions` instructions of block `id` as a block of its own.
    pub fn prefix(&mut self, id: u32, instructions: u64) -> Option<u32> {
        let whole = self.get(id)?;
        let offsets: Box<[u16]> = whole.offsets.get(..instructions as usize)?.into();
        let last = *offsets.last()?;
        let part = BlockInfo {
            last: whole.start + u64::from(last),
            end: whole.start + u64::from(*whole.offsets.get(instructions as usize)?),
            offsets,
            flow: BlockFlow::Straight,
            counted_faults: CountedFaults::NONE,
            ..whole.clone()
        };
        Some(self.intern(part))
    }

    /// Returns a block by number.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&BlockInfo> {
        self.list.get(id as usize)
    }

    /// Returns what a block stores, see [`BlockInfo::stored_number`].
    pub fn stored_number(&self, id: u32) -> u64 {
        self.get(id).map_or(id.into(), |block| block.stored_number(id))
    }

    /// Returns all blocks.
    pub fn iter(&self) -> impl Iterator<Item = &BlockInfo> {
        self.list.iter()
    }

    /// Returns the number of block numbers in use.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_number_has_the_way_out() {
        let block = |flow, user| BlockInfo {
            start: 100,
            last: 100,
            end: 101,
            target: 0,
            offsets: Box::new([0]),
            flow,
            counted_faults: CountedFaults::NONE,
            user,
            space: 0,
        };
        for (flow, user) in [
            (BlockFlow::Branch(BranchKind::Return), false),
            (BlockFlow::Branch(BranchKind::Call), true),
            (BlockFlow::Straight, true),
        ] {
            let stored = block(flow, user).stored_number(1 << 27);
            let exit = BlockExit::of_stored(stored);
            assert_eq!(stored_id(stored), 1 << 27);
            assert!(stored <= i32::MAX as u64);
            assert_eq!(exit.is_branch(), matches!(flow, BlockFlow::Branch(_)));
            assert_eq!(exit.is_return(), flow == BlockFlow::Branch(BranchKind::Return));
            assert_eq!(exit.is_user(), user);
        }
    }

    #[test]
    fn a_cut_block_is_its_prefix() {
        let mut blocks = BlockTable::new();
        let id = blocks.intern(BlockInfo {
            start: 100,
            last: 107,
            end: 110,
            target: 0,
            offsets: Box::new([0, 3, 7]),
            flow: BlockFlow::Straight,
            counted_faults: CountedFaults::NONE,
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
        assert_eq!(stored_id(part.stored_number(2)), 2);
        assert!(!BlockExit::of_stored(part.stored_number(2)).is_branch());
        assert_eq!(blocks.prefix(id, 0), None);
        assert_eq!(blocks.prefix(id, 3), None);
    }
}
