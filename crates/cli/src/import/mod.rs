//! `kerntune import`: a file for each format. An import makes a profile in the work directory.
//! Start from [`ImportFormat`].

use crate::exit::Failure;
use crate::global::GlobalOptions;
use crate::output::CliOutput;
use crate::registry::{ChosenSubcommand, RunSubcommand, SubcommandFolder, SubcommandRegistry};
use kerntune_profile::{Profile, KIND};
use kerntune_report::{summary, Report, Subcommand};
use kerntune_work::{Key, WorkDir};
use std::path::PathBuf;

/// Entry of a format in the registry.
type Entry = Subcommand<dyn RunSubcommand<GlobalOptions>>;

include!(concat!(env!("OUT_DIR"), "/import.rs"));

/// The format that the user chose, with its arguments.
pub type ImportFormat = ChosenSubcommand<ImportFormats>;

/// Registry of all import formats.
#[derive(Debug)]
pub struct ImportFormats;

impl SubcommandRegistry for ImportFormats {
    type Context = GlobalOptions;

    fn folders() -> Vec<&'static dyn SubcommandFolder<GlobalOptions>> {
        vec![&ENTRIES]
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

/// Prints the summary of the imported profile, as JSON or as text followed by the next step.
fn show(profile: &Profile, json: bool, next: &str, output: &CliOutput) -> Result<(), Failure> {
    if json {
        output.print(&summary::SummaryOptions.json(profile)?);
    } else {
        output.print(&summary::SummaryOptions.text(profile, output.style())?);
        output.note(next);
    }
    Ok(())
}
