//! `kerntune import`: a file for each format. An import makes a profile in the work directory.
//! Start from [`ImportOptions`].

use crate::rooms::ROOMS;
use clap::Args;
use kerntune_command::{
    command, ChosenSubcommand, CliOutput, CommandEntry, Entry, Exit, Failure, GlobalOptions, RunSubcommand,
    SubcommandFolder, SubcommandRegistry,
};
use kerntune_profile::{Profile, KIND};
use kerntune_work::{Key, WorkDir};
use std::path::PathBuf;

include!(concat!(env!("OUT_DIR"), "/import.rs"));

pub const COMMAND: CommandEntry = command::<ImportOptions>("import", 90, "Look");

/// Make a profile from another tool's file
#[derive(Debug, Args)]
pub struct ImportOptions {
    #[command(subcommand)]
    format: ChosenSubcommand<ImportFormats>,
}

impl RunSubcommand<GlobalOptions> for ImportOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        self.format.run(global, output)
    }
}

/// Registry of all import formats.
#[derive(Debug)]
pub struct ImportFormats;

impl SubcommandRegistry for ImportFormats {
    type Context = GlobalOptions;

    fn folders() -> Vec<&'static dyn SubcommandFolder<GlobalOptions>> {
        let rooms = ROOMS.iter().map(|room| &room.imports as &dyn SubcommandFolder<GlobalOptions>);
        [&ENTRIES as _].into_iter().chain(rooms).collect()
    }
}

/// Returns the directory of the profile with this key; if it does not exist, `make` makes the
/// profile, given its id.
fn keep(
    work: &WorkDir,
    key: &Key,
    make: impl FnOnce(&str) -> Result<Profile, Failure>,
) -> Result<PathBuf, Failure> {
    let staged = work.stage(KIND, key)?;
    if let Some(done) = staged.already() {
        return Ok(done);
    }
    staged.clear()?;
    make(&key.id())?.save(staged.path())?;
    Ok(staged.publish()?)
}
