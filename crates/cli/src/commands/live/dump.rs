//! The command `kerntune live dump`.

use super::ask::{ask_collector, unexpected_answer};
use crate::args::LiveDumpOptions;
use crate::exit::{Exit, Failure};
use crate::export::gmon::GmonFiles;
use crate::output::CliOutput;
use kerntune_live::daemon::{DaemonRequest, DaemonResponse};
use kerntune_profile::Profile;
use kerntune_report::{summary, Report};
use kerntune_work::WorkDir;

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
    if options.format.json {
        output.print(&summary::SummaryOptions.json(&profile)?);
    } else {
        output.print(&summary::SummaryOptions.text(&profile, output.style())?);
        let id = &profile.manifest.id;
        output
            .note(&format!("\nprofile {}\n`kerntune report {id} flat` shows the functions", path.display()));
    }
    Ok(Exit::Ok)
}
