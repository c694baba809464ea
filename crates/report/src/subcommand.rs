//! Subcommands that one file adds.

use clap::{ArgMatches, Args, Command};

/// A subcommand of the command line: its name, its arguments, and what they become.
pub struct Subcommand<T: ?Sized> {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Where it stands in help: lowest first, then by name.
    pub place: u8,
    arguments: fn(Command) -> Command,
    read: fn(&ArgMatches) -> Result<Box<T>, clap::Error>,
}

impl<T: ?Sized> Subcommand<T> {
    /// The subcommand whose arguments are those of `A`; its help is the comment on `A`.
    pub const fn new<A: Args>(
        name: &'static str,
        place: u8,
        read: fn(&ArgMatches) -> Result<Box<T>, clap::Error>,
    ) -> Self {
        Self { name, place, arguments: A::augment_args, read }
    }

    /// The subcommand for clap.
    pub fn command(&self) -> Command {
        (self.arguments)(Command::new(self.name))
    }

    /// What clap matched.
    ///
    /// # Errors
    /// Arguments that are missing or do not read, in clap's words.
    pub fn read(&self, matches: &ArgMatches) -> Result<Box<T>, clap::Error> {
        (self.read)(matches)
    }
}
