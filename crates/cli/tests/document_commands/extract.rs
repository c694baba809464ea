//! Extracts the commands of the documents, from code blocks and from text.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::fs;
use std::path::{Path, PathBuf};

/// A command in a document, split as a shell splits it.
pub struct TypedCommand {
    /// Path of the document below the project's root.
    pub document: String,
    pub line: usize,
    pub words: Vec<String>,
    /// Set within a sentence, where required arguments may be left out.
    pub is_inline: bool,
}

impl TypedCommand {
    pub fn place(&self) -> String {
        format!("{}:{}: {}", self.document, self.line, self.words.join(" "))
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the commands of all documents, in order.
pub fn all() -> Vec<TypedCommand> {
    let root = root();
    let mut paths = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    below(&root.join("docs"), &mut paths);
    for directory in ["guest", "kernel", "workloads"] {
        let page = root.join(directory).join("README.md");
        paths.extend(page.exists().then_some(page));
    }
    let mut found = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        for (line, words, is_inline) in of_text(&text) {
            found.push(TypedCommand { document: name.clone(), line, words, is_inline });
        }
    }
    found
}

fn below(directory: &Path, paths: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            below(&path, paths);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            paths.push(path);
        }
    }
}

/// A row of `how.tsv`: the way in which a command is tested.
pub struct RunMethod {
    /// First words after `kerntune`.
    pub command: Vec<String>,
    pub how: String,
    /// The test that runs a similar command; `-` if the command itself is run.
    pub by: String,
}

/// Reads `how.tsv`.
pub fn table() -> Vec<RunMethod> {
    let path = root().join("crates/cli/tests/document_commands/how.tsv");
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [command, how, by] = fields[..] else { panic!("three fields: {line}") };
            let command = command.split(' ').map(str::to_owned).collect();
            RunMethod { command, how: how.to_owned(), by: by.to_owned() }
        })
        .collect()
}

/// Returns the row with the longest prefix of a command.
pub fn row<'a>(table: &'a [RunMethod], words: &[String]) -> Option<&'a RunMethod> {
    let fits = |how: &&RunMethod| words[1..].starts_with(&how.command);
    table.iter().filter(fits).max_by_key(|how| how.command.len())
}

/// Returns each command of a document with its line, and whether it is within a sentence.
pub fn of_text(text: &str) -> Vec<(usize, Vec<String>, bool)> {
    let mut found = Vec::new();
    let mut block: Option<(usize, String)> = None;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let line = || text[..range.start].matches('\n').count() + 1;
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let is_shell = match &kind {
                    CodeBlockKind::Indented => true,
                    CodeBlockKind::Fenced(language) => matches!(&**language, "" | "sh" | "shell" | "console"),
                };
                let fence = usize::from(matches!(kind, CodeBlockKind::Fenced(_)));
                block = is_shell.then(|| (line() + fence, String::new()));
            }
            Event::Text(words) => {
                if let Some((_, block)) = &mut block {
                    block.push_str(&words);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some((first, block)) = block.take() {
                    found.extend(of_block(&block).into_iter().map(|(at, words)| (first + at, words, false)));
                }
            }
            Event::Code(code) if code.starts_with("kerntune ") || code.starts_with("make ") => {
                // A message, not a command: `kerntune: …`.
                found.extend(split(&code).into_iter().map(|words| (line(), words, true)));
            }
            _ => {}
        }
    }
    found.into_iter().filter(|(_, words, _)| is_ours(words)).collect()
}

/// Returns the commands of a code block, with their line in the block. A block with a prompt
/// contains output too.
fn of_block(block: &str) -> Vec<(usize, Vec<String>)> {
    let has_prompt = block.lines().any(|line| line.starts_with("$ "));
    let mut found = Vec::new();
    let mut lines = block.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let mut whole = match (has_prompt, line.strip_prefix("$ ")) {
            (true, None) => continue,
            (_, typed) => typed.unwrap_or(line).to_owned(),
        };
        while let Some(rest) = whole.strip_suffix('\\') {
            whole = format!("{rest} {}", lines.next().map_or("", |(_, line)| line.trim()));
        }
        found.extend(split(&whole).into_iter().map(|words| (at, words)));
    }
    found
}

/// Returns true if the project provides the command.
fn is_ours(words: &[String]) -> bool {
    words.first().is_some_and(|first| {
        matches!(first.as_str(), "kerntune" | "make") || first.starts_with("scripts/") || first == "cargo"
    })
}

/// Splits a shell line into simple commands, without comments, redirections, assignments and
/// prefixes such as `sudo`.
pub fn split(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut is_target = false;
    let mut chars = line.chars().peekable();
    macro_rules! end_word {
        () => {
            if let Some(word) = word.take() {
                if !std::mem::take(&mut is_target) {
                    commands.last_mut().unwrap().push(word);
                }
            }
        };
    }
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let inner: String = chars.by_ref().take_while(|inner| *inner != c).collect();
                word.get_or_insert_default().push_str(&inner);
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '$' if chars.peek() == Some(&'(') => {
                // Output of a command substitution.
                let _ = chars.by_ref().take_while(|inner| *inner != ')').count();
                word.get_or_insert_default().push_str("printed");
            }
            '#' if word.is_none() => break,
            ';' | '&' | '|' | '(' | ')' => {
                end_word!();
                commands.push(Vec::new());
            }
            '>' | '<' => {
                // Descriptor number of a redirection.
                word = word.take().filter(|word| !word.chars().all(|c| c.is_ascii_digit()));
                end_word!();
                is_target = chars.peek() != Some(&'&');
                if !is_target {
                    let _ = chars.by_ref().take(2).count();
                } else if chars.peek() == Some(&'>') {
                    chars.next();
                }
            }
            c if c.is_whitespace() => {
                if word.is_some() {
                    end_word!();
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    end_word!();
    commands.into_iter().map(bare).filter(|words| !words.is_empty()).collect()
}

/// Removes prefixes, and the brackets of optional words.
fn bare(words: Vec<String>) -> Vec<String> {
    let is_assignment = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let leads =
        |word: &String| matches!(word.as_str(), "do" | "then" | "else" | "if" | "!" | "time" | "sudo");
    let mut words: Vec<String> =
        words.into_iter().skip_while(|word| leads(word) || is_assignment(word)).collect();
    if let Some(first) = words.first_mut() {
        if first.ends_with("/kerntune") {
            "kerntune".clone_into(first);
        }
    }
    let plain = |word: String| {
        let word = word.strip_prefix('[').unwrap_or(&word);
        word.strip_suffix(']').unwrap_or(word).to_owned()
    };
    words.into_iter().map(plain).filter(|word| !matches!(word.as_str(), "…" | "...")).collect()
}
