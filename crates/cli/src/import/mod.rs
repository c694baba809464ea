//! `kerntune import`: a file for each format. What is imported becomes a profile in the work directory.

use crate::exit::Failure;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{Chosen, Folder, Registry, Run};
use kerntune_profile::{Profile, ROOM};
use kerntune_report::{summary, Report, Subcommand};
use kerntune_work::{Key, WorkDir};
use std::path::PathBuf;

/// A format's subcommand.
type Entry = Subcommand<dyn Run<Global>>;

include!(concat!(env!("OUT_DIR"), "/import.rs"));

/// The format that was chosen.
pub type Format = Chosen<Formats>;

/// All of them.
#[derive(Debug)]
pub struct Formats;

impl Registry for Formats {
    type On = Global;

    fn folders() -> Vec<&'static dyn Folder<Global>> {
        vec![&ENTRIES]
    }
}

/// The directory of the profile that `key` names: one that is there, or the one that `make` makes with the id that it is given.
fn keep(
    work: &WorkDir,
    key: &Key,
    make: impl FnOnce(&str) -> Result<Profile, Failure>,
) -> Result<PathBuf, Failure> {
    let staged = work.stage(ROOM, key)?;
    if let Some(done) = staged.already() {
        return Ok(done);
    }
    staged.clear()?;
    make(&key.id())?.save(staged.path())?;
    Ok(staged.publish()?)
}

/// Prints the summary of what was imported: as JSON, or as text with the way on from there.
fn show(profile: &Profile, json: bool, next: &str, output: &Output) -> Result<(), Failure> {
    if json {
        output.print(&summary::Options.json(profile)?);
    } else {
        output.print(&summary::Options.text(profile, output.style())?);
        output.note(next);
    }
    Ok(())
}
