//! Subcommands that are a file each: the formats of `export` and `import`, the kinds of `report`.
//!
//! A file in one of these folders is a subcommand; nothing else names it. It has its arguments, the comment on which is its
//! help, what it does with them, and
//!
//! ```text
//! pub const ENTRY: Entry = entry::<_, Options>("bolt", 2);
//! ```

use crate::exit::{Exit, Failure};
use crate::output::Output;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use kerntune_report::Subcommand;
use std::fmt::Debug;
use std::marker::PhantomData;

/// What such a file does with its arguments. `On` is what it is given: the options of every command, or a profile.
pub trait Run<On>: Debug {
    fn run(&self, on: &On, output: &Output) -> Result<Exit, Failure>;
}

/// The subcommand called `name`; `place` is where it stands in help.
pub const fn entry<On, R: Run<On> + Args + 'static>(
    name: &'static str,
    place: u8,
) -> Subcommand<dyn Run<On>> {
    Subcommand::new::<R>(name, place, |matches| Ok(Box::new(R::from_arg_matches(matches)?)))
}

/// Some of the subcommands of a command.
pub trait Folder<On> {
    /// Each with its place in help.
    fn commands(&self) -> Vec<(u8, Command)>;

    /// What the arguments of the one called `name` become, if it is here.
    fn read(&self, name: &str, matches: &ArgMatches) -> Option<Result<Box<dyn Run<On>>, Error>>;
}

impl<On> Folder<On> for &[&Subcommand<dyn Run<On>>] {
    fn commands(&self) -> Vec<(u8, Command)> {
        self.iter().map(|entry| (entry.place, entry.command())).collect()
    }

    fn read(&self, name: &str, matches: &ArgMatches) -> Option<Result<Box<dyn Run<On>>, Error>> {
        self.iter().find(|entry| entry.name == name).map(|entry| entry.read(matches))
    }
}

/// A command whose subcommands are files.
pub trait Registry: Debug {
    /// What they are given.
    type On: 'static;
    /// Where they are.
    fn folders() -> Vec<&'static dyn Folder<Self::On>>;
}

/// The subcommand that was chosen.
#[derive(Debug)]
pub struct Chosen<R: Registry>(Box<dyn Run<R::On>>, PhantomData<R>);

impl<R: Registry> Chosen<R> {
    pub fn run(&self, on: &R::On, output: &Output) -> Result<Exit, Failure> {
        self.0.run(on, output)
    }
}

impl<R: Registry> clap::Subcommand for Chosen<R> {
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

impl<R: Registry> FromArgMatches for Chosen<R> {
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
