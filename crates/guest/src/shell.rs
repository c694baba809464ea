//! Finds the programs that a shell string names, as far as they can be seen without running it.
//!
//! Understands quotes, operators, redirections, assignments, reserved words, functions, `case`, and
//! command substitutions (POSIX.1-2024, Shell Command Language, 2.2 to 2.9). Words that are only
//! known at run time (`$PROGRAM`) are ignored.

use std::collections::BTreeSet;
use std::path::Path;

/// Programs that take a script after `-c`.
const SHELLS: [&str; 6] = ["sh", "ash", "bash", "dash", "ksh", "zsh"];

/// Words after which a command may begin.
const BEFORE_A_COMMAND: [&str; 11] =
    ["if", "then", "elif", "else", "while", "until", "do", "time", "!", "{", "coproc"];

/// Other reserved words, after which no simple command begins.
const OTHER_RESERVED: [&str; 4] = ["fi", "done", "}", "esac"];

/// Commands that run the command in their arguments, after options, numbers and assignments. With
/// each: its options that take the next word, and the number of words before the command.
const WRAPPERS: [(&str, &str, usize); 24] = [
    ("exec", "a", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("env", "uC", 0),
    ("nice", "n", 0),
    ("ionice", "cnp", 0),
    ("nohup", "", 0),
    ("setsid", "", 0),
    ("stdbuf", "ioe", 0),
    ("taskset", "", 1),
    ("timeout", "sk", 1),
    ("xargs", "IdEnPLsa", 0),
    ("chrt", "TPD", 1),
    ("time", "fo", 0),
    ("strace", "oeEpPsSaIOub", 0),
    ("ltrace", "oeplsaunDF", 0),
    ("flock", "wE", 1),
    ("chroot", "", 1),
    ("unshare", "RwSG", 0),
    ("numactl", "", 0),
    ("prlimit", "", 0),
    ("setarch", "", 0),
    ("watch", "n", 0),
    ("parallel", "jIN", 0),
];

/// Options of `find` after which a command stands, up to `;` or `+`.
const FIND_RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Shell builtins: the utilities of POSIX's 2.15 and 1.6, and those that dash, bash and busybox
/// share.
const BUILTINS: [&str; 57] = [
    ".", ":", "[", "[[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare",
    "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "function",
    "getopts", "hash", "help", "history", "in", "jobs", "kill", "let", "local", "mapfile", "popd", "printf",
    "pushd", "pwd", "read", "readonly", "return", "select", "set", "shift", "shopt", "source", "test",
    "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unset", "wait",
];

pub(crate) fn is_builtin(word: &str) -> bool {
    BUILTINS.contains(&word)
        || matches!(word, "unalias" | "logout" | "suspend" | "caller" | "compgen" | "complete")
}

/// Checks, by its name or path, whether a program is a shell.
pub fn is_shell(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| SHELLS.iter().any(|shell| name == *shell))
}

/// Returns the programs that the rest of a `#!` line names: the interpreter and, after
/// `/usr/bin/env`, the program that it starts. Empty unless the interpreter is an absolute path:
/// kernels do not search, and some data begins with `#!` (`#! .`, a symbol list for AIX's linker).
pub(crate) fn interpreters(line: &str) -> Vec<&str> {
    let mut words = line.split_whitespace();
    let Some(first) = words.next().filter(|word| word.starts_with('/')) else { return Vec::new() };
    let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
    let started = if first.ends_with("/env") { words.find(is_program) } else { None };
    std::iter::once(first).chain(started).collect()
}

/// A program that a command or a script names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedProgram {
    /// Name to search, or path.
    pub word: String,
    /// True if busybox's shell starts it, which has its applets built in.
    pub by_busybox: bool,
}

/// Returns the programs that a command runs besides its first word: those of a script after `-c`,
/// and the one that a wrapper runs. `sh_is_busybox` tells whether `sh` is busybox.
pub(crate) fn programs_of(command: &[String], sh_is_busybox: bool) -> BTreeSet<NamedProgram> {
    let mut found = FoundPrograms { sh_is_busybox, ..FoundPrograms::default() };
    let words: Vec<ShellWord> = command.iter().map(|word| ShellWord::argument(word)).collect();
    simple_command(&words, 0, &mut found);
    if let Some(first) = command.first() {
        found.programs.remove(&NamedProgram { word: first.clone(), by_busybox: false });
    }
    found.programs
}

