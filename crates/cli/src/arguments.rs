//! The command line: global options, and a command of [`Commands`].

use crate::commands;
use crate::rooms::ROOMS;
use clap::Parser;
use kerntune_command::{ChosenSubcommand, CommandEntry, GlobalOptions, SubcommandFolder, SubcommandRegistry};

/// Make a Linux kernel fast for the work it does, and prove it.
#[derive(Debug, Parser)]
#[command(name = "kerntune", version, max_term_width = 100, propagate_version = true)]
pub struct Arguments {
    #[command(flatten)]
    pub global: GlobalOptions,
    #[command(subcommand)]
    pub command: ChosenSubcommand<Commands>,
}

/// All commands of this build.
#[derive(Debug)]
pub struct Commands;

impl Commands {
    /// Returns the commands in the order of the overview.
    pub fn all() -> impl Iterator<Item = &'static CommandEntry> {
        commands::COMMANDS.iter().chain(ROOMS.iter().flat_map(|room| room.commands)).copied()
    }
}

impl SubcommandRegistry for Commands {
    type Context = GlobalOptions;

    fn folders() -> Vec<&'static dyn SubcommandFolder<GlobalOptions>> {
        let rooms = ROOMS.iter().map(|room| &room.commands as &dyn SubcommandFolder<GlobalOptions>);
        [&commands::COMMANDS as _].into_iter().chain(rooms).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_says_what_it_does() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
            command.get_subcommands().for_each(check);
        }
        Arguments::command().debug_assert();
        check(&Arguments::command());
    }

    #[test]
    fn commands_keep_their_old_names() {
        for old in [
            &["kernel", "check", "base"][..],
            &["kernel", "verify", "base"],
            &["kernel", "order", "base", "--file", "names", "--label", "x"],
            &["try", "changes.toml", "--workload", "rr"],
            &["bench", "compare", "a.json", "b.json", "--base", "c.json", "--tuned", "d.json"],
            &["profile", "carry", "latest", "--to", "base"],
            &["bench", "predict", "--timed", "a", "b", "--exact", "c", "d"],
        ] {
            let parsed = Arguments::try_parse_from([&["kerntune"], old].concat());
            assert!(parsed.is_ok(), "{old:?}: {}", parsed.unwrap_err());
        }
    }
}
