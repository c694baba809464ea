//! Types from debug information: DWARF 5, 5.5 and 7.5.

use crate::dwarf::{in_section, name_of, target, DebugInfo, Entry, Slice};
use crate::{DataType, Error, Member, Result, TypeId, TypeKind, TypeSource};
use gimli::{AttributeValue, DebugInfoOffset, Dwarf, Unit, UnitOffset};
use std::collections::{BTreeMap, HashMap};

/// The top-level types and variables of all units.
pub struct DwarfTypes<'a> {
    dwarf: Dwarf<Slice<'a>>,
    /// Units, sorted by their offset.
    units: Vec<Unit<Slice<'a>>>,
    /// Structures and unions by name.
    structures: HashMap<String, TypeId>,
    /// Types of variables, by the variables' addresses.
    variables: BTreeMap<u64, TypeId>,
    enumerators: HashMap<&'static str, u64>,
}

impl<'a> DwarfTypes<'a> {
    /// Reads the types of a file. Of enumerators, only those in `enumerators` are kept.
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn of(debug_info: &'a DebugInfo, enumerators: &[&'static str]) -> Result<Self> {
        let mut types = Self {
            dwarf: debug_info.dwarf(),
            units: Vec::new(),
            structures: HashMap::new(),
            variables: BTreeMap::new(),
            enumerators: HashMap::new(),
        };
        let mut headers = types.dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = types.dwarf.unit(header)?;
            types.add(&unit, enumerators)?;
            types.units.push(unit);
        }
        Ok(types)
    }

    /// Adds the top-level entries of a unit.
    fn add(&mut self, unit: &Unit<Slice<'a>>, enumerators: &[&'static str]) -> gimli::Result<()> {
        let mut tree = unit.entries_tree(None)?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type
                    if entry.attr(gimli::DW_AT_byte_size)?.is_some() =>
                {
                    let name = name_of(&self.dwarf, unit, entry)?;
                    if let (Some(name), Some(at)) = (name, in_section(unit, entry.offset())) {
                        self.structures.entry(name.into_owned()).or_insert(TypeId(at));
                    }
                }
                gimli::DW_TAG_variable => {
                    if let (Some(address), Some(kind)) = (address(entry)?, type_of(unit, entry)?) {
                        self.variables.entry(address).or_insert(kind);
                    }
                }
                gimli::DW_TAG_enumeration_type if self.enumerators.len() < enumerators.len() => {
                    let mut values = child.children();
                    while let Some(value) = values.next()? {
                        let entry = value.entry();
                        let name = name_of(&self.dwarf, unit, entry)?;
                        let known = enumerators.iter().find(|known| name.as_deref() == Some(**known));
                        let value = number_of(entry, gimli::DW_AT_const_value)?;
                        if let (Some(known), Some(value)) = (known, value) {
                            self.enumerators.insert(known, value);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the unit that contains a type, and the type's offset there.
    fn find(&self, TypeId(at): TypeId) -> Result<(&Unit<Slice<'a>>, UnitOffset)> {
        let begins = |unit: &Unit<Slice>| unit.header.offset().as_debug_info_offset().map_or(0, |at| at.0);
        let after = self.units.partition_point(|unit| begins(unit) <= at);
        let unit = after.checked_sub(1).and_then(|unit| self.units.get(unit));
        let found = unit.and_then(|unit| Some((unit, DebugInfoOffset(at).to_unit_offset(&unit.header)?)));
        found.ok_or(Error::Dwarf(gimli::Error::OffsetOutOfBounds))
    }
}

impl TypeSource for DwarfTypes<'_> {
    fn structure(&self, name: &str) -> Option<TypeId> {
        self.structures.get(name).copied()
    }

    fn variable(&self, address: u64) -> Option<TypeId> {
        self.variables.get(&address).copied()
    }

    fn enumerator(&self, name: &str) -> Option<u64> {
        self.enumerators.get(name).copied()
    }

    fn data_type(&self, kind: TypeId) -> Result<DataType<'_>> {
        let (unit, at) = self.find(kind)?;
        let entry = unit.entry(at)?;
        let kind = match entry.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type => TypeKind::Alias(type_of(unit, &entry)?),
            gimli::DW_TAG_structure_type => TypeKind::Structure,
            gimli::DW_TAG_union_type => TypeKind::Union,
            gimli::DW_TAG_enumeration_type => TypeKind::Enumeration,
            gimli::DW_TAG_array_type => {
                TypeKind::Array { element: type_of(unit, &entry)?, counts: dimensions(unit, at)? }
            }
            gimli::DW_TAG_pointer_type => TypeKind::Pointer(type_of(unit, &entry)?),
            _ => TypeKind::Other,
        };
        let bytes = number_of(&entry, gimli::DW_AT_byte_size)?;
        Ok(DataType { name: name_of(&self.dwarf, unit, &entry)?, bytes, kind })
    }

    fn members(&self, kind: TypeId) -> Result<Vec<Member<'_>>> {
        let (unit, at) = self.find(kind)?;
        let mut tree = unit.entries_tree(Some(at))?;
        let (mut found, mut children) = (Vec::new(), tree.root()?.children());
        while let Some(child) = children.next()? {
            let entry = child.entry();
            if entry.tag() == gimli::DW_TAG_member {
                let bits = number_of(entry, gimli::DW_AT_data_bit_offset)?.map(|bits| bits / 8);
                found.push(Member {
                    name: name_of(&self.dwarf, unit, entry)?,
                    kind: type_of(unit, entry)?,
                    offset: number_of(entry, gimli::DW_AT_data_member_location)?.or(bits).unwrap_or(0),
                });
            }
        }
        Ok(found)
    }
}

