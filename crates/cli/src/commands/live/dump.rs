//! `kerntune live dump`.

use super::ask::{asked, strange};
use crate::args::Dump;
use crate::exit::{Exit, Failure};
use crate::export::gmon::Files;
use crate::output::Output;
use kerntune_live::daemon::{Answer, Request};
use kerntune_profile::Profile;
use kerntune_report::{summary, Report};
use kerntune_work::WorkDir;

/// Has the collector keep what it saw, and shows it.
pub fn run(work: &WorkDir, options: &Dump, output: &Output) -> Result<Exit, Failure> {
    // Looked at first, so that no profile is made that nobody hears of.
    let files = options.gmon.as_deref().map(|path| Files::new("--gmon", path)).transpose()?;
    let request = Request::Dump { workload: options.workload.clone() };
    let Answer::Dumped { path } = asked(work, &request)? else { return Err(strange()) };
    let profile = Profile::load(&path)?;
    if let Some(files) = files {
        files.write(&profile, |_| true, "VMLINUX", output)?;
    }
    if options.format.json {
        output.print(&summary::Options.json(&profile)?);
    } else {
        output.print(&summary::Options.text(&profile, output.style())?);
        let id = &profile.manifest.id;
        output
            .note(&format!("\nprofile {}\n`kerntune report {id} flat` shows the functions", path.display()));
    }
    Ok(Exit::Ok)
}
