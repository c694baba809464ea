//! The `kerntune` command: parses and validates arguments, makes one library call, and prints the
//! result. Start from `arguments` (the command line) and `commands` (a module for each command).

mod arguments;
mod code;
mod commands;
#[cfg(test)]
mod document_commands;
mod examples;
mod export;
mod first_run;
mod import;
mod keys;
mod overview;
mod page;
mod part;
mod percent;
mod ranking;
mod report;
mod rooms;
mod root_options;
mod standard_input;
mod workload_options;

use arguments::Arguments;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use kerntune_command::{print_clap_message, CliOutput};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    kerntune_work::interrupt::install();
    let (command, typed) = command_line(std::env::args_os().collect());
    let parsed = command.try_get_matches_from(&typed).and_then(|matches| {
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut self::command()))
    });
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            let tip = record_tip(&error);
            return print_clap_message(&with_whole_usage(error, &typed), tip).into();
        }
    };
    let output = CliOutput::new(&arguments.global);
    let output = if arguments.command.is_read() { output.paged(&arguments.global) } else { output };
    let exit = arguments.command.run(&arguments.global, &output).unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit
    });
    output.finish(exit).into()
}

/// Puts the usage line of the command that was typed into an error. clap's own is made of the options
/// that were typed, as if they were required.
fn with_whole_usage(mut error: clap::Error, typed: &[OsString]) -> clap::Error {
    if error.get(ContextKind::Usage).is_some() {
        let mut whole = command();
        whole.build();
        let words = typed.iter().skip(1).map_while(|word| word.to_str().filter(|word| *word != "--"));
        let typed = words.fold(&whole, |inner, word| inner.find_subcommand(word).unwrap_or(inner));
        error.insert(ContextKind::Usage, ContextValue::StyledStr(typed.clone().render_usage()));
    }
    error
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

/// Former commands, which are options of others now: scripts may still type them.
const FORMER: [(&str, &str, [&str; 2]); 2] =
    [("", "explain", ["compare", "--explain"]), ("report", "path-length", ["diff", "--path-length"])];

/// Replaces a former command by what it is now. Each stands below a command, or is the first word.
fn without_former_commands(typed: Vec<OsString>) -> Vec<OsString> {
    let mut command = None;
    let mut is_value = false;
    let mut words = Vec::with_capacity(typed.len() + 1);
    for (at, word) in typed.into_iter().enumerate() {
        let is_name = at > 0 && !is_value && !word.as_encoded_bytes().starts_with(b"-");
        is_value = word == "--dir" || word == "--color";
        let above = command.as_deref().unwrap_or("");
        match FORMER.iter().find(|(below, former, _)| is_name && *below == above && word == *former) {
            Some((_, _, now)) => words.extend(now.map(OsString::from)),
            None => words.push(word.clone()),
        }
        if is_name && command.is_none() {
            command = Some(word.to_string_lossy().into_owned());
        }
    }
    words
}

/// Returns the parser for what was typed. Without arguments it shows the overview, even if environment variables set some
/// options.
fn command_line(mut typed: Vec<OsString>) -> (clap::Command, Vec<OsString>) {
    if typed.len() > 1 {
        return (command(), import::with_format(without_former_commands(typed)));
    }
    typed.push("--help".into());
    (command().override_help(overview::overview()), typed)
}

/// Returns the whole command line for clap, with examples.
fn command() -> clap::Command {
    examples::with_examples(Arguments::command())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_commands_are_what_they_became() {
        for (former, now) in [
            ("explain a b --workload w --all", "compare --explain a b --workload w --all"),
            (
                "-v --dir explain explain a b --workload w",
                "-v --dir explain compare --explain a b --workload w",
            ),
            ("report aa path-length bb --region r", "report aa diff --path-length bb --region r"),
            ("record -- explain path-length", "record -- explain path-length"),
            ("ablate c.toml --workload w --by path-length", "ablate c.toml --workload w --by path-length"),
        ] {
            let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
            let typed = [vec!["kerntune".into()], words(former)].concat();
            let changed = without_former_commands(typed);
            assert_eq!(changed[1..], words(now)[..]);
            let parsed = command().try_get_matches_from(changed);
            assert!(parsed.is_ok(), "{now}: {}", parsed.unwrap_err());
        }
    }
}