/// Returns the address of a variable; `None` if it has no fixed one.
fn address(entry: &Entry) -> gimli::Result<Option<u64>> {
    let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location)? else {
        return Ok(None);
    };
    Ok(match expression.0.slice().split_first() {
        Some((&op, address)) if op == gimli::DW_OP_addr.0 => address.try_into().ok().map(u64::from_le_bytes),
        _ => None,
    })
}

/// Returns the type of an entry; for a definition, that of its declaration.
fn type_of(unit: &Unit<Slice>, entry: &Entry) -> gimli::Result<Option<TypeId>> {
    if let Some(at) = target(unit, entry.attr_value(gimli::DW_AT_type)?) {
        return Ok(Some(TypeId(at)));
    }
    match entry.attr_value(gimli::DW_AT_specification)? {
        Some(AttributeValue::UnitRef(at)) => {
            Ok(target(unit, unit.entry(at)?.attr_value(gimli::DW_AT_type)?).map(TypeId))
        }
        _ => Ok(None),
    }
}

fn number_of(entry: &Entry, attribute: gimli::DwAt) -> gimli::Result<Option<u64>> {
    Ok(entry.attr_value(attribute)?.and_then(|value| value.udata_value()))
}

/// Returns an array's lengths, outermost first; empty if any is unknown.
fn dimensions(unit: &Unit<Slice>, array: UnitOffset) -> gimli::Result<Vec<u64>> {
    let mut tree = unit.entries_tree(Some(array))?;
    let mut children = tree.root()?.children();
    let mut counts = Vec::new();
    while let Some(child) = children.next()? {
        let entry = child.entry();
        if entry.tag() != gimli::DW_TAG_subrange_type {
            continue;
        }
        let upper = number_of(entry, gimli::DW_AT_upper_bound)?.map(|upper| upper.saturating_add(1));
        match number_of(entry, gimli::DW_AT_count)?.or(upper) {
            Some(count) => counts.push(count),
            None => return Ok(Vec::new()),
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Elf, MappedFile};
    use std::process::Command;

    const SOURCE: &str = "
enum mark { SLAB = 0xf5, OTHER };
typedef struct { volatile int slock; } lock_t;
struct base { long pad; union { short port; char octets[2]; }; lock_t lock; };
struct sock { struct base sk; const struct sock *next; int table[2][3]; unsigned char a : 3, b : 5; char rest[]; };
struct sock first; enum mark mark; const char *names[4];
";

    #[test]
    fn types_have_names_sizes_and_members() {
        let dir = tempfile::tempdir().unwrap();
        let (source, object) = (dir.path().join("a.c"), dir.path().join("a.so"));
        std::fs::write(&source, SOURCE).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-gdwarf-5", "-shared", "-fPIC", "-o"]).args([&object, &source]);
        assert!(gcc.status().unwrap().success());
        let file = MappedFile::open(&object).unwrap();
        let elf = Elf::parse(&file).unwrap();
        let debug_info = elf.debug_info().unwrap();
        let types = DwarfTypes::of(&debug_info, &["SLAB"]).unwrap();
        assert_eq!((types.enumerator("SLAB"), types.enumerator("OTHER")), (Some(0xf5), None));
        let sock = types.structure("sock").unwrap();
        assert_eq!(types.variable(elf.address_of("first").unwrap()), Some(sock));
        assert_eq!(types.bytes(sock).unwrap(), Some(56));
        for (offset, field) in [
            (0, "sk.pad"),
            (9, "sk.port"),
            (12, "sk.lock.slock"),
            (16, "next"),
            (24 + 20, "table[1][2]"),
            (48, "a"),
            // An array without a length extends to the end.
            (51, "rest"),
        ] {
            assert_eq!(types.field(sock, offset).unwrap(), field, "{offset}");
        }
        assert_eq!(types.member("base", "port").unwrap(), Some(8));
        assert_eq!((types.member("base", "x").unwrap(), types.member("none", "x").unwrap()), (None, None));
        let name = |variable| types.type_name(types.variable(elf.address_of(variable).unwrap()).unwrap());
        assert_eq!((name("names").unwrap(), name("mark").unwrap()), ("char *[4]".into(), "enum mark".into()));
        let next = types.members(sock).unwrap()[1].kind.unwrap();
        assert_eq!(types.type_name(next).unwrap(), "struct sock *");
        let lock = types.members(types.structure("base").unwrap()).unwrap()[2].kind.unwrap();
        assert_eq!(types.type_name(lock).unwrap(), "struct lock_t");
    }
}
