//! Describes binaries with traced user functions to the recorder: code pages and functions.

use kerntune_debuginfo::{debug_file, CodeSegment, Elf, ElfSymbol, Section, SymbolBinding, SymbolKind, ROOT};
use kerntune_isa::{GuestIsa, Isa};
use kerntune_trace::{page_hash, BinarySpec, FunctionKind, FunctionSpec, PageSpec};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

const PAGE: u64 = 4096;
/// Largest debug file to read, in bytes.
const MAX_DEBUG_BYTES: u64 = 4 << 30;

/// A binary and the names of its functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserBinary {
    /// Description for the recorder.
    pub spec: BinarySpec,
    /// Names of the functions, in the order of `spec.functions`.
    pub names: Vec<String>,
    /// True if the file has only the dynamic linker's symbols: functions that a library does not
    /// export are then unknown, and their time counts as their callers'.
    pub dynamic_only: bool,
}

/// Reason why a file's functions cannot be traced.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum UserBinaryError {
    #[error("--user {path}: cannot read it: {reason}")]
    Read { path: String, reason: String },
    #[error("--user {path} is no x86-64 ELF program or library: {reason}")]
    Elf { path: String, reason: String },
    #[error("--user {path} has no symbols of functions (stripped), and there is no debug file of the same build id for it (in /usr/lib/debug/.build-id, or where .gnu_debuglink says): install its -dbgsym package, or build it with symbols, without `strip` and `-s`")]
    NoSymbols { path: String },
}

/// Parses a binary of the host; the guest has the same bytes.
///
/// # Errors
/// See [`UserBinaryError`].
pub fn load(path: &Path) -> Result<UserBinary, UserBinaryError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path)
        .map_err(|e| UserBinaryError::Read { path: name.clone(), reason: e.to_string() })?;
    let found = parse(&bytes, &name);
    if found.as_ref().is_ok_and(|binary| !binary.dynamic_only) {
        return found;
    }
    // Stripped, as distributions ship it: symbols may be in a debug file.
    match debug_file(&bytes, path, Path::new(ROOT), MAX_DEBUG_BYTES) {
        Some(symbols) => match parse_with(&bytes, &symbols, &name) {
            Ok(binary) if !binary.dynamic_only => Ok(binary),
            _ => found,
        },
        None => found,
    }
}

pub(crate) fn parse(bytes: &[u8], path: &str) -> Result<UserBinary, UserBinaryError> {
    parse_with(bytes, bytes, path)
}

/// Parses a binary with the symbols of `symbols`: itself, or its debug file, which has the same
/// addresses.
fn parse_with(bytes: &[u8], symbols: &[u8], path: &str) -> Result<UserBinary, UserBinaryError> {
    let refuse = |reason: String| UserBinaryError::Elf { path: path.into(), reason };
    let failed = |error: kerntune_debuginfo::Error| refuse(error.to_string());
    let elf = Elf::parse(bytes).map_err(failed)?;
    if elf.machine() != GuestIsa::NAMES.elf_machine {
        return Err(refuse("it is for another processor".into()));
    }
    let code = elf.code_segments();
    let named = Elf::parse(symbols).map_err(failed)?;
    let mut functions = functions(named.symbols(), &code).map_err(failed)?;
    let dynamic_only = functions.is_empty();
    if dynamic_only {
        functions = self::functions(named.dynamic_symbols(), &code).map_err(failed)?;
    }
    if functions.is_empty() {
        return Err(UserBinaryError::NoSymbols { path: path.into() });
    }
    // A function without a size ends with its section: the linkage table after `_init` is no part
    // of it.
    let sections = elf.code_sections().map_err(failed)?;
    let end = |at: &Section| (at.offset, at.offset.saturating_add(at.end - at.start));
    let ends: BTreeMap<u64, u64> = sections.iter().map(end).collect();
    let (specs, names) = finish(functions, &ends);
    Ok(UserBinary {
        spec: BinarySpec { path: path.into(), pages: pages(bytes, &code), functions: specs },
        names,
        dynamic_only,
    })
}

