//! Commands, formats of `export` and `import`, and kinds of `report`: a file each.
//!
//! The file has a struct for its arguments, whose doc comments are the help texts, an implementation
//! of [`RunSubcommand`] for the struct, and an entry:
//!
//! ```text
//! pub const COMMAND: CommandEntry = command::<PackageOptions>("package", 125, "Tune");
//! pub const ENTRY: Entry = entry::<_, ExportBoltOptions>("bolt", 2);
//! ```
//!
//! No list names the files of formats and reports. Commands are in a list of the program or of a
//! [`Room`](crate::room::Room).

use crate::exit::{Exit, Failure};
use crate::global::GlobalOptions;
use crate::output::CliOutput;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use kerntune_report::Subcommand;
use std::fmt::Debug;
use std::marker::PhantomData;

/// A subcommand with its parsed arguments. `Context` is its input: the global options, or a
/// profile.
pub trait RunSubcommand<Context>: Debug {
    /// Carries it out, and prints the result to `output`.
    ///
    /// # Errors
    /// Failure that ends the command, with its exit status.
    fn run(&self, on: &Context, output: &CliOutput) -> Result<Exit, Failure>;

    /// Returns true if it prints a report or list to read, which a pager may show.
    fn is_read(&self) -> bool {
        false
    }
}

/// Entry of a command, or of a format of `export`.
pub type Entry = Subcommand<dyn RunSubcommand<GlobalOptions>>;

/// A command of the program.
pub struct CommandEntry {
    /// Name, arguments and work.
    pub entry: Entry,
    /// Heading of the command in the overview; empty if it is none of the lines below the headings.
    pub group: &'static str,
}

/// Makes the entry of a command with arguments; `place` is its position in help.
pub const fn command<R: RunSubcommand<GlobalOptions> + Args + 'static>(
    name: &'static str,
    place: u8,
    group: &'static str,
) -> CommandEntry {
    CommandEntry { entry: entry::<_, R>(name, place), group }
}

/// Makes the entry of a command with subcommands; `place` is its position in help.
pub const fn command_group<R: RunSubcommand<GlobalOptions> + clap::Subcommand + 'static>(
    name: &'static str,
    place: u8,
    group: &'static str,
) -> CommandEntry {
    let entry: Entry =
        Subcommand::group::<R>(name, place, |matches| Ok(Box::new(R::from_arg_matches(matches)?)));
    CommandEntry { entry, group }
}

/// Makes the entry of the subcommand `name`; `place` is its position in help.
pub const fn entry<Context, R: RunSubcommand<Context> + Args + 'static>(
    name: &'static str,
    place: u8,
) -> Subcommand<dyn RunSubcommand<Context>> {
    Subcommand::new::<R>(name, place, |matches| Ok(Box::new(R::from_arg_matches(matches)?)))
}

/// A group of subcommands of one command, usually the files of a folder.
pub trait SubcommandFolder<Context> {
    /// Returns the subcommands, each with its position in help.
    fn commands(&self) -> Vec<(u8, Command)>;

    /// Parses the arguments of the subcommand `name`; `None` if this folder does not have it.
    fn read(
        &self,
        name: &str,
        matches: &ArgMatches,
    ) -> Option<Result<Box<dyn RunSubcommand<Context>>, Error>>;
}

impl<Context> SubcommandFolder<Context> for &[&Subcommand<dyn RunSubcommand<Context>>] {
    fn commands(&self) -> Vec<(u8, Command)> {
        self.iter().map(|entry| (entry.place, entry.command())).collect()
    }

    fn read(
        &self,
        name: &str,
        matches: &ArgMatches,
    ) -> Option<Result<Box<dyn RunSubcommand<Context>>, Error>> {
        self.iter().find(|entry| entry.name == name).map(|entry| entry.read(matches))
    }
}

impl SubcommandFolder<GlobalOptions> for &[&CommandEntry] {
    fn commands(&self) -> Vec<(u8, Command)> {
        self.iter().map(|command| (command.entry.place, command.entry.command())).collect()
    }

    fn read(
        &self,
        name: &str,
        matches: &ArgMatches,
    ) -> Option<Result<Box<dyn RunSubcommand<GlobalOptions>>, Error>> {
        let found = self.iter().find(|command| command.entry.name == name);
        found.map(|command| command.entry.read(matches))
    }
}

/// A command whose subcommands come from folders.
pub trait SubcommandRegistry: Debug {
    /// Input of every subcommand.
    type Context: 'static;
    /// Returns the folders with the subcommands.
    fn folders() -> Vec<&'static dyn SubcommandFolder<Self::Context>>;
}

/// The subcommand that the user chose, with its arguments.
#[derive(Debug)]
pub struct ChosenSubcommand<R: SubcommandRegistry>(Box<dyn RunSubcommand<R::Context>>, PhantomData<R>);

impl<R: SubcommandRegistry> ChosenSubcommand<R> {
    /// Carries out the chosen subcommand.
    ///
    /// # Errors
    /// Same as [`RunSubcommand::run`].
    pub fn run(&self, on: &R::Context, output: &CliOutput) -> Result<Exit, Failure> {
        self.0.run(on, output)
    }

    /// Returns true if the chosen subcommand prints a report or list to read.
    pub fn is_read(&self) -> bool {
        self.0.is_read()
    }
}

impl<R: SubcommandRegistry> clap::Subcommand for ChosenSubcommand<R> {
    fn augment_subcommands(command: Command) -> Command {
        let mut all: Vec<_> = R::folders().iter().flat_map(|folder| folder.commands()).collect();
        all.sort_by(|(a, one), (b, other)| (a, one.get_name()).cmp(&(b, other.get_name())));
        command.subcommands(all.into_iter().map(|(_, command)| command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        R::folders()
            .iter()
            .flat_map(|folder| folder.commands())
            .any(|(_, command)| command.get_name() == name)
    }
}

impl<R: SubcommandRegistry> FromArgMatches for ChosenSubcommand<R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let read =
            |(name, matches): (&str, _)| R::folders().iter().find_map(|folder| folder.read(name, matches));
        let missing = || Error::raw(ErrorKind::MissingSubcommand, "a subcommand is missing");
        Ok(Self(matches.subcommand().and_then(read).ok_or_else(missing)??, PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
