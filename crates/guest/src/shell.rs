//! The programs that a shell string names, as far as reading it tells.
//!
//! Quotes, operators, redirections, assignments, reserved words, functions, `case`, and command substitutions are understood
//! (POSIX.1-2024, Shell Command Language, 2.2 to 2.9). A word that is only known when it runs (`$PROGRAM`) is none.

use std::collections::BTreeSet;
use std::path::Path;

/// Programs that take a script after `-c`.
const SHELLS: [&str; 6] = ["sh", "ash", "bash", "dash", "ksh", "zsh"];

/// Words after which a command may begin.
const BEFORE_A_COMMAND: [&str; 11] =
    ["if", "then", "elif", "else", "while", "until", "do", "time", "!", "{", "coproc"];

/// Words that end something, or begin what is no simple command.
const OTHER_RESERVED: [&str; 4] = ["fi", "done", "}", "esac"];

/// Commands that run the command in their arguments, after options, numbers and assignments.
const WRAPPERS: [&str; 15] = [
    "exec", "command", "builtin", "env", "nice", "ionice", "nohup", "setsid", "stdbuf", "taskset", "timeout",
    "xargs", "chrt", "time", "strace",
];

/// What shells do themselves: the utilities of POSIX's 2.15 and 1.6, and those that dash, bash and busybox share.
const BUILTINS: [&str; 57] = [
    ".", ":", "[", "[[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare",
    "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "function",
    "getopts", "hash", "help", "history", "in", "jobs", "kill", "let", "local", "mapfile", "popd", "printf",
    "pushd", "pwd", "read", "readonly", "return", "select", "set", "shift", "shopt", "source", "test",
    "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unset", "wait",
];

/// Whether shells have it.
pub(crate) fn is_builtin(word: &str) -> bool {
    BUILTINS.contains(&word)
        || matches!(word, "unalias" | "logout" | "suspend" | "caller" | "compgen" | "complete")
}

/// Whether a program takes a script: by its name or path.
pub(crate) fn is_shell(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| SHELLS.iter().any(|shell| name == *shell))
}

/// The programs that the rest of a line `#!…` names: the interpreter and, after `/usr/bin/env`, the program that it starts.
/// None if it is no whole path: kernels do not search, and some data begins so (`#! .`, a list of symbols for AIX's linker).
pub(crate) fn interpreters(line: &str) -> Vec<&str> {
    let mut words = line.split_whitespace();
    let Some(first) = words.next().filter(|word| word.starts_with('/')) else { return Vec::new() };
    let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
    let started = if first.ends_with("/env") { words.find(is_program) } else { None };
    std::iter::once(first).chain(started).collect()
}

/// The programs that a command runs beside its own first word: those of a script after `-c`, and the one that a wrapper is
/// to run.
pub(crate) fn programs_of(command: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let words: Vec<Word> = command.iter().map(|word| Word { text: word.clone(), known: true }).collect();
    simple_command(&words, 0, &mut found);
    if let Some(first) = command.first() {
        found.remove(first);
    }
    found
}

/// The programs of a shell string.
pub(crate) fn commands(script: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    script_commands(script, 0, &mut found);
    found
}

/// Scripts within each other; deeper ones are not looked into.
const DEPTH_MAX: u32 = 8;

/// A word, and whether it stands there as it will be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    known: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(Word),
    /// `;`, `&&`, `|`, `(` and the like; `>` stands for every redirection.
    Operator(String),
}

fn script_commands(script: &str, depth: u32, found: &mut BTreeSet<String>) {
    if depth > DEPTH_MAX {
        return;
    }
    let mut substitutions = Vec::new();
    let tokens = tokens(script, &mut substitutions);
    for inner in substitutions {
        script_commands(&inner, depth + 1, found);
    }
    let mut functions = BTreeSet::new();
    let mut named = BTreeSet::new();
    let mut command: Vec<Word> = Vec::new();
    let mut patterns = Patterns::default();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            Token::Operator(operator) if operator == ">" => drop(tokens.next()),
            Token::Operator(operator) if patterns.skips(&operator) => command.clear(),
            Token::Operator(operator) => {
                // `name ( )` makes a function of that name.
                let is_function = operator == "("
                    && command.len() == 1
                    && matches!(tokens.peek(), Some(Token::Operator(next)) if next == ")");
                match command.first() {
                    Some(name) if is_function => drop(functions.insert(name.text.clone())),
                    _ => simple_command(&command, depth, &mut named),
                }
                command.clear();
                patterns.after(&operator);
            }
            Token::Word(word) if patterns.is_pattern(&word.text) => {}
            Token::Word(word) => {
                let reserved = word.known && command.is_empty();
                let text = word.text.as_str();
                if reserved && text == "case" {
                    patterns.case();
                } else if reserved && matches!(text, "for" | "select" | "function") {
                    // Up to the end of the list, and the name, there is no command.
                    command.push(Word { text: ":".into(), known: true });
                } else if !(reserved && (BEFORE_A_COMMAND.contains(&text) || OTHER_RESERVED.contains(&text)))
                {
                    command.push(word);
                }
            }
        }
    }
    simple_command(&command, depth, &mut named);
    found.extend(named.difference(&functions).cloned());
}

