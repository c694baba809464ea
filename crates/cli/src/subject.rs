//! The profile that a report or an export is of.

use crate::exit::Failure;
use crate::global::{work, Global};
use kerntune_analyze::TraceFile;
use kerntune_profile::{find, Profile};
use kerntune_report::Who;
use kerntune_tune::run_files::RunFiles;
use kerntune_work::WorkDir;
use std::borrow::Cow;
use std::path::PathBuf;

/// A profile and where it is kept.
#[derive(Debug, Clone)]
pub struct Subject {
    pub work: WorkDir,
    pub directory: PathBuf,
    pub profile: Profile,
}

impl Subject {
    /// The profile called `name`: beginning of an id, directory, or `latest`.
    pub fn open(global: &Global, name: &str) -> Result<Self, Failure> {
        let work = work(global)?;
        let directory = find(&work, name)?.path;
        Ok(Self { profile: Profile::load(&directory)?, work, directory })
    }

    /// The same of some threads alone, read from the trace if there is one, else as far as call paths say.
    pub fn narrowed(&self, who: Option<&Who>) -> Result<Cow<'_, Subject>, Failure> {
        let Some(who) = who.filter(|who| !who.is_everybody()) else { return Ok(Cow::Borrowed(self)) };
        let profile = match RunFiles::open(&self.directory) {
            Ok(files) => {
                let trace = TraceFile::open(&files.trace, &files.recording).map_err(Failure::recording)?;
                who.of_trace(&self.profile, &trace)?
            }
            Err(kerntune_tune::Error::NoTrace { .. }) => who.of_paths(&self.profile)?,
            Err(other) => return Err(other.into()),
        };
        Ok(Cow::Owned(Self { work: self.work.clone(), directory: self.directory.clone(), profile }))
    }
}
