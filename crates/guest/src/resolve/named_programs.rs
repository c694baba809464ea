//! Finds the programs that commands, shell strings and scripts name, on the host or else as busybox
//! applets.
//!
//! Programs of this machine come first. `/bin/sh` is busybox's shell, with its applets, only if the
//! workload's `binaries` name `busybox` or if nothing in the image needs a shell.

use super::closure::FileClosure;
use super::elf;
use crate::disk;
use crate::host::{self, missing, GUEST_PATH};
use crate::programs;
use crate::reader::is_made;
use crate::shell::{self, NamedProgram};
use crate::tree::TreeNode;
use crate::workload::{self, Workload};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const BUSYBOX: &str = "busybox";

/// Largest part of a script to search for programs, in bytes.
const SCRIPT_MAX: u64 = 256 << 10;

/// Largest number of scripts to search for one image.
const SCRIPTS_MAX: usize = 64;

/// C library functions by which a program starts others.
const STARTING_CALLS: [&str; 11] = [
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execvp",
    "execvpe",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "system",
];

/// Utilities to add for programs that may start them under names that we cannot see: those of
/// POSIX.1-2024 (Shell and Utilities, 4) except development tools, and others that scripts take for
/// granted.
#[rustfmt::skip]
const UTILITIES: [&str; 109] = [
    "awk", "base64", "basename", "bc", "bzip2", "cat", "chgrp", "chmod", "chown", "cksum", "cmp",
    "comm", "cp", "cpio", "csplit", "cut", "date", "dd", "df", "diff", "dirname", "du", "echo", "ed",
    "egrep", "env", "expand", "expr", "factor", "false", "fgrep", "file", "find", "fold", "getconf",
    "getopt", "grep", "groups", "gunzip", "gzip", "head", "hostname", "iconv", "id", "install", "join",
    "kill", "link", "ln", "locale", "logger", "logname", "ls", "md5sum", "mkdir", "mkfifo", "mknod",
    "mktemp", "more", "mv", "nice", "nl", "nohup", "nproc", "od", "paste", "patch", "pathchk", "pgrep",
    "pkill", "pr", "printenv", "printf", "ps", "pwd", "readlink", "realpath", "renice", "rm", "rmdir",
    "sed", "seq", "setsid", "sha1sum", "sha256sum", "shuf", "sleep", "sort", "split", "stat", "strings",
    "stty", "sync", "tac", "tail", "tar", "tee", "test", "timeout", "touch", "tr", "true", "truncate",
    "uname", "unexpand", "uniq", "unlink", "wc", "xargs",
];

/// Adds the programs that a workload names to the files. Returns the names of kerntune's own.
pub(super) fn find(closure: &mut FileClosure, workload: &Workload) -> Result<BTreeSet<&'static str>> {
    let mut named = NamedPrograms::new(closure, workload)?;
    for word in &workload.binaries {
        named.needed(word, "`binaries` of the workload")?;
    }
    for (path, interpreters, _) in workload.scripts() {
        for interpreter in interpreters {
            named.needed(interpreter, &text_place(path))?;
        }
    }
    for (place, command) in &workload.commands() {
        if let Some(word) = command.first() {
            named.needed(word, place)?;
        }
    }
    named.named_by_commands()?;
    let of_disk = workload.disk.iter().map(|_| disk::PROGRAM);
    for name in workload.programs.iter().map(String::as_str).chain(of_disk) {
        if !named.own(name) {
            return Err(missing(name, "`programs` of the workload"));
        }
    }
    Ok(named.ours)
}

struct NamedPrograms<'c> {
    closure: &'c mut FileClosure,
    workload: &'c Workload,
    /// True if `/bin/sh` is this machine's; programs are then this machine's too.
    host_shell: bool,
    ours: BTreeSet<&'static str>,
}

impl<'c> NamedPrograms<'c> {
    /// Begins with the shell.
    fn new(closure: &'c mut FileClosure, workload: &'c Workload) -> Result<Self> {
        let host_shell = wants_host_shell(workload) && host::find_program("sh").is_some();
        let mut named = Self { closure, workload, host_shell, ours: BTreeSet::new() };
        match host_shell {
            true => named.host_program("sh", "the guest's shell")?,
            false => named.busybox_shell()?,
        }
        Ok(named)
    }

    /// Adds one of kerntune's own programs; returns false if `name` is none.
    fn own(&mut self, name: &str) -> bool {
        let found = programs::names().find(|known| *known == name);
        self.ours.extend(found);
        found.is_some()
    }

    /// Adds a program that must exist.
    fn needed(&mut self, word: &str, needed_by: &str) -> Result<()> {
        if self.own(word) || self.workload.copies.contains_key(Path::new(word)) {
            return Ok(());
        }
        if let Some(path) = self.relative(word) {
            return self.closure.program(&path, needed_by).map(drop);
        }
        if self.host_shell && host::find_program(word).is_none() && self.applet(word)? {
            return Ok(());
        }
        self.host_program(word, needed_by)
    }

