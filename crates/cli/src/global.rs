//! Options of every command, and `--json`.

use crate::exit::Failure;
use clap::{Args, ValueEnum};
use kerntune_work::WorkDir;
use std::path::PathBuf;
use std::sync::Arc;

/// What options of every command stand below in help.
const GLOBAL: &str = "Global options";

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// The work directory, where kerntune keeps results and finds them again
    #[arg(long, global = true, help_heading = GLOBAL, env = "KERNTUNE_DIR", hide_env_values = true, default_value = ".kerntune", value_name = "DIR")]
    pub dir: PathBuf,
    /// Print details
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub verbose: bool,
    /// Print results and errors only
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with = "verbose")]
    pub quiet: bool,
    /// When to use colour
    #[arg(long, global = true, help_heading = GLOBAL, value_enum, default_value_t = When::Auto, value_name = "WHEN")]
    pub color: When,
    /// Do not page long reports and lists; without this option $PAGER or less shows them on a terminal
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub no_pager: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

// `--json` of commands that print a table. As documentation this would be the help of what has it.
#[derive(Debug, Clone, Copy, Args)]
pub struct Json {
    /// Print JSON (docs/json.md)
    #[arg(long)]
    pub json: bool,
}

/// The work directory of this call.
pub fn work(global: &Global) -> Result<WorkDir, Failure> {
    let work = WorkDir::open(&global.dir)?;
    Ok(match global.quiet {
        true => work,
        false => work.with_notes(Arc::new(|line| eprintln!("kerntune: {line}"))),
    })
}
