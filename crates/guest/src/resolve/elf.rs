//! Parses what an executable or shared library needs: the headers that ld.so reads.

use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::Endianness;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Demands of an ELF file on the dynamic loader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ElfNeeds {
    /// Program interpreter (ld.so).
    pub interpreter: Option<String>,
    /// DT_NEEDED, in order.
    pub libraries: Vec<String>,
    /// DT_RPATH, split at colons.
    pub rpath: Vec<String>,
    /// DT_RUNPATH, split at colons.
    pub runpath: Vec<String>,
    /// ELF class and machine; ld.so skips libraries of another kind.
    pub kind: (u8, u16),
}

/// Checks for the ELF magic number.
pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// Returns the ELF class and machine of a file; `None` if it is not ELF.
pub(crate) fn kind_of(path: &Path) -> Option<(u8, u16)> {
    let mut head = [0u8; 20];
    File::open(path).ok()?.read_exact(&mut head).ok()?;
    if !is_elf(&head) {
        return None;
    }
    let machine = [head[18], head[19]];
    let machine = if head[5] == 2 { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    Some((head[4], machine))
}

/// Parses the needs of an ELF file.
///
/// # Errors
/// A description of what is wrong with the file.
pub(crate) fn needs(bytes: &[u8]) -> Result<ElfNeeds, String> {
    match bytes.get(4) {
        Some(&elf::ELFCLASS64) => read::<elf::FileHeader64<Endianness>>(bytes),
        Some(&elf::ELFCLASS32) => read::<elf::FileHeader32<Endianness>>(bytes),
        _ => Err("neither a 32 nor a 64 bit file".into()),
    }
}

fn read<Elf: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<ElfNeeds, String> {
    let text = |error: object::read::Error| error.to_string();
    let header = Elf::parse(bytes).map_err(text)?;
    let endian = header.endian().map_err(text)?;
    let segments = header.program_headers(endian, bytes).map_err(text)?;
    let mut needs =
        ElfNeeds { kind: (header.e_ident().class, header.e_machine(endian)), ..ElfNeeds::default() };
    let mut dynamic: &[Elf::Dyn] = &[];
    for segment in segments {
        if let Some(path) = segment.interpreter(endian, bytes).map_err(text)? {
            needs.interpreter = Some(String::from_utf8_lossy(path).into_owned());
        }
        if let Some(entries) = segment.dynamic(endian, bytes).map_err(text)? {
            dynamic = entries;
        }
    }
    let value = |tag: u32| {
        dynamic
            .iter()
            .take_while(|entry| entry.tag32(endian) != Some(elf::DT_NULL))
            .filter(move |entry| entry.tag32(endian) == Some(tag))
            .map(|entry| -> u64 { entry.d_val(endian).into() })
    };
    let Some(table) = value(elf::DT_STRTAB).next() else { return Ok(needs) };
    let size = value(elf::DT_STRSZ).next().unwrap_or(0);
    let strings = segments
        .iter()
        .find_map(|segment| segment.data_range(endian, bytes, table, size).ok().flatten())
        .ok_or("its dynamic string table is outside of the file")?;
    let string = |offset: u64| -> Result<String, String> {
        let rest = usize::try_from(offset).ok().and_then(|at| strings.get(at..));
        let rest = rest.ok_or("a dynamic string is outside of its table")?;
        let end = rest.iter().position(|&b| b == 0).ok_or("a dynamic string has no end")?;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    let paths = |tag| -> Result<Vec<String>, String> {
        match value(tag).next() {
            Some(offset) => {
                Ok(string(offset)?.split(':').filter(|p| !p.is_empty()).map(str::to_owned).collect())
            }
            None => Ok(Vec::new()),
        }
    };
    needs.libraries = value(elf::DT_NEEDED).map(string).collect::<Result<_, _>>()?;
    needs.rpath = paths(elf::DT_RPATH)?;
    needs.runpath = paths(elf::DT_RUNPATH)?;
    Ok(needs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_shell_of_this_machine() {
        let needs = needs(&std::fs::read("/bin/sh").unwrap()).unwrap();
        assert!(needs.interpreter.unwrap().contains("ld-linux"));
        assert_eq!(needs.libraries, ["libc.so.6"]);
    }

    proptest! {
        #[test]
        fn damaged_files_are_refused_or_read_but_never_panic(
            damage in prop::collection::vec((0usize..4096, any::<u8>()), 1..40),
            keep in 0usize..130_000,
        ) {
            let mut bytes = std::fs::read("/bin/sh").unwrap();
            for (at, byte) in damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            bytes.truncate(keep);
            let _ = needs(&bytes);
        }
    }
}