/// Where in `case` statements the reader is: their patterns are no commands.
#[derive(Default)]
struct Patterns {
    /// For each open one, whether a pattern is next.
    open: Vec<bool>,
    /// Between `case` and `in`.
    subject: bool,
}

impl Patterns {
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

    /// Whether the operator is part of a pattern.
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

/// The program of a simple command, and those that it runs in turn.
fn simple_command(words: &[Word], depth: u32, found: &mut BTreeSet<String>) {
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        if is_assignment(&word.text) {
            rest = after;
            continue;
        }
        if !word.known || word.text.is_empty() {
            return;
        }
        found.insert(word.text.clone());
        let name = Path::new(&word.text).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "busybox" && after.first().is_some_and(|applet| SHELLS.contains(&applet.text.as_str())) {
            return script_after(&after[1..], depth, found);
        }
        if is_shell(&word.text) {
            return script_after(after, depth, found);
        }
        if name == "eval" {
            let text: Vec<&str> = after.iter().map(|word| word.text.as_str()).collect();
            return script_commands(&text.join(" "), depth + 1, found);
        }
        if !WRAPPERS.contains(&name.as_str()) {
            return;
        }
        // Options that take a word take a number, or are with it in one word, in nearly all uses.
        let is_argument = |word: &Word| {
            word.text.starts_with(['-', '+']) || word.text.starts_with(|c: char| c.is_ascii_digit())
        };
        // `command -v NAME` asks, and runs nothing.
        if name == "command" && after.first().is_some_and(|word| word.text.starts_with('-')) {
            return;
        }
        rest = after.get(after.iter().take_while(|word| is_argument(word)).count()..).unwrap_or_default();
    }
}

/// Of a shell's arguments: the script after an option with a `c`.
fn script_after(arguments: &[Word], depth: u32, found: &mut BTreeSet<String>) {
    for (at, word) in arguments.iter().enumerate() {
        let Some(option) = word.text.strip_prefix('-') else { return };
        if !option.starts_with('-') && option.contains('c') {
            if let Some(script) = arguments.get(at + 1).filter(|script| script.known) {
                script_commands(&script.text, depth + 1, found);
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

/// Cuts a script into words and operators; what `$(…)` and backquotes hold goes into `substitutions`.
fn tokens(script: &str, substitutions: &mut Vec<String>) -> Vec<Token> {
    let chars: Vec<char> = script.chars().collect();
    let mut cutter = Cutter { chars: &chars, at: 0, tokens: Vec::new(), word: None };
    cutter.cut(substitutions);
    cutter.tokens
}

struct Cutter<'a> {
    chars: &'a [char],
    at: usize,
    tokens: Vec<Token>,
    word: Option<Word>,
}

impl Cutter<'_> {
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
                '*' | '?' | '[' if self.word.is_some() => {
                    self.push(c);
                    self.word().known = false;
                }
                c => self.push(c),
            }
        }
        self.end_word();
    }

    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_with(|| Word { text: String::new(), known: true })
    }

    fn push(&mut self, c: char) {
        self.word().text.push(c);
    }

    fn end_word(&mut self) {
        self.tokens.extend(self.word.take().map(Token::Word));
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
        self.tokens.push(Token::Operator(text));
    }

    /// `>`, `2>&1`, `<<<`, `>|`; `<(…)` runs what is in it.
    fn redirection(&mut self, first: char, substitutions: &mut Vec<String>) {
        if self.chars.get(self.at) == Some(&'(') {
            self.at += 1;
            let inner = self.up_to_parenthesis();
            substitutions.push(inner);
            self.word().known = false;
            return;
        }
        // The number before it is no word.
        if self.word.as_ref().is_some_and(|word| word.text.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        while self.chars.get(self.at).is_some_and(|c| *c == first || matches!(c, '&' | '|' | '>' | '-')) {
            self.at += 1;
        }
        self.tokens.push(Token::Operator(">".into()));
    }

    /// After `$` or a backquote: the word is known no longer.
    fn expansion(&mut self, first: char, substitutions: &mut Vec<String>) {
        self.word().known = false;
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

    /// What stands before the parenthesis that closes the one just read; quotes hide others.
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
        commands(script).into_iter().collect::<Vec<_>>().join(" ")
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
            programs_of(&words).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of(&["sh", "-c", "fio --x | grep y"]), ["fio", "grep"]);
        assert_eq!(of(&["busybox", "sh", "-ec", "tool"]), ["tool"]);
        assert_eq!(of(&["taskset", "-c", "0", "fio", "x"]), ["fio"]);
        assert_eq!(of(&["fio", "-c", "grep y"]), [""; 0]);
        assert_eq!(of(&["bash", "/etc/script", "-c", "x"]), [""; 0]);
    }

    #[test]
    fn anything_is_cut_to_its_end() {
        for script in
            ["$(", "'", "\"$(`", "case x in", "((((", ">", "\\", "${", "$((", "f()", "case in in ;; esac"]
        {
            commands(script);
        }
        commands(&"$(".repeat(10_000));
        commands(&"eval ".repeat(10_000));
    }
}
