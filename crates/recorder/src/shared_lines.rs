//! Recent accesses of one CPU to lines that CPUs have taken from each other, counted by piece before
//! they are added to the counts of a region.

use crate::known_pages::{LINE_SHIFT, NO_NUMBER};
use kerntune_trace::data::PIECE_BYTES;

/// Pieces of a line.
const PIECES: u64 = (1 << LINE_SHIFT) / PIECE_BYTES;
/// Lines that are kept, one for each remainder.
const LINES: usize = 1024;

/// Set of pieces of a line, a bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinePieces(u32);

impl LinePieces {
    /// Returns the pieces that an access touches in the line of its address.
    #[inline]
    pub fn of(address: u64, bytes: u64) -> Self {
        let from = address % (1 << LINE_SHIFT);
        let end = (from + bytes.max(1)).div_ceil(PIECE_BYTES).min(PIECES);
        Self((1 << end) - (1 << (from / PIECE_BYTES)))
    }

    fn iter(self) -> impl Iterator<Item = usize> {
        (0..PIECES as usize).filter(move |piece| self.0 >> piece & 1 == 1)
    }
}

/// Line with the pieces that have been described, and the accesses to them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecentLine {
    number: u64,
    known: LinePieces,
    counts: [[u64; 2]; PIECES as usize],
}

const NO_LINE: RecentLine =
    RecentLine { number: NO_NUMBER, known: LinePieces(0), counts: [[0; 2]; PIECES as usize] };

impl RecentLine {
    /// Counts an access.
    #[inline]
    pub fn count(&mut self, pieces: LinePieces, store: bool) {
        pieces.iter().for_each(|piece| self.counts[piece][usize::from(store)] += 1);
    }

    /// Returns the physical number of the line.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns offset, reads and writes of the pieces that were accessed.
    pub fn counts(&self) -> impl Iterator<Item = (u32, [u64; 2])> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, counts)| **counts != [0; 2]);
        counts.map(|(piece, counts)| (piece as u32 * PIECE_BYTES as u32, *counts))
    }
}

/// Recent lines by physical number.
pub(crate) struct RecentLines(Box<[RecentLine; LINES]>);

impl RecentLines {
    pub fn new() -> Self {
        Self(Box::new([NO_LINE; LINES]))
    }

    /// Returns the line if all these pieces are known.
    #[inline]
    pub fn find(&mut self, line: u64, pieces: LinePieces) -> Option<&mut RecentLine> {
        let recent = &mut self.0[line as usize % LINES];
        (recent.number == line && pieces.0 & !recent.known.0 == 0).then_some(recent)
    }

    /// Adds pieces of a line. Returns the line that was in its place.
    pub fn learn(&mut self, line: u64, pieces: LinePieces) -> Option<RecentLine> {
        let recent = &mut self.0[line as usize % LINES];
        if recent.number == line {
            recent.known.0 |= pieces.0;
            return None;
        }
        let old = std::mem::replace(recent, RecentLine { number: line, known: pieces, ..NO_LINE });
        (old.number != NO_NUMBER).then_some(old)
    }

    /// Removes and returns all lines.
    pub fn take(&mut self) -> impl Iterator<Item = RecentLine> + '_ {
        let lines = self.0.iter_mut().map(|line| std::mem::replace(line, NO_LINE));
        lines.filter(|line| line.number != NO_NUMBER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_the_line() {
        assert_eq!(LinePieces::of(0x1000, 1), LinePieces(1));
        assert_eq!(LinePieces::of(0x1007, 1), LinePieces(2));
        assert_eq!(LinePieces::of(0x1006, 4), LinePieces(0b110));
        assert_eq!(LinePieces::of(0x103c, 16), LinePieces(1 << 15));
        assert_eq!(LinePieces::of(0x1040, 0), LinePieces(1));
    }

    #[test]
    fn known_pieces_are_counted() {
        let mut lines = RecentLines::new();
        let (low, high) = (LinePieces::of(0, 8), LinePieces::of(8, 4));
        assert!(lines.find(7, low).is_none());
        assert!(lines.learn(7, low).is_none());
        assert!(lines.find(7, high).is_none());
        assert!(lines.learn(7, high).is_none());
        lines.find(7, low).unwrap().count(low, false);
        lines.find(7, high).unwrap().count(high, true);
        lines.find(7, high).unwrap().count(LinePieces::of(4, 8), true);
        let old = lines.learn(7 + LINES as u64, low).unwrap();
        assert_eq!(old.number(), 7);
        assert_eq!(old.counts().collect::<Vec<_>>(), [(0, [1, 0]), (4, [1, 1]), (8, [0, 2])]);
        assert_eq!(lines.take().map(|line| line.number()).collect::<Vec<_>>(), [7 + LINES as u64]);
        assert_eq!(lines.take().count(), 0);
    }
}
