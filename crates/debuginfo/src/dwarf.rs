//! DWARF sections and their units.

use crate::Result;
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, DwarfSections, EndianSlice, LittleEndian, Unit,
    UnitOffset, UnitSectionOffset,
};
use std::borrow::Cow;
use std::ops::Range;

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Entry<'a, 'b> = DebuggingInformationEntry<'b, 'b, Slice<'a>>;

/// The debug information of a file.
pub struct DebugInfo<'data>(DwarfSections<Cow<'data, [u8]>>);

/// Code of a compilation unit, in one piece.
#[derive(Debug, Clone)]
pub struct CodeUnit<'a> {
    /// Addresses of the code.
    pub code: Range<u64>,
    /// Offset of the unit in `.debug_info`.
    pub offset: usize,
    /// Source file, as it was given to the compiler.
    pub name: Option<Cow<'a, str>>,
}

impl<'data> DebugInfo<'data> {
    /// Loads the sections that a function returns by their names.
    pub(crate) fn load(section: impl Fn(&str) -> Result<Option<Cow<'data, [u8]>>>) -> Result<Self> {
        DwarfSections::load(|id| Ok(section(id.name())?.unwrap_or_default())).map(Self)
    }

    pub(crate) fn dwarf(&self) -> Dwarf<Slice<'_>> {
        self.0.borrow(|section| EndianSlice::new(section, LittleEndian))
    }

    /// Returns the code of all units, in the order of the file; a unit has several pieces.
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn code_units(&self) -> Result<Vec<CodeUnit<'_>>> {
        let dwarf = self.dwarf();
        let (mut found, mut headers) = (Vec::new(), dwarf.units());
        while let Some(header) = headers.next()? {
            let UnitSectionOffset::DebugInfoOffset(offset) = header.offset() else { continue };
            let unit = dwarf.unit(header)?;
            let name = unit.name.map(|name| name.to_string_lossy());
            let mut ranges = dwarf.unit_ranges(&unit)?;
            while let Some(range) = ranges.next()? {
                if range.begin < range.end {
                    let code = range.begin..range.end;
                    found.push(CodeUnit { code, offset: offset.0, name: name.clone() });
                }
            }
        }
        Ok(found)
    }
}

/// Returns the name of an entry.
pub(crate) fn name_of<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    unit: &Unit<Slice<'a>>,
    entry: &Entry<'a, '_>,
) -> gimli::Result<Option<Cow<'a, str>>> {
    let name = entry.attr_value(gimli::DW_AT_name)?;
    name.map(|name| Ok(dwarf.attr_string(unit, name)?.to_string_lossy())).transpose()
}

/// Returns the offset in `.debug_info` to which a reference points.
pub(crate) fn target(unit: &Unit<Slice>, reference: Option<AttributeValue<Slice>>) -> Option<usize> {
    match reference? {
        AttributeValue::UnitRef(offset) => in_section(unit, offset),
        AttributeValue::DebugInfoRef(offset) => Some(offset.0),
        _ => None,
    }
}

/// Returns the offset in `.debug_info` of an entry.
pub(crate) fn in_section(unit: &Unit<Slice>, offset: UnitOffset) -> Option<usize> {
    offset.to_debug_info_offset(&unit.header).map(|offset| offset.0)
}
