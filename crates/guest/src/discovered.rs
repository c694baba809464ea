//! Files that a command used in a first run under this machine's kernel.
//!
//! `embedded/guest/contain/discover.c` runs the command and writes the lines that are parsed here.

use crate::skeleton::{HIDDEN, TMP};
use crate::{programs, Error, Result, SourceRoot};
use kerntune_work::{ContentHash, IoContext};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Uses of a path; the sum of all that the command did with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathUses {
    /// Opened so that contents may be read.
    pub read: bool,
    /// Executed, or tried to be.
    pub executed: bool,
    /// Looked at: type, mode, size, or only that it is there.
    pub looked_at: bool,
    /// Its names were listed.
    pub listed: bool,
    /// Made, or emptied, by the command itself.
    pub written: bool,
    /// Connected to as a socket.
    pub socket: bool,
    /// Hidden from the command as a secret.
    pub secret: bool,
}

/// End of the first run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DiscoveryEnd {
    /// Ended when its time was up; what it used until then is known.
    #[default]
    TimeUp,
    /// Ended by itself with this status.
    Exited(i32),
    /// Ended by this signal.
    Signaled(i32),
}

/// Paths that a command used, sorted, so that the same uses give the same image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiscoveredFiles {
    /// Root that the command saw, and that its files are copied from; set by the caller.
    pub root: SourceRoot,
    /// Absolute paths inside as the command gave them, and those that links led to; those of no entry
    /// among them.
    pub paths: BTreeMap<PathBuf, PathUses>,
    /// Directories of file systems that the first run could not have, with the reason.
    pub hidden: Vec<String>,
    /// End of the run.
    pub end: DiscoveryEnd,
    /// Files, and directories with all in them, that the guest does not have because kerntune changes
    /// them; set by the caller.
    pub excluded: Vec<PathBuf>,
    /// True if the guest has the contents of all files that the command looked at, not only of those
    /// that it read; set by the caller.
    pub with_all_contents: bool,
}

