//! Types from the type information that a kernel carries (BTF): `Documentation/bpf/btf.rst`.
//!
//! Types are numbered from 1 in the order of the file; 0 is `void`.

use crate::{DataType, Error, Member, Result, TypeId, TypeKind, TypeSource};
use std::borrow::Cow;
use std::collections::HashMap;

const MAGIC: u16 = 0xeb9f;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FORWARD: u32 = 7;
const ENUM64: u32 = 19;
/// Bytes of the record of a member, or of a 64-bit enumerator.
const MEMBER_BYTES: usize = 12;
/// Bytes of the record of an enumerator.
const ENUMERATOR_BYTES: usize = 8;

/// All types of a kernel.
pub struct BtfTypes<'data> {
    /// Records of the types.
    types: &'data [u8],
    strings: &'data [u8],
    /// Position of each type's record.
    places: Vec<usize>,
    /// Structures and unions by name; the first of each name.
    structures: HashMap<&'data [u8], TypeId>,
}

/// Record of a type.
struct TypeRecord {
    name: usize,
    kind: u32,
    /// Number of members, values or parameters.
    count: usize,
    /// Offsets of members share their field with the width of bit fields; a declaration is that of
    /// a union.
    flag: bool,
    /// Size in bytes, or another type's number.
    size_or_type: u32,
    /// Position of what follows the record.
    rest: usize,
}

impl<'data> BtfTypes<'data> {
    /// Finds the records.
    ///
    /// # Errors
    /// Other bytes; a kind that is not known, because its length is not known either.
    pub fn parse(bytes: &'data [u8]) -> Result<Self> {
        Self::records(bytes).ok_or(Error::Btf)
    }

    fn records(bytes: &'data [u8]) -> Option<Self> {
        if bytes.get(..3)? != [MAGIC.to_le_bytes()[0], MAGIC.to_le_bytes()[1], 1] {
            return None;
        }
        let field = |at: usize| Some(word(bytes, at)? as usize);
        let part = |at: usize| {
            let begin = field(4)?.checked_add(field(at)?)?;
            bytes.get(begin..begin.checked_add(field(at + 4)?)?)
        };
        let (types, strings) = (part(8)?, part(16)?);
        let mut btf = Self { types, strings, places: Vec::new(), structures: HashMap::new() };
        let mut at = 0;
        while at < types.len() {
            let record = btf.record(at)?;
            let rest = match record.kind {
                1 | 14 | 17 => 4,
                2 | FORWARD..=12 | 16 | 18 => 0,
                ARRAY => MEMBER_BYTES,
                STRUCT | UNION | 15 | ENUM64 => MEMBER_BYTES * record.count,
                ENUM | 13 => ENUMERATOR_BYTES * record.count,
                _ => return None,
            };
            btf.places.push(at);
            if let (STRUCT | UNION, Some(name)) = (record.kind, btf.string(record.name)) {
                btf.structures.entry(name).or_insert(TypeId(btf.places.len()));
            }
            at = record.rest.checked_add(rest)?;
        }
        Some(btf)
    }

    fn record(&self, at: usize) -> Option<TypeRecord> {
        let info = word(self.types, at.checked_add(4)?)?;
        Some(TypeRecord {
            name: word(self.types, at)? as usize,
            kind: info >> 24 & 0x1f,
            count: (info & 0xffff) as usize,
            flag: info >> 31 == 1,
            size_or_type: word(self.types, at + 8)?,
            rest: at + 12,
        })
    }

    fn find(&self, TypeId(number): TypeId) -> Result<TypeRecord> {
        let place = number.checked_sub(1).and_then(|at| self.places.get(at));
        place.and_then(|at| self.record(*at)).ok_or(Error::Btf)
    }

