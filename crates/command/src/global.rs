//! Global options, and the option `--json`.

use crate::exit::Failure;
use clap::{Args, ValueEnum};
use kerntune_work::WorkDir;
use std::path::PathBuf;
use std::sync::Arc;

/// Heading of the global options in help.
const GLOBAL: &str = "Global options";

/// Options that every command accepts.
#[derive(Debug, Args)]
pub struct GlobalOptions {
    /// The work directory, where kerntune keeps and finds results
    #[arg(long, global = true, help_heading = GLOBAL, env = "KERNTUNE_DIR", hide_env_values = true, default_value = ".kerntune", value_name = "DIR")]
    pub dir: PathBuf,
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

/// Opens the work directory that `--dir` names; prints its notes unless `--quiet` is given.
pub fn work(global: &GlobalOptions) -> Result<WorkDir, Failure> {
    let work = WorkDir::open(&global.dir)?;
    Ok(match global.quiet {
        true => work,
        false => work.with_notes(Arc::new(|line| eprintln!("kerntune: {line}"))),
    })
}
