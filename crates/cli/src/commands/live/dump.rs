//! The command `kerntune live dump`.

use super::ask::{ask_collector, unexpected_answer};
use super::print_kept;
use crate::export::gmon::GmonFiles;
use clap::Args;
use kerntune_command::{CliOutput, Exit, Failure, FormatOptions};
use kerntune_live::daemon::{DaemonRequest, DaemonResponse};
use kerntune_profile::Profile;
use kerntune_work::WorkDir;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct LiveDumpOptions {
    /// Name of the machine's workload, for the profile
    #[arg(long, value_name = "NAME", default_value = "live")]
    pub workload: String,
    /// Also write the profile for GNU gprof; its symbols go into FILE.symbols, for `gprof -S`
    #[arg(long, value_name = "FILE")]
    pub gmon: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

/// Makes the collector write a profile, and prints its summary.
pub fn run(work: &WorkDir, options: &LiveDumpOptions, output: &CliOutput) -> Result<Exit, Failure> {
    // Checked first, so that no profile is made if the output cannot be written.
    let files = options.gmon.as_deref().map(|path| GmonFiles::new("--gmon", path)).transpose()?;
    let request = DaemonRequest::Dump { workload: options.workload.clone() };
    let DaemonResponse::Dumped { path } = ask_collector(work, &request)? else {
        return Err(unexpected_answer());
    };
    let profile = Profile::load(&path)?;
    if let Some(files) = files {
        files.write(&profile, |_| true, "VMLINUX", output)?;
    }
    print_kept(&path, &profile, options.format, output)?;
    Ok(Exit::Ok)
}
