//! The profile that a report or an export is of.

use crate::exit::Failure;
use crate::global::{work, Global};
use kerntune_profile::{find, Profile};
use kerntune_work::WorkDir;
use std::path::PathBuf;

/// A profile and where it is kept.
#[derive(Debug)]
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
}