/// Returns the best symbol of each function by the function's offset in the file.
fn functions<'data>(
    symbols: impl Iterator<Item = kerntune_debuginfo::Result<ElfSymbol<'data>>>,
    code: &[CodeSegment],
) -> kerntune_debuginfo::Result<BTreeMap<u64, SymbolCandidate>> {
    let mut functions: BTreeMap<u64, SymbolCandidate> = BTreeMap::new();
    for (index, symbol) in symbols.enumerate() {
        let symbol = symbol?;
        let is_code = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Chooser);
        if !is_code || symbol.section.is_none() {
            continue;
        }
        let Some(offset) = code.iter().find_map(|segment| segment.offset_of(symbol.address)) else {
            continue;
        };
        let candidate = SymbolCandidate {
            local: symbol.binding == SymbolBinding::Local,
            name: symbol.name.into_owned(),
            size: symbol.size,
            index,
        };
        let better = functions.get(&offset).is_none_or(|known| candidate.rank() < known.rank());
        if better {
            functions.insert(offset, candidate);
        }
    }
    Ok(functions)
}

/// A symbol that may name the function at its address.
struct SymbolCandidate {
    local: bool,
    name: String,
    size: u64,
    index: usize,
}

impl SymbolCandidate {
    /// Smallest is best: a symbol with a size, a global one, without leading underscores, short.
    fn rank(&self) -> (bool, bool, usize, usize, usize) {
        let underscores = self.name.len() - self.name.trim_start_matches('_').len();
        (self.size == 0, self.local, underscores, self.name.len(), self.index)
    }
}

/// Returns the functions in order, with missing sizes filled in and cold parts assigned to their
/// functions. `sections` has the end of each code section by its start.
fn finish(
    functions: BTreeMap<u64, SymbolCandidate>,
    sections: &BTreeMap<u64, u64>,
) -> (Vec<FunctionSpec>, Vec<String>) {
    let starts: Vec<u64> = functions.keys().copied().collect();
    let by_name: HashMap<&str, u32> =
        functions.values().zip(0..).map(|(candidate, at)| (candidate.name.as_str(), at)).collect();
    let mut specs = Vec::with_capacity(starts.len());
    for (at, (&address, candidate)) in functions.iter().enumerate() {
        let end = sections.range(..=address).next_back().map_or(address, |(_, &end)| end);
        let next = starts.get(at + 1).copied().unwrap_or(end).min(end);
        let size = if candidate.size == 0 { next.saturating_sub(address) } else { candidate.size };
        let owner = candidate.name.split_once(".cold").and_then(|(whole, _)| by_name.get(whole));
        let kind = match owner {
            Some(&owner) if owner as usize != at => FunctionKind::Part(owner),
            _ => FunctionKind::Plain,
        };
        specs.push(FunctionSpec { address, size, kind, skip: false, probe: None, conditional: false });
    }
    (specs, functions.into_values().map(|candidate| candidate.name).collect())
}

