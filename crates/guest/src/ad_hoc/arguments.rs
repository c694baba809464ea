//! Finds the host files that a command's arguments name.

use super::MEMORY_MAX_MB;
use crate::limits::too_large_for;
use crate::resolve::script;
use crate::shell::{self, FileWord};
use crate::skeleton::{HIDDEN, TMP};
use crate::{glob, Error, Result};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Separators of words in a text that is no shell string.
const IN_A_TEXT: [char; 13] = [' ', '\t', '\n', '\'', '"', '|', '<', '>', ';', '(', ')', '&', '`'];

/// The host files that a command names.
pub(super) struct ArgumentFiles {
    /// Name of the command for messages.
    name: String,
    /// Directory at which relative names start.
    directory: PathBuf,
    /// Files, links (also to directories) and empty directories.
    pub files: Vec<PathBuf>,
    /// Total size of all files.
    pub bytes: u64,
    /// Sentences about what the guest will not have.
    pub notes: Vec<String>,
    /// Sentences about what is not on this machine either.
    pub missing: Vec<String>,
    /// True if a relative path was named.
    pub relative: bool,
}

impl ArgumentFiles {
    pub fn of(command: &[String], directory: &Path) -> Result<Self> {
        let mut arguments = Self::new(super::name_of(command), directory);
        if let Some(program) = command.first().filter(|word| word.contains('/') && !word.starts_with('/')) {
            arguments.whole(program)?;
        }
        let strings = shell::strings_of(command);
        for word in command.iter().skip(1).filter(|word| !strings.contains(word)) {
            match word.contains(char::is_whitespace) && !arguments.is_here(word) {
                // A text, or a program in another language: look for paths in it.
                true => word
                    .split(IN_A_TEXT)
                    .filter(|word| word.starts_with('/'))
                    .try_for_each(|word| arguments.word(word, false))?,
                false => arguments.word(word, true)?,
            }
        }
        for string in &strings {
            arguments.string(string, true)?;
        }
        let program = command.first().into_iter().cloned();
        for file in shell::script_files(command).into_iter().chain(program.filter(|word| word.contains('/')))
        {
            if let Some(text) = script(&arguments.directory.join(file)) {
                arguments.string(&text, false)?;
            }
        }
        Ok(arguments)
    }

    pub(super) fn new(name: String, directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self {
            name,
            directory,
            files: Vec::new(),
            bytes: 0,
            notes: Vec::new(),
            missing: Vec::new(),
            relative: false,
        }
    }

    /// Adds the files that a shell string names, with patterns expanded.
    fn string(&mut self, string: &str, warns: bool) -> Result<()> {
        for FileWord { text, pattern, is_output } in shell::file_words(string) {
            let expanded = pattern.map(|pattern| glob::expand(&pattern, &self.directory));
            match expanded {
                Some(paths) if !paths.is_empty() => {
                    for path in paths {
                        self.whole(&path.to_string_lossy())?;
                    }
                }
                Some(_) if warns && looks_like_path(&text) => {
                    self.missing
                        .push(format!("`{text}` matches no file of this machine: the guest will have none"));
                }
                Some(_) => {}
                None => self.word(&text, warns && !is_output)?,
            }
        }
        Ok(())
    }

    /// Adds a word that is a path or contains one: `--directory=/srv`, `if=/etc/hosts`, `-C/srv`,
    /// `/srv/a:/srv/b`.
    fn word(&mut self, word: &str, warns: bool) -> Result<()> {
        if self.is_here(word) {
            return self.whole(word);
        }
        let mut parts = vec![word];
        parts.extend(
            [word.split_once('='), word.rsplit_once('=')].into_iter().flatten().map(|(_, value)| value),
        );
        let mut option = word.chars();
        if (option.next(), option.next().is_some_and(char::is_alphanumeric)) == (Some('-'), true) {
            parts.push(option.as_str());
        }
        if let Some(part) = parts.iter().copied().find(|part| !part.is_empty() && self.is_here(part)) {
            return self.whole(part);
        }
        let listed: BTreeSet<&str> = parts
            .iter()
            .flat_map(|part| part.split([':', ',']))
            .filter(|part| part.starts_with('/') && self.is_here(part))
            .collect();
        listed.iter().try_for_each(|part| self.whole(part))?;
        if warns && listed.is_empty() && looks_like_path(word) {
            self.missing.push(format!("`{word}` is not on this machine: the guest will not have it"));
        }
        Ok(())
    }

