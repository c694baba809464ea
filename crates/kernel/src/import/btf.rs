//! Structures of a kernel from its type information (BTF), which distributions' kernels carry.
//!
//! The format is `Documentation/bpf/btf.rst`. Types are numbered from 1 in the order of the file.

const MAGIC: u16 = 0xeb9f;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
/// Bytes of a member's record.
const MEMBER_BYTES: usize = 12;
/// Depth of unnamed structures inside others.
const MAX_DEPTH: usize = 16;

/// Type information.
pub(crate) struct Btf<'data> {
    /// Records of the types.
    types: &'data [u8],
    strings: &'data [u8],
    /// Position of each type's record.
    places: Vec<usize>,
}

/// Record of a type.
struct TypeRecord {
    name: usize,
    kind: u32,
    /// Number of members, values or parameters.
    count: usize,
    /// Offsets of members share their field with the width of bit fields.
    has_bit_fields: bool,
    /// Position of what follows the record.
    members: usize,
}

impl<'data> Btf<'data> {
    /// Finds the records. `None` for other bytes, and for a kind that is not known, because its
    /// length is not known either.
    pub fn parse(bytes: &'data [u8]) -> Option<Self> {
        if bytes.get(..3)? != [MAGIC.to_le_bytes()[0], MAGIC.to_le_bytes()[1], 1] {
            return None;
        }
        let field = |at: usize| Some(word(bytes, at)? as usize);
        let part = |at: usize| {
            let begin = field(4)?.checked_add(field(at)?)?;
            bytes.get(begin..begin.checked_add(field(at + 4)?)?)
        };
        let mut btf = Self { types: part(8)?, strings: part(16)?, places: Vec::new() };
        let mut at = 0;
        while at < btf.types.len() {
            let record = btf.record(at)?;
            btf.places.push(at);
            let each = match record.kind {
                1 | 14 | 17 => 4,
                2 | 7..=12 | 16 | 18 => 0,
                3 => MEMBER_BYTES,
                STRUCT | UNION | 15 | 19 => MEMBER_BYTES * record.count,
                6 | 13 => 8 * record.count,
                _ => return None,
            };
            at = record.members.checked_add(each)?;
        }
        Some(btf)
    }

    /// Returns the offset in bytes of a member, which may be inside of unnamed structures. `None`
    /// if there is no such structure or member, or the member is a bit field.
    pub fn offset_of(&self, structure: &str, member: &str) -> Option<u64> {
        let records = self.places.iter().filter_map(|at| self.record(*at));
        let mut named = records.filter(|record| {
            record.kind == STRUCT
                && record.count > 0
                && self.string(record.name) == Some(structure.as_bytes())
        });
        named.find_map(|record| self.member(&record, member.as_bytes(), 0))
    }

    fn member(&self, of: &TypeRecord, wanted: &[u8], depth: usize) -> Option<u64> {
        if depth > MAX_DEPTH {
            return None;
        }
        (0..of.count).find_map(|number| {
            let at = of.members.checked_add(number * MEMBER_BYTES)?;
            let name = self.string(word(self.types, at)? as usize)?;
            let place = word(self.types, at + 8)?;
            let (bits, width) = match of.has_bit_fields {
                true => (place & 0xff_ffff, place >> 24),
                false => (place, 0),
            };
            if width != 0 || bits % 8 != 0 {
                return None;
            }
            if name == wanted {
                return Some(u64::from(bits / 8));
            }
            if !name.is_empty() {
                return None;
            }
            let number = (word(self.types, at + 4)? as usize).checked_sub(1)?;
            let inner = self.record(*self.places.get(number)?)?;
            let inside = matches!(inner.kind, STRUCT | UNION);
            let found = self.member(&inner, wanted, depth + 1).filter(|_| inside)?;
            Some(found + u64::from(bits / 8))
        })
    }

    fn record(&self, at: usize) -> Option<TypeRecord> {
        let info = word(self.types, at.checked_add(4)?)?;
        word(self.types, at + 8)?;
        Some(TypeRecord {
            name: word(self.types, at)? as usize,
            kind: info >> 24 & 0x1f,
            count: (info & 0xffff) as usize,
            has_bit_fields: info >> 31 == 1,
            members: at + 12,
        })
    }

    fn string(&self, at: usize) -> Option<&'data [u8]> {
        self.strings.get(at..)?.split(|byte| *byte == 0).next()
    }
}

/// Reads a number of 32 bits.
fn word(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes type information of records and of members (name, type, offset).
    fn btf(types: &[(u32, u32, u32, &[[u32; 3]])], strings: &[u8]) -> Vec<u8> {
        let mut records = Vec::new();
        for (name, kind, flag, members) in types {
            let info = flag << 31 | kind << 24 | members.len() as u32;
            records.extend([*name, info, 0].map(u32::to_le_bytes).concat());
            records.extend(members.iter().flatten().flat_map(|word| word.to_le_bytes()));
        }
        let sizes = [24, 0, records.len() as u32, records.len() as u32, strings.len() as u32];
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        bytes.extend(sizes.map(u32::to_le_bytes).concat());
        [bytes, records, strings.to_vec()].concat()
    }

    #[test]
    fn members_of_unnamed_structures_are_found_and_bit_fields_are_not() {
        // struct task { int pid; union { struct { int tgid; }; long x; }; int flag:1; };
        let strings = b"\0task\0pid\0tgid\0flag\0";
        let bytes = btf(
            &[
                (1, STRUCT, 1, &[[6, 9, 32], [0, 2, 64], [15, 9, 1 << 24 | 128]]),
                (0, UNION, 0, &[[0, 3, 0]]),
                (0, STRUCT, 0, &[[10, 9, 32]]),
            ],
            strings,
        );
        let found = Btf::parse(&bytes).unwrap();
        assert_eq!(found.offset_of("task", "pid"), Some(4));
        assert_eq!(found.offset_of("task", "tgid"), Some(12));
        assert_eq!(found.offset_of("task", "flag"), None);
        assert_eq!(found.offset_of("other", "pid"), None);
        for end in 0..bytes.len() {
            let _ = Btf::parse(&bytes[..end]).map(|btf| btf.offset_of("task", "tgid"));
        }
    }

    #[test]
    fn a_structure_inside_itself_and_unknown_kinds_end_the_search() {
        let own = btf(&[(1, STRUCT, 0, &[[0, 1, 0]])], b"\0task\0");
        assert_eq!(Btf::parse(&own).unwrap().offset_of("task", "pid"), None);
        assert!(Btf::parse(&btf(&[(0, 31, 0, &[])], b"\0")).is_none());
        assert!(Btf::parse(b"").is_none());
    }
}
