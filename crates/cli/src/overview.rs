//! The screen that `kerntune` prints without arguments: first commands, then all others by purpose.

use crate::arguments::{Arguments, Commands};
use clap::CommandFactory;
use kerntune_command::CommandEntry;
use std::fmt::Write as _;

/// Commands to begin with, each with a line.
const FIRST: &[(&str, &str)] = &[
    ("doctor", "Show what this machine has, and how to install what it lacks"),
    ("record", "Run a workload or a command on a kernel, and record what the kernel does"),
    ("report", "Print where the time went: functions, call graph, code path, and more"),
    ("view", "Show a profile in a browser or in the terminal"),
    ("tune", "Build, train, rebuild, measure and compare"),
    ("live", "Profile the kernel of this machine while it works"),
];

/// Returns the screen.
pub fn overview() -> String {
    let about = Arguments::command().get_about().map(ToString::to_string).unwrap_or_default();
    let mut out = format!("{about}\n\nUsage: kerntune [OPTIONS] COMMAND\n\nFirst commands:\n");
    for (name, does) in FIRST {
        let _ = writeln!(out, "  {name:<15}{does}");
    }
    out += "\nMore commands:\n";
    for (group, names) in groups() {
        let _ = writeln!(out, "  {group:<15}{}", names.join(", "));
    }
    let _ = writeln!(out, "\n{}", crate::examples::first_examples());
    out +=
        "\n`kerntune COMMAND --help` describes a command and shows examples. `kerntune --help` lists all\n\
            commands and options. Documentation: docs/README.md.\n";
    out
}

/// Returns the names of all other commands by heading, in the order of the list of commands.
fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for CommandEntry { entry, group } in Commands::all().filter(|command| !command.group.is_empty()) {
        match groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, names)) => names.push(entry.name),
            None => groups.push((group, vec![entry.name])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_is_there_once_and_all_fits_on_a_screen() {
        let command = Arguments::command();
        let visible = command.get_subcommands().filter(|inner| !inner.is_hide_set());
        let expected: BTreeSet<&str> = visible.map(clap::Command::get_name).collect();
        let first = FIRST.iter().map(|(name, _)| *name);
        let listed: Vec<&str> = first.chain(groups().into_iter().flat_map(|(_, names)| names)).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), expected);
        assert_eq!(listed.len(), expected.len());
        let text = overview();
        assert!(text.lines().count() <= 34, "{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}
