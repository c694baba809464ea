//! `kerntune report PROFILE html`: the page of one profile.

use super::Entry;
use crate::code::CodeOf;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use crate::page::{run_files, timeline, WRITTEN};
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::Args;
use kerntune_profile::{find, Profile};
use kerntune_report::html::profile::{profile_page, Code, ProfilePage};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("html", 13);

/// One page with pictures: timeline down to single calls, call tree, callers and callees, histograms
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The file to write, which is self-contained
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// A second profile to show beside it, with the difference between both
    #[arg(long, value_name = "PROFILE")]
    against: Option<String>,
    /// Put at most this many MiB of the trace on the page, and an eighth of that of functions' code; `kerntune view` shows
    /// everything
    #[arg(long, value_name = "MIB", default_value_t = 16)]
    size_limit: u64,
}

impl Run<Subject> for Options {
    fn run(&self, of: &Subject, output: &Output) -> Result<Exit, Failure> {
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
        let (code, damage) = match CodeOf::open(&of.work, &of.profile) {
            Ok(code) => (code.heaviest(room)?, None),
            Err(none) => (Code { rest: none.why, ..Code::default() }, none.damage),
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
