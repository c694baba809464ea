//! The profile for a report or an export.

use crate::exit::Failure;
use crate::global::{work_to_read, FormatOptions, GlobalOptions};
use crate::output::CliOutput;
use kerntune_analyze::TraceFile;
use kerntune_profile::{find, Manifest, Profile};
use kerntune_report::{summary, Report, ThreadFilter};
use kerntune_tune::run_files::RunFiles;
use kerntune_work::WorkDir;
use serde::Serialize;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A loaded profile, with its directory and work directory.
#[derive(Debug, Clone)]
pub struct ProfileSubject {
    /// Work directory.
    pub work: WorkDir,
    /// Directory of the profile.
    pub directory: PathBuf,
    /// Profile with all tables.
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

/// A profile in the output of `--json`.
#[derive(Serialize)]
pub struct ProfileJson<'a> {
    path: &'a Path,
    kernel: &'a str,
    workload: &'a str,
    machine: &'a str,
    date: &'a str,
    manifest: &'a Manifest,
}

impl<'a> ProfileJson<'a> {
    /// Describes the profile in this directory.
    pub fn new(path: &'a Path, manifest: &'a Manifest) -> Self {
        let Manifest { workload, machine, recorded, kernel, .. } = manifest;
        Self { path, kernel: &kernel.id, workload, machine, date: recorded, manifest }
    }
}

/// Prints the summary of a new profile, as JSON or as text followed by the next step.
///
/// # Errors
/// A profile without the tables of a summary.
pub fn print_summary(
    profile: &Profile,
    format: FormatOptions,
    next: &str,
    output: &CliOutput,
) -> Result<(), Failure> {
    if format.json {
        output.print(&summary::SummaryOptions.json(profile)?);
    } else {
        output.print(&summary::SummaryOptions.text(profile, output.style())?);
        output.note(next);
    }
    Ok(())
}