impl DiscoveredFiles {
    /// Parses the lines of a first run.
    ///
    /// # Errors
    /// [`Error::Discovery`] with a line that has no known form.
    pub fn parse(text: &str) -> Result<Self> {
        let mut found = Self::default();
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            let number = || rest.parse().map_err(|_| unknown(line));
            match kind {
                "exit" => found.end = DiscoveryEnd::Exited(number()?),
                "signal" => found.end = DiscoveryEnd::Signaled(number()?),
                "hidden" => found.hidden.push(rest.to_owned()),
                _ => {
                    let path =
                        unescape(rest).filter(|path| path.is_absolute()).ok_or_else(|| unknown(line))?;
                    let uses = found.paths.entry(path).or_default();
                    let used = match kind {
                        "r" => &mut uses.read,
                        "x" => &mut uses.executed,
                        "l" => &mut uses.looked_at,
                        "d" => &mut uses.listed,
                        "w" => &mut uses.written,
                        "s" => &mut uses.socket,
                        "-" => &mut uses.secret,
                        _ => return Err(unknown(line)),
                    };
                    *used = true;
                }
            }
        }
        Ok(found)
    }

    /// Returns whether the command could be started at all.
    pub fn started(&self) -> bool {
        !matches!(self.end, DiscoveryEnd::Exited(126 | 127))
    }

    /// Counts files inside, and all in directories, as read, secrets among them.
    ///
    /// # Errors
    /// A path that the root does not have.
    pub fn read_all(&mut self, files: &[PathBuf]) -> Result<()> {
        let mut open = files.to_vec();
        while let Some(path) = open.pop() {
            let lacks = || Error::OtherRoot {
                root: self.root.directory().to_owned(),
                what: format!("it has no file {}", path.display()),
            };
            let real = self.root.resolve(&path).map_err(|_| lacks())?;
            let at = self.root.locate(&real).at("look at", &real)?;
            if at.is_dir() {
                for entry in at.read_dir().at("list", &at)? {
                    let entry = entry.at("list", &at)?;
                    // What a link leads to is not part of the directory.
                    let child = path.join(entry.file_name());
                    match entry.file_type().at("look at", &child)?.is_symlink() {
                        true => self.paths.entry(child).or_default().looked_at = true,
                        false => open.push(child),
                    }
                }
            }
            let uses = self.paths.entry(path).or_default();
            (uses.read, uses.listed, uses.secret) = (true, at.is_dir(), false);
            // A link may be known by another name.
            self.paths.entry(real).or_default().secret = false;
        }
        Ok(())
    }

    /// Sentences about what the guest will lack.
    pub(crate) fn notes(&self) -> Vec<String> {
        let of = |chosen: fn(&PathUses) -> bool| -> Vec<String> {
            let paths = self.paths.iter().filter(|(path, uses)| chosen(uses) && self.root.has(path));
            paths.map(|(path, _)| path.display().to_string()).collect()
        };
        let mut notes = Vec::new();
        let secrets = of(|uses| uses.secret);
        if !secrets.is_empty() {
            notes.push(format!("left out as secrets: {} (`--file PATH` packs one)", secrets.join(", ")));
        }
        // What the command made itself is in the guest, too.
        let sockets = of(|uses| uses.socket && !uses.written);
        if !sockets.is_empty() {
            notes.push(format!("sockets of this machine are not in the guest: {}", sockets.join(", ")));
        }
        if !self.hidden.is_empty() {
            notes.push(format!("file systems that the guest will not have: {}", self.hidden.join(", ")));
        }
        if self.end == DiscoveryEnd::TimeUp {
            notes.push(
                "the command did not end in its first run on this machine: the guest has what it used until then"
                    .into(),
            );
        }
        notes
    }

    /// Returns the files of this machine that the command used, for `files` of a workload file: also
    /// those in directories that it listed, and directories that are empty. Secrets are not among
    /// them, nor what is the guest's own.
    pub fn used_files(&self) -> Vec<PathBuf> {
        let names =
            |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let listed = self.paths.iter().filter(|(_, uses)| uses.listed).flat_map(|(path, _)| names(path));
        let is_wanted = |path: &PathBuf| {
            // The other name of a file below a linked directory is a path of its own.
            let is_real =
                path.parent().is_some_and(|parent| parent.canonicalize().is_ok_and(|real| real == parent));
            let is_own = HIDDEN.iter().any(|own| path.starts_with(own)) || path == Path::new(TMP);
            let is_excluded = self.excluded.iter().any(|excluded| path.starts_with(excluded));
            let uses = self.paths.get(path).copied().unwrap_or_default();
            let is_used = !uses.secret && uses != PathUses { written: true, ..PathUses::default() };
            let is_empty = path.is_dir() && !path.is_symlink() && names(path).next().is_none();
            is_real && !is_own && !is_excluded && is_used && (path.is_file() || is_empty)
        };
        let all: BTreeSet<PathBuf> = self.paths.keys().cloned().chain(listed).filter(is_wanted).collect();
        all.into_iter().collect()
    }

    /// Checks whether a line of a program names a path that the command looked for and the guest lacks,
    /// by the end of the path.
    pub fn names_absent(&self, line: &str) -> bool {
        let is_between = |c: char| c.is_whitespace() || "'\"`‘’:,()".contains(c);
        let mut words = line.split(is_between).filter(|word| !word.is_empty()).peekable();
        words.peek().is_some()
            && self.paths.iter().any(|(path, uses)| {
                (uses.secret || uses.socket || !self.root.has(path))
                    && words.clone().any(|word| path.ends_with(word))
            })
    }

    /// Names of kerntune's own programs that the command looked for on this machine, in vain.
    pub(crate) fn own_programs(&self) -> impl Iterator<Item = &'static str> + '_ {
        let looked_for = self
            .paths
            .iter()
            .filter(|(path, uses)| (uses.executed || uses.looked_at) && !self.root.has(path));
        looked_for
            .filter_map(|(path, _)| path.file_name()?.to_str())
            .filter_map(|name| Some(programs::named(name)?.name))
    }

    /// Total size in bytes of the files whose contents are packed.
    pub(crate) fn bytes(&self) -> u64 {
        let packed = self
            .paths
            .iter()
            .filter(|(_, uses)| uses.read || uses.executed || (self.with_all_contents && uses.looked_at));
        let sizes =
            packed.filter_map(|(path, _)| self.root.symlink_metadata(path).ok().filter(Metadata::is_file));
        sizes.map(|meta| meta.len()).fold(0, u64::saturating_add)
    }

    /// Hash of everything that decides what is packed; contents are hashed with the image, so the root
    /// may be anywhere.
    pub(crate) fn content_hash(&self) -> String {
        let Self { root: _, paths, hidden, end, excluded, with_all_contents } = self;
        let mut hash = ContentHash::new("discovered/1")
            .field("end", format!("{end:?}"))
            .list("excluded", excluded.iter().map(|path| path.as_os_str().as_encoded_bytes()))
            .field("with all contents", with_all_contents.to_string());
        // Processes and temporary files have other names each time, and the guest has its own.
        let is_own = |path: &Path| HIDDEN.iter().any(|own| path.starts_with(own));
        for (path, uses) in paths.iter().filter(|(path, _)| !is_own(path) && self.root.has(path)) {
            hash = hash.field("path", path.as_os_str().as_encoded_bytes()).field("uses", format!("{uses:?}"));
        }
        hash.list("hidden", hidden).finish()
    }
}

