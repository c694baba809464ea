//! The `kerntune` command: parses and validates arguments, makes one library call, and prints the
//! result. Start from `arguments` (the command line) and `commands` (a module for each command).

mod arguments;
mod code;
mod commands;
#[cfg(test)]
mod document_commands;
mod examples;
mod export;
mod import;
mod keys;
mod overview;
mod page;
mod part;
mod percent;
mod ranking;
mod report;
mod rooms;
mod standard_input;

use arguments::Arguments;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use kerntune_command::{print_clap_message, CliOutput};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    kerntune_work::interrupt::install();
    let (command, typed) = command_line(std::env::args_os().collect());
    let parsed = command.try_get_matches_from(typed).and_then(|matches| {
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut self::command()))
    });
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return print_clap_message(&error, record_tip(&error)).into(),
    };
    let output = CliOutput::new(&arguments.global);
    let output = if arguments.command.is_read() { output.paged(&arguments.global) } else { output };
    let exit = arguments.command.run(&arguments.global, &output).unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit
    });
    output.finish(exit).into()
}

/// Returns a tip for `kerntune record ls -l`: other profilers take the command without dashes.
fn record_tip(error: &clap::Error) -> Option<String> {
    let typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut typed = typed.skip_while(|word| word.starts_with('-'));
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_command = typed.next()? == "record" && !argument.starts_with('-');
    let words: Vec<String> = typed.skip_while(|word| word != argument).collect();
    (is_command && error.kind() == ErrorKind::UnknownArgument).then(|| {
        format!("  tip: a command to record follows two dashes: `kerntune record -- {}`", words.join(" "))
    })
}

/// Returns the parser for what was typed. Without arguments it shows the overview, even if environment variables set some
/// options.
fn command_line(mut typed: Vec<OsString>) -> (clap::Command, Vec<OsString>) {
    if typed.len() > 1 {
        return (command(), typed);
    }
    typed.push("--help".into());
    (command().override_help(overview::overview()), typed)
}

/// Returns the whole command line for clap, with examples.
fn command() -> clap::Command {
    examples::with_examples(Arguments::command())
}
