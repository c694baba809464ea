//! Adds a symbol table to an unpacked kernel image, so that it can be read as any `vmlinux`.

use crate::import::image_elf::ImageElf;
use crate::import::kallsyms::ImageSymbol;
use object::elf::{
    SHN_ABS, SHT_STRTAB, SHT_SYMTAB, STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FUNC, STT_NOTYPE, STT_OBJECT,
};

/// Bytes of a section's header.
const HEADER_BYTES: usize = 64;
/// Bytes of a symbol's entry.
const SYMBOL_BYTES: usize = 24;
/// Symbols around the entry code, which is no code of C.
const ENTRY_CODE: [&str; 2] = ["__entry_text_start", "__entry_text_end"];

/// Returns the image with these symbols, which are sorted by address. Symbols have no sizes in the
/// kernel's table: each ends where the next begins. `None` for a damaged section table.
pub(crate) fn with_symbols(image: &ImageElf, symbols: &[ImageSymbol]) -> Option<Vec<u8>> {
    let half =
        |at: usize| Some(usize::from(u16::from_le_bytes(image.bytes.get(at..at + 2)?.try_into().ok()?)));
    let long = |at: usize| {
        let bytes: [u8; 8] = image.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let (table, count, names) = (long(0x28)?, half(0x3c)?, half(0x3e)?);
    if half(0x3a)? != HEADER_BYTES || names >= count {
        return None;
    }
    let mut headers = image.bytes.get(table..table.checked_add(count * HEADER_BYTES)?)?.to_vec();
    let of_names = table + names * HEADER_BYTES;
    let names_begin = long(of_names + 0x18)?;
    let mut section_names =
        image.bytes.get(names_begin..names_begin.checked_add(long(of_names + 0x20)?)?)?.to_vec();

    let (entries, strings, locals) = entries(image, symbols);
    let mut bytes = image.bytes.to_vec();
    let mut place = |contents: &[u8]| {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let at = bytes.len();
        bytes.extend(contents);
        [at as u64, contents.len() as u64]
    };
    let mut header = |name: &str, kind: u32, [at, size]: [u64; 2], link: u32, info: u32, each: u64| {
        let name_at = section_names.len() as u32;
        section_names.extend(name.as_bytes());
        section_names.push(0);
        let mut made = [name_at, kind].map(u32::to_le_bytes).concat();
        made.extend([0, 0, at, size].map(u64::to_le_bytes).concat());
        made.extend([link, info].map(u32::to_le_bytes).concat());
        made.extend([8, each].map(u64::to_le_bytes).concat());
        made
    };
    let strings_number = count as u32 + 1;
    let of_symbols =
        header(".symtab", SHT_SYMTAB, place(&entries), strings_number, locals, SYMBOL_BYTES as u64);
    let of_strings = header(".strtab", SHT_STRTAB, place(&strings), 0, 0, 0);
    let names_place = place(&section_names).map(u64::to_le_bytes).concat();
    let of_names = names * HEADER_BYTES;
    headers[of_names + 0x18..of_names + 0x28].copy_from_slice(&names_place);
    let [table, _] = place(&[headers, of_symbols, of_strings].concat());
    bytes[0x28..0x30].copy_from_slice(&table.to_le_bytes());
    bytes[0x3c..0x3e].copy_from_slice(&u16::try_from(count + 2).ok()?.to_le_bytes());
    Some(bytes)
}

/// Makes the entries, local ones first, and their names. The number is that of local ones.
fn entries(image: &ImageElf, symbols: &[ImageSymbol]) -> (Vec<u8>, Vec<u8>, u32) {
    let address_of =
        |name: &str| symbols.iter().find(|symbol| symbol.name == name).map_or(0, |symbol| symbol.address);
    let [entry_begin, entry_end] = ENTRY_CODE.map(address_of);
    let mut strings = vec![0];
    let mut halves = [vec![0; SYMBOL_BYTES], Vec::new()];
    for (number, symbol) in symbols.iter().enumerate() {
        let section = image.section_at(symbol.address);
        let rest = &symbols[number..];
        let next = rest[rest.partition_point(|other| other.address <= symbol.address)..].first();
        let end = section.map_or(symbol.address, |section| section.end);
        let end = next.map_or(end, |next| next.address.min(end));
        let letter = symbol.kind.to_ascii_lowercase();
        let is_function = matches!(letter, b't' | b'w') && section.is_some_and(|section| section.code);
        let in_entry = (entry_begin..entry_end).contains(&symbol.address);
        let (kind, size) = match is_function {
            _ if section.is_none() || is_mark(&symbol.name) => (STT_NOTYPE, 0),
            true if in_entry => (STT_NOTYPE, 0),
            true => (STT_FUNC, end - symbol.address),
            false => (STT_OBJECT, end - symbol.address),
        };
        let binding = match symbol.kind {
            b'w' | b'W' | b'v' | b'V' => STB_WEAK,
            kind if kind.is_ascii_lowercase() => STB_LOCAL,
            _ => STB_GLOBAL,
        };
        let half = &mut halves[usize::from(binding != STB_LOCAL)];
        half.extend((strings.len() as u32).to_le_bytes());
        half.extend([binding << 4 | kind, 0]);
        half.extend(section.map_or(SHN_ABS, |section| section.index as u16).to_le_bytes());
        half.extend([symbol.address, size].map(u64::to_le_bytes).concat());
        strings.extend(symbol.name.as_bytes());
        strings.push(0);
    }
    let locals = (halves[0].len() / SYMBOL_BYTES) as u32;
    (halves.concat(), strings, locals)
}

/// Checks for marks of the linker script, which are at the address of what they precede or end.
fn is_mark(name: &str) -> bool {
    let ends = ["_start", "_end", "_begin"];
    matches!(name, "_text" | "_stext" | "_etext" | "_sinittext" | "_einittext" | "_end" | "_sdata" | "_edata")
        || name.starts_with("__") && ends.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::kallsyms;
    use crate::import::test_image::{image, KallsymsForm, BASE, SYMBOLS};
    use crate::Symbols;
    use object::Object;
    use std::path::Path;

    #[test]
    fn an_image_with_its_own_symbols_is_read_as_a_vmlinux() {
        let bytes = image(KallsymsForm::Linux61);
        assert!(Symbols::parse(&bytes[..], Path::new("image")).is_err());
        let elf = ImageElf::parse(&bytes).unwrap();
        let vmlinux = with_symbols(&elf, &kallsyms::find(&elf).unwrap()).unwrap();
        let symbols = Symbols::parse(&vmlinux[..], Path::new("vmlinux")).unwrap();
        let functions = symbols.functions();
        // Marks are no functions.
        assert_eq!(functions.len(), SYMBOLS - 2);
        assert_eq!((functions[0].name.as_str(), functions[0].address), ("f0001", BASE + 16));
        assert!(functions.iter().all(|function| function.size == 16 && !function.is_code_label));
        assert_eq!(symbols.address_of("_stext"), Some(BASE));
        assert_eq!(
            object::File::parse(&vmlinux[..]).map(|file| file.kind()).unwrap(),
            object::ObjectKind::Executable
        );
    }
}