fn unknown(line: &str) -> Error {
    Error::Discovery { line: line.chars().take(200).collect() }
}

/// Decodes `\xHH`; `None` if a backslash stands before anything else.
fn unescape(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('\\');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let digits = part.strip_prefix('x')?.get(..2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(part.get(3..)?.as_bytes());
    }
    Some(Path::new(&OsString::from_vec(bytes)).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_uses_and_everything_else_is_refused() {
        let found = DiscoveredFiles::parse(
            "l /bin/sh\nx /bin/sh\nr /a\\x20b\\x5c\\xff\nhidden /mnt: no\n- /etc/shadow\nexit 3\n",
        )
        .unwrap();
        let sh = found.paths[Path::new("/bin/sh")];
        assert!(sh.executed && sh.looked_at && !sh.read);
        let odd = PathBuf::from(OsString::from_vec(b"/a b\\\xff".to_vec()));
        assert!(found.paths[&odd].read && found.paths[Path::new("/etc/shadow")].secret);
        assert_eq!((found.end, found.hidden.len()), (DiscoveryEnd::Exited(3), 1));
        assert!(found.started() && !DiscoveredFiles::parse("exit 127").unwrap().started());
        for bad in ["", "r", "r relative", "q /a", "r /a\\", "r /a\\x1", "r /a\\n", "exit x", "r /\\x1ü"] {
            let error = DiscoveredFiles::parse(&format!("{bad}\n")).unwrap_err().to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
        }
        assert_eq!(DiscoveredFiles::parse("").unwrap().end, DiscoveryEnd::TimeUp);
    }

    #[test]
    fn a_line_is_about_what_the_guest_lacks_if_it_names_such_a_path() {
        let told = "l /usr/bin/no-such-program\nr /no/such/file\n- /etc/passwd\nr /etc/hostname\n";
        let found = DiscoveredFiles::parse(told).unwrap();
        for line in [
            "sh: 1: no-such-program: not found",
            "cat: such/file: No such file or directory",
            "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'",
            "cat: /etc/passwd: No such file or directory",
        ] {
            assert!(found.names_absent(line), "{line}");
        }
        for line in
            ["/etc/hostname: not found", "-say that something was not found", "a thing: not found", ""]
        {
            assert!(!found.names_absent(line), "{line}");
        }
    }

    #[test]
    fn used_files_are_those_that_were_seen_and_empty_directories() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = dir.path();
        fs::create_dir_all(at.join("sub/empty")).unwrap();
        for name in ["read", "not", "key", "sub/listed"] {
            fs::write(at.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("read", at.join("link")).unwrap();
        let told = "r @/link\nr @/read\nd @/sub\n- @/key\nl @\nr @/gone\nw @/not\nr /proc/self/maps\n";
        let found = DiscoveredFiles::parse(&told.replace('@', at.to_str().unwrap())).unwrap();
        let expected = ["link", "read", "sub/empty", "sub/listed"].map(|name| at.join(name));
        assert_eq!(found.used_files(), expected);
    }

    #[test]
    fn sockets_that_the_command_makes_are_not_said_to_be_missing() {
        let socket = |told: &str| DiscoveredFiles::parse(told).unwrap().notes()[0].clone();
        assert!(socket("s /etc/hostname\n").contains("sockets of this machine"));
        assert!(!socket("w /etc/hostname\ns /etc/hostname\n").contains("socket"));
    }

    #[test]
    fn programs_of_ours_are_found_by_their_names() {
        let found =
            DiscoveredFiles::parse("l /usr/bin/rr\nx /no/kt-mark\nr /no/ipc\nx /no/such\nx /bin/sh\n")
                .unwrap();
        let own: Vec<&str> = found.own_programs().collect();
        assert!(own.contains(&"kt-mark") && !own.contains(&"ipc"), "{own:?}");
    }
}