    /// Adds the programs that commands and scripts name beyond the first words of commands.
    fn named_by_commands(&mut self) -> Result<()> {
        let sh_is_busybox = !self.host_shell && self.sh_is_busybox();
        let mut named: Vec<(String, NamedProgram)> = Vec::new();
        let workload = self.workload;
        let commands = workload.commands();
        for (place, command) in &commands {
            let programs = shell::programs_of(command, sh_is_busybox);
            named.extend(programs.into_iter().map(|program| (place.clone(), program)));
        }
        for (path, interpreters, text) in workload.scripts() {
            if interpreters.iter().any(|interpreter| shell::is_shell(interpreter)) {
                let programs =
                    shell::commands(text, sh_is_busybox && interpreters.iter().all(|name| is_sh(name)));
                named.extend(programs.into_iter().map(|program| (text_place(path), program)));
            }
        }
        for (place, program) in &named {
            self.named(program, place)?;
        }
        if self.host_shell {
            let mut files: Vec<PathBuf> = Vec::new();
            for (_, command) in &commands {
                files.extend(
                    command.first().and_then(|word| self.relative(word).or_else(|| host::find_program(word))),
                );
                let directory = self.workload.context.as_ref().and_then(|context| context.directory.clone());
                let directory = directory.unwrap_or_else(|| "/".into());
                files.extend(shell::script_files(command).iter().map(|file| directory.join(file)));
            }
            files.extend(named.iter().filter_map(|(_, program)| host::find_program(&program.word)));
            self.named_by_scripts(files)?;
            self.utilities()?;
        }
        Ok(())
    }

    /// Resolves a relative path from the directory in which the command runs.
    fn relative(&self, word: &str) -> Option<PathBuf> {
        relative_program(self.workload, word)
    }

    /// Adds the programs that host scripts name, and those that these scripts name in turn.
    fn named_by_scripts(&mut self, mut files: Vec<PathBuf>) -> Result<()> {
        let mut seen = BTreeSet::new();
        while let Some(file) = files.pop() {
            if seen.len() == SCRIPTS_MAX || !seen.insert(file.clone()) {
                continue;
            }
            let Some(text) = script(&file) else { continue };
            for program in shell::commands(&text, false) {
                // Much of a foreign script is never run, so only existing programs matter.
                if let Some(path) = host::find_program(&program.word) {
                    self.named(&program, &file.display().to_string())?;
                    files.push(path);
                }
            }
        }
        Ok(())
    }

    /// Adds this machine's utilities.
    fn utilities(&mut self) -> Result<()> {
        for word in UTILITIES {
            if host::find_program(word).is_some() {
                self.named(&NamedProgram { word: word.into(), by_busybox: false }, "a utility")?;
            }
        }
        Ok(())
    }

    /// Adds a program that a shell string names, unless the shell that starts it has it built in.
    fn named(&mut self, program: &NamedProgram, place: &str) -> Result<()> {
        let word = program.word.as_str();
        let is_builtin = shell::is_builtin(word) && !self.host_shell;
        if self.own(word) || is_builtin {
            return Ok(());
        }
        if word.contains('/') {
            // Relative paths, and missing files in the guest's own directories, are created at run
            // time or belong to the command.
            let path = Path::new(word);
            let made = !word.starts_with('/') || is_made(path) && path.symlink_metadata().is_err();
            if made || self.closure.files.tree.nodes.contains_key(Path::new(word)) {
                return Ok(());
            }
        } else if program.by_busybox && host::busybox_applets().contains(word) {
            return Ok(());
        }
        if host::find_program(word).is_none() {
            if !shell::is_builtin(word) && !self.applet(word)? {
                self.closure.notes.push(format!("warning: {}", unknown_in_shell(word, place)));
            }
            return Ok(());
        }
        // A program that is only named may never run, so missing needs are a warning.
        match self.host_program(word, place) {
            Err(error @ (Error::Program { .. } | Error::Library { .. } | Error::Elf { .. })) => {
                self.closure.warn_lacking(&error);
                Ok(())
            }
            other => other,
        }
    }

    /// Adds a host program so that the guest finds it by this word.
    fn host_program(&mut self, word: &str, needed_by: &str) -> Result<()> {
        let closure = &mut *self.closure;
        if GUEST_PATH.iter().any(|dir| closure.files.tree.nodes.contains_key(&Path::new(dir).join(word))) {
            return Ok(());
        }
        let path = host::find_program(word).ok_or_else(|| missing(word, needed_by))?;
        closure.program(&path, needed_by)?;
        let in_path = path.parent().is_some_and(|dir| GUEST_PATH.iter().any(|known| dir == Path::new(known)));
        if let Some(name) = path.file_name().filter(|_| !in_path) {
            closure.files.put(&Path::new("/kt/bin").join(name), TreeNode::Link { target: path.clone() })?;
        }
        Ok(())
    }

