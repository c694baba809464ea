//! Runs commands of the documents: those that need no kernel, and reports of a recording.
//! `document_commands/how.tsv` lists them, and names the tests that run similar commands.

#[path = "document_commands/extract.rs"]
mod extract;

use crate::support::{self, said};
use extract::{all, row, table, TypedCommand};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn kerntune(words: &[String], directory: &Path, work: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kerntune"));
    command.args(words).current_dir(directory).env("KERNTUNE_DIR", work).stdin(Stdio::null());
    command.output().unwrap()
}

/// Returns the commands in code blocks with this method, without repetitions.
fn tried(how: &str) -> Vec<TypedCommand> {
    let table = table();
    let mut found: Vec<TypedCommand> = Vec::new();
    for typed in all() {
        let is_one = !typed.is_inline
            && typed.words[0] == "kerntune"
            && row(&table, &typed.words).is_some_and(|row| row.how == how && row.by == "-");
        if is_one && !found.iter().any(|other| other.words == typed.words) {
            found.push(typed);
        }
    }
    found
}

#[test]
fn what_needs_no_kernel_is_run_as_it_stands() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let work = directory.join("work");
    std::fs::write(directory.join("my.toml"), "[[measured.step]]\ncommand = [\"rr\"]\n").unwrap();
    let commands = tried("run");
    assert!(commands.len() > 5, "{}", commands.len());
    for typed in commands {
        // The command does not overwrite an existing file.
        let is_new = typed.words[1..3.min(typed.words.len())] == ["workload", "new"];
        if is_new {
            std::fs::remove_file(directory.join("my.toml")).unwrap();
        }
        let output = kerntune(&typed.words[1..], directory, &work);
        // doctor may find missing tools, and a kernel that was not built cannot be removed.
        let also = match (typed.words[1].as_str(), typed.words.get(2).map(String::as_str)) {
            ("doctor", _) => Some(3),
            ("kernel", Some("remove")) => Some(2),
            _ => None,
        };
        let fine = [Some(0), also];
        assert!(fine.contains(&output.status.code()), "{}: {}", typed.place(), said(&output));
        assert!(!said(&output).contains("panicked at"), "{}: {}", typed.place(), said(&output));
    }
}

/// Replaces the profile of the document by `profile`: its first digits, a name in capitals, or
/// `latest`.
fn with_profile(word: &str, profile: &str) -> String {
    let (name, region) = word.split_once(':').map_or((word, None), |(name, region)| (name, Some(region)));
    let is_id = name.len() >= 4
        && name.chars().all(|c| c.is_ascii_digit() || matches!(c, 'a'..='f'))
        && name.chars().any(|c| c.is_ascii_digit());
    let is_name = name.chars().all(|c| c.is_ascii_uppercase());
    match (is_id || is_name || name == "latest", region) {
        (false, _) => word.to_owned(),
        (true, None) => profile.to_owned(),
        (true, Some(region)) => format!("{profile}:{region}"),
    }
}

/// Replaces option values that exist only in the document's recording.
fn for_rr(words: &[String], profile: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in words {
        let before = out.last().map(String::as_str).unwrap_or_default();
        out.push(match before {
            "--region" => "tcp_rr".to_owned(),
            "--at" | "--nth" | "--top" | "--depth" | "--min-percent" => word.clone(),
            _ => with_profile(word, profile),
        });
    }
    out
}

#[test]
fn reports_are_run_on_a_recording() {
    let kernel = support::base_kernel();
    let scratch = tempfile::tempdir().unwrap();
    // All operations of rr, a few of each.
    let file = support::workload(&scratch, "[[measured.step]]\ncommand = [\"rr\", \"--scale\", \"0.05\"]\n");
    let recorded = support::json(["record", "--kernel", &kernel, "--workload", &file, "--json"]);
    let profile = recorded["profile"].as_str().unwrap();
    let (mut printed, mut lacking) = (0, Vec::new());
    for typed in tried("profile") {
        // A reference workload is written for a build; placeholders for a kind and for a number
        // cannot be filled in.
        if typed.words.iter().any(|word| ["--save-reference", "KIND", "MIB"].contains(&word.as_str())) {
            continue;
        }
        let words = for_rr(&typed.words[1..], profile);
        let output = kerntune(&words, scratch.path(), &support::work_dir());
        let text = said(&output);
        assert!(!text.contains("panicked at") && !text.contains("try '--help'"), "{}: {text}", typed.place());
        match output.status.code() {
            Some(0) => printed += 1,
            // The recording has no such events, or lacks data for the report; the message explains
            // it.
            Some(2) => {
                lacking.push(format!("{}: {}", typed.place(), text.lines().last().unwrap_or_default()))
            }
            _ => panic!("{}: {text}", typed.place()),
        }
    }
    println!("{printed} print, {} lack something:\n{}", lacking.len(), lacking.join("\n"));
    assert!(printed > 2 * lacking.len(), "{printed}; {lacking:#?}");
}
