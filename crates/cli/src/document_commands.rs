//! Checks the commands in the documents: each must be accepted by clap, be a target of the
//! Makefile, or be a script.

#[path = "../tests/document_commands/extract.rs"]
mod extract;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use extract::{all, of_text, root, row, split, table, TypedCommand};
use std::fs;

/// Returns true for a placeholder that readers replace, such as `PROFILE` or `N`.
fn is_placeholder(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '|' | '-'))
}

/// Returns the reason that clap rejects a command, or `None` if it accepts it.
fn refused(typed: &TypedCommand) -> Option<String> {
    let mut words = typed.words.clone();
    // Values tried for placeholders so far.
    let mut tried: Vec<String> = Vec::new();
    loop {
        let error = crate::command().try_get_matches_from(&words).err()?;
        let value = |kind| match error.get(kind) {
            Some(ContextValue::String(value)) => value.clone(),
            _ => String::new(),
        };
        match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return None,
            // Text names a command without its required arguments.
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                if typed.is_inline =>
            {
                return None
            }
            ErrorKind::InvalidSubcommand if is_placeholder(&value(ContextKind::InvalidSubcommand)) => {
                return None
            }
            ErrorKind::UnknownArgument if is_placeholder(&value(ContextKind::InvalidArg)) => return None,
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
                let value = value(ContextKind::InvalidValue);
                if typed.is_inline && value.is_empty() {
                    return None;
                }
                let stands_in =
                    |word: &String| *word == value && (is_placeholder(word) || tried.contains(word));
                let place = words.iter().rposition(stands_in);
                let valid = match error.get(ContextKind::ValidValue) {
                    Some(ContextValue::Strings(values)) => values.clone(),
                    _ => ["1", "8", "gcc-pgo"].map(str::to_owned).to_vec(),
                };
                let next = valid.into_iter().find(|value| !tried.contains(value));
                match (place, next) {
                    (Some(place), Some(next)) => {
                        tried.push(next.clone());
                        words[place] = next;
                    }
                    _ => return Some(error.to_string()),
                }
            }
            _ => return Some(error.to_string()),
        }
    }
}

/// Targets of Linux's Makefile that the documents mention.
const OF_LINUX: [&str; 3] = ["tinyconfig", "olddefconfig", "localmodconfig"];

/// Returns the error in a command that runs `make`, `cargo` or a script, or `None`.
fn lacking(typed: &TypedCommand, targets: &[String]) -> Option<String> {
    let (first, rest) = typed.words.split_first()?;
    let after = |option: &str| {
        let pairs = rest.windows(2).filter(move |pair| pair[0] == option);
        pairs.map(|pair| pair[1].clone()).collect::<Vec<_>>()
    };
    match first.as_str() {
        "make" => rest
            .iter()
            .find(|word| {
                let is_option = word.contains('=') || word.starts_with('-') || is_placeholder(word);
                !(is_option || targets.contains(word) || OF_LINUX.contains(&word.as_str()))
            })
            .map(|word| format!("no target {word}")),
        "cargo" => {
            let packages = after("-p");
            let directory = |package: &String| package.replacen("kerntune-", "crates/", 1);
            let lacking = packages.iter().find(|package| !root().join(directory(package)).is_dir());
            lacking.map(|package| format!("no package {package}"))
        }
        script => (!root().join(script).exists()).then(|| "no such script".to_owned()),
    }
}

#[test]
fn every_command_of_the_documents_can_be_typed() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let rules = makefile.lines().filter_map(|line| line.split_once(':'));
    let targets: Vec<String> = rules
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        .collect();
    let commands = all();
    assert!(commands.iter().filter(|typed| !typed.is_inline).count() > 250, "{}", commands.len());
    let wrong: Vec<String> = commands
        .iter()
        .filter_map(|typed| {
            let reason = match typed.words[0].as_str() {
                "kerntune" => refused(typed),
                _ => lacking(typed, &targets),
            };
            Some(format!("{}\n    {}", typed.place(), reason?.lines().collect::<Vec<_>>().join("\n    ")))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), commands.len(), wrong.join("\n"));
}

#[test]
fn every_command_of_the_documents_is_run_by_a_test() {
    let table = table();
    let mut used = vec![false; table.len()];
    let mut wrong = Vec::new();
    for typed in all().iter().filter(|typed| typed.words[0] == "kerntune" && typed.words.len() > 1) {
        // A global option, or no particular command.
        if typed.words[1].starts_with('-') || is_placeholder(&typed.words[1]) {
            continue;
        }
        match table.iter().position(|how| row(&table, &typed.words).is_some_and(|row| std::ptr::eq(row, how)))
        {
            Some(place) => used[place] = true,
            None => wrong.push(format!("{}: add it to how.tsv", typed.place())),
        }
    }
    for (how, used) in table.iter().zip(used) {
        let name = how.command.join(" ");
        if !used {
            wrong.push(format!("{name}: no document has it"));
        }
        let is_tried = matches!(how.how.as_str(), "run" | "profile");
        assert!(is_tried || how.how == "long", "{name}: {}", how.how);
        assert_eq!(is_tried, how.by == "-", "{name}: {}", how.by);
        let test = match how.by.contains('/') {
            true => root().join(&how.by),
            false => root().join(format!("crates/cli/tests/{}.rs", how.by)),
        };
        let word = format!("\"{}\"", how.command.join("\", \""));
        if !is_tried && !fs::read_to_string(&test).is_ok_and(|text| text.contains(&word)) {
            wrong.push(format!("{name} is not in {}", test.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_are_split_as_a_shell_splits_them() {
    let one = |line: &str| split(line).into_iter().map(|words| words.join("|")).collect::<Vec<_>>();
    assert_eq!(one("kerntune a 'b c' \"d e\" f\\ g # h"), ["kerntune|a|b c|d e|f g"]);
    assert_eq!(
        one("A=1 B_C=x sudo kerntune a; kerntune b && kerntune c | head -n 1"),
        ["kerntune|a", "kerntune|b", "kerntune|c", "head|-n|1"]
    );
    assert_eq!(one("for w in a b; do kerntune $w; done"), ["for|w|in|a|b", "kerntune|$w", "done"]);
    assert_eq!(one("x/kerntune a >file 2>&1 >> more b$(uname -r)c"), ["kerntune|a|bprintedc"]);
    assert_eq!(one("kerntune a [--b N] [C] …"), ["kerntune|a|--b|N|C"]);
    assert_eq!(one("(kerntune a; echo b) | duckdb"), ["kerntune|a", "echo|b", "duckdb"]);
}

#[test]
fn commands_of_a_document_are_those_that_are_typed() {
    let text = "A `kerntune gc` and `kerntune`:\n\n    $ kerntune a \\\n      b\n    kerntune output\n\n```json\nkerntune x\n```\n\n```sh\nmake y\n```\n";
    let found: Vec<_> =
        of_text(text).into_iter().map(|(line, words, inline)| (line, words.join(" "), inline)).collect();
    let expected = [(1, "kerntune gc", true), (3, "kerntune a b", false), (12, "make y", false)];
    assert_eq!(found, expected.map(|(line, words, inline)| (line, words.to_owned(), inline)));
}