    /// Lets busybox serve a program that this machine lacks, with a note; returns false if it
    /// cannot.
    fn applet(&mut self, word: &str) -> Result<bool> {
        if !host::busybox_applets().contains(word) {
            return Ok(false);
        }
        let Some(busybox) = host::find_program(BUSYBOX) else { return Ok(false) };
        let real = self.closure.program(&busybox, word)?;
        self.closure.files.put(&Path::new("/kt/bin").join(word), TreeNode::Link { target: real })?;
        self.closure.notes.push(format!("`{word}` is busybox's: this machine has no other"));
        Ok(true)
    }

    /// Adds busybox as /bin/sh for scripts, if the host has it.
    fn busybox_shell(&mut self) -> Result<()> {
        if let Some(busybox) = host::find_program(BUSYBOX) {
            let real = self.closure.program(&busybox, "the guest's shell")?;
            self.closure.files.put(Path::new("/bin/sh"), TreeNode::Link { target: real })?;
        }
        Ok(())
    }

    /// Checks whether the guest's `sh` is busybox, which has its applets built in.
    fn sh_is_busybox(&self) -> bool {
        ["/bin/sh", "/usr/bin/sh"].iter().any(|path| {
            match self.closure.files.tree.nodes.get(Path::new(path)) {
                Some(TreeNode::Link { target }) => target.ends_with(BUSYBOX),
                _ => false,
            }
        })
    }
}

/// Checks whether `sh` must be this machine's: something needs a shell, or may start one, and
/// `binaries` do not name busybox.
fn wants_host_shell(workload: &Workload) -> bool {
    if workload.binaries.iter().any(|word| word == BUSYBOX) {
        return false;
    }
    let names_shell = |command: &crate::CommandLine| {
        command.first().is_some_and(|first| shell::is_shell(first))
            || shell::programs_of(command, false)
                .iter()
                .any(|named| !named.by_busybox && shell::is_shell(&named.word))
    };
    let mut commands = workload.commands().into_iter().map(|(_, command)| command);
    let mut scripts = workload.scripts();
    commands.any(names_shell)
        || scripts.any(|(_, interpreters, _)| interpreters.iter().any(|name| shell::is_shell(name)))
        || workload.context.is_some()
            && workload.measured.steps.iter().any(|step| starts_programs(workload, &step.command))
}

/// Checks whether a command's program can start others: a script, or a program with one of
/// [`STARTING_CALLS`].
fn starts_programs(workload: &Workload, command: &crate::CommandLine) -> bool {
    let Some(first) = command.first() else { return false };
    if programs::named(first).is_some() {
        return false;
    }
    let Some(path) = relative_program(workload, first).or_else(|| host::find_program(first)) else {
        return false;
    };
    let Ok(bytes) = std::fs::read(&path) else { return false };
    match elf::is_elf(&bytes) {
        true => bytes
            .split(|byte| *byte == 0)
            .any(|name| STARTING_CALLS.iter().any(|call| name == call.as_bytes())),
        false => bytes.starts_with(b"#!"),
    }
}

/// Resolves a program by a relative path.
fn relative_program(workload: &Workload, word: &str) -> Option<PathBuf> {
    let directory = workload.context.as_ref()?.directory.as_ref()?;
    let is_relative = word.contains('/') && !word.starts_with('/');
    is_relative.then(|| directory.join(word)).filter(|path| path.is_file())
}

/// Returns the text of a host file if a shell runs it.
pub(crate) fn script(path: &Path) -> Option<String> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path).ok()?;
    file.by_ref().take(2).read_to_end(&mut bytes).ok()?;
    if elf::is_elf(&bytes) || bytes.starts_with(b"\x7f") {
        return None;
    }
    file.take(SCRIPT_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let interpreters = workload::interpreters(&text);
    let by_shell = interpreters.is_empty() || interpreters.iter().any(|name| shell::is_shell(name));
    by_shell.then_some(text)
}

fn is_sh(interpreter: &str) -> bool {
    !shell::is_shell(interpreter) || matches!(interpreter.rsplit('/').next(), Some("sh" | "ash"))
}

/// Names one of the workload's texts in messages.
pub(crate) fn text_place(path: &Path) -> String {
    format!("`texts` of the workload ({})", path.display())
}

/// Warning about a word of a shell string that is no known program.
pub(crate) fn unknown_in_shell(word: &str, place: &str) -> String {
    format!(
        "the shell string of {place} names `{word}`, which is no program of this machine, of busybox or of the shell's own: if it is \
         run, the guest will not have it; {}",
        host::missing_help(word)
    )
}
