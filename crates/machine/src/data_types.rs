//! Names kernel data by debug information: variables, structures and their members (DWARF 5, 5.5
//! and 7.5).

use crate::io_types::MEMBERS;
use crate::{Error, Result};
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, DwarfSections, EndianSlice, LittleEndian, Unit,
    UnitOffset,
};
use kerntune_kernel::{Kernel, StructureOffsets};
use kerntune_trace::data::{
    DataFile, DataLocation, DataLocationKind, DataSpec, SlabCache, SlabMark, SlabSpec,
};
use kerntune_work::IoContext;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

type DwarfSlice<'a> = EndianSlice<'a, LittleEndian>;
type DwarfEntry<'a, 'b> = DebuggingInformationEntry<'b, 'b, DwarfSlice<'a>>;

/// Slab caches whose names differ from those of their objects' structures.
const SLABS: &str = include_str!("slab_types.tsv");
/// Largest nesting of structures; more is an error in the debug information.
const MAX_DEPTH: u32 = 32;

/// Names of a data location.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataName {
    /// Variable or slab cache; empty for anything else.
    pub object: String,
    /// Type, such as `struct tcp_sock`; empty if unknown.
    pub type_name: String,
    /// Member, such as `sk.sk_lock.slock`, or offset in the object, such as `+0x18`; empty without
    /// either.
    pub field: String,
}

/// A type: index of its unit, and offset of its entry there.
type TypeKey = (usize, UnitOffset);

/// The top-level entries of all units.
struct TypeIndex<'a> {
    dwarf: Dwarf<DwarfSlice<'a>>,
    units: Vec<Unit<DwarfSlice<'a>>>,
    /// Structures and unions by name.
    structures: HashMap<String, TypeKey>,
    /// Types of variables, by the variables' addresses.
    variables: BTreeMap<u64, TypeKey>,
    /// Values of [`ENUMERATORS`].
    enumerators: HashMap<&'static str, u64>,
}

/// Enumerators that mark slab pages: the first since kernel 6.12, the second before.
const ENUMERATORS: [&str; 2] = ["PGTY_slab", "PG_slab"];

fn damaged(path: &Path, reason: impl ToString) -> Error {
    Error::Code { path: path.to_owned(), reason: format!("debug information: {}", reason.to_string()) }
}

