//! The programs: `llvm-bolt`, and `objcopy` for what it wants to see.

use super::NAME;
use crate::{Error, Result};
use kerntune_work::{IoContext, Job};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The program by its name in Debian. What a kernel has to be kept from it ([`guard`](super::guard)) depends on its
/// version.
pub const PROGRAM: &str = "llvm-bolt-19";
const PACKAGE: &str = "bolt-19";

/// How BOLT puts the blocks of a function in order (`--reorder-blocks`), one after the other.
///
/// Extended TSP (A. Newell, S. Pupyrev: "Improved Basic Block Reordering", IEEE Transactions on Computers 2020) has the
/// best orders. It also needs the most jumps over long ways, which are longer themselves; with `normal` some of the
/// functions find room that did not with it.
pub(super) const ORDERS: [&str; 2] = ["ext-tsp", "normal"];

/// The sections by which a kernel with modules names its symbols. BOLT 19 looks for functions in them and crashes where
/// there are none; empty ones will do.
const SYMBOL_SECTIONS: [&str; 2] = ["__ksymtab", "__ksymtab_gpl"];

/// BOLT as it is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bolt {
    /// What it says of itself.
    pub version: String,
}

/// Which functions a run is about: names, one to a line. BOLT takes one of these files and not both.
#[derive(Debug, Clone, Copy)]
pub(super) enum Choice<'a> {
    /// All but these, regular expressions.
    But(&'a Path),
    /// These, by BOLT's own names.
    Only(&'a Path),
}

/// What one run reads and writes.
pub(super) struct Files<'a> {
    pub vmlinux: &'a Path,
    pub counts: &'a Path,
    pub functions: Choice<'a>,
    pub output: &'a Path,
    pub log: &'a Path,
}

impl Bolt {
    /// Asks for its version.
    ///
    /// # Errors
    /// [`Error::NoPrograms`] if it cannot be run.
    pub fn find() -> Result<Self> {
        let absent = || {
            let programs = vec![PROGRAM.to_string()];
            Error::NoPrograms { recipe: NAME, programs, package: PACKAGE.into() }
        };
        let said = Command::new(PROGRAM).arg("--version").output().map_err(|_| absent())?;
        if !said.status.success() {
            return Err(absent());
        }
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let version = said.lines().find(|line| line.contains("LLVM version")).ok_or_else(absent)?;
        Ok(Self { version: version.trim().to_string() })
    }

    /// What it is run with, beside its files. Part of what names a result.
    pub(super) fn arguments(order: &str) -> [String; 4] {
        // Only functions with counts; each too long one is named with the bytes that it lacks.
        [
            "--lite".into(),
            format!("--reorder-blocks={order}"),
            "--print-large-functions".into(),
            // In one thread functions are worked on in one order, and the log is always the same.
            "--no-threads".into(),
        ]
    }

    /// Rewrites an image once. Returns what BOLT said, which is in the log, too.
    pub(super) fn run(&self, order: &str, files: &Files, kernel: &str) -> Result<String> {
        let mut command = Command::new(PROGRAM);
        command.arg(files.vmlinux).arg("-o").arg(files.output);
        command.arg("--pa").arg("-p").arg(files.counts).args(Self::arguments(order));
        match files.functions {
            Choice::But(these) => command.arg("--skip-funcs-file").arg(these),
            Choice::Only(these) => command.arg("--funcs-file-no-regex").arg(these),
        };
        run(command, files.log, kernel)
    }
}

/// Copies an ELF image, with an empty section for each of those in which BOLT looks for symbols and which is not there.
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

fn run(command: Command, log: &Path, kernel: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let (end, said) = Job::new(command).output()?;
    fs::write(log, &said).at("write", log)?;
    if end.success() {
        return Ok(said);
    }
    // A crash prints its stack at the end, what it was at stands before.
    let said = said.lines().filter(|line| !line.trim_start().starts_with('#')).take(40).collect::<Vec<_>>();
    Err(Error::Program { program, kernel: kernel.to_string(), said: said.join("\n") })
}
