//! Global options, and the option `--json`.

use crate::exit::Failure;
use clap::{Args, ValueEnum};
use kerntune_report::ReportForm;
use kerntune_work::WorkDir;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Heading of the global options in help.
const GLOBAL: &str = "Global options";

/// Options that every command accepts.
#[derive(Debug, Args)]
pub struct GlobalOptions {
    /// The work directory, where kerntune keeps and finds results [env: KERNTUNE_DIR] [default:
    /// .kerntune, here or in a directory above]
    // clap reads no environment: it would show the option in the usage line of every error.
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Print details
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub verbose: bool,
    /// Print results and errors only
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with = "verbose")]
    pub quiet: bool,
    /// When to use color
    #[arg(long, global = true, help_heading = GLOBAL, value_enum, default_value_t = ColorMode::Auto, value_name = "WHEN")]
    pub color: ColorMode,
    /// Do not page long reports and lists; by default, $PAGER or less shows them on a terminal
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub no_pager: bool,
}

impl GlobalOptions {
    /// Returns the work directory: that of `--dir`, of `KERNTUNE_DIR`, or the nearest `.kerntune`
    /// of the current directory and those above it, where only directories of this user count.
    pub fn work_dir(&self) -> PathBuf {
        let variable = || std::env::var_os("KERNTUNE_DIR").filter(|path| !path.is_empty());
        let named = self.dir.clone().or_else(|| variable().map(PathBuf::from));
        named.unwrap_or_else(|| match std::env::current_dir() {
            Ok(here) if !here.join(WORK_DIR).exists() => nearest(&here).unwrap_or(WORK_DIR.into()),
            _ => WORK_DIR.into(),
        })
    }
}

/// Name of a work directory that nobody named.
const WORK_DIR: &str = ".kerntune";

/// Finds a work directory of this user above `here`, as git finds a repository: another user's
/// would have results that this one did not make.
fn nearest(here: &Path) -> Option<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let above = here.ancestors().skip(1).map(|path| path.join(WORK_DIR));
    above.into_iter().find(|path| path.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own))
}

/// Values of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ColorMode {
    Auto,
    Always,
    Never,
}

// The option `--json` of commands that print a table. Not a doc comment: it would replace the help
// of the command that flattens this struct.
#[derive(Debug, Clone, Copy, Args)]
#[allow(missing_docs)]
pub struct FormatOptions {
    /// Print JSON (docs/json.md)
    #[arg(long)]
    pub json: bool,
}

// The options of reports. Not a doc comment, see `FormatOptions`.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, Args)]
pub struct FormOptions {
    /// Print JSON (docs/json.md)
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print text, json, csv, markdown or html
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "text",
        hide_possible_values = true,
        hide_default_value = true
    )]
    format: ReportForm,
}

impl FormOptions {
    /// Returns the form that the options ask for.
    pub fn form(self) -> ReportForm {
        if self.json {
            ReportForm::Json
        } else {
            self.format
        }
    }
}

/// Opens the work directory and creates it if needed; prints its notes unless `--quiet` is given.
pub fn work(global: &GlobalOptions) -> Result<WorkDir, Failure> {
    Ok(with_notes(global, WorkDir::open(global.work_dir())?))
}

/// Opens the work directory for a command that starts from results in it; creates nothing.
pub fn work_to_read(global: &GlobalOptions) -> Result<WorkDir, Failure> {
    Ok(with_notes(global, WorkDir::open_for_reading(global.work_dir())?))
}

/// Opens the work directory for a dry run, which makes nothing.
pub(crate) fn work_for_dry_run(global: &GlobalOptions) -> Result<WorkDir, Failure> {
    Ok(with_notes(global, WorkDir::open_for_dry_run(global.work_dir())?))
}

fn with_notes(global: &GlobalOptions, work: WorkDir) -> WorkDir {
    match global.quiet {
        true => work,
        false => work.with_notes(Arc::new(|line| eprintln!("kerntune: {line}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_work_directory_of_this_user_is_found() {
        let top = tempfile::tempdir().unwrap();
        let [outer, inner] = ["a", "a/b/c"].map(|name| top.path().join(name));
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(nearest(&inner), None);
        std::fs::write(top.path().join("a/b/.kerntune"), "a file").unwrap();
        std::fs::create_dir(outer.join(WORK_DIR)).unwrap();
        assert_eq!(nearest(&inner), Some(outer.join(WORK_DIR)));
        assert_eq!(nearest(&outer), None);
    }
}
