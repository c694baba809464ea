//! Checks that doc comments begin with a noun or a verb.
//!
//! A comment that begins with "What", "How" or "Whether" makes its reader look for the subject. The check covers all Rust source
//! but tests and examples.

use std::fs;
use std::path::{Path, PathBuf};

/// First words that no doc comment has.
const OPENINGS: [&str; 10] =
    ["What", "How", "Who", "Whose", "Whether", "Which", "Where", "Why", "All that", "That"];

/// Collects the Rust files below a directory, without those of tests and examples.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_str().unwrap();
        match path.is_dir() {
            true if !matches!(name, "tests" | "examples" | "target") => sources(&path, found),
            false if name.ends_with(".rs") && !name.ends_with("tests.rs") => found.push(path),
            _ => {}
        }
    }
}

/// Returns the text of a line of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}

/// Checks whether a comment begins with one of [`OPENINGS`], as a whole word.
fn is_question(comment: &str) -> bool {
    let follows = |rest: &str| rest.chars().next().is_some_and(|next| next == ' ' || next == ',');
    OPENINGS.iter().any(|opening| comment.strip_prefix(opening).is_some_and(follows))
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for directory in ["crates", "fuzz"] {
        sources(&root.join(directory), &mut files);
    }
    assert!(files.len() > 900, "{} files", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let mut before = None;
        for (number, line) in text.lines().enumerate() {
            let comment = doc_text(line);
            if before.is_none() && comment.is_some_and(is_question) {
                wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
            before = comment;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} doc comments begin with a question word:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn question_words_are_whole_words() {
    assert!(is_question("What a recipe needs.") && is_question("Whether, and how often."));
    assert!(
        !is_question("Whatever is left.") && !is_question("Thatch.") && !is_question("Returns what is left.")
    );
}