/// Calls a function with an image's debug information, or with `None` if it has none.
fn with_index<T>(path: &Path, use_it: impl FnOnce(Option<&TypeIndex<'_>>, &ElfFile64) -> T) -> Result<T> {
    let bytes = std::fs::read(path).at("read", path)?;
    let object: ElfFile64 = ElfFile64::parse(&*bytes).map_err(|error| damaged(path, error))?;
    if object.section_by_name(".debug_info").is_none() {
        return Ok(use_it(None, &object));
    }
    let sections = DwarfSections::load(|id| -> std::result::Result<Cow<[u8]>, object::Error> {
        match object.section_by_name(id.name()) {
            Some(section) => section.uncompressed_data(),
            None => Ok(Cow::Borrowed(&[])),
        }
    })
    .map_err(|error| damaged(path, error))?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let index = TypeIndex::of(dwarf).map_err(|error| damaged(path, error))?;
    Ok(use_it(Some(&index), &object))
}

impl<'a> TypeIndex<'a> {
    fn of(dwarf: Dwarf<DwarfSlice<'a>>) -> gimli::Result<Self> {
        let mut index = Self {
            dwarf,
            units: Vec::new(),
            structures: HashMap::new(),
            variables: BTreeMap::new(),
            enumerators: HashMap::new(),
        };
        let mut headers = index.dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = index.dwarf.unit(header)?;
            index.add(&unit)?;
            index.units.push(unit);
        }
        Ok(index)
    }

    /// Adds the top-level entries of a unit.
    fn add(&mut self, unit: &Unit<DwarfSlice<'a>>) -> gimli::Result<()> {
        let number = self.units.len();
        let mut tree = unit.entries_tree(None)?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type
                    if entry.attr(gimli::DW_AT_byte_size)?.is_some() =>
                {
                    if let Some(name) = self.name(unit, entry)? {
                        self.structures.entry(name).or_insert((number, entry.offset()));
                    }
                }
                gimli::DW_TAG_variable => {
                    if let (Some(address), Some(kind)) = (address(entry)?, type_of(unit, entry)?) {
                        self.variables.entry(address).or_insert((number, kind));
                    }
                }
                gimli::DW_TAG_enumeration_type if self.enumerators.len() < ENUMERATORS.len() => {
                    let mut values = child.children();
                    while let Some(value) = values.next()? {
                        let entry = value.entry();
                        let Some(name) = self.name(unit, entry)? else { continue };
                        if let Some(known) = ENUMERATORS.into_iter().find(|known| *known == name) {
                            if let Some(value) = number_of(entry, gimli::DW_AT_const_value)? {
                                self.enumerators.insert(known, value);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn name(&self, unit: &Unit<DwarfSlice<'a>>, entry: &DwarfEntry<'a, '_>) -> gimli::Result<Option<String>> {
        match entry.attr_value(gimli::DW_AT_name)? {
            Some(value) => Ok(Some(self.dwarf.attr_string(unit, value)?.to_string_lossy().into_owned())),
            None => Ok(None),
        }
    }

    /// Strips `typedef`, `const` and `volatile` from a type.
    fn strip_qualifiers(&self, (number, at): TypeKey) -> gimli::Result<Option<TypeKey>> {
        let mut at = at;
        for _ in 0..MAX_DEPTH {
            let unit = &self.units[number];
            let entry = unit.entry(at)?;
            match entry.tag() {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_atomic_type => match type_of(unit, &entry)? {
                    Some(next) => at = next,
                    None => return Ok(None),
                },
                _ => return Ok(Some((number, at))),
            }
        }
        Ok(None)
    }

    /// Returns the size of a type in bytes; `None` if unknown.
    fn bytes(&self, kind: TypeKey) -> gimli::Result<Option<u64>> {
        let Some((number, at)) = self.strip_qualifiers(kind)? else { return Ok(None) };
        let unit = &self.units[number];
        let entry = unit.entry(at)?;
        if let Some(bytes) = number_of(&entry, gimli::DW_AT_byte_size)? {
            return Ok(Some(bytes));
        }
        match entry.tag() {
            gimli::DW_TAG_pointer_type => Ok(Some(8)),
            gimli::DW_TAG_array_type => {
                let Some(element) = type_of(unit, &entry)? else { return Ok(None) };
                let Some(bytes) = self.bytes((number, element))? else { return Ok(None) };
                let counts = dimensions(unit, at)?;
                Ok((!counts.is_empty()).then(|| counts.iter().fold(bytes, |all, n| all.saturating_mul(*n))))
            }
            _ => Ok(None),
        }
    }

    /// Returns a type's name in C, such as `struct tcp_sock`.
    fn type_name(&self, kind: TypeKey) -> gimli::Result<String> {
        let Some((number, at)) = self.strip_qualifiers(kind)? else { return Ok("void".into()) };
        let unit = &self.units[number];
        let entry = unit.entry(at)?;
        // An anonymous type has the name of its `typedef`.
        let given = match self.name(unit, &entry)? {
            Some(name) => Some(name),
            None => self.name(unit, &unit.entry(kind.1)?)?,
        };
        let name = given.unwrap_or_default();
        let of = |unit: &Unit<DwarfSlice<'a>>| -> gimli::Result<String> {
            match type_of(unit, &entry)? {
                Some(of) if of != kind.1 => self.type_name((number, of)),
                _ => Ok("void".into()),
            }
        };
        Ok(match entry.tag() {
            gimli::DW_TAG_structure_type => format!("struct {name}"),
            gimli::DW_TAG_union_type => format!("union {name}"),
            gimli::DW_TAG_enumeration_type => format!("enum {name}"),
            gimli::DW_TAG_array_type => {
                let counts: String = dimensions(unit, at)?.iter().map(|count| format!("[{count}]")).collect();
                format!("{}{counts}", of(unit)?)
            }
            gimli::DW_TAG_pointer_type => format!("{} *", of(unit)?),
            _ => name,
        })
    }

    /// Returns the path of the member at an offset, such as `sk.sk_lock.slock`.
    fn field(&self, kind: TypeKey, offset: u64) -> gimli::Result<String> {
        let mut path = String::new();
        self.walk(kind, offset, &mut path, 0)?;
        Ok(path.trim_start_matches('.').to_owned())
    }

    fn walk(&self, kind: TypeKey, offset: u64, path: &mut String, depth: u32) -> gimli::Result<()> {
        let Some((number, at)) = self.strip_qualifiers(kind)?.filter(|_| depth < MAX_DEPTH) else {
            return Ok(());
        };
        let unit = &self.units[number];
        let entry = unit.entry(at)?;
        match entry.tag() {
            gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type => {
                let mut tree = unit.entries_tree(Some(at))?;
                let mut members = tree.root()?.children();
                while let Some(member) = members.next()? {
                    let member = member.entry();
                    if member.tag() != gimli::DW_TAG_member {
                        continue;
                    }
                    let Some(of) = type_of(unit, member)? else { continue };
                    let bits = number_of(member, gimli::DW_AT_data_bit_offset)?.map(|bits| bits / 8);
                    let from = number_of(member, gimli::DW_AT_data_member_location)?.or(bits).unwrap_or(0);
                    // An array without a length extends to the end.
                    let bytes = self.bytes((number, of))?.unwrap_or(u64::MAX);
                    if offset < from || offset - from >= bytes {
                        continue;
                    }
                    if let Some(name) = self.name(unit, member)? {
                        path.push('.');
                        path.push_str(&name);
                    }
                    return self.walk((number, of), offset - from, path, depth + 1);
                }
                Ok(())
            }
            gimli::DW_TAG_array_type => {
                let Some(element) = type_of(unit, &entry)? else { return Ok(()) };
                let mut within = self.bytes((number, element))?.unwrap_or(0);
                let mut rest = offset;
                // In `a[2][3]` the last index varies fastest.
                let mut counts = dimensions(unit, at)?;
                counts.push(1);
                let mut strides = Vec::new();
                for count in counts.iter().rev() {
                    within = within.saturating_mul(*count);
                    strides.push(within);
                }
                strides.truncate(counts.len() - 1);
                for stride in strides.iter().rev().filter(|stride| **stride > 0) {
                    path.push_str(&format!("[{}]", rest / stride));
                    rest %= stride;
                }
                self.walk((number, element), rest, path, depth + 1)
            }
            _ => Ok(()),
        }
    }

    /// Returns the offset of a structure's member.
    fn member(&self, structure: &str, member: &str) -> gimli::Result<Option<u64>> {
        let Some(&(number, at)) = self.structures.get(structure) else { return Ok(None) };
        self.member_in((number, at), member, 0)
    }

    fn member_in(&self, (number, at): TypeKey, wanted: &str, depth: u32) -> gimli::Result<Option<u64>> {
        let unit = &self.units[number];
        let mut tree = unit.entries_tree(Some(at))?;
        let mut members = tree.root()?.children();
        while let Some(member) = members.next()? {
            let member = member.entry();
            if member.tag() != gimli::DW_TAG_member {
                continue;
            }
            let from = number_of(member, gimli::DW_AT_data_member_location)?.unwrap_or(0);
            match self.name(unit, member)? {
                Some(name) if name == wanted => return Ok(Some(from)),
                Some(_) => {}
                // Members of an anonymous member count as members of the structure.
                None => {
                    let Some(of) = type_of(unit, member)?.filter(|_| depth < MAX_DEPTH) else { continue };
                    if let Some(inner) = self.member_in((number, of), wanted, depth + 1)? {
                        return Ok(Some(from + inner));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the offsets that the recorder needs to recognize slabs; `None` if the kernel lacks
    /// any of them.
    fn slab(&self) -> gimli::Result<Option<SlabSpec>> {
        let at = |structure: &str, member: &str| -> gimli::Result<Option<u32>> {
            Ok(self.member(structure, member)?.and_then(|at| u32::try_from(at).ok()))
        };
        let Some(&page) = self.structures.get("page") else { return Ok(None) };
        let page_bytes = self.bytes(page)?.and_then(|bytes| u32::try_from(bytes).ok());
        let value = |name: &str| self.enumerators.get(name).copied();
        let mark = match (value("PGTY_slab"), at("page", "page_type")?, value("PG_slab")) {
            (Some(value), Some(offset), _) => Some(SlabMark::Type { offset, value: value as u8 }),
            (None, _, Some(bit)) => Some(SlabMark::Flag(bit as u32)),
            _ => None,
        };
        let (name, size, object_size) =
            (at("kmem_cache", "name")?, at("kmem_cache", "size")?, at("kmem_cache", "object_size")?);
        let (cache, refcount, stack) =
            (at("slab", "slab_cache")?, at("kmem_cache", "refcount")?, at("task_struct", "stack")?);
        let spec = || {
            Some(SlabSpec {
                page_bytes: page_bytes?,
                mark: mark?,
                cache: cache?,
                name: name?,
                size: size?,
                object_size: object_size?,
                refcount: refcount?,
                stack: stack?,
            })
        };
        Ok(spec())
    }

    /// Returns the structure at the beginning of a cache's objects. An object may be larger: a
    /// `struct task_struct` is followed by room for the FPU's registers, a `struct mm_struct` by a
    /// bit for each CPU.
    fn slab_type(
        &self,
        SlabCache { name, object_bytes, merged }: &SlabCache,
    ) -> gimli::Result<Option<TypeKey>> {
        if *merged {
            return Ok(None);
        }
        let cache = name.as_str();
        let listed = SLABS.lines().filter_map(|line| line.split_once('\t'));
        let listed = listed.filter(|(name, _)| *name == cache).map(|(_, structure)| structure);
        let own = [cache, cache.trim_end_matches("_cache"), cache.trim_end_matches("_cachep")];
        for name in listed.chain(own) {
            if let Some(&kind) = self.structures.get(name) {
                let bytes = self.bytes(kind)?.unwrap_or(0);
                if bytes > 0 && bytes <= u64::from(*object_bytes) {
                    return Ok(Some(kind));
                }
            }
        }
        Ok(None)
    }

    fn describe(
        &self,
        place: &DataLocation,
        file: &DataFile,
        variables: &[(u64, u64, String)],
    ) -> gimli::Result<DataName> {
        let (object, kind, offset) = match place.kind {
            DataLocationKind::Image | DataLocationKind::PerCpu => {
                let Some((start, name)) = variable(variables, place.object) else {
                    return Ok(DataName::default());
                };
                (name.to_owned(), self.variables.get(&start).copied(), place.object - start)
            }
            DataLocationKind::Slab => {
                let Some(cache) = file.caches.get(place.object as usize) else {
                    return Ok(DataName::default());
                };
                let kind = self.slab_type(cache)?;
                (cache.name.clone(), kind, place.offset.into())
            }
            DataLocationKind::Page => {
                (String::new(), self.structures.get("page").copied(), place.offset.into())
            }
            _ => return Ok(DataName::default()),
        };
        let (type_name, mut field) = match kind {
            Some(kind) => (self.type_name(kind)?, self.field(kind, offset)?),
            None => Default::default(),
        };
        if field.is_empty() && (offset > 0 || kind.is_none()) {
            field = format!("+{offset:#x}");
        }
        Ok(DataName { object, type_name, field })
    }
}

/// Finds the variable that contains an address; returns its start and name.
fn variable(variables: &[(u64, u64, String)], address: u64) -> Option<(u64, &str)> {
    let after = variables.partition_point(|(start, ..)| *start <= address);
    let (start, bytes, name) = variables.get(after.checked_sub(1)?)?;
    (address - start < *bytes).then_some((*start, name))
}

/// Returns the address of a variable; `None` if it has no fixed one.
fn address(entry: &DwarfEntry) -> gimli::Result<Option<u64>> {
    let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location)? else {
        return Ok(None);
    };
    let bytes = expression.0.slice();
    Ok(match bytes.split_first() {
        Some((&op, address)) if op == gimli::DW_OP_addr.0 => address.try_into().ok().map(u64::from_le_bytes),
        _ => None,
    })
}

/// Returns the type of an entry; for a definition, that of its declaration.
fn type_of(unit: &Unit<DwarfSlice>, entry: &DwarfEntry) -> gimli::Result<Option<UnitOffset>> {
    if let Some(AttributeValue::UnitRef(at)) = entry.attr_value(gimli::DW_AT_type)? {
        return Ok(Some(at));
    }
    match entry.attr_value(gimli::DW_AT_specification)? {
        Some(AttributeValue::UnitRef(at)) => {
            let declaration = unit.entry(at)?;
            Ok(match declaration.attr_value(gimli::DW_AT_type)? {
                Some(AttributeValue::UnitRef(at)) => Some(at),
                _ => None,
            })
        }
        _ => Ok(None),
    }
}

fn number_of(entry: &DwarfEntry, attribute: gimli::DwAt) -> gimli::Result<Option<u64>> {
    Ok(entry.attr_value(attribute)?.and_then(|value| value.udata_value()))
}

/// Returns an array's lengths, outermost first; empty if any is unknown.
fn dimensions(unit: &Unit<DwarfSlice>, array: UnitOffset) -> gimli::Result<Vec<u64>> {
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

/// Returns the recorder's description of a kernel's data. Slabs are recognized only in kernels with
/// debug information.
///
/// # Errors
/// An image that cannot be read.
pub fn data_spec(kernel: &Kernel) -> Result<DataSpec> {
    let path = kernel.vmlinux();
    let (per_cpu, slab) = with_index(&path, |index, object| {
        let symbol = |name: &str| {
            let found = object.symbols().find(|symbol| symbol.name() == Ok(name));
            found.map_or(0, |symbol| symbol.address())
        };
        let slab = index.map(TypeIndex::slab).transpose();
        ((symbol("__per_cpu_start"), symbol("__per_cpu_end")), slab)
    })?;
    Ok(DataSpec { per_cpu, slab: slab.map_err(|error| damaged(&path, error))?.flatten() })
}

/// Returns the offsets of structures for block requests and network packets; empty for a kernel
/// without debug information.
///
/// # Errors
/// As [`data_spec`].
pub fn debug_structures(kernel: &Kernel) -> Result<StructureOffsets> {
    let path = kernel.vmlinux();
    let found = with_index(&path, |index, _| -> gimli::Result<StructureOffsets> {
        let Some(index) = index else { return Ok(StructureOffsets::new()) };
        let mut found = StructureOffsets::new();
        for (structure, member) in MEMBERS {
            if let Some(at) = index.member(structure, member)? {
                found.insert(format!("{structure}.{member}"), at);
            }
        }
        Ok(found)
    })?;
    found.map_err(|error| damaged(&path, error))
}

/// Names the data locations of a recording.
///
/// # Errors
/// As [`data_spec`].
pub fn data_names(kernel: &Kernel, file: &DataFile) -> Result<HashMap<DataLocation, DataName>> {
    let path = kernel.vmlinux();
    let variables = kernel.variables()?;
    let by_place = file.by_place.iter().map(|row| row.place);
    let shared = file.shared.iter().flat_map(|line| line.pieces.iter().map(|piece| piece.place));
    let places: HashSet<DataLocation> = by_place.chain(shared).collect();
    let named = with_index(&path, |index, _| -> gimli::Result<HashMap<DataLocation, DataName>> {
        let nothing;
        let index = match index {
            Some(index) => index,
            None => {
                nothing = TypeIndex::of(Dwarf::default())?;
                &nothing
            }
        };
        let name = |place: DataLocation| Ok((place, index.describe(&place, file, &variables)?));
        places.into_iter().map(name).collect()
    })?;
    named.map_err(|error| damaged(&path, error))
}
