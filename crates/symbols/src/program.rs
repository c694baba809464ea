//! Functions of programs and libraries, for addresses of user mode.

use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum size of a file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 512 << 20;
/// Flag of executable segments (`PF_X`).
const EXECUTABLE: u32 = 1;

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
    /// Executable segments: offset in the file, size, address.
    segments: Vec<(u64, u64, u64)>,
}

impl ProgramSymbols {
    /// Reads at most `most` functions of a file; if it is stripped, of its debug file where Debian
    /// installs it. `None` if the file cannot be read or has no code.
    pub fn read(path: &Path, most: usize) -> Option<Self> {
        let bytes = contents(path)?;
        let (mut program, debug) = Self::parse(&bytes, most)?;
        let better = debug.and_then(|path| Self::parse(&contents(&path)?, most));
        if let Some((better, _)) =
            better.filter(|(better, _)| better.functions.len() > program.functions.len())
        {
            program.functions = better.functions;
        }
        Some(program)
    }

    /// Parses at most `most` functions of an ELF file. Also returns the path of its debug file.
    pub fn parse(bytes: &[u8], most: usize) -> Option<(Self, Option<PathBuf>)> {
        let file = object::File::parse(bytes).ok()?;
        let is_code =
            |flags: SegmentFlags| matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & EXECUTABLE != 0);
        let segments = file.segments().filter(|segment| is_code(segment.flags())).map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        let segments: Vec<_> = segments.collect();
        let is_function = |kind| kind == SymbolKind::Text;
        let mut functions: Vec<ProgramFunction> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| is_function(symbol.kind()) && symbol.is_definition() && symbol.size() > 0)
            .filter_map(|symbol| {
                let name = symbol.name().ok().filter(|name| !name.is_empty())?;
                Some(ProgramFunction { address: symbol.address(), size: symbol.size(), name: name.into() })
            })
            .take(most.saturating_mul(2))
            .collect();
        // Of several names at one address the shortest, and of these the alphabetically first.
        functions.sort_by(|a, b| (a.address, a.name.len(), &a.name).cmp(&(b.address, b.name.len(), &b.name)));
        functions.dedup_by_key(|function| function.address);
        functions.truncate(most);
        let debug = file.build_id().ok().flatten().filter(|id| id.len() > 2).map(|id| {
            let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            PathBuf::from(format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..]))
        });
        Some((Self { functions, segments }, debug))
    }

    /// Returns the number of the function at an offset of the file.
    pub fn at_offset(&self, offset: u64) -> Option<usize> {
        let (begin, _, address) =
            self.segments.iter().find(|(begin, size, _)| offset >= *begin && offset - begin < *size)?;
        let address = address.checked_add(offset - begin)?;
        let at = self.functions.partition_point(|function| function.address <= address).checked_sub(1)?;
        self.functions.get(at).filter(|function| address - function.address < function.size).map(|_| at)
    }

    /// Returns all functions, sorted by address.
    pub fn functions(&self) -> &[ProgramFunction] {
        &self.functions
    }
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
        let (begin, _, address) = program
            .segments
            .iter()
            .find(|(_, size, address)| function.address >= *address && function.address - address < *size)
            .unwrap();
        let offset = function.address - address + begin;
        assert_eq!(program.at_offset(offset), at);
        assert_eq!(program.at_offset(offset + function.size - 1), at);
        assert_ne!(program.at_offset(offset + function.size), at);
        assert_eq!(program.at_offset(u64::MAX), None);
        assert!(ProgramSymbols::read(&path, 10).unwrap().functions().len() <= 10);
        assert_eq!(ProgramSymbols::read(Path::new("/proc/version"), 10), None);
    }
}
