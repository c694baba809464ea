//! Subcommands that a registry adds, one file each.

use clap::{ArgMatches, Args, Command};

/// Subcommand of the command line: name, arguments, and the constructor of its value.
pub struct Subcommand<T: ?Sized> {
    /// Name on the command line.
    pub name: &'static str,
    /// Position in the help: lowest first, then by name.
    pub place: u8,
    arguments: fn(Command) -> Command,
    read: fn(&ArgMatches) -> Result<Box<T>, clap::Error>,
}

impl<T: ?Sized> Subcommand<T> {
    /// Creates a subcommand with the arguments of `A`; the doc comment of `A` is its help.
    pub const fn new<A: Args>(
        name: &'static str,
        place: u8,
        read: fn(&ArgMatches) -> Result<Box<T>, clap::Error>,
    ) -> Self {
        Self { name, place, arguments: A::augment_args, read }
    }

    /// Creates a subcommand with the subcommands of `S`, of which one must be given; the doc comment
    /// of `S` is its help.
    pub const fn group<S: clap::Subcommand>(
        name: &'static str,
        place: u8,
        read: fn(&ArgMatches) -> Result<Box<T>, clap::Error>,
    ) -> Self {
        fn arguments<S: clap::Subcommand>(command: Command) -> Command {
            S::augment_subcommands(command).subcommand_required(true).arg_required_else_help(true)
        }
        Self { name, place, arguments: arguments::<S>, read }
    }

    /// Returns the clap command.
    pub fn command(&self) -> Command {
        self.augment(Command::new(self.name))
    }

    /// Adds the arguments to a command.
    pub fn augment(&self, command: Command) -> Command {
        (self.arguments)(command)
    }

    /// Constructs the value from clap's matches.
    ///
    /// # Errors
    /// Missing or invalid arguments, as clap reports them.
    pub fn read(&self, matches: &ArgMatches) -> Result<Box<T>, clap::Error> {
        (self.read)(matches)
    }
}
