//! How often blocks ran on one CPU.

/// Counters of one piece.
pub const PIECE: usize = 1 << 14;

/// Counters by the block's number, in pieces of [`PIECE`]: only what was translated needs room.
pub trait Counters {
    /// Those of `PIECE` blocks from number `piece * PIECE` on; none where nothing is counted.
    fn piece(&mut self, piece: usize) -> Option<&mut [u64]>;

    /// Blocks that can be counted.
    fn room(&self) -> usize;

    /// That of a block.
    #[inline]
    fn of(&mut self, block: u32) -> Option<&mut u64> {
        self.piece(block as usize / PIECE)?.get_mut(block as usize % PIECE)
    }

    /// Those of the first so many blocks begin anew.
    fn clear(&mut self, blocks: usize) {
        for piece in 0..blocks.div_ceil(PIECE) {
            if let Some(counters) = self.piece(piece) {
                counters.fill(0);
            }
        }
    }

    /// Tells of each of the first so many blocks that ran how often it did.
    fn each(&mut self, blocks: usize, told: &mut dyn FnMut(usize, u64)) {
        for piece in 0..blocks.div_ceil(PIECE) {
            let counters = self.piece(piece).unwrap_or_default();
            for (at, &count) in counters.iter().enumerate().filter(|(_, &count)| count > 0) {
                told(piece * PIECE + at, count);
            }
        }
    }
}

impl Counters for Vec<u64> {
    fn piece(&mut self, piece: usize) -> Option<&mut [u64]> {
        self.chunks_mut(PIECE).nth(piece)
    }

    fn room(&self) -> usize {
        self.len()
    }
}
