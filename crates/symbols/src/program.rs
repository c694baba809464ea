//! Functions of programs and libraries, for addresses of user mode.

use kerntune_debuginfo::{debug_file, CodeSegment, Elf, SymbolKind, ROOT};
use std::fs;
use std::path::Path;

/// Maximum size of a file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 512 << 20;

/// A function of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFunction {
    /// Virtual address in the file.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Linker name.
    pub name: String,
}

/// Functions of one program or library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramSymbols {
    functions: Vec<ProgramFunction>,
    segments: Vec<CodeSegment>,
}

impl ProgramSymbols {
    /// Reads at most `max` functions of a file; if it is stripped, of its debug file where Debian
    /// installs it. `None` if the file cannot be read or has no code.
    pub fn read(path: &Path, max: usize) -> Option<Self> {
        let bytes = contents(path)?;
        let mut program = Self::parse(&bytes, max)?;
        let debug = debug_file(&bytes, path, Path::new(ROOT), MAX_FILE_BYTES);
        let better = debug.and_then(|debug| Self::parse(&debug, max));
        if let Some(better) = better.filter(|better| better.functions.len() > program.functions.len()) {
            program.functions = better.functions;
        }
        Some(program)
    }

    /// Parses at most `max` functions of an ELF file.
    pub fn parse(bytes: &[u8], max: usize) -> Option<Self> {
        let elf = Elf::parse_any(bytes).ok()?;
        let mut functions: Vec<ProgramFunction> = elf
            .symbols()
            .chain(elf.dynamic_symbols())
            .flatten()
            .filter(|symbol| symbol.kind == SymbolKind::Function && symbol.section.is_some())
            .filter(|symbol| symbol.size > 0 && !symbol.name.is_empty())
            .map(|symbol| ProgramFunction {
                address: symbol.address,
                size: symbol.size,
                name: symbol.name.into_owned(),
            })
            .take(max.saturating_mul(2))
            .collect();
        // Of several names at one address the shortest, and of these the alphabetically first.
        functions.sort_by(|a, b| (a.address, a.name.len(), &a.name).cmp(&(b.address, b.name.len(), &b.name)));
        functions.dedup_by_key(|function| function.address);
        functions.truncate(max);
        Some(Self { functions, segments: elf.code_segments() })
    }

    /// Returns the number of the function at an offset of the file.
    pub fn at_offset(&self, offset: u64) -> Option<usize> {
        let address = self.segments.iter().find_map(|segment| segment.address_of(offset))?;
        let at = self.functions.partition_point(|function| function.address <= address).checked_sub(1)?;
        self.functions.get(at).filter(|function| address - function.address < function.size).map(|_| at)
    }

    /// Returns all functions, sorted by address.
    pub fn functions(&self) -> &[ProgramFunction] {
        &self.functions
    }
}

/// Returns the build id of a program or library in hexadecimal digits; `None` if it has none or cannot
/// be read.
pub fn program_build_id(path: &Path) -> Option<String> {
    let bytes = contents(path)?;
    Some(Elf::parse_any(&bytes).ok()?.build_id()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn contents(path: &Path) -> Option<Vec<u8>> {
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    if size > MAX_FILE_BYTES {
        return None;
    }
    fs::read(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not inlined, unlike a test itself.
    #[inline(never)]
    fn found_by_its_place() -> u64 {
        std::hint::black_box(7)
    }

    #[test]
    fn the_functions_of_this_program_are_found_by_their_place_in_the_file() {
        assert_eq!(found_by_its_place(), 7);
        let path = std::env::current_exe().unwrap();
        let program = ProgramSymbols::read(&path, 1 << 20).unwrap();
        let named = |function: &ProgramFunction| function.name.contains("found_by_its_place");
        let at = program.functions().iter().position(named);
        let function = &program.functions()[at.unwrap()];
        let offset = program.segments.iter().find_map(|segment| segment.offset_of(function.address)).unwrap();
        assert_eq!(program.at_offset(offset), at);
        assert_eq!(program.at_offset(offset + function.size - 1), at);
        assert_ne!(program.at_offset(offset + function.size), at);
        assert_eq!(program.at_offset(u64::MAX), None);
        assert!(ProgramSymbols::read(&path, 10).unwrap().functions().len() <= 10);
        assert_eq!(ProgramSymbols::read(Path::new("/proc/version"), 10), None);
    }
}
