//! Section `.llvm_bb_addr_map` of a linked program, with the addresses of its functions' blocks
//! (in).
//!
//! The format follows `llvm/docs/Extensions.rst` ("SHT_LLVM_BB_ADDR_MAP Section"), as Clang writes it
//! with `-fbasic-block-address-map`: version 2 by Clang 19 and 20, version 3 by 21, version 5 by 22
//! to 24. Each function has a byte for the version, a byte of features (two from version 5 on), the
//! address (8 bytes) and the number of blocks. Each block has its number, its distance from the end
//! of the block before, its size and its flags, all ULEB128.
//!
//! Features add to that. A function in several pieces has their number after the features, and
//! address and blocks for each piece. From version 3 on a block may have the ends of its calls before
//! its size: their number, and the distance of each from the one before; the size is then from the
//! last of them on. From version 4 on a block may have a hash of 8 bytes after its flags. Features
//! for counts are not supported, because kerntune does not request them.

/// Name of the section.
pub const SECTION: &str = ".llvm_bb_addr_map";

/// Versions that are read.
const VERSIONS: std::ops::RangeInclusive<u8> = 2..=5;
/// First version with two bytes of features.
const WIDE_FEATURES: u8 = 5;
/// Bit of the features: the function is in several pieces.
const PIECES: u16 = 1 << 3;
/// Bit of the features, from version 3 on: blocks have the ends of their calls.
const CALL_ENDS: u16 = 1 << 5;
/// Bit of the features, from version 4 on: blocks have hashes.
const HASHES: u16 = 1 << 6;
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
        let version = reader.byte()?;
        let low = u16::from(reader.byte()?);
        let high = if version >= WIDE_FEATURES { u16::from(reader.byte()?) } else { 0 };
        let features = low | high << 8;
        if !VERSIONS.contains(&version) || features & !features_of(version) != 0 {
            let (first, last) = (VERSIONS.start(), VERSIONS.end());
            let what = format!(
                "version {version} with features {features:#x}, where versions {first} to {last} without counts are read: \
                 build with Clang 19 to 24"
            );
            return Err(MapError { at: begin, what });
        }
        let pieces = if features & PIECES != 0 { reader.number()? } else { 1 };
        let mut blocks = Vec::new();
        let mut first = None;
        for _ in 0..pieces {
            let address = reader.word()?;
            first.get_or_insert(address);
            reader.blocks(address, features, &mut blocks)?;
        }
        let Some(address) = first else { return Err(reader.wrong("a function without a piece")) };
        functions.push(MappedFunction { address, blocks });
    }
    Ok(functions)
}

/// Returns the features of a version that are read.
fn features_of(version: u8) -> u16 {
    match version {
        ..=2 => PIECES,
        3 => PIECES | CALL_ENDS,
        4.. => PIECES | CALL_ENDS | HASHES,
    }
}

struct MapReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl MapReader<'_> {
    /// Reads the blocks of a piece that begins at `address`.
    fn blocks(&mut self, address: u64, features: u16, blocks: &mut Vec<MappedBlock>) -> Result<(), MapError> {
        let mut end = address;
        for _ in 0..self.number()? {
            let (id, gap) = (self.number()?, self.number()?);
            let from = self.behind(end, gap)?;
            end = from;
            if features & CALL_ENDS != 0 {
                for _ in 0..self.number()? {
                    let distance = self.number()?;
                    end = self.behind(end, distance)?;
                }
            }
            let (rest, flags) = (self.number()?, self.number()?);
            end = self.behind(end, rest)?;
            if features & HASHES != 0 {
                self.word()?;
            }
            let falls_through = flags & FALLS_THROUGH != 0;
            blocks.push(MappedBlock { id, address: from, bytes: end - from, falls_through });
        }
        Ok(())
    }

    /// Returns the address at a distance behind another one.
    fn behind(&self, address: u64, distance: u64) -> Result<u64, MapError> {
        address.checked_add(distance).ok_or_else(|| self.wrong("a block ends behind the last address"))
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
        assert!(with(0, 1).contains("byte 0: version 1 with features 0x0"));
        assert!(with(0, 6).contains("byte 0: version 6 with features"));
        assert!(with(1, CALL_ENDS as u8).contains("byte 0: version 2 with features 0x20"));
        assert!(with(25, 9).contains("byte 24: version 2 with features 0x9"));
        let cut = section();
        assert!(read_map(&cut[..30]).unwrap_err().to_string().contains("ends inside of a function"));
        let mut long = section();
        long.truncate(10);
        long.extend([1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0]);
        assert!(read_map(&long).unwrap_err().to_string().contains("64 bits"));
    }

    /// Maps of one program by several compilers (`maps/README.md`), with the sizes of its functions.
    const MAPS: [(u8, &[u8]); 4] = [
        (2, include_bytes!("maps/clang-19")),
        (3, include_bytes!("maps/clang-21")),
        (5, include_bytes!("maps/clang-22")),
        (5, include_bytes!("maps/clang-23")),
    ];

    #[test]
    fn maps_of_each_compiler_have_the_same_blocks() {
        for (version, bytes) in MAPS {
            assert_eq!(bytes[0], version);
            let map = read_map(bytes).unwrap();
            let sizes: Vec<Vec<_>> =
                map.iter().map(|of| of.blocks.iter().map(|block| block.bytes).collect()).collect();
            assert_eq!(sizes, [vec![13], vec![8, 7, 26, 2, 7], vec![11, 2]], "version {version}");
            let places: Vec<_> = map.iter().map(|of| of.address & 0xff).collect();
            assert_eq!(places, [0x20, 0x30, 0x70]);
            for function in &map {
                assert!(function.blocks.windows(2).all(|pair| pair[0].end() <= pair[1].address));
            }
        }
    }

    #[test]
    fn hashes_of_blocks_are_passed_over() {
        let mut bytes = vec![4, (CALL_ENDS | HASHES) as u8];
        bytes.extend(0x1000u64.to_le_bytes());
        bytes.extend([2, 0, 0, 2, 3, 4, 5, 8]);
        bytes.extend(u64::MAX.to_le_bytes());
        bytes.extend([1, 1, 0, 6, 1]);
        bytes.extend(u64::MAX.to_le_bytes());
        let map = read_map(&bytes).unwrap();
        let blocks: Vec<_> = map[0].blocks.iter().map(|b| (b.id, b.address, b.bytes)).collect();
        assert_eq!(blocks, [(0, 0x1000, 12), (1, 0x100d, 6)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read_map(&bytes);
            for begin in [&[2, 0][..], &[2, 8], &[3, 0x28], &[4, 0x68], &[5, 0x68, 0]] {
                let _ = read_map(&[begin, &bytes].concat());
            }
        }

        #[test]
        fn damaged_maps_are_read_or_refused(which in 0..MAPS.len(), at in 0usize..80, value: u8, cut in 0usize..80) {
            let mut bytes = MAPS[which].1.to_vec();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = read_map(&bytes);
        }
    }
}