    fn is_here(&self, word: &str) -> bool {
        !word.is_empty() && self.directory.join(word).symlink_metadata().is_ok()
    }

    /// Adds the directory at which relative names start, without what is in it, as the command's.
    pub fn directory(&mut self) {
        let directory = self.directory.as_path();
        let is_there = [TMP, "/"].map(Path::new).contains(&directory)
            || HIDDEN.iter().any(|own| directory.starts_with(own));
        if !is_there && directory.is_dir() {
            self.files.push(self.directory.clone());
        }
        self.relative = true;
    }

    /// Adds an existing path.
    pub fn whole(&mut self, word: &str) -> Result<()> {
        let named = Path::new(word);
        let path = match named.is_absolute() {
            true => named.to_owned(),
            false => absolute(&self.directory, named),
        };
        let path = path.as_path();
        if let Some(own) = HIDDEN.iter().find(|own| path.starts_with(own)) {
            if !["/dev", "/proc", "/sys"].contains(own) && path != Path::new(own) {
                self.notes.push(format!(
                    "`{word}` is not in the guest, whose {own} is its own: keep it in another directory"
                ));
            }
            return Ok(());
        }
        if path.parent().is_none() || path == Path::new(TMP) || path.symlink_metadata().is_err() {
            return Ok(());
        }
        let (before, bytes) = (self.files.len(), self.bytes);
        let mut left_out = 0u64;
        match self.walk(path, path, &mut left_out) {
            Ok(()) => {}
            // A word that happens to be a directory's name need not mean the directory.
            Err(Error::TooLarge { .. }) if !word.contains('/') && word != "." && word != ".." => {
                self.files.truncate(before);
                self.bytes = bytes;
                self.notes.push(format!(
                    "`{word}` is a directory here and is not packed: with it there would be more than {} MiB of files",
                    MEMORY_MAX_MB / 2
                ));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.relative |= !named.is_absolute();
        if left_out > 0 {
            self.notes.push(format!(
                "of `{word}` {} files and links are packed; {left_out} are not: they cannot be read, or lead to nothing or elsewhere",
                self.files.len() - before
            ));
        }
        Ok(())
    }

    fn walk(&mut self, root: &Path, path: &Path, left_out: &mut u64) -> Result<()> {
        let Ok(meta) = path.metadata() else {
            *left_out += 1;
            return Ok(());
        };
        let is_link = path.is_symlink();
        if meta.is_file() && std::fs::File::open(path).is_ok() {
            self.files.push(path.to_owned());
            return self.add(meta.len());
        }
        // A link to a directory that is packed anyway is one more entry; any other could bring a
        // whole disk.
        if is_link && path != root {
            match path.canonicalize() {
                Ok(target) if meta.is_dir() && target.starts_with(root) => self.files.push(path.to_owned()),
                _ => *left_out += 1,
            }
            return Ok(());
        }
        let Some(entries) = meta.is_dir().then(|| std::fs::read_dir(path).ok()).flatten() else {
            *left_out += 1;
            return Ok(());
        };
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        if entries.is_empty() {
            self.files.push(path.to_owned());
        }
        entries.sort();
        entries.iter().try_for_each(|entry| self.walk(root, entry, left_out))
    }

    pub(super) fn add(&mut self, bytes: u64) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        match too_large_for(self.bytes, MEMORY_MAX_MB) {
            None => Ok(()),
            Some(_) => Err(Error::TooLarge {
                workload: self.name.clone(),
                problem: format!(
                    "its arguments name more than {} MiB of files; name less of them, or write a workload file (docs/profiler.md)",
                    MEMORY_MAX_MB / 2
                ),
            }),
        }
    }
}

/// Makes a path absolute without resolving `..`, which means something else above a link.
fn absolute(directory: &Path, path: &Path) -> PathBuf {
    let joined = directory.join(path);
    if !path.components().any(|component| component == Component::ParentDir) {
        return joined.components().collect();
    }
    match (joined.parent().and_then(|parent| parent.canonicalize().ok()), joined.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => joined.canonicalize().unwrap_or(joined),
    }
}

/// Checks whether a word can only be a path: its first directory exists here.
fn looks_like_path(word: &str) -> bool {
    let mut parts = Path::new(word).components();
    let (Some(Component::RootDir), Some(Component::Normal(first)), Some(_)) =
        (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let top = Path::new("/").join(first);
    top.is_dir() && top != Path::new(TMP) && !HIDDEN.iter().any(|own| top == Path::new(own))
}
