//! `kerntune report PROFILE html`: the page of one profile.

use super::Entry;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_analyze::timeline::{detail, overview};
use kerntune_analyze::{Error, TraceFile};
use kerntune_profile::Profile;
use kerntune_report::html::profile::{profile_page, windows, ProfilePage, Timeline, BINS};
use kerntune_tune::run_files::RunFiles;
use kerntune_tune::watch;
use kerntune_work::interrupt;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("html", 13);

/// One page with pictures: call tree, timeline down to single calls, callers and callees, histograms
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// File to write; it needs nothing else to be read
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
}

impl Run<Subject> for Options {
    fn run(&self, of: &Subject, output: &Output) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let region = self.region.as_deref();
        // A profile without a trace has a page without a timeline.
        let files = match RunFiles::open(&of.directory) {
            Ok(files) => Some(files),
            Err(kerntune_tune::Error::NoTrace { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let timeline = match &files {
            Some(files) => {
                output.progress().begin("reading the trace", Some(files.recording.events));
                let timeline = timeline(files, &of.profile, region, output);
                output.progress().end();
                interrupt::check()?;
                Some(timeline.map_err(kerntune_tune::Error::from)?)
            }
            None => None,
        };
        let page = profile_page(&ProfilePage {
            profile: &of.profile,
            region,
            timeline: timeline.as_ref(),
            written: concat!("kerntune ", env!("CARGO_PKG_VERSION")),
        })?;
        file.write(page.as_bytes())?;
        output.note(&format!("wrote {} ({} KiB)", self.output.display(), page.len().div_ceil(1024)));
        Ok(Exit::Ok)
    }
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
