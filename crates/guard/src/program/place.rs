//! Source lines at which functions of programs begin, from the programs' debug information.

use kerntune_debuginfo::{Elf, LineTables, SymbolKind};
use serde::Serialize;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Largest program whose debug information is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourcePlace {
    /// Source file: relative to the directory of `guard.toml` where it is below it, or else as the
    /// compiler was given it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// Functions of programs with their source lines.
#[derive(Default)]
pub(super) struct FunctionPlaces {
    programs: Vec<(LineTables, HashMap<String, u64>)>,
    dir: PathBuf,
}

impl FunctionPlaces {
    /// Reads programs; one without debug information has no places. Paths become relative to `dir`.
    pub fn read(programs: &[PathBuf], dir: &Path) -> Self {
        let programs = programs.iter().filter_map(|path| read(path)).collect();
        Self { programs, dir: std::path::absolute(dir).unwrap_or(dir.to_owned()) }
    }

    /// Returns the line at which a function's code begins.
    pub fn find(&self, function: &str) -> Option<SourcePlace> {
        let found = |(lines, functions): &(LineTables, HashMap<String, u64>)| {
            let address = *functions.get(function)?;
            lines.first_line(address).ok()?
        };
        let line = self.programs.iter().find_map(found)?;
        let file = Path::new(&line.file);
        let file = file.strip_prefix(&self.dir).unwrap_or(file);
        Some(SourcePlace { file: file.display().to_string(), line: line.line })
    }
}

fn read(path: &Path) -> Option<(LineTables, HashMap<String, u64>)> {
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    let bytes = (size <= MAX_BYTES).then(|| fs::read(path).ok()).flatten()?;
    let elf = Elf::parse(&bytes).ok()?;
    let lines = LineTables::of(&elf).ok().flatten()?;
    let functions = elf.symbols().flatten().filter(|symbol| symbol.kind == SymbolKind::Function);
    let functions = functions.map(|symbol| (symbol.name.into_owned(), symbol.address)).collect();
    Some((lines, functions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_function_is_found_in_its_source_and_a_program_without_lines_has_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("a.c"),
            "int g(void) { return 1; }\n\nint main(void)\n{\n\treturn g();\n}\n",
        )
        .unwrap();
        let build = |flag: &str, out: &str| {
            let source = dir.path().join("a.c");
            let status =
                Command::new("gcc").current_dir(dir.path()).args([flag, "-o", out]).arg(source).status();
            assert!(status.unwrap().success());
            FunctionPlaces::read(&[dir.path().join(out)], dir.path())
        };
        let with = build("-g", "with");
        let main = SourcePlace { file: "a.c".into(), line: 4 };
        assert_eq!((with.find("main"), with.find("nothing")), (Some(main), None));
        assert_eq!(build("-g0", "without").find("main"), None);
        assert_eq!(FunctionPlaces::read(&["/nothing".into()], dir.path()).find("main"), None);
    }
}
