//! The first session of a new user: `first_session/session.txt`, a plain script. No step needs the
//! documents: the output of each names the next, or `--help` does.
//!
//! A line `$ …` is typed. The lines after it are expected on both outputs, in order: `…` alone
//! stands for any lines, within a line for any text, and runs of blanks count as one. `PREFIX` is
//! the installation directory, and the work directory is shared with all tests.

use crate::support;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const SESSION: &str = include_str!("first_session/session.txt");

/// Installs the program, the recorder and generated files as `make install` does.
fn install(prefix: &Path) {
    let built = Path::new(env!("CARGO_BIN_EXE_kerntune"));
    let recorder = built.with_file_name("libkerntune_recorder.so");
    for (place, file) in [("bin/kerntune", built), ("lib/kerntune/libkerntune_recorder.so", &recorder)] {
        let place = prefix.join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        // Hard links avoid a copy of a hundred megabytes, but work only within one file system.
        if fs::hard_link(file, &place).is_err() {
            symlink(file, &place).unwrap();
        }
    }
    let status = Command::new(built).arg("command-line").arg(prefix).status().unwrap();
    assert!(status.success());
}

/// Runs a line in a shell; returns both outputs as mixed by the shell.
fn typed(line: &str, prefix: &Path, directory: &Path) -> String {
    let path = format!("{}:{}", prefix.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {line}")])
        .current_dir(directory)
        .env("PATH", path)
        .env("PREFIX", prefix)
        .env("KERNTUNE_DIR", support::work_dir())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace(&prefix.display().to_string(), "PREFIX");
    match output.status.code() {
        Some(0) => text,
        status => format!("{text}[status {status:?}]\n"),
    }
}

/// Collapses runs of blanks, and removes them at the ends.
fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if a line matches the expected one, where `…` matches any text.
fn fits(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        last = Some(part);
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    // The last text must match at the end of the line.
    match last {
        None => rest.is_empty(),
        Some("") => true,
        Some(part) => rest.is_empty() || line.ends_with(part),
    }
}

/// Returns the first expected line that was not found, or `None`.
fn missing<'a>(expected: &[&'a str], found: &str) -> Option<&'a str> {
    let lines: Vec<String> = found.lines().map(plain).filter(|line| !line.is_empty()).collect();
    let mut at = 0;
    let mut any = false;
    for wanted in expected.iter().filter(|line| !line.trim().is_empty()) {
        if wanted.trim() == "…" {
            any = true;
            continue;
        }
        let wanted_line = plain(wanted);
        let place = match any {
            true => lines[at.min(lines.len())..].iter().position(|line| fits(&wanted_line, line)),
            false => lines.get(at).filter(|line| fits(&wanted_line, line)).map(|_| 0),
        };
        match place {
            Some(steps) => at += steps + 1,
            None => return Some(wanted),
        }
        any = false;
    }
    (!any && at < lines.len()).then_some("the end")
}

#[test]
fn a_first_session_goes_as_it_is_written() {
    support::base_kernel();
    let scratch = tempfile::tempdir().unwrap();
    let (prefix, directory) = (scratch.path().join("opt"), scratch.path().join("home"));
    fs::create_dir_all(&directory).unwrap();
    install(&prefix);
    let mut steps: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in SESSION.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command, Vec::new())),
            (None, Some((_, expected))) => expected.push(line),
            (None, None) => assert!(line.trim().is_empty(), "before the first command: {line}"),
        }
    }
    assert!(steps.len() >= 10);
    for (command, expected) in steps {
        let found = typed(command, &prefix, &directory);
        let missing = missing(&expected, &found);
        assert_eq!(missing, None, "$ {command}\n{found}");
    }
}

#[test]
fn lines_are_compared_as_they_are_meant() {
    assert!(fits("a … c", "a b c") && fits("a…", "abc") && fits("abc", "abc") && fits("…c", "abc"));
    assert!(!fits("a … c", "a b d") && !fits("abc", "abcd") && !fits("b…", "abc"));
    assert_eq!(missing(&["a", "…", "d"], "a\nb\nc\nd\n"), None);
    assert_eq!(missing(&["a", "d"], "a\nb\nd\n"), Some("d"));
    assert_eq!(missing(&["a"], "a\nb\n"), Some("the end"));
    assert_eq!(missing(&["a", "…"], "a\nb\n"), None);
}