    /// Returns a text; `None` for the empty one.
    fn string(&self, at: usize) -> Option<&'data [u8]> {
        let text = self.strings.get(at..)?.split(|byte| *byte == 0).next();
        text.filter(|text| !text.is_empty())
    }

    fn name(&self, at: usize) -> Option<Cow<'data, str>> {
        self.string(at).map(String::from_utf8_lossy)
    }

    /// Reads a number of 32 bits in the records.
    fn word(&self, at: usize) -> Result<u32> {
        word(self.types, at).ok_or(Error::Btf)
    }
}

impl TypeSource for BtfTypes<'_> {
    fn structure(&self, name: &str) -> Option<TypeId> {
        self.structures.get(name.as_bytes()).copied()
    }

    /// None is known: the format has names of variables, and no addresses.
    fn variable(&self, _: u64) -> Option<TypeId> {
        None
    }

    fn enumerator(&self, name: &str) -> Option<u64> {
        let all = self.places.iter().filter_map(|at| self.record(*at)).flat_map(|record| {
            let bytes = match record.kind {
                ENUM => ENUMERATOR_BYTES,
                ENUM64 => MEMBER_BYTES,
                _ => 0,
            };
            let count = if bytes == 0 { 0 } else { record.count };
            (0..count).map(move |number| (record.rest + number * bytes, bytes))
        });
        let mut named = all.filter(|(at, _)| {
            word(self.types, *at).and_then(|name| self.string(name as usize)) == Some(name.as_bytes())
        });
        let (at, bytes) = named.next()?;
        let high = if bytes == MEMBER_BYTES { word(self.types, at + 8)? } else { 0 };
        Some(u64::from(high) << 32 | u64::from(word(self.types, at + 4)?))
    }

    fn data_type(&self, kind: TypeId) -> Result<DataType<'_>> {
        let record = self.find(kind)?;
        let to = |number: u32| (number != 0).then_some(TypeId(number as usize));
        let kind = match record.kind {
            2 => TypeKind::Pointer(to(record.size_or_type)),
            ARRAY => TypeKind::Array {
                element: to(self.word(record.rest)?),
                counts: vec![self.word(record.rest + 8)?.into()],
            },
            FORWARD if record.flag => TypeKind::Union,
            STRUCT | FORWARD => TypeKind::Structure,
            UNION => TypeKind::Union,
            ENUM | ENUM64 => TypeKind::Enumeration,
            8..=11 | 18 => TypeKind::Alias(to(record.size_or_type)),
            _ => TypeKind::Other,
        };
        let has_size = matches!(record.kind, 1 | STRUCT | UNION | ENUM | ENUM64 | 16);
        let bytes = has_size.then_some(record.size_or_type.into());
        Ok(DataType { name: self.name(record.name), bytes, kind })
    }

    fn members(&self, kind: TypeId) -> Result<Vec<Member<'_>>> {
        let record = self.find(kind)?;
        let count = if matches!(record.kind, STRUCT | UNION) { record.count } else { 0 };
        let member = |number: usize| {
            let at = record.rest + number * MEMBER_BYTES;
            let bits = self.word(at + 8)?;
            let bits = if record.flag { bits & 0xff_ffff } else { bits };
            Ok(Member {
                name: self.name(self.word(at)? as usize),
                kind: Some(TypeId(self.word(at + 4)? as usize)).filter(|kind| kind.0 != 0),
                offset: u64::from(bits / 8),
            })
        };
        (0..count).map(member).collect()
    }
}

