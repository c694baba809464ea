//! The hidden command `kerntune command-line`: writes manual pages and completions for packagers.

use clap::Args;
use clap_complete::Shell;
use kerntune_command::{command, CliOutput, CommandEntry, Exit, Failure, GlobalOptions, RunSubcommand};
use kerntune_work::IoContext;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

pub const COMMAND: CommandEntry = command::<CommandLineOptions>("command-line", 160, "");

/// Write manual pages and shell completions below a directory
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct CommandLineOptions {
    directory: PathBuf,
}

impl RunSubcommand<GlobalOptions> for CommandLineOptions {
    fn run(&self, _global: &GlobalOptions, _output: &CliOutput) -> Result<Exit, Failure> {
        write(&self.directory)?;
        Ok(Exit::Ok)
    }
}

/// Writes manual pages and completions for bash, fish and zsh into their usual places below a
/// directory.
pub fn write(directory: &Path) -> Result<(), Failure> {
    let share = directory.join("share");
    let mut command = crate::command();

    let manual = share.join("man/man1");
    fs::create_dir_all(&manual).at("create", &manual)?;
    clap_mangen::generate_to(command.clone(), &manual).at("write", &manual)?;

    let completions = [
        (Shell::Bash, "bash-completion/completions/kerntune"),
        (Shell::Fish, "fish/vendor_completions.d/kerntune.fish"),
        (Shell::Zsh, "zsh/site-functions/_kerntune"),
    ];
    for (shell, place) in completions {
        let place = share.join(place);
        let parent = place.parent().unwrap_or(&share);
        fs::create_dir_all(parent).at("create", parent)?;
        clap_complete::generate(
            shell,
            &mut command,
            "kerntune",
            &mut File::create(&place).at("create", &place)?,
        );
    }
    Ok(())
}