/// Returns the programs of a shell string or script.
pub(crate) fn commands(script: &str, by_busybox: bool) -> BTreeSet<NamedProgram> {
    let mut found = FoundPrograms { by_busybox, ..FoundPrograms::default() };
    script_commands(script, 0, &mut found);
    found.programs
}

/// Returns the script files that a command's shells run: `sh FILE`, also below a wrapper.
pub(crate) fn script_files(command: &[String]) -> BTreeSet<String> {
    found_in(command).scripts
}

/// Programs and scripts found so far, and the kind of shell that starts them.
#[derive(Default)]
struct FoundPrograms {
    programs: BTreeSet<NamedProgram>,
    scripts: BTreeSet<String>,
    strings: Vec<String>,
    sh_is_busybox: bool,
    by_busybox: bool,
}

impl FoundPrograms {
    fn program(&mut self, word: &str) {
        self.programs.insert(NamedProgram { word: word.to_owned(), by_busybox: self.by_busybox });
    }
}

/// Largest nesting of scripts to search.
const DEPTH_MAX: u32 = 8;

/// A word of a command; `known` if its text is final before the shell runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ShellWord {
    text: String,
    known: bool,
    /// Text as a pattern, in which quoted characters are escaped.
    pattern: String,
    /// True if the pattern may match other names.
    is_pattern: bool,
    /// True if an expansion decides its value at run time.
    expands: bool,
}

impl ShellWord {
    fn argument(text: &str) -> Self {
        Self { text: text.to_owned(), known: true, ..Self::default() }
    }
}

/// A word of a shell string that may name files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileWord {
    /// Text without quotes.
    pub text: String,
    /// Pattern that the shell expands, if the word is one.
    pub pattern: Option<String>,
    /// True for the target of an output redirection, which need not exist.
    pub is_output: bool,
}

/// Returns the shell strings of a command, including nested ones.
pub(crate) fn strings_of(command: &[String]) -> Vec<String> {
    found_in(command).strings
}

fn found_in(command: &[String]) -> FoundPrograms {
    let mut found = FoundPrograms::default();
    let words: Vec<ShellWord> = command.iter().map(|word| ShellWord::argument(word)).collect();
    simple_command(&words, 0, &mut found);
    found
}

/// Returns a shell string's words that are known before it runs, unquoted, without nested strings.
pub(crate) fn file_words(script: &str) -> Vec<FileWord> {
    let mut words = Vec::new();
    let mut is_output = false;
    for token in tokens(script, &mut Vec::new()) {
        match token {
            ShellToken::Operator(operator) => is_output = operator == OUTPUT,
            ShellToken::Word(word) => {
                if !word.expands {
                    let pattern = word.is_pattern.then_some(word.pattern);
                    words.push(FileWord { text: word.text, pattern, is_output });
                }
                is_output = false;
            }
        }
    }
    words
}

const INPUT: &str = "<";
const OUTPUT: &str = ">";

#[derive(Debug, Clone, PartialEq, Eq)]
enum ShellToken {
    Word(ShellWord),
    /// `;`, `&&`, `|`, `(` and the like; `>` and `<` stand for every redirection.
    Operator(String),
}