/// Reads a number of 32 bits.
fn word(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, kind, flag, size or type, number of members, and the words behind the record.
    type Record<'a> = (u32, u32, u32, u32, u32, &'a [u32]);

    fn btf(types: &[Record], strings: &[u8]) -> Vec<u8> {
        let mut records = Vec::new();
        for (name, kind, flag, size, count, rest) in types {
            let info = flag << 31 | kind << 24 | count;
            records.extend([*name, info, *size].map(u32::to_le_bytes).concat());
            records.extend(rest.iter().flat_map(|word| word.to_le_bytes()));
        }
        let sizes = [24, 0, records.len() as u32, records.len() as u32, strings.len() as u32];
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        bytes.extend(sizes.map(u32::to_le_bytes).concat());
        [bytes, records, strings.to_vec()].concat()
    }

    /// `struct task { int pid; union { struct { int tgid; }; long x; }; int flag:1; int *at[3]; };`
    /// and `enum { flag = 7, pid = 1 << 32 }`.
    fn task() -> Vec<u8> {
        btf(
            &[
                (1, STRUCT, 1, 64, 4, &[6, 4, 32, 0, 2, 64, 15, 4, 1 << 24 | 129, 20, 6, 192]),
                (0, UNION, 0, 8, 1, &[0, 3, 0]),
                (0, STRUCT, 0, 8, 1, &[10, 4, 32]),
                (23, 1, 0, 4, 0, &[32]),
                (0, 2, 0, 4, 0, &[]),
                (0, ARRAY, 0, 0, 0, &[5, 4, 3]),
                (0, ENUM64, 0, 8, 2, &[15, 7, 0, 6, 0, 1]),
                (27, 8, 0, 7, 0, &[]),
            ],
            b"\0task\0pid\0tgid\0flag\0at\0int\0word\0",
        )
    }

    #[test]
    fn types_have_names_sizes_and_members() {
        let bytes = task();
        let types = BtfTypes::parse(&bytes).unwrap();
        let member = |structure, member| types.member(structure, member).unwrap();
        assert_eq!((member("task", "pid"), member("task", "tgid")), (Some(4), Some(12)));
        // Of a bit field, the byte in which it begins.
        assert_eq!((member("task", "flag"), member("task", "x")), (Some(16), None));
        assert_eq!(member("other", "pid"), None);
        let task = types.structure("task").unwrap();
        assert_eq!(types.bytes(task).unwrap(), Some(64));
        assert_eq!(types.field(task, 24 + 8).unwrap(), "at[1]");
        let at = types.members(task).unwrap()[3].kind.unwrap();
        assert_eq!((types.type_name(at).unwrap(), types.bytes(at).unwrap()), ("int *[3]".into(), Some(24)));
        assert_eq!((types.enumerator("flag"), types.enumerator("pid")), (Some(7), Some(1 << 32)));
        assert_eq!((types.enumerator("none"), types.variable(4)), (None, None));
        assert_eq!(types.type_name(TypeId(8)).unwrap(), "enum word");
        assert!(types.data_type(TypeId(9)).is_err());
    }

    #[test]
    fn arrays_and_pointers_of_themselves_have_an_end() {
        let own = btf(
            &[
                (0, ARRAY, 0, 0, 0, &[1, 1, 3]),
                (0, 2, 0, 3, 0, &[]),
                (0, 2, 0, 2, 0, &[]),
                (0, 8, 0, 4, 0, &[]),
            ],
            b"\0",
        );
        let types = BtfTypes::parse(&own).unwrap();
        for kind in (1..=4).map(TypeId) {
            assert!(types.bytes(kind).unwrap().is_none_or(|bytes| bytes == 8));
            assert!(types.type_name(kind).unwrap().len() < 200);
            assert!(types.field(kind, 5).unwrap().len() < 200);
        }
    }

    #[test]
    fn damage_and_a_structure_inside_itself_end_the_search() {
        let bytes = task();
        for end in 0..bytes.len() {
            let _ = BtfTypes::parse(&bytes[..end]).map(|types| types.member("task", "tgid"));
        }
        let twice = btf(&[(1, STRUCT, 0, 8, 2, &[0, 1, 0, 0, 1, 0])], b"\0task\0");
        assert_eq!(BtfTypes::parse(&twice).unwrap().member("task", "pid").unwrap(), None);
        assert!(BtfTypes::parse(&btf(&[(0, 31, 0, 0, 0, &[])], b"\0")).is_err());
        assert!(BtfTypes::parse(b"").is_err());
    }
}
