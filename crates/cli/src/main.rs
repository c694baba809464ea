//! The `kerntune` command: parses and validates arguments, makes one library call, and prints the
//! result. Start from `args` (the command line) and `commands` (a module for each command).

mod args;
mod code;
mod commands;
#[cfg(test)]
mod document_commands;
mod examples;
mod exit;
mod export;
mod files;
mod global;
mod import;
mod kept;
mod kernel_words;
mod keys;
mod output;
mod overview;
mod page;
mod pager;
mod part;
mod percent;
mod progress;
mod ranking;
mod registry;
mod report;
mod standard_input;
mod stderr;
mod streams;
mod subject;
mod timed_files;

use args::{Arguments, Command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use exit::{Exit, Failure};
use output::CliOutput;
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
            return output::parsed(&with_whole_usage(error, &typed), tip).into();
        }
    };
    let output = CliOutput::new(&arguments.global);
    let output = if is_read(&arguments.command) { output.paged(&arguments.global) } else { output };
    let exit = run(&arguments, &output).unwrap_or_else(|failure| {
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
        return (command(), without_former_commands(typed));
    }
    typed.push("--help".into());
    (command().override_help(overview::overview()), typed)
}

/// Returns the whole command line for clap, with examples.
fn command() -> clap::Command {
    examples::with_examples(Arguments::command())
}

/// Returns true if the command prints a report or list to read, which a pager may show.
fn is_read(command: &Command) -> bool {
    use args::{KernelCommand, ProfileCommand, WorkloadCommand};
    match command {
        Command::Report(_) | Command::Characterize(_) | Command::Advise(_) | Command::Anatomy(_) => true,
        Command::Kernel(command) => {
            matches!(command, KernelCommand::List { .. } | KernelCommand::Show { .. })
        }
        Command::Profile(command) => {
            matches!(command, ProfileCommand::List { .. } | ProfileCommand::Show { .. })
        }
        Command::Workload(command) => matches!(command, WorkloadCommand::List { .. }),
        _ => false,
    }
}

fn run(arguments: &Arguments, output: &CliOutput) -> Result<Exit, Failure> {
    let global = &arguments.global;
    match &arguments.command {
        Command::Manuals { directory } => commands::command_line::run(directory),
        Command::Doctor(options) => commands::doctor::run(global, options, output),
        Command::Check(options) => commands::store::check(global, options, output),
        Command::Gc(options) => commands::store::gc(global, options, output),
        Command::Kernel(command) => commands::kernel::run(global, command, output),
        Command::Workload(command) => commands::workload::run(command, output),
        Command::Record(options) if options.live => commands::live::record(global, options, output),
        Command::Record(options) => commands::record::run(global, options, output),
        Command::Live(command) => commands::live::run(global, command, output),
        Command::Profile(command) => commands::profile::run(global, command, output),
        Command::Fleet(command) => commands::fleet::run(global, command, output),
        Command::Matrix(command) => commands::matrix::run(global, command, output),
        Command::Worker(options) => commands::matrix::worker(global, options, output),
        Command::Report(options) => options.run(global, output),
        Command::View(options) => commands::view::run(global, options, output),
        Command::Characterize(options) => commands::characterize::run(global, options, output),
        Command::Advise(options) => commands::advise::run(global, options, output),
        Command::Export(format) => format.run(global, output),
        Command::Import(format) => format.run(global, output),
        Command::Tags(options) => commands::tags::run(options, output),
        Command::Package(options) => commands::package::run(global, options, output),
        Command::Prove(options) => commands::prove::run(global, options, output),
        Command::Paper(options) => commands::paper::run(global, options, output),
        Command::Optimize(options) => commands::optimize::run(global, options, output),
        Command::Guard(command) => commands::guard::run(global, command, output),
        Command::Anatomy(options) => commands::anatomy::run(global, options, output),
        Command::Bench(command) => commands::bench::run(global, command, output),
        Command::Compare(options) if options.explain => commands::explain::run(global, options, output),
        Command::Compare(options) => commands::compare::run(global, options, output),
        Command::Trim(options) => commands::trim::run(global, options, output),
        Command::Ablate(options) => commands::trial::run(global, options, output),
        Command::Time(options) => commands::time::run(global, options, output),
        Command::Tune(options) => commands::tune::run(global, options, output),
    }
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
