//! Execution counts of blocks and branches, stored in `counts.kt`.
//!
//! All numbers are little endian. The file begins with magic `KTCOUNT\0`, version u32, blocks u32,
//! edges u32, reserved u32. Each block has start u64, last u64, count u64, instructions u32, bytes
//! u32. Each edge has source u64, target u64, count u64, kind u32, reserved u32.

use crate::chunk::read;
use crate::{check_version, Error, VERSION};

const MAGIC: [u8; 8] = *b"KTCOUNT\0";
const WHAT: &str = "counts file";

/// Straight run of instructions that executed from first to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockCount {
    /// Address of the block's first instruction.
    pub start: u64,
    /// Address of the block's last instruction.
    pub last: u64,
    /// Number of executions of the block.
    pub count: u64,
    /// Number of instructions in the block.
    pub instructions: u32,
    /// Size from the first instruction to the end of the last, in bytes.
    pub bytes: u32,
}

/// Kind of a branch instruction, which decides how its target can be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum BranchKind {
    /// Conditional jump, with its target in the instruction.
    Conditional = 0,
    /// Unconditional jump, with its target in the instruction.
    Jump = 1,
    /// Jump through a register or memory.
    IndirectJump = 2,
    /// Call, with its target in the instruction.
    Call = 3,
    /// Call through a register or memory.
    IndirectCall = 4,
    /// Return instruction.
    Return = 5,
}

impl BranchKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Conditional, Self::Jump, Self::IndirectJump, Self::Call, Self::IndirectCall, Self::Return];

    /// Returns the name of the kind that tables print.
    pub fn name(self) -> &'static str {
        match self {
            BranchKind::Conditional => "conditional",
            BranchKind::Jump => "jump",
            BranchKind::IndirectJump => "indirect-jump",
            BranchKind::Call => "call",
            BranchKind::IndirectCall => "indirect-call",
            BranchKind::Return => "return",
        }
    }
}

/// Execution count of one taken branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeCount {
    /// Address of the branch instruction.
    pub source: u64,
    /// Address of the branch target.
    pub target: u64,
    /// Number of times the branch was taken.
    pub count: u64,
    /// Kind of the branch instruction.
    pub kind: BranchKind,
}

/// Contents of `counts.kt`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionCounts {
    /// Executed blocks, sorted by start address, then by length.
    pub blocks: Vec<BlockCount>,
    /// Taken branches, sorted by source, then by target.
    pub edges: Vec<EdgeCount>,
}

impl ExecutionCounts {
    /// Encodes the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + 32 * (self.blocks.len() + self.edges.len()));
        out.extend_from_slice(&MAGIC);
        for word in [VERSION, self.blocks.len() as u32, self.edges.len() as u32, 0] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for block in &self.blocks {
            for long in [block.start, block.last, block.count] {
                out.extend_from_slice(&long.to_le_bytes());
            }
            out.extend_from_slice(&block.instructions.to_le_bytes());
            out.extend_from_slice(&block.bytes.to_le_bytes());
        }
        for edge in &self.edges {
            for long in [edge.source, edge.target, edge.count] {
                out.extend_from_slice(&long.to_le_bytes());
            }
            out.extend_from_slice(&(edge.kind as u32).to_le_bytes());
            out.extend_from_slice(&[0; 4]);
        }
        out
    }

    /// Parses the file and checks its magic and version.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let found: [u8; 8] = read(bytes, 0, WHAT)?;
        if found != MAGIC {
            return Err(Error::Magic { what: WHAT, found });
        }
        let word = |at| read(bytes, at, WHAT).map(u32::from_le_bytes);
        let long = |at| read(bytes, at, WHAT).map(u64::from_le_bytes);
        check_version(WHAT, word(8)?)?;
        let (blocks, edges) = (word(12)? as usize, word(16)? as usize);
        let expected = 24 + 32 * (blocks + edges);
        if bytes.len() < expected {
            return Err(Error::Truncated { what: WHAT, at: bytes.len() });
        }
        let mut counts = ExecutionCounts::default();
        for at in (24..).step_by(32).take(blocks) {
            counts.blocks.push(BlockCount {
                start: long(at)?,
                last: long(at + 8)?,
                count: long(at + 16)?,
                instructions: word(at + 24)?,
                bytes: word(at + 28)?,
            });
        }
        for at in (24 + 32 * blocks..).step_by(32).take(edges) {
            let code = word(at + 24)?;
            let kind = *BranchKind::ALL.get(code as usize).ok_or(Error::Invalid {
                what: WHAT,
                found: code.into(),
                at: at + 24,
            })?;
            counts.edges.push(EdgeCount {
                source: long(at)?,
                target: long(at + 8)?,
                count: long(at + 16)?,
                kind,
            });
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn round_trip_and_truncation() {
        let counts = ExecutionCounts {
            blocks: vec![BlockCount { start: 1, last: 5, count: 9, instructions: 2, bytes: 6 }],
            edges: vec![EdgeCount { source: 5, target: 1, count: 8, kind: BranchKind::Return }],
        };
        let bytes = counts.to_bytes();
        assert_eq!(ExecutionCounts::parse(&bytes), Ok(counts));
        for end in 0..bytes.len() {
            assert!(ExecutionCounts::parse(&bytes[..end]).is_err());
        }
    }

    proptest! {
        #[test]
        fn foreign_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = ExecutionCounts::parse(&bytes);
            for (at, byte) in MAGIC.iter().chain(&VERSION.to_le_bytes()).enumerate() {
                if let Some(place) = bytes.get_mut(at) { *place = *byte; }
            }
            let _ = ExecutionCounts::parse(&bytes);
        }
    }
}
