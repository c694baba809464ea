//! `kerntune import`: a file for each format. An import makes a profile in the work directory.
//! Start from [`ImportOptions`]. Each format recognizes its files, so that the user need not name
//! the format.

use crate::rooms::ROOMS;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use kerntune_command::{
    command, ChosenSubcommand, CliOutput, CommandEntry, Exit, Failure, GlobalOptions, ImportEntry as Entry,
    ImportInput, Recognition, RunSubcommand, SubcommandFolder, SubcommandRegistry,
};
use kerntune_profile::{Profile, KIND};
use kerntune_work::{Key, WorkDir};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

mod common;

include!(concat!(env!("OUT_DIR"), "/import.rs"));

pub const COMMAND: CommandEntry = command::<ImportOptions>("import", 90, "Look");

/// Make a profile from another tool's file
///
/// `kerntune import FILE` finds out what FILE is by its first bytes, or by what a directory has, and
/// takes the options of that format. `kerntune import FORMAT FILE` names the format.
#[derive(Debug, Args)]
pub struct ImportOptions {
    #[command(subcommand)]
    choice: ImportChoice,
}

impl RunSubcommand<GlobalOptions> for ImportOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        match &self.choice {
            ImportChoice::Format(format) => format.run(global, output),
            ImportChoice::Unrecognized(file) => match recognize(file) {
                Err(failure) => Err(failure),
                Ok((entry, _)) => Err(Failure::usage(format!(
                    "give the file first: kerntune import {} {}",
                    entry.entry.name,
                    file.display()
                ))),
            },
        }
    }
}

/// A format with its arguments, or a file that no format recognizes.
#[derive(Debug)]
enum ImportChoice {
    Format(ChosenSubcommand<ImportFormats>),
    Unrecognized(PathBuf),
}

impl clap::Subcommand for ImportChoice {
    fn augment_subcommands(command: Command) -> Command {
        let command = ChosenSubcommand::<ImportFormats>::augment_subcommands(command);
        command.allow_external_subcommands(true).subcommand_value_name("FILE|FORMAT")
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        ChosenSubcommand::<ImportFormats>::has_subcommand(name)
    }
}

impl FromArgMatches for ImportChoice {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        match matches.subcommand() {
            Some((file, _)) if !<Self as clap::Subcommand>::has_subcommand(file) => {
                Ok(Self::Unrecognized(file.into()))
            }
            _ => ChosenSubcommand::from_arg_matches(matches).map(Self::Format),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Inserts the format's name into `import FILE …`, if a format recognizes FILE. `typed` is the
/// command line from the program's name on.
pub fn with_format(mut typed: Vec<OsString>) -> Vec<OsString> {
    let is_option = |word: &OsStr| word.as_encoded_bytes().starts_with(b"-");
    let mut at = 1;
    while let Some(word) = typed.get(at).filter(|word| is_option(word)) {
        // These global options have a value.
        at += if word == "--dir" || word == "--color" { 2 } else { 1 };
    }
    if typed.get(at).is_none_or(|word| word != "import") {
        return typed;
    }
    let rest = typed.get(at + 1..).unwrap_or_default();
    let is_format = |word: &OsString| {
        word.to_str()
            .is_some_and(|word| word == "help" || ImportFormats::entries().any(|e| e.entry.name == word))
    };
    if rest.first().is_none_or(is_format) {
        return typed;
    }
    // Options may come first, and then the value of one may be a word before the file.
    let mut files = rest.iter().filter(|word| !is_option(word)).map(Path::new);
    let chosen = match rest.first() {
        Some(word) if is_option(word) => files.find_map(|file| recognize(file).ok()),
        _ => files.next().and_then(|file| recognize(file).ok()),
    };
    if let Some((entry, _)) = chosen {
        typed.insert(at + 1, entry.entry.name.into());
    }
    typed
}

/// First bytes of compressed files, and the program that unpacks them.
const PACKED: [(&[u8], &str); 4] =
    [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2")];

/// Returns the format of a file or directory.
fn recognize(path: &Path) -> Result<(&'static Entry, Recognition), Failure> {
    let input = ImportInput::read(path)?;
    choose(&input, ImportFormats::entries())
}

fn choose(
    input: &ImportInput,
    entries: impl Iterator<Item = &'static Entry>,
) -> Result<(&'static Entry, Recognition), Failure> {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(|entry| (entry.entry.place, entry.entry.name));
    let answer = |entry: &&'static Entry| Some((*entry, (entry.recognize)(input)?));
    let mut answers: Vec<_> = entries.iter().filter_map(answer).collect();
    answers.sort_by_key(|(_, recognition)| !recognition.is_certain);
    let file = input.path.display();
    match &answers[..] {
        [] => {
            let names: Vec<&str> = entries.iter().map(|entry| entry.entry.name).collect();
            Err(Failure::usage(format!(
                "{file} is of no format that kerntune imports: {}. The formats are {}; `kerntune import FORMAT {file}` \
                 reads it as one of them",
                beginning(input),
                names.join(", ")
            )))
        }
        [(_, one), (_, other), ..] if !one.is_certain || other.is_certain => {
            let kinds = answers.iter().map(|(entry, found)| format!("{} ({})", found.kind, entry.entry.name));
            Err(Failure::usage(format!(
                "{file} may be {}: name the format, as in `kerntune import {} {file}`",
                kinds.collect::<Vec<_>>().join(" or "),
                answers[0].0.entry.name
            )))
        }
        [..] => Ok(answers.swap_remove(0)),
    }
}

/// Describes the beginning of a file that no format recognizes.
fn beginning(input: &ImportInput) -> String {
    const SHOWN: usize = 16;
    if let Some(names) = &input.names {
        let shown = names.iter().take(8).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        return match names.len() {
            0 => "it is an empty directory".into(),
            1..=8 => format!("it is a directory with {shown}"),
            _ => format!("it is a directory with {shown} and more"),
        };
    }
    if input.bytes.is_empty() {
        return "it is empty".into();
    }
    if let Some((_, program)) = PACKED.iter().find(|(mark, _)| input.bytes.starts_with(mark)) {
        return format!("it is packed by {program}; unpack it first");
    }
    if let Some(line) = input.lines().and_then(|mut lines| lines.find(|line| !line.trim().is_empty())) {
        return format!("it is text that begins {:?}", line.chars().take(60).collect::<String>());
    }
    let bytes: Vec<String> = input.bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    format!("it begins with the bytes {}", bytes.join(" "))
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

impl ImportFormats {
    fn entries() -> impl Iterator<Item = &'static Entry> {
        ENTRIES.iter().chain(ROOMS.iter().flat_map(|room| room.imports)).copied()
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

#[cfg(test)]
mod tests;
