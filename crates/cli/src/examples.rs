//! Examples of each command in help and manual pages, from `examples.tsv` and the tables of the rooms.

use crate::rooms::ROOMS;
use clap::{Arg, ArgAction, Command};
use std::fmt::Write as _;

const TABLE: &str = include_str!("examples.tsv");

/// A line of `examples.tsv`.
struct CommandExample {
    /// Words of the command; empty for `kerntune` itself.
    command: &'static str,
    arguments: &'static str,
    does: &'static str,
}

impl CommandExample {
    /// Returns the command line to type. The name of a report follows its profile, and so is part
    /// of the arguments.
    fn line(&self) -> String {
        let command = match self.command.starts_with("report ") {
            true => "report",
            false => self.command,
        };
        let words = ["kerntune", command, self.arguments];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

fn lines() -> impl Iterator<Item = &'static str> {
    let tables = [TABLE].into_iter().chain(ROOMS.iter().map(|room| room.examples));
    tables.flat_map(str::lines).filter(|line| !line.starts_with('#'))
}

fn table() -> impl Iterator<Item = CommandExample> {
    lines().filter_map(|line| {
        let mut fields = line.split('\t');
        Some(CommandExample { command: fields.next()?, arguments: fields.next()?, does: fields.next()? })
    })
}

/// Adds examples to the help of each command.
pub fn with_examples(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, path: &str) -> Command {
    let examples = of_command(path);
    // A format or report may bring its own examples in its file.
    let own = command.get_after_help().is_some();
    let examples = match examples.is_empty() && !command.has_subcommands() && !own {
        true => vec![of_a_file(&command, path)],
        false => examples,
    };
    let command = match examples.is_empty() || command.is_hide_set() {
        true => command,
        false => command.after_help(section(&examples)),
    };
    let command = match usage(&command, path) {
        Some(usage) => command.override_usage(usage),
        None => command,
    };
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        below(inner, path.trim_start())
    })
}

/// Returns the usage line of a command, what is required first: names, then options. `None` for
/// commands whose line clap writes as well: those that require no name, or end with a COMMAND.
fn usage(command: &Command, path: &str) -> Option<String> {
    let shown: Vec<&Arg> = command.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
    let (names, options): (Vec<&Arg>, Vec<&Arg>) =
        shown.iter().partition(|argument| argument.is_positional());
    let mut line = match path.split_once(' ') {
        Some(("report", name)) => format!("kerntune report [PROFILE] {name}"),
        _ if names.iter().any(|name| name.is_required_set())
            && !names.iter().any(|name| name.is_last_set()) =>
        {
            format!("kerntune {path}")
        }
        _ => return None,
    };
    for name in names {
        let several = if matches!(name.get_action(), ArgAction::Append) { "..." } else { "" };
        let _ = match name.is_required_set() {
            true => write!(line, " <{}>{several}", value_name(name)),
            false => write!(line, " [{}]{several}", value_name(name)),
        };
    }
    for option in options.into_iter().filter(|option| option.is_required_set()) {
        let _ = write!(line, " --{} <{}>", option.get_long().unwrap_or_default(), value_name(option));
    }
    Some(line + " [OPTIONS]")
}

/// Returns the names of an argument's values, as help shows them.
fn value_name(argument: &Arg) -> String {
    match argument.get_value_names() {
        Some(names) => names.join("> <"),
        None => argument.get_id().as_str().to_uppercase(),
    }
}

/// Returns the examples of `kerntune` itself, as help shows them.
pub fn first_examples() -> String {
    section(&of_command(""))
}

/// Returns the table's examples of a command: what is typed, and what it does.
fn of_command(path: &str) -> Vec<(String, String)> {
    let examples = table().filter(|example| example.command == path);
    examples.map(|example| (example.line(), example.does.to_owned())).collect()
}

/// Makes the example of a format or report that has none in the table, so that its own file is all
/// that it needs.
fn of_a_file(command: &Command, path: &str) -> (String, String) {
    let does = command.get_about().map(ToString::to_string).unwrap_or_default();
    let line = match path.split_once(' ') {
        Some(("report", name)) => format!("kerntune report latest {name}"),
        Some(("export", name)) => format!("kerntune export {name} latest"),
        Some(("import", name)) => format!("kerntune import {name} FILE"),
        _ => format!("kerntune {path}"),
    };
    (line, does)
}

