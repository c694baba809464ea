//! The format `gcda` of `kerntune import`: counters of an instrumented build are no profile for
//! reports, and the command says what to do with them.

use super::Entry;
use clap::Args;
use kerntune_command::{
    import_entry, CliOutput, Exit, Failure, GlobalOptions, ImportInput, Recognition, RunSubcommand,
};
use std::fs;
use std::path::{Path, PathBuf};

pub const ENTRY: Entry = import_entry::<ImportGcdaOptions>("gcda", 7, recognize);

/// Largest number of directory entries that are looked at.
const ENTRIES: usize = 20_000;

/// First bytes of a `.gcda` file in either byte order.
const MAGIC: [&[u8]; 2] = [b"adcg", b"gcda"];

fn recognize(input: &ImportInput) -> Option<Recognition> {
    if MAGIC.iter().any(|magic| input.bytes.starts_with(magic)) {
        return Recognition::certain("a .gcda file of GCC");
    }
    match input.names.is_some() && find_counters(&input.path).files > 0 {
        true => Recognition::certain("a directory of .gcda files of GCC"),
        false => None,
    }
}

/// .gcda files of an instrumented kernel: says how they are used, because they are no profile for reports
#[derive(Debug, Args)]
pub struct ImportGcdaOptions {
    /// A .gcda file, or a directory with some
    path: PathBuf,
}

impl RunSubcommand<GlobalOptions> for ImportGcdaOptions {
    fn run(&self, _: &GlobalOptions, _: &CliOutput) -> Result<Exit, Failure> {
        let path = self.path.display();
        let found = find_counters(&self.path);
        let count = match (self.path.is_dir(), found.files, found.is_all) {
            (false, ..) => {
                return Err(Failure::usage(format!(
                    "{path} has the counters of one object of an instrumented build, which are no profile for reports: \
                     GCC uses them to compile that object again. Give `kerntune optimize --recipe gcc-pgo --gcda DIR` the \
                     directory of all .gcda files"
                )))
            }
            (true, 0, true) => return Err(Failure::usage(format!("{path} has no .gcda files"))),
            (true, count, true) => count.to_string(),
            (true, count, false) => format!("at least {count}"),
        };
        Err(Failure::usage(format!(
            "{path} has {count} .gcda files, counters of an instrumented build. They are no profile for reports, because they \
             count arcs of GCC's own flow graph: `kerntune optimize --recipe gcc-pgo --gcda {path}` builds the kernel with them, \
             and `kerntune profile check {path} --kernel KERNEL` says how well they fit one"
        )))
    }
}

/// Number of `.gcda` files below a directory.
struct FoundCounters {
    files: usize,
    /// The whole tree was looked at.
    is_all: bool,
}

fn find_counters(top: &Path) -> FoundCounters {
    let mut found = FoundCounters { files: 0, is_all: true };
    let mut waiting = vec![top.to_owned()];
    let mut seen = 0;
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > ENTRIES {
                found.is_all = false;
                return found;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(path),
                Ok(_) if path.extension().is_some_and(|end| end == "gcda") => found.files += 1,
                _ => {}
            }
        }
    }
    found
}