fn script_commands(script: &str, depth: u32, found: &mut FoundPrograms) {
    if depth > DEPTH_MAX {
        return;
    }
    found.strings.push(script.to_owned());
    let mut substitutions = Vec::new();
    let tokens = tokens(script, &mut substitutions);
    for inner in substitutions {
        script_commands(&inner, depth + 1, found);
    }
    let mut functions = BTreeSet::new();
    let mut named = FoundPrograms {
        sh_is_busybox: found.sh_is_busybox,
        by_busybox: found.by_busybox,
        ..FoundPrograms::default()
    };
    let mut command: Vec<ShellWord> = Vec::new();
    let mut patterns = CasePatterns::default();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            ShellToken::Operator(operator) if operator == OUTPUT || operator == INPUT => drop(tokens.next()),
            ShellToken::Operator(operator) if patterns.skips(&operator) => command.clear(),
            ShellToken::Operator(operator) => {
                // `name ( )` defines a function.
                let is_function = operator == "("
                    && command.len() == 1
                    && matches!(tokens.peek(), Some(ShellToken::Operator(next)) if next == ")");
                match command.first() {
                    Some(name) if is_function => drop(functions.insert(name.text.clone())),
                    _ => simple_command(&command, depth, &mut named),
                }
                command.clear();
                patterns.after(&operator);
            }
            ShellToken::Word(word) if patterns.is_pattern(&word.text) => {}
            ShellToken::Word(word) => {
                let reserved = word.known && command.is_empty();
                let text = word.text.as_str();
                if reserved && text == "case" {
                    patterns.case();
                } else if reserved && matches!(text, "for" | "select" | "function") {
                    // The rest of the list, and the name, contain no command.
                    command.push(ShellWord::argument(":"));
                } else if !(reserved && (BEFORE_A_COMMAND.contains(&text) || OTHER_RESERVED.contains(&text)))
                {
                    command.push(word);
                }
            }
        }
    }
    simple_command(&command, depth, &mut named);
    found.programs.extend(named.programs.into_iter().filter(|named| !functions.contains(&named.word)));
    found.scripts.extend(named.scripts);
    found.strings.extend(named.strings);
}

/// Tracks patterns of `case` statements, which are no commands.
#[derive(Default)]
struct CasePatterns {
    /// For each open `case`, whether a pattern is next.
    open: Vec<bool>,
    /// True between `case` and `in`.
    subject: bool,
}

impl CasePatterns {
    fn case(&mut self) {
        self.subject = true;
    }

    fn is_pattern(&mut self, word: &str) -> bool {
        if self.subject {
            if word == "in" {
                self.subject = false;
                self.open.push(true);
            }
            return true;
        }
        match (self.open.last(), word) {
            (Some(_), "esac") => {
                self.open.pop();
                true
            }
            (Some(next), _) => *next,
            (None, _) => false,
        }
    }

    /// Checks whether the operator is part of a pattern.
    fn skips(&mut self, operator: &str) -> bool {
        match self.open.last_mut() {
            Some(next) if *next => {
                *next = operator != ")";
                true
            }
            _ => self.subject,
        }
    }

    fn after(&mut self, operator: &str) {
        if let (Some(next), true) = (self.open.last_mut(), operator.starts_with(";;") || operator == ";&") {
            *next = true;
        }
    }
}

/// Finds the program of a simple command, and those that it runs in turn.
fn simple_command(words: &[ShellWord], depth: u32, found: &mut FoundPrograms) {
    if depth > DEPTH_MAX {
        return;
    }
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        if is_assignment(&word.text) {
            rest = after;
            continue;
        }
        if !word.known || word.text.is_empty() {
            return;
        }
        found.program(&word.text);
        let name = Path::new(&word.text).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "busybox" && after.first().is_some_and(|applet| SHELLS.contains(&applet.text.as_str())) {
            return script_after(&after[1..], true, depth, found);
        }
        if is_shell(&word.text) {
            let is_busybox = found.by_busybox || found.sh_is_busybox;
            return script_after(after, is_busybox && matches!(name.as_str(), "sh" | "ash"), depth, found);
        }
        if name == "eval" {
            let text: Vec<&str> = after.iter().map(|word| word.text.as_str()).collect();
            return script_commands(&text.join(" "), depth + 1, found);
        }
        if name == "find" {
            return find_runs(after, depth, found);
        }
        let Some((_, with_word, before)) = WRAPPERS.iter().find(|(wrapper, ..)| name == *wrapper) else {
            return;
        };
        // `command -v NAME` runs nothing.
        if name == "command" && after.first().is_some_and(|word| word.text.starts_with('-')) {
            return;
        }
        rest = wrapped(after, with_word, *before);
    }
}

/// Returns the command that a wrapper runs: the words after its options and after those that
/// precede the command. A number is never a command.
fn wrapped<'w>(words: &'w [ShellWord], with_word: &str, before: usize) -> &'w [ShellWord] {
    let (mut rest, mut before) = (words, before);
    while let Some((word, after)) = rest.split_first() {
        rest = match word.text.strip_prefix(['-', '+']) {
            Some(option) => {
                let mut letters = option.chars();
                let one = letters.next().filter(|_| letters.next().is_none());
                match one.is_some_and(|letter| with_word.contains(letter)) {
                    true => after.get(1..).unwrap_or_default(),
                    false => after,
                }
            }
            None if word.text.starts_with(|c: char| c.is_ascii_digit()) => {
                before = before.saturating_sub(1);
                after
            }
            None if before > 0 && is_mask_or_file(&word.text) => {
                before -= 1;
                after
            }
            None => break,
        };
    }
    rest
}

