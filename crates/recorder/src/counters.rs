//! Execution counts of blocks on one CPU.

/// Number of counters in one piece.
pub const PIECE: usize = 1 << 14;

/// Counters by block number, allocated in pieces of [`PIECE`], so that only translated blocks need
/// memory.
pub trait BlockCounters {
    /// Returns the counters of the `PIECE` blocks from number `piece * PIECE` on; `None` if nothing
    /// is counted there.
    fn piece(&mut self, piece: usize) -> Option<&mut [u64]>;

    /// Returns the number of blocks that can be counted.
    fn room(&self) -> usize;

    /// Returns the counter of a block.
    #[inline]
    fn of(&mut self, block: u32) -> Option<&mut u64> {
        self.piece(block as usize / PIECE)?.get_mut(block as usize % PIECE)
    }

    /// Sets the counters of the first `blocks` blocks to 0.
    fn clear(&mut self, blocks: usize) {
        for piece in 0..blocks.div_ceil(PIECE) {
            if let Some(counters) = self.piece(piece) {
                counters.fill(0);
            }
        }
    }

    /// Calls `visit` with number and count of each block that ran, among the first `blocks`.
    fn each(&mut self, blocks: usize, visit: &mut dyn FnMut(usize, u64)) {
        for piece in 0..blocks.div_ceil(PIECE) {
            let counters = self.piece(piece).unwrap_or_default();
            for (at, &count) in counters.iter().enumerate().filter(|(_, &count)| count > 0) {
                visit(piece * PIECE + at, count);
            }
        }
    }
}

impl BlockCounters for Vec<u64> {
    fn piece(&mut self, piece: usize) -> Option<&mut [u64]> {
        self.chunks_mut(PIECE).nth(piece)
    }

    fn room(&self) -> usize {
        self.len()
    }
}
