//! Options that give a command another root than this machine's.

use clap::Args;
use kerntune_command::{CliOutput, Failure};
use kerntune_guest::{CommandSystem, ImageConfig, OciImage, SourceRoot};
use kerntune_work::WorkDir;
use std::path::{Path, PathBuf};

/// The root that COMMAND sees, in its first run and in the guest.
#[derive(Debug, Args)]
pub struct RootOptions {
    /// Run COMMAND in this directory as its root: a container's or chroot's files. Nothing is written
    /// to it. --chdir and --file are inside it
    #[arg(long, value_name = "DIR", requires = "command", conflicts_with_all = ["workload", "package"])]
    root: Option<PathBuf>,
    /// Run COMMAND in this container image, or the image's own command: an OCI image layout, as a
    /// directory or as an archive, or an archive of `docker save`
    #[arg(long, value_name = "OCI-ARCHIVE|DIR", conflicts_with_all = ["root", "workload", "package"])]
    image: Option<PathBuf>,
}

/// Ids of the options, for those that exclude them.
pub const IDS: [&str; 2] = ["root", "image"];

/// Returns the current directory.
pub fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::usage(format!("the current directory cannot be found: {error}")))
}

impl RootOptions {
    /// Returns true if one of them is given.
    pub fn is_given(&self) -> bool {
        self.root.is_some() || self.image.is_some()
    }

    /// Returns the system of the command, and the command: that of the image if there is no other.
    /// `directory` is the one that was asked for.
    pub fn system(
        &self,
        command: &[String],
        directory: Option<&Path>,
        work: &WorkDir,
        output: &CliOutput,
    ) -> Result<(CommandSystem, Vec<String>), Failure> {
        let (root, config) = match (&self.root, &self.image) {
            (Some(root), _) => (SourceRoot::of(root)?, ImageConfig::default()),
            (None, Some(image)) => {
                let OciImage { root, config } = OciImage::open(work, image, output.progress())?;
                (root, config)
            }
            (None, None) => {
                let directory: PathBuf =
                    here()?.join(directory.unwrap_or("".as_ref())).components().collect();
                return Ok((CommandSystem::of_this_machine(&directory)?, command.to_vec()));
            }
        };
        let words = if command.is_empty() { config.command.clone() } else { command.to_vec() };
        match words.first().is_none_or(String::is_empty) {
            true => Err(Failure::usage("the image names no command: give one after --")),
            false => Ok((CommandSystem::of_root(root, &config, directory)?, words)),
        }
    }
}