fn section(examples: &[(String, String)]) -> String {
    let mut out = String::from("Examples:");
    for (line, does) in examples {
        let _ = write!(out, "\n  {line}\n      {does}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::CommandFactory;

    /// Collects the commands without subcommands, each with its full name.
    fn leaves(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let path = format!("{path} {}", inner.get_name()).trim_start().to_owned();
            match inner.has_subcommands() && path != "report" {
                true => leaves(inner, &path, all),
                false => all.push((path, inner.clone())),
            }
        }
    }

    #[test]
    fn every_example_can_be_typed_and_is_of_its_command() {
        for example in table() {
            let line = example.line();
            let matches = crate::command().try_get_matches_from(line.split(' '));
            let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
            let mut words = Vec::new();
            let mut inner = &matches;
            while let Some((name, below)) = inner.subcommand() {
                words.push(name);
                inner = below;
            }
            if !example.command.is_empty() && example.command != "report" {
                assert_eq!(words.join(" "), example.command, "{line}");
            }
            assert!(example.does.len() < 100 && !example.does.ends_with('.'), "{line}: {}", example.does);
        }
    }

    #[test]
    fn examples_that_stand_in_a_formats_own_file_can_be_typed_too() {
        let mut all = Vec::new();
        leaves(&Arguments::command(), "", &mut all);
        let own =
            all.iter().filter_map(|(path, command)| Some((path, command.get_after_help()?.to_string())));
        let mut seen = 0;
        for (path, help) in own {
            for line in help.lines().map(str::trim).filter(|line| line.starts_with("kerntune ")) {
                let typed = crate::command().try_get_matches_from(line.split(' '));
                assert!(typed.is_ok(), "{path}: {line}: {:?}", typed.err());
                seen += 1;
            }
            // Other examples may precede, such as the recording to make first.
            assert!(help.contains(&format!("kerntune {path} ")), "{path}: {help}");
        }
        assert!(seen >= 8, "{seen}");
    }

    #[test]
    fn the_help_of_every_command_has_one_pattern() {
        let command = crate::command();
        let mut all = Vec::new();
        leaves(&command, "", &mut all);
        assert!(all.len() > 50);
        for (path, command) in all {
            let help = command.clone().render_long_help().to_string();
            let heads: Vec<&str> =
                help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
            let order = ["Commands:", "Arguments:", "Options:", "Global options:", "Examples:"];
            let places: Vec<_> = heads.iter().map(|head| order.iter().position(|o| o == head)).collect();
            assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{path}: {heads:?}");
            assert!(heads.contains(&"Options:") && heads.contains(&"Examples:"), "{path}: {heads:?}");
            for argument in command.get_arguments().filter_map(|argument| argument.get_long()) {
                let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                assert!(argument.chars().all(fits), "{path}: --{argument}");
            }
        }
    }

    #[test]
    fn a_usage_line_begins_with_what_is_required() {
        let said = |line: &str| {
            let typed: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
            let error = crate::command().try_get_matches_from(&typed).unwrap_err();
            crate::with_whole_usage(error, &typed).to_string()
        };
        for (line, usage) in [
            (
                "kerntune report histogram --by-caller --top 4",
                "kerntune report [PROFILE] histogram <FUNCTION> [OPTIONS]",
            ),
            ("kerntune --dir x compare a", "kerntune compare <BASE> <TUNED> --workload <WORKLOAD> [OPTIONS]"),
            ("kerntune tune --dir x", "kerntune tune [OPTIONS] --workload <WORKLOAD>"),
            ("kerntune profile remove", "kerntune profile remove <PROFILES>... [OPTIONS]"),
            ("kerntune record --frobnicate", "kerntune record [OPTIONS] [-- <COMMAND>...]"),
        ] {
            let said = said(line);
            assert!(said.contains(&format!("\nUsage: {usage}\n")), "{line}: {said}");
            assert!(!said.contains("--dir"), "{said}");
        }
        let missing = said("kerntune report histogram --by-caller");
        assert!(missing.contains("were not provided:\n  <FUNCTION>\n\n"), "{missing}");
    }

    #[test]
    fn options_of_one_name_are_written_alike() {
        let mut all = Vec::new();
        leaves(&crate::command(), "", &mut all);
        // An option that several commands have must have the same short form everywhere.
        let shorts = [("output", 'o'), ("jobs", 'j'), ("quiet", 'q'), ("verbose", 'v')];
        for (path, command) in all {
            for argument in command.get_arguments() {
                let long = argument.get_long().unwrap_or_default();
                for (name, short) in shorts {
                    let (is_name, is_short) = (long == name, argument.get_short() == Some(short));
                    assert_eq!(is_name, is_short, "{path}: --{long}");
                }
                // Output files are named by an option, never by a positional argument.
                let output = argument.is_positional() && !argument.is_hide_set();
                let id = argument.get_id().as_str();
                assert!(!(output && id == "output"), "{path}: OUTPUT is an argument");
                if !argument.is_hide_set() {
                    assert!(argument.get_help().is_some(), "{path}: {id} has no help");
                }
            }
        }
    }

    #[test]
    fn every_command_has_a_manual_page_and_is_completed() {
        let directory = tempfile::tempdir().unwrap();
        crate::commands::command_line::write(directory.path()).unwrap();
        let share = directory.path().join("share");
        let read = |place: &str| std::fs::read_to_string(share.join(place)).unwrap();
        let completions = [
            read("bash-completion/completions/kerntune"),
            read("fish/vendor_completions.d/kerntune.fish"),
            read("zsh/site-functions/_kerntune"),
        ];
        let mut all = Vec::new();
        leaves(&crate::command(), "", &mut all);
        for (path, command) in all {
            let page = read(&format!("man/man1/kerntune-{}.1", path.replace(' ', "-")));
            let heads: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
            let order = ["NAME", "SYNOPSIS", "DESCRIPTION"];
            assert!(heads.starts_with(&order), "{path}: {heads:?}");
            assert!(page.contains("Examples:"), "{path}");
            let name = command.get_name();
            for (completion, shell) in completions.iter().zip(["bash", "fish", "zsh"]) {
                assert!(completion.contains(name), "{path} is not completed by {shell}");
                for long in command.get_arguments().filter(|a| !a.is_hide_set()).filter_map(|a| a.get_long())
                {
                    assert!(completion.contains(long), "{path} --{long} is not completed by {shell}");
                }
            }
        }
    }

    #[test]
    fn every_line_of_the_table_is_read_and_of_a_command() {
        assert_eq!(table().count(), lines().count(), "a line has three fields");
        for CommandExample { command, .. } in table() {
            let mut inner = &Arguments::command();
            for word in command.split(' ').filter(|word| !word.is_empty()) {
                inner = inner.find_subcommand(word).unwrap_or_else(|| panic!("no command {command}"));
            }
        }
    }
}
