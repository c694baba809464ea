//! The report `html` of `kerntune report`: the page of one profile.

use super::Entry;
use crate::code::KernelCode;
use crate::page::{run_files, timeline, WRITTEN};
use clap::Args;
use kerntune_command::{entry, CliOutput, Exit, Failure, OutputFile, ProfileSubject, RunSubcommand};
use kerntune_profile::{find, Profile};
use kerntune_report::html::profile::{profile_page, PageCode, ProfilePage};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ReportHtmlOptions>("html", 13);

/// A page with charts: timeline down to single calls, call tree, callers and callees, histograms
#[derive(Debug, Clone, Args)]
pub struct ReportHtmlOptions {
    /// Write the self-contained page to this file
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Show only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Show also this profile, and the difference between both
    #[arg(long, value_name = "PROFILE")]
    against: Option<String>,
    /// Put at most this many MiB of the trace on the page, and an eighth of this for the code of
    /// functions; `kerntune view` shows everything
    #[arg(long, value_name = "MIB", default_value_t = 16)]
    size_limit: u64,
}

impl RunSubcommand<ProfileSubject> for ReportHtmlOptions {
    fn run(&self, of: &ProfileSubject, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let region = self.region.as_deref();
        let against = match &self.against {
            Some(name) => Some(Profile::load(&find(&of.work, name)?.path)?),
            None => None,
        };
        let files = run_files(&of.directory)?;
        let room = self.size_limit.saturating_mul(1 << 20);
        let timeline = match &files {
            Some(files) => Some(timeline(files, &of.profile, region, Some(room), output)?),
            None => None,
        };
        let (code, damage) = match KernelCode::open(&of.work, &of.profile) {
            Ok(code) => (code.heaviest(room)?, None),
            Err(none) => (PageCode { rest: none.why, ..PageCode::default() }, none.damage),
        };
        let page = profile_page(&ProfilePage {
            profile: &of.profile,
            region,
            timeline: timeline.as_ref(),
            against: against.as_ref(),
            code: Some(&code),
            written: WRITTEN,
        })?;
        file.write(page.as_bytes())?;
        output.note(&format!("wrote {} ({} KiB)", self.output.display(), page.len().div_ceil(1024)));
        Ok(match damage {
            Some(damage) => output.left_out(&damage, "the page has no source and code"),
            None => Exit::Ok,
        })
    }
}
