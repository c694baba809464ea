//! Runs `llvm-bolt`, and `objcopy` to prepare its input.

use super::NAME;
use crate::{Error, Result};
use kerntune_kernel::{installed, Compiler};
use kerntune_work::{find_program, IoContext, Job};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Oldest BOLT whose handling of a kernel's tables is known ([`guard`](super::guard)).
pub(super) const FIRST_MAJOR: u32 = 19;
const TOOL: &str = "llvm-bolt";

/// Orders of a function's blocks (`--reorder-blocks`) to try, one after the other.
///
/// Extended TSP (A. Newell, S. Pupyrev: "Improved Basic Block Reordering", IEEE Transactions on
/// Computers 2020) has the best orders. It also needs the most long-distance jumps, which have
/// longer encodings; with `normal` some functions fit that did not fit before.
pub(super) const ORDERS: [&str; 2] = ["ext-tsp", "normal"];

/// Sections in which a kernel with modules lists its symbols. BOLT 19 looks for functions in them
/// and crashes without them; empty ones suffice.
const SYMBOL_SECTIONS: [&str; 2] = ["__ksymtab", "__ksymtab_gpl"];

/// Installed BOLT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bolt {
    /// Name or path of the program.
    program: String,
    /// Version, as the program prints it.
    pub version: String,
}

/// Functions to rewrite: a file with one name on each line. BOLT accepts one of these files, not
/// both.
#[derive(Debug, Clone, Copy)]
pub(super) enum FunctionSelection<'a> {
    /// All functions but these regular expressions.
    But(&'a Path),
    /// Only these, by BOLT's own names.
    Only(&'a Path),
}

/// Files that one run reads and writes.
pub(super) struct PassFiles<'a> {
    pub vmlinux: &'a Path,
    pub counts: &'a Path,
    pub functions: FunctionSelection<'a>,
    pub output: &'a Path,
    pub log: &'a Path,
}

impl Bolt {
    /// Finds the program for kernels that `compiler` builds: Clang's own, else the newest that is
    /// installed.
    ///
    /// # Errors
    /// [`Error::NoPrograms`] if it cannot be run; [`Error::Compiler`] if it is too old.
    pub fn find(compiler: &Compiler) -> Result<Self> {
        let own = compiler.llvm_tools().map(|tools| (tools.program(TOOL), tools.package(TOOL)));
        // BOLT reads the code of any compiler.
        let newest = installed(TOOL).into_iter().next().map(|bolt| bolt.name);
        let program = match (&own, newest) {
            (Some((own, _)), _) if find_program(own, &[]).is_some() => own.clone(),
            (_, Some(newest)) => newest,
            (Some((own, _)), None) => own.clone(),
            (None, None) => TOOL.to_owned(),
        };
        let absent = || {
            let package = own.as_ref().map_or_else(|| format!("bolt-{FIRST_MAJOR}"), |own| own.1.clone());
            Error::NoPrograms { recipe: NAME, programs: vec![program.clone()], package }
        };
        let printed = Command::new(&program).arg("--version").output().map_err(|_| absent())?;
        if !printed.status.success() {
            return Err(absent());
        }
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        let version = printed.lines().find(|line| line.contains("LLVM version")).ok_or_else(absent)?;
        let version = version.trim().to_string();
        match major_of(&version) {
            Some(major) if major >= FIRST_MAJOR => Ok(Self { program, version }),
            _ => {
                let needs = format!("BOLT {FIRST_MAJOR} or later");
                Err(Error::Compiler { recipe: NAME, found: format!("{program} ({version})"), needs })
            }
        }
    }

    /// Returns the name by which to run it.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns the arguments beside the files; they are part of a result's key.
    pub(super) fn arguments(order: &str) -> [String; 4] {
        // Only functions with counts; each function that is too long is named with its missing
        // bytes.
        [
            "--lite".into(),
            format!("--reorder-blocks={order}"),
            "--print-large-functions".into(),
            // A single thread processes functions in one order, so the log is reproducible.
            "--no-threads".into(),
        ]
    }

    /// Rewrites an image once. Returns BOLT's output, which is also in the log.
    pub(super) fn run(&self, order: &str, files: &PassFiles, kernel: &str) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.arg(files.vmlinux).arg("-o").arg(files.output);
        command.arg("--pa").arg("-p").arg(files.counts).args(Self::arguments(order));
        match files.functions {
            FunctionSelection::But(these) => command.arg("--skip-funcs-file").arg(these),
            FunctionSelection::Only(these) => command.arg("--funcs-file-no-regex").arg(these),
        };
        run(command, files.log, kernel)
    }
}

/// Checks whether BOLT would crash on an image that has the sections of which `has` is true.
pub(super) fn lacks_symbol_sections(has: impl Fn(&str) -> bool) -> bool {
    !SYMBOL_SECTIONS.into_iter().all(has)
}

/// Copies an ELF image, adding an empty section for each of those in which BOLT looks for symbols
/// and which is missing.
pub(super) fn with_symbol_sections(
    from: &Path,
    to: &Path,
    has: impl Fn(&str) -> bool,
    kernel: &str,
) -> Result<()> {
    let (empty, log) = (to.with_extension("empty"), to.with_extension("log"));
    fs::write(&empty, b"").at("write", &empty)?;
    let mut command = Command::new("objcopy");
    for name in SYMBOL_SECTIONS.into_iter().filter(|name| !has(name)) {
        command.arg("--add-section").arg(format!("{name}={}", empty.display()));
    }
    command.arg(from).arg(to);
    run(command, &log, kernel)?;
    [empty, log].iter().try_for_each(|left| fs::remove_file(left).at("remove", left))?;
    Ok(())
}

/// Parses the major number of `Debian LLVM version 19.1.7`.
fn major_of(version: &str) -> Option<u32> {
    let (_, number) = version.split_once("LLVM version ")?;
    number.split('.').next()?.parse().ok()
}

fn run(command: Command, log: &Path, kernel: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let (end, printed) = Job::new(command).output()?;
    fs::write(log, &printed).at("write", log)?;
    if end.success() {
        return Ok(printed);
    }
    // A crash prints the stack at the end, and its cause before.
    let printed =
        printed.lines().filter(|line| !line.trim_start().starts_with('#')).take(40).collect::<Vec<_>>();
    Err(Error::Program { program, kernel: kernel.to_string(), printed: printed.join("\n") })
}