/// Checks for a word before a wrapper's command that is no number: a CPU mask, a lock file, a
/// directory.
fn is_mask_or_file(word: &str) -> bool {
    word.starts_with('/') || word.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ',' | '-'))
}

/// Finds the commands after `-exec` and similar options.
fn find_runs(words: &[ShellWord], depth: u32, found: &mut FoundPrograms) {
    let mut rest = words;
    while let Some(at) = rest.iter().position(|word| FIND_RUNS.contains(&word.text.as_str())) {
        let command = &rest[at + 1..];
        let end =
            command.iter().position(|word| matches!(word.text.as_str(), ";" | "+")).unwrap_or(command.len());
        simple_command(&command[..end], depth + 1, found);
        rest = &command[end..];
    }
}

/// Finds the script in a shell's arguments: after an option with a `c`, or else in a file.
fn script_after(arguments: &[ShellWord], by_busybox: bool, depth: u32, found: &mut FoundPrograms) {
    for (at, word) in arguments.iter().enumerate() {
        let Some(option) = word.text.strip_prefix('-') else {
            if word.known {
                found.scripts.insert(word.text.clone());
            }
            return;
        };
        if !option.starts_with('-') && option.contains('c') {
            if let Some(script) = arguments.get(at + 1).filter(|script| script.known) {
                let outer = std::mem::replace(&mut found.by_busybox, by_busybox);
                script_commands(&script.text, depth + 1, found);
                found.by_busybox = outer;
            }
            return;
        }
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.trim_end_matches('+');
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Splits a script into words and operators; puts the contents of `$(…)` and backquotes into
/// `substitutions`.
fn tokens(script: &str, substitutions: &mut Vec<String>) -> Vec<ShellToken> {
    let chars: Vec<char> = script.chars().collect();
    let mut cutter = ShellLexer { chars: &chars, at: 0, tokens: Vec::new(), word: None };
    cutter.cut(substitutions);
    cutter.tokens
}

struct ShellLexer<'a> {
    chars: &'a [char],
    at: usize,
    tokens: Vec<ShellToken>,
    word: Option<ShellWord>,
}

impl ShellLexer<'_> {
    fn cut(&mut self, substitutions: &mut Vec<String>) {
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    let escaped = self.next().unwrap_or('\\');
                    self.push(escaped);
                }
                '\'' => {
                    self.word();
                    while let Some(c) = self.next().filter(|c| *c != '\'') {
                        self.push(c);
                    }
                }
                '"' => {
                    self.word();
                    while let Some(c) = self.next().filter(|c| *c != '"') {
                        match c {
                            '\\' => {
                                let escaped = self.next().unwrap_or('\\');
                                self.push(escaped);
                            }
                            '$' | '`' => self.expansion(c, substitutions),
                            c => self.push(c),
                        }
                    }
                }
                '$' | '`' => self.expansion(c, substitutions),
                '#' if self.word.is_none() => while self.next().is_some_and(|c| c != '\n') {},
                ' ' | '\t' => self.end_word(),
                '\n' | ';' | '&' | '|' | '(' | ')' => self.operator(c),
                '<' | '>' => self.redirection(c, substitutions),
                '*' | '?' | '[' => {
                    let begun = self.word.is_some();
                    self.push_plain(c);
                    let word = self.word();
                    word.is_pattern = true;
                    word.known &= !begun;
                }
                c => self.push_plain(c),
            }
        }
        self.end_word();
    }

    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn word(&mut self) -> &mut ShellWord {
        self.word.get_or_insert_with(|| ShellWord::argument(""))
    }

    /// Adds a quoted character.
    fn push(&mut self, c: char) {
        let word = self.word();
        word.text.push(c);
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            word.pattern.push('\\');
        }
        word.pattern.push(c);
    }

    /// Adds an unquoted character.
    fn push_plain(&mut self, c: char) {
        let word = self.word();
        word.text.push(c);
        word.pattern.push(c);
    }

    fn end_word(&mut self) {
        self.tokens.extend(self.word.take().map(ShellToken::Word));
    }

    fn operator(&mut self, first: char) {
        self.end_word();
        let mut text = first.to_string();
        while let Some(next) = self.chars.get(self.at).filter(|next| **next == first || **next == '&') {
            if matches!(first, '(' | ')' | '\n') || text.len() == 2 {
                break;
            }
            text.push(*next);
            self.at += 1;
        }
        self.tokens.push(ShellToken::Operator(text));
    }

    /// Reads `>`, `2>&1`, `<<<`, `>|`; the contents of `<(…)` run.
    fn redirection(&mut self, first: char, substitutions: &mut Vec<String>) {
        if self.chars.get(self.at) == Some(&'(') {
            self.at += 1;
            let inner = self.up_to_parenthesis();
            substitutions.push(inner);
            let word = self.word();
            (word.known, word.expands) = (false, true);
            return;
        }
        // A number before the operator belongs to it.
        if self.word.as_ref().is_some_and(|word| word.text.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        while self.chars.get(self.at).is_some_and(|c| *c == first || matches!(c, '&' | '|' | '>' | '-')) {
            self.at += 1;
        }
        let operator = if first == '<' { INPUT } else { OUTPUT };
        self.tokens.push(ShellToken::Operator(operator.into()));
    }

    /// Reads an expansion after `$` or a backquote, which makes the word unknown.
    fn expansion(&mut self, first: char, substitutions: &mut Vec<String>) {
        let word = self.word();
        (word.known, word.expands) = (false, true);
        if first == '`' {
            let mut inner = String::new();
            while let Some(c) = self.next().filter(|c| *c != '`') {
                inner.push(c);
            }
            substitutions.push(inner);
            return;
        }
        match self.chars.get(self.at..).unwrap_or_default() {
            // Arithmetic.
            ['(', '(', ..] => {
                self.at += 1;
                self.up_to_parenthesis();
            }
            ['(', ..] => {
                self.at += 1;
                let inner = self.up_to_parenthesis();
                substitutions.push(inner);
            }
            ['{', ..] => while self.next().is_some_and(|c| c != '}') {},
            _ => {}
        }
    }

    /// Returns the text up to the parenthesis that closes the one just read; quoted ones do not
    /// count.
    fn up_to_parenthesis(&mut self) -> String {
        let (mut depth, mut quote, mut inner) = (1u32, None, String::new());
        while let Some(c) = self.next() {
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if open == c => quote = None,
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            inner.push(c);
        }
        inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str) -> String {
        commands(script, false).into_iter().map(|named| named.word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn commands_are_where_the_shell_looks_for_them() {
        for (script, programs) in [
            ("fio --x | grep y", "fio grep"),
            ("cd /x && ./run >log 2>&1; wc -l <log", "./run cd wc"),
            ("A=1 B='x y' redis-cli ping &", "redis-cli"),
            ("for i in a b; do stat $i; done", ": stat"),
            ("if test -e x; then 'my prog' \"q r\"; else ! tool; fi", "my prog test tool"),
            ("case $x in a|b) one;; *) two;; esac; three", "one three two"),
            ("x=$(date +%s) y=`uname -r`; echo \"$(id -u) $x\"", "date echo id uname"),
            ("f() { inner; }; f; g", "g inner"),
            ("$PROGRAM x; \"$D/run\"", ""),
            ("# fio\necho a#b # c", "echo"),
            ("exec nice -n 5 taskset -c 0 env A=1 fio x", "env exec fio nice taskset"),
            ("timeout 10 sh -c 'a | b \"$(c)\"'", "a b c sh timeout"),
            ("echo $((1 + (2)))x; cat <<< text; diff <(ls) y", "cat diff echo ls"),
            ("while read l; do t; done < f; (cd x; u) | xargs -n1 v", ": cd read t u v xargs"),
            ("echo 'a; b' \"c | d\" e\\;f; command -v zzz", "command echo"),
            ("eval 'tool x'", "eval tool"),
        ] {
            let expected = programs.trim_start_matches(": ");
            assert_eq!(found(script).replace(": ", ""), expected, "{script}");
        }
    }

    #[test]
    fn a_command_brings_what_its_script_names() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            programs_of(&words, false).into_iter().map(|named| named.word).collect::<Vec<_>>()
        };
        assert_eq!(of(&["sh", "-c", "fio --x | grep y"]), ["fio", "grep"]);
        assert_eq!(of(&["busybox", "sh", "-ec", "tool"]), ["tool"]);
        assert_eq!(of(&["taskset", "-c", "0", "fio", "x"]), ["fio"]);
        assert_eq!(of(&["taskset", "ff", "fio", "x"]), ["fio"]);
        assert_eq!(of(&["timeout", "-k", "1s", "5s", "nice", "fio"]), ["fio", "nice"]);
        assert_eq!(of(&["xargs", "-I", "{}", "md5sum", "{}"]), ["md5sum"]);
        assert_eq!(of(&["env", "-u", "HOME", "A=1", "sort"]), ["sort"]);
        assert_eq!(of(&["flock", "/run/lock", "sort"]), ["sort"]);
        assert_eq!(of(&["find", "/etc", "-exec", "md5sum", "{}", "+"]), ["md5sum"]);
        assert_eq!(
            of(&["find", ".", "-type", "f", "-exec", "sh", "-c", "gzip $1", ";", "-ok", "rm", "{}", ";"]),
            ["gzip", "rm", "sh"]
        );
        assert_eq!(of(&["fio", "-c", "grep y"]), [""; 0]);
        assert_eq!(of(&["bash", "/etc/script", "-c", "x"]), [""; 0]);
    }

    #[test]
    fn busyboxs_shell_has_its_applets_and_no_other_program_does() {
        let of = |words: &[&str], sh_is_busybox| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            let named = programs_of(&words, sh_is_busybox).into_iter();
            named.map(|named| format!("{} {}", named.word, named.by_busybox)).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&["busybox", "sh", "-c", "sort | bash -c wc"], false),
            ["bash true", "sort true", "wc false"]
        );
        assert_eq!(of(&["sh", "-c", "sort"], true), ["sort true"]);
        assert_eq!(of(&["sh", "-c", "sort"], false), ["sort false"]);
        assert_eq!(of(&["timeout", "9", "sort"], true), ["sort false"]);
        assert_eq!(of(&["bash", "-c", "sort"], true), ["sort false"]);
    }

    #[test]
    fn words_are_read_with_their_quotes() {
        let of = |script: &str| {
            let show = |word: FileWord| {
                let pattern = word.pattern.map(|pattern| format!(" pattern {pattern}")).unwrap_or_default();
                format!("{}{pattern}{}", word.text, if word.is_output { " output" } else { "" })
            };
            file_words(script).into_iter().map(show).collect::<Vec<_>>()
        };
        assert_eq!(of("cat '/a b/c d' \"/e f\"/g\\ h"), ["cat", "/a b/c d", "/e f/g h"]);
        assert_eq!(
            of("cat /a/*.txt '/b/*' /c\\ d/[x]*"),
            ["cat", "/a/*.txt pattern /a/*.txt", "/b/*", "/c d/[x]* pattern /c d/[x]*"]
        );
        assert_eq!(of("x '*'*"), ["x", "** pattern \\**"]);
        assert_eq!(of("a </in >/out 2>>/err $HOME/x \"$y\""), ["a", "/in", "/out output", "/err output"]);
        let command = ["timeout", "5", "sh", "-c", "cat a; bash -c 'cat b' $(cat c)"].map(str::to_owned);
        assert_eq!(strings_of(&command), ["cat a; bash -c 'cat b' $(cat c)", "cat c", "cat b"]);
    }

    #[test]
    fn the_files_of_shells_are_named() {
        let of = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            script_files(&words).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of("timeout 5 bash -x ./run.sh a"), ["./run.sh"]);
        assert_eq!(of("sh -c true x"), [""; 0]);
    }

    #[test]
    fn anything_is_cut_to_its_end() {
        for script in
            ["$(", "'", "\"$(`", "case x in", "((((", ">", "\\", "${", "$((", "f()", "case in in ;; esac"]
        {
            commands(script, false);
        }
        commands(&"$(".repeat(10_000), false);
        commands(&"eval ".repeat(10_000), false);
        commands(&"find -exec ".repeat(10_000), false);
    }
}
