//! Executed blocks and edges: `counts.kt`.
//!
//! Little endian: magic `KTCOUNT\0`, version u32, blocks u32, edges u32, reserved u32; then
//! per block start u64, last u64, count u64, instructions u32, bytes u32; then per edge source
//! u64, target u64, count u64, kind u32, reserved u32.

use crate::chunk::read;
use crate::{Error, VERSION};

const MAGIC: [u8; 8] = *b"KTCOUNT\0";
const WHAT: &str = "counts file";

/// A straight run of instructions that was executed from its first to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Address of the first instruction.
    pub start: u64,
    /// Address of the last instruction.
    pub last: u64,
    /// How often.
    pub count: u64,
    /// Number of instructions.
    pub instructions: u32,
    /// Bytes from the first instruction to the end of the last.
    pub bytes: u32,
}

/// What kind of instruction an edge leaves from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum EdgeKind {
    /// Conditional branch, taken.
    Conditional = 0,
    /// Direct jump.
    Jump = 1,
    /// Jump through a register or memory.
    IndirectJump = 2,
    /// Direct call.
    Call = 3,
    /// Call through a register or memory.
    IndirectCall = 4,
    /// Return.
    Return = 5,
}

impl EdgeKind {
    /// All of them, by number.
    pub const ALL: [EdgeKind; 6] = [
        EdgeKind::Conditional,
        EdgeKind::Jump,
        EdgeKind::IndirectJump,
        EdgeKind::Call,
        EdgeKind::IndirectCall,
        EdgeKind::Return,
    ];

    /// The word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            EdgeKind::Conditional => "conditional",
            EdgeKind::Jump => "jump",
            EdgeKind::IndirectJump => "indirect-jump",
            EdgeKind::Call => "call",
            EdgeKind::IndirectCall => "indirect-call",
            EdgeKind::Return => "return",
        }
    }
}

/// A taken branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Address of the branch instruction.
    pub source: u64,
    /// Address of the instruction executed next.
    pub target: u64,
    /// How often.
    pub count: u64,
    /// What kind of branch.
    pub kind: EdgeKind,
}

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// By start address, then length.
    pub blocks: Vec<Block>,
    /// By source, then target.
    pub edges: Vec<Edge>,
}

impl Counts {
    /// The file's bytes.
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

    /// Reads the file.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let found: [u8; 8] = read(bytes, 0, WHAT)?;
        if found != MAGIC {
            return Err(Error::Magic { what: WHAT, found });
        }
        let word = |at| read(bytes, at, WHAT).map(u32::from_le_bytes);
        let long = |at| read(bytes, at, WHAT).map(u64::from_le_bytes);
        let version = word(8)?;
        if version != VERSION {
            return Err(Error::Version { what: WHAT, found: version });
        }
        let (blocks, edges) = (word(12)? as usize, word(16)? as usize);
        let expected = 24 + 32 * (blocks + edges);
        if bytes.len() < expected {
            return Err(Error::Truncated { what: WHAT, at: bytes.len() });
        }
        let mut counts = Counts::default();
        for at in (24..).step_by(32).take(blocks) {
            counts.blocks.push(Block {
                start: long(at)?,
                last: long(at + 8)?,
                count: long(at + 16)?,
                instructions: word(at + 24)?,
                bytes: word(at + 28)?,
            });
        }
        for at in (24 + 32 * blocks..).step_by(32).take(edges) {
            let code = word(at + 24)?;
            let kind = *EdgeKind::ALL.get(code as usize).ok_or(Error::Invalid {
                what: WHAT,
                found: code.into(),
                at: at + 24,
            })?;
            counts.edges.push(Edge { source: long(at)?, target: long(at + 8)?, count: long(at + 16)?, kind });
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
        let counts = Counts {
            blocks: vec![Block { start: 1, last: 5, count: 9, instructions: 2, bytes: 6 }],
            edges: vec![Edge { source: 5, target: 1, count: 8, kind: EdgeKind::Return }],
        };
        let bytes = counts.to_bytes();
        assert_eq!(Counts::parse(&bytes), Ok(counts));
        for end in 0..bytes.len() {
            assert!(Counts::parse(&bytes[..end]).is_err());
        }
    }

    proptest! {
        #[test]
        fn foreign_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Counts::parse(&bytes);
            for (at, byte) in MAGIC.iter().chain(&VERSION.to_le_bytes()).enumerate() {
                if let Some(place) = bytes.get_mut(at) { *place = *byte; }
            }
            let _ = Counts::parse(&bytes);
        }
    }
}
