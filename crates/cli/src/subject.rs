//! The profile for a report or an export.

use crate::exit::Failure;
use crate::global::{work_to_read, GlobalOptions};
use kerntune_analyze::TraceFile;
use kerntune_profile::{find, Profile};
use kerntune_report::ThreadFilter;
use kerntune_tune::run_files::RunFiles;
use kerntune_work::WorkDir;
use std::borrow::Cow;
use std::path::PathBuf;

/// A loaded profile, with its directory and work directory.
#[derive(Debug, Clone)]
pub struct ProfileSubject {
    pub work: WorkDir,
    pub directory: PathBuf,
    pub profile: Profile,
}

impl ProfileSubject {
    /// Loads the profile `name`: beginning of an id, directory, or `latest`.
    pub fn open(global: &GlobalOptions, name: &str) -> Result<Self, Failure> {
        let work = work_to_read(global)?;
        let directory = find(&work, name)?.path;
        Ok(Self { profile: Profile::load(&directory)?, work, directory })
    }

    /// Restricts the profile to some threads: exactly from the trace if there is one, otherwise as
    /// far as the call paths allow.
    pub fn narrowed(&self, who: Option<&ThreadFilter>) -> Result<Cow<'_, ProfileSubject>, Failure> {
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
