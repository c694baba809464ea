//! Section `.llvm_bb_addr_map` of a linked program, with the addresses of its functions' blocks
//! (in).
//!
//! The format follows `llvm/docs/Extensions.rst` ("SHT_LLVM_BB_ADDR_MAP Section"), version 2, as
//! Clang 19 and 20 write it with `-fbasic-block-address-map`. Each function has a byte for the
//! version, a byte of features, the address (8 bytes) and the number of blocks. Each block has its
//! number, its distance from the end of the block before, its size and its flags, all ULEB128. A
//! function in several pieces has their number after the features, and address and blocks for each
//! piece. Features for counts are not supported, because kerntune does not request them.

/// Name of the section.
pub const SECTION: &str = ".llvm_bb_addr_map";

const VERSION: u8 = 2;
/// Bit of the features: the function is in several pieces.
const PIECES: u8 = 1 << 3;
/// Bit of a block's flags: control may fall through.
const FALLS_THROUGH: u64 = 1 << 3;

/// Function with its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFunction {
    /// Address of the first byte.
    pub address: u64,
    /// Blocks by position, piece by piece; the first one is the entry.
    pub blocks: Vec<MappedBlock>,
}

/// Basic block as the compiler sees it: calls may be inside, jumps are at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedBlock {
    /// The compiler's number of the block, which a list refers to.
    pub id: u64,
    /// Address of the first byte.
    pub address: u64,
    /// Size in bytes; 0 for a block without code.
    pub bytes: u64,
    /// Control may continue behind the block.
    pub falls_through: bool,
}

impl MappedBlock {
    /// Returns the address of the byte after the last.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes)
    }
}

/// Defect of an address map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{SECTION}, byte {at}: {what}")]
pub struct MapError {
    /// Offset in the section.
    pub at: usize,
    /// Defect at this offset.
    pub what: String,
}

/// Reads the contents of the section.
///
/// # Errors
/// [`MapError`]: another version, unsupported features, or a truncated section.
pub fn read_map(bytes: &[u8]) -> Result<Vec<MappedFunction>, MapError> {
    let mut reader = MapReader { bytes, at: 0 };
    let mut functions = Vec::new();
    while reader.at < bytes.len() {
        let begin = reader.at;
        let (version, features) = (reader.byte()?, reader.byte()?);
        if version != VERSION || features & !PIECES != 0 {
            let what = format!(
                "version {version} with features {features:#x}, where version {VERSION} without counts is read: build with Clang 19 or 20"
            );
            return Err(MapError { at: begin, what });
        }
        let pieces = if features == PIECES { reader.number()? } else { 1 };
        let mut blocks = Vec::new();
        let mut first = None;
        for _ in 0..pieces {
            let address = reader.word()?;
            first.get_or_insert(address);
            reader.blocks(address, &mut blocks)?;
        }
        let Some(address) = first else { return Err(reader.wrong("a function without a piece")) };
        functions.push(MappedFunction { address, blocks });
    }
    Ok(functions)
}

struct MapReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl MapReader<'_> {
    /// Reads the blocks of a piece that begins at `address`.
    fn blocks(&mut self, address: u64, blocks: &mut Vec<MappedBlock>) -> Result<(), MapError> {
        let mut end = address;
        for _ in 0..self.number()? {
            let (id, gap, size, flags) = (self.number()?, self.number()?, self.number()?, self.number()?);
            let (Some(from), true) = (end.checked_add(gap), size <= u64::MAX - end.saturating_add(gap))
            else {
                return Err(self.wrong("a block ends behind the last address"));
            };
            let falls_through = flags & FALLS_THROUGH != 0;
            blocks.push(MappedBlock { id, address: from, bytes: size, falls_through });
            end = from + size;
        }
        Ok(())
    }

    fn wrong(&self, what: &str) -> MapError {
        MapError { at: self.at, what: what.into() }
    }

    fn byte(&mut self) -> Result<u8, MapError> {
        let byte =
            *self.bytes.get(self.at).ok_or_else(|| self.wrong("the section ends inside of a function"))?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads 8 bytes, little-endian.
    fn word(&mut self) -> Result<u64, MapError> {
        (0..8).try_fold(0, |word, byte| Ok(word | u64::from(self.byte()?) << (8 * byte)))
    }

    /// Reads a ULEB128 number.
    fn number(&mut self) -> Result<u64, MapError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(self.wrong("a number has more than 64 bits"));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.wrong("a number has more than 64 bits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two functions: blocks 0 (16 bytes), 3 behind two bytes of padding, 1 without code; and one
    /// without blocks.
    fn section() -> Vec<u8> {
        let mut bytes = vec![2, 0];
        bytes.extend(0xffff_ffff_8100_0000u64.to_le_bytes());
        bytes.extend([3, 0, 0, 16, 8, 3, 2, 0x80, 1, 1, 1, 0, 0, 8]);
        bytes.extend([2, 0]);
        bytes.extend(0xffff_ffff_8100_0200u64.to_le_bytes());
        bytes.push(0);
        bytes
    }

    #[test]
    fn blocks_lie_one_after_the_other_with_what_is_between() {
        let map = read_map(&section()).unwrap();
        let blocks: Vec<_> =
            map[0].blocks.iter().map(|b| (b.id, b.address & 0xfff, b.bytes, b.falls_through)).collect();
        assert_eq!(blocks, [(0, 0, 16, true), (3, 18, 128, false), (1, 146, 0, true)]);
        assert_eq!((map.len(), map[1].blocks.len(), map[1].address), (2, 0, 0xffff_ffff_8100_0200));
        assert_eq!(map[0].blocks[1].end(), 0xffff_ffff_8100_0000 + 146);
    }

    #[test]
    fn a_function_may_be_in_several_pieces() {
        let mut bytes = vec![2, 8, 2];
        bytes.extend(0x1000u64.to_le_bytes());
        bytes.extend([1, 0, 0, 4, 0]);
        bytes.extend(0x9000u64.to_le_bytes());
        bytes.extend([1, 5, 0, 7, 1]);
        let map = read_map(&bytes).unwrap();
        let blocks: Vec<_> = map[0].blocks.iter().map(|b| (b.id, b.address, b.bytes)).collect();
        assert_eq!((map[0].address, blocks), (0x1000, vec![(0, 0x1000, 4), (5, 0x9000, 7)]));
        assert!(read_map(&[2, 8, 0]).unwrap_err().to_string().contains("without a piece"));
    }

    #[test]
    fn what_is_of_another_form_is_refused_with_its_place() {
        let with = |at: usize, byte: u8| {
            let mut bytes = section();
            bytes[at] = byte;
            read_map(&bytes).unwrap_err().to_string()
        };
        assert!(with(0, 3).contains("byte 0: version 3 with features 0x0"));
        assert!(with(25, 9).contains("byte 24: version 2 with features 0x9"));
        let cut = section();
        assert!(read_map(&cut[..30]).unwrap_err().to_string().contains("ends inside of a function"));
        let mut long = section();
        long.truncate(10);
        long.extend([1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0]);
        assert!(read_map(&long).unwrap_err().to_string().contains("64 bits"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read_map(&bytes);
            let _ = read_map(&[&[2, 0][..], &bytes].concat());
            let _ = read_map(&[&[2, 8][..], &bytes].concat());
        }
    }
}
