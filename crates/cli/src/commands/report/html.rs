//! `kerntune report PROFILE html`: the page of one profile.

use crate::args::HtmlReport;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use kerntune_analyze::timeline::{detail, overview};
use kerntune_analyze::{Error, TraceFile};
use kerntune_profile::Profile;
use kerntune_report::html::profile::{profile_page, windows, ProfilePage, Timeline, BINS};
use kerntune_tune::run_files::RunFiles;
use kerntune_tune::watch;
use kerntune_work::interrupt;
use std::path::Path;

pub fn run(
    directory: &Path,
    profile: &Profile,
    options: &HtmlReport,
    output: &Output,
) -> Result<Exit, Failure> {
    let file = OutputFile::new("--output", &options.output)?;
    let region = options.region.as_deref();
    // A profile without a trace has a page without a timeline.
    let files = match RunFiles::open(directory) {
        Ok(files) => Some(files),
        Err(kerntune_tune::Error::NoTrace { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let timeline = match &files {
        Some(files) => {
            output.progress().begin("reading the trace", Some(files.recording.events));
            let timeline = timeline(files, profile, region, output);
            output.progress().end();
            interrupt::check()?;
            Some(timeline.map_err(kerntune_tune::Error::from)?)
        }
        None => None,
    };
    let page = profile_page(&ProfilePage {
        profile,
        region,
        timeline: timeline.as_ref(),
        written: concat!("kerntune ", env!("CARGO_PKG_VERSION")),
    })?;
    file.write(page.as_bytes())?;
    output.note(&format!("wrote {} ({} KiB)", options.output.display(), page.len().div_ceil(1024)));
    Ok(Exit::Ok)
}

fn timeline<'a>(
    files: &'a RunFiles,
    profile: &Profile,
    region: Option<&str>,
    output: &Output,
) -> Result<Timeline<'a>, Error> {
    let trace = TraceFile::open(&files.trace, &files.recording)?;
    let overview = overview(&trace, BINS, &mut |events| watch::at(output.progress(), events))?;
    let mut found = Vec::new();
    for choice in windows(profile, region) {
        let detail = detail(&trace, &choice.window)?;
        found.push((choice, detail));
    }
    Ok(Timeline { threads: &files.recording.threads, overview, windows: found })
}