/// Returns the file's code pages, each content once. The kernel maps whole pages of the file, with
/// zeros after its end.
fn pages(bytes: &[u8], code: &[CodeSegment]) -> Vec<PageSpec> {
    let mut pages = Vec::new();
    let mut seen = HashSet::new();
    for segment in code {
        let mut offset = segment.offset / PAGE * PAGE;
        while offset < segment.offset.saturating_add(segment.size) {
            let Some(rest) = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)) else { break };
            let mut page = [0; PAGE as usize];
            let length = rest.len().min(page.len());
            page[..length].copy_from_slice(&rest[..length]);
            let hash = page_hash(&page);
            if length != 0 && seen.insert(hash) {
                pages.push(PageSpec { offset, hash });
            }
            offset += PAGE;
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn functions_by_offset_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        for flags in [&["-O1", "-no-pie"][..], &["-O1", "-pie", "-fPIE"]] {
            let program = crate::test_program::build(&dir, flags);
            let binary = load(&program).unwrap();
            let at = binary.names.iter().position(|name| name == "work").unwrap();
            let function = &binary.spec.functions[at];
            let bytes = std::fs::read(&program).unwrap();
            // endbr64
            assert_eq!(bytes[function.address as usize..][..4], [0xf3, 0x0f, 0x1e, 0xfa]);
            assert!(function.size > 4 && !binary.dynamic_only);
            let page = function.address & !4095;
            let hash = page_hash(bytes[page as usize..][..4096].try_into().unwrap());
            assert!(binary.spec.pages.contains(&PageSpec { offset: page, hash }));
            // `_init` has no size; `.plt` follows its section.
            let init = binary.names.iter().position(|name| name == "_init").unwrap();
            assert!((1..64).contains(&binary.spec.functions[init].size), "{:?}", binary.spec.functions[init]);
        }
    }

    #[test]
    fn what_has_no_symbols_is_refused_and_libraries_have_dynamic_ones() {
        let dir = tempfile::tempdir().unwrap();
        let stripped = crate::test_program::build(&dir, &["-s"]);
        assert!(matches!(load(&stripped), Err(UserBinaryError::NoSymbols { .. })));
        // A library of our own, since those of the system may or may not have debug files here.
        let library = load(&crate::test_program::build(&dir, &["-O1", "-shared", "-fPIC", "-s"])).unwrap();
        assert!(library.dynamic_only);
        let has = |name: &str| library.names.iter().any(|known| known == name);
        assert!(has("work") && !has("helper"), "{:?}", library.names);
        assert!(load(Path::new("/etc/passwd")).unwrap_err().to_string().contains("no x86-64 ELF"));
    }

    #[test]
    fn a_stripped_program_has_the_symbols_of_its_debug_file() {
        let dir = tempfile::tempdir().unwrap();
        let program = crate::test_program::build(&dir, &["-O1", "-Wl,--build-id"]);
        let whole = load(&program).unwrap();
        let run = |name: &str, arguments: &[&std::ffi::OsStr]| {
            assert!(std::process::Command::new(name).args(arguments).status().unwrap().success(), "{name}");
        };
        let debug = dir.path().join("program.debug");
        run("objcopy", &["--only-keep-debug".as_ref(), program.as_os_str(), debug.as_os_str()]);
        let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
        link.push(&debug);
        run("objcopy", &["--strip-all".as_ref(), &link, program.as_os_str()]);
        let with_debug = load(&program).unwrap();
        assert!(with_debug.names.iter().any(|name| name == "work"));
        assert_eq!((&with_debug.names, &with_debug.spec.functions), (&whole.names, &whole.spec.functions));
        // The pages are those of the file that runs.
        assert_eq!(
            with_debug.spec.pages,
            parse_with(&std::fs::read(&program).unwrap(), &std::fs::read(&debug).unwrap(), "")
                .unwrap()
                .spec
                .pages
        );
        // By its build id alone, below the directory that distributions use.
        let bytes = std::fs::read(&program).unwrap();
        let id = Elf::parse(&bytes).unwrap().build_id().unwrap();
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let place = dir.path().join(".build-id").join(&hex[..2]);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::rename(&debug, place.join(format!("{}.debug", &hex[2..]))).unwrap();
        assert!(debug_file(&bytes, &program, dir.path(), MAX_DEBUG_BYTES).is_some());
        assert!(debug_file(&bytes, &program, Path::new("/nonexistent"), MAX_DEBUG_BYTES).is_none());
        // A file with another build id is ignored.
        let other = crate::test_program::build(&dir, &["-O2", "-Wl,--build-id"]);
        run("objcopy", &["--only-keep-debug".as_ref(), other.as_os_str(), debug.as_os_str()]);
        assert!(debug_file(&bytes, &program, Path::new("/nonexistent"), MAX_DEBUG_BYTES).is_none());
    }

    proptest! {
        #[test]
        fn damaged_files_are_refused_or_read(
            damage in prop::collection::vec((0usize..16384, any::<u8>()), 1..40),
            keep in 0usize..20_000,
        ) {
            let mut bytes = std::fs::read("/bin/true").unwrap();
            for (at, byte) in damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            bytes.truncate(keep);
            let _ = parse(&bytes, "damaged");
        }
    }
}
