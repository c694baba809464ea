//! Finds host programs together with all that they need to run.

use super::elf::{self, ElfNeeds};
use super::host_tree::HostTree;
use super::libraries::{handed_down, LibraryPaths};
use crate::host::{self, missing};
use crate::tree::TreeNode;
use crate::{shell, Error, Result};
use kerntune_work::IoContext;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Host files that are closed under the needs of the programs among them.
pub(crate) struct FileClosure {
    pub files: HostTree,
    /// Directories that the guest's LD_LIBRARY_PATH must contain.
    pub library_dirs: BTreeSet<PathBuf>,
    /// Sentences for the user about what the image has only in part or not at all, besides
    /// [`FileClosure::lacking`].
    pub notes: Vec<String>,
    /// Warnings about libraries that were not found, with the library's name.
    lacking: BTreeMap<String, String>,
    /// Names of the files that the workload copies.
    copied: BTreeSet<String>,
    libraries: LibraryPaths,
    visited: HashSet<PathBuf>,
    /// Directories whose contents are in `files`.
    listed: HashSet<PathBuf>,
    kinds: HashMap<PathBuf, Option<(u8, u16)>>,
}

/// Package files for a system manager, which the guest does not have.
const NOT_FOR_THE_GUEST: [&str; 14] = [
    "/etc/init.d",
    "/etc/default",
    "/etc/logrotate.d",
    "/etc/cron.d",
    "/etc/cron.daily",
    "/etc/apparmor.d",
    "/etc/systemd",
    "/etc/pam.d",
    "/lib/systemd",
    "/usr/lib/systemd",
    "/usr/lib/tmpfiles.d",
    "/usr/lib/sysusers.d",
    "/usr/lib/debug",
    "/usr/lib/udev",
];

/// Bytes to read of a script's first line; more than the kernel reads.
const SCRIPT_LINE: u64 = 4096;

const PROGRAM_DIRS: [&str; 6] =
    ["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin"];

impl FileClosure {
    /// Creates an empty closure, which searches libraries as this machine does.
    pub fn of_host() -> Self {
        Self {
            files: HostTree::default(),
            library_dirs: BTreeSet::new(),
            notes: Vec::new(),
            lacking: BTreeMap::new(),
            copied: BTreeSet::new(),
            libraries: LibraryPaths::of_host(),
            visited: HashSet::new(),
            listed: HashSet::new(),
            kinds: HashMap::new(),
        }
    }

    /// Adds an executable, its interpreter and its libraries. Returns its path without links.
    pub fn program(&mut self, path: &Path, needed_by: &str) -> Result<PathBuf> {
        // ld.so takes a program's $ORIGIN from the file that links lead to.
        let real = self.files.take(path, needed_by)?;
        self.object(&real, needed_by, &[])
    }

    /// Adds a file, or a directory with its contents; executables and libraries with what they
    /// need.
    pub fn file(&mut self, path: &Path, needed_by: &str) -> Result<()> {
        let real = self.files.take(path, needed_by)?;
        if real.is_dir() {
            // A link may lead to a directory that is packed already, or being packed.
            if !self.listed.insert(real.clone()) {
                return Ok(());
            }
            for entry in std::fs::read_dir(&real).at("list", &real)? {
                let path = entry.at("list", &real)?.path();
                if leads_nowhere(&path) {
                    self.files.link(&path, needed_by)?;
                    continue;
                }
                if path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
                    self.notes.push(format!(
                        "warning: {} is not packed: it is neither a file nor a directory",
                        path.display()
                    ));
                    continue;
                }
                self.file(&path, needed_by)?;
            }
            return Ok(());
        }
        self.contents(&real, needed_by)
    }

    /// Adds a file, a link with its target, or a directory without its contents.
    pub fn entry(&mut self, path: &Path, needed_by: &str) -> Result<()> {
        let real = self.files.take(path, needed_by)?;
        match real.is_dir() {
            true => Ok(()),
            false => self.contents(&real, needed_by),
        }
    }

    /// Adds a host file under another path of the guest, with what it needs. A library that is among
    /// `copies` is not looked for.
    pub fn copy(&mut self, place: &Path, file: &Path, copies: &BTreeMap<PathBuf, PathBuf>) -> Result<()> {
        let needed_by = format!("`copies` of the workload ({})", place.display());
        let absent = || Error::Program {
            program: file.display().to_string(),
            needed_by: needed_by.clone(),
            help: "build it first; a relative path begins beside the workload file".into(),
        };
        let real = file.canonicalize().map_err(|_| absent())?;
        let node = self.files.on_host(&real).map_err(|why| Error::unpackable(&real, &needed_by, why))?;
        if !matches!(node, TreeNode::Host { .. }) {
            return Err(Error::unpackable(&real, &needed_by, "it is no file"));
        }
        self.files.put(place, node)?;
        self.copied.extend(copies.keys().filter_map(|copy| copy.file_name()?.to_str().map(str::to_owned)));
        self.needs_of(&real, &real, &needed_by, &[]).or_else(|error| match error {
            Error::Elf { .. } => Ok(()),
            other => Err(other),
        })
    }

    fn contents(&mut self, real: &Path, needed_by: &str) -> Result<()> {
        match self.object(real, needed_by, &[]) {
            // A file that only looks like a program is data.
            Ok(_) | Err(Error::Elf { .. }) => Ok(()),
            Err(error) => self.tolerate(error),
        }
    }

    /// Turns missing needs into a warning, for files that may never be run.
    fn tolerate(&mut self, error: Error) -> Result<()> {
        match error {
            Error::Library { .. } | Error::Program { .. } | Error::Elf { .. } => {
                self.warn_lacking(&error);
                Ok(())
            }
            other => Err(other),
        }
    }

    /// Warns about missing needs.
    pub fn warn_lacking(&mut self, error: &Error) {
        let warning = format!("warning: packed without all that it needs: {error}");
        match error {
            Error::Library { library, .. } => drop(self.lacking.insert(warning, library.clone())),
            _ => self.notes.push(warning),
        }
    }

    /// Returns what the user should know about the image. A program may load a library before a plugin
    /// that needs it, from a directory that the plugin does not name: so a library that is packed
    /// anywhere is not missing.
    pub fn all_notes(&self) -> Vec<String> {
        let names: HashSet<_> = self.files.tree.nodes.keys().filter_map(|path| path.file_name()).collect();
        let lacking = self.lacking.iter().filter(|(_, library)| !names.contains(OsStr::new(library)));
        self.notes.iter().chain(lacking.map(|(warning, _)| warning)).cloned().collect()
    }

    /// Adds a package's programs, its files in /etc and /usr/lib, and its directories in /var.
    /// Files that cannot be packed and that its programs do not need are left out with a note.
    pub fn package(&mut self, package: &str) -> Result<()> {
        let needed_by = format!("package {package}");
        for path in host::package_paths(package)? {
            let starts = |dirs: &[&str]| dirs.iter().any(|dir| path.starts_with(dir));
            let result = if starts(&NOT_FOR_THE_GUEST) {
                continue;
            } else if path.is_dir() {
                // Links to directories, such as /lib, are packed without the contents.
                let link = path.is_symlink() && path.components().count() > 2;
                let state = starts(&["/var"]) && !starts(&["/var/run", "/var/lock", "/var/cache/man"]);
                if !link && !state {
                    continue;
                }
                self.files.take(&path, &needed_by).map(drop)
            } else if starts(&PROGRAM_DIRS) {
                self.program(&path, &needed_by).map(drop).or_else(|error| self.tolerate(error))
            } else if starts(&["/etc", "/usr/lib", "/lib", "/usr/libexec"]) {
                self.file(&path, &needed_by)
            } else {
                continue;
            };
            match result {
                Ok(()) => {}
                Err(error @ Error::Unpackable { .. }) => {
                    self.notes.push(format!("left out: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn object(&mut self, path: &Path, needed_by: &str, inherited: &[PathBuf]) -> Result<PathBuf> {
        let real = self.files.take(path, needed_by)?;
        if !self.visited.insert(real.clone()) {
            return Ok(real);
        }
        if real.is_dir() {
            return Ok(real);
        }
        if let Err(error) = self.needs_of(path, &real, needed_by, inherited) {
            // A later use of the file must report the error again.
            self.visited.remove(&real);
            return Err(error);
        }
        Ok(real)
    }

    /// Adds the needs of the file at `real`, which was found as `path`.
    fn needs_of(&mut self, path: &Path, real: &Path, needed_by: &str, inherited: &[PathBuf]) -> Result<()> {
        let failed = |error: std::io::Error| Error::unpackable(real, needed_by, error);
        let mut head = Vec::new();
        let mut file = File::open(real).map_err(failed)?;
        file.by_ref().take(SCRIPT_LINE).read_to_end(&mut head).map_err(failed)?;
        if elf::is_elf(&head) {
            file.read_to_end(&mut head).map_err(failed)?;
            let needs = elf::needs(&head).map_err(|what| Error::Elf { path: real.to_owned(), what })?;
            drop(head);
            // A library's $ORIGIN is the path by which it was found, not that of a link's target.
            self.needs(path, real, &needs, inherited)
        } else if let Some(line) = head.strip_prefix(b"#!") {
            let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
            self.script(real, &String::from_utf8_lossy(line))
        } else {
            Ok(())
        }
    }

    fn needs(&mut self, path: &Path, real: &Path, needs: &ElfNeeds, inherited: &[PathBuf]) -> Result<()> {
        let name = real.display().to_string();
        if let Some(interpreter) = &needs.interpreter {
            self.program(Path::new(interpreter), &name)?;
        }
        let down = handed_down(path, needs, inherited);
        for library in &needs.libraries {
            if self.copied.contains(library) {
                continue;
            }
            let mut fits = |candidate: &Path| {
                let kind = self.kinds.entry(candidate.to_owned());
                *kind.or_insert_with(|| elf::kind_of(candidate)) == Some(needs.kind)
            };
            let found = self.libraries.find(library, path, needs, inherited, &mut fits);
            let found = found.ok_or_else(|| Error::Library {
                library: library.clone(),
                needed_by: real.to_owned(),
                searched: self.libraries.searched(needs),
            })?;
            self.library_dirs.extend(found.extra_dir);
            self.object(&found.path, &name, &down)?;
        }
        Ok(())
    }

    /// Adds the interpreter of a script.
    fn script(&mut self, script: &Path, line: &str) -> Result<()> {
        let name = script.display().to_string();
        for interpreter in shell::interpreters(line) {
            let path = host::find_program(interpreter).ok_or_else(|| missing(interpreter, &name))?;
            self.program(&path, &name)?;
        }
        Ok(())
    }
}

/// Checks for a link whose target this machine does not have.
pub(crate) fn leads_nowhere(path: &Path) -> bool {
    path.is_symlink() && path.metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The host's own loader is the reference.
    #[test]
    fn the_closure_of_a_program_is_what_ldd_says() {
        let program = host::find_program("bash").unwrap();
        let output = Command::new("ldd").arg(&program).output().unwrap();
        let mut closure = FileClosure::of_host();
        closure.program(&program, "test").unwrap();
        let mut seen = 0;
        for word in String::from_utf8_lossy(&output.stdout).split_whitespace() {
            if word.starts_with('/') {
                let real = Path::new(word).canonicalize().unwrap();
                assert!(closure.files.tree.nodes.contains_key(&real), "{word}");
                seen += 1;
            }
        }
        assert!(seen >= 2);
    }

    /// As `/usr/bin/java` → `/etc/alternatives/java` → the JVM's own directory.
    #[test]
    fn the_libraries_of_a_linked_program_are_beside_its_file() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        for part in ["app/lib", "app/bin", "bin"] {
            std::fs::create_dir_all(dir.path().join(part)).unwrap();
        }
        let gcc = |words: &str, source: &str| {
            std::fs::write(dir.path().join("x.c"), source).unwrap();
            let mut command = Command::new("gcc");
            command.current_dir(dir.path()).args(words.split(' ')).arg("x.c").args(["-Lapp/lib", "-lc"]);
            assert!(command.status().unwrap().success());
        };
        gcc("-shared -o app/lib/libbeside.so", "int f(void) { return 0; }");
        gcc(
            "-o app/bin/program -Wl,-rpath,$ORIGIN/../lib -Wl,--no-as-needed -Lapp/lib -lbeside",
            "int main(void) {}",
        );
        let link = dir.path().join("bin/program");
        std::os::unix::fs::symlink("../app/bin/program", &link).unwrap();
        assert!(Command::new(&link).status().unwrap().success());
        let mut closure = FileClosure::of_host();
        closure.program(&link, "test").unwrap();
        for path in ["bin/program", "app/bin/program", "app/lib/libbeside.so"] {
            assert!(closure.files.tree.nodes.contains_key(&dir.path().join(path)), "{path}");
        }
    }

    /// As the JVM's plugins need libjvm.so, which lies below them and is there before them.
    #[test]
    fn a_library_that_is_packed_elsewhere_is_not_missing() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let gcc = |words: &str| {
            std::fs::write(dir.path().join("x.c"), "int f(void) { return 0; }").unwrap();
            let mut command = Command::new("gcc");
            command.current_dir(dir.path()).args(words.split(' ')).arg("x.c").args(["-Ljvm/server", "-lc"]);
            assert!(command.status().unwrap().success());
        };
        std::fs::create_dir_all(dir.path().join("jvm/server")).unwrap();
        gcc("-shared -o jvm/server/libinner.so");
        gcc("-shared -o jvm/libgone.so");
        for (plugin, library) in [("a", "-Ljvm/server -linner"), ("b", "-Ljvm -lgone")] {
            gcc(&format!("-shared -o jvm/{plugin}.so -Wl,--no-as-needed {library}"));
        }
        std::fs::remove_file(dir.path().join("jvm/libgone.so")).unwrap();
        let mut closure = FileClosure::of_host();
        closure.file(dir.path(), "test").unwrap();
        closure.file(dir.path(), "test").unwrap();
        let told = closure.all_notes();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("library libgone.so, needed by "), "{told:?}");
    }

    #[test]
    fn a_missing_library_is_named_with_who_needs_it() {
        let mut closure = FileClosure::of_host();
        let needs = ElfNeeds { libraries: vec!["libgone.so.1".into()], ..ElfNeeds::default() };
        let error =
            closure.needs(Path::new("/bin/x"), Path::new("/bin/x"), &needs, &[]).unwrap_err().to_string();
        assert!(error.starts_with("library libgone.so.1, needed by /bin/x, is in none of "), "{error}");
    }

    #[test]
    fn a_script_brings_its_interpreter_and_the_program_behind_env() {
        let mut closure = FileClosure::of_host();
        closure.script(Path::new("/x"), " /usr/bin/env -S FOO=1 bash -e").unwrap();
        let bash = host::find_program("bash").unwrap().canonicalize().unwrap();
        assert!(closure.files.tree.nodes.contains_key(&bash));
        let error = closure.script(Path::new("/x"), "/no/such/interpreter").unwrap_err().to_string();
        assert!(error.contains("/no/such/interpreter, needed by /x"), "{error}");
    }

    /// One script of a packed directory lacks its interpreter: a warning. If it is run: an error.
    #[test]
    fn what_is_only_packed_may_lack_something() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let script = dir.path().join("odd");
        std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        std::fs::write(dir.path().join("data"), "text").unwrap();
        std::fs::write(dir.path().join("symbols.exp"), "#! .\n").unwrap();
        let mut closure = FileClosure::of_host();
        closure.file(dir.path(), "`files` of the workload").unwrap();
        assert!(
            closure.files.tree.nodes.contains_key(&script)
                && closure.files.tree.nodes.contains_key(&dir.path().join("data"))
        );
        let told = &closure.notes;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("warning: packed without all that it needs: /no/such/interpreter, needed by"),
            "{told:?}"
        );
        let error = closure.program(&script, "measured step").unwrap_err().to_string();
        assert!(error.starts_with("/no/such/interpreter, needed by "), "{error}");
    }

    /// A directory with a link to itself, a cycle of two, a link to nothing, and a FIFO.
    #[test]
    fn each_directory_is_packed_once_and_a_fifo_is_a_warning() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("sub/deeper")).unwrap();
        std::fs::write(root.join("sub/deeper/data"), "text").unwrap();
        for (link, target) in [
            ("loop", "."),
            ("again", "sub"),
            ("sub/up", ".."),
            ("sub/deeper/top", "../.."),
            ("sub/gone", "../no/such/file"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        assert!(Command::new("mkfifo").arg(root.join("sub/fifo")).status().unwrap().success());
        let mut closure = FileClosure::of_host();
        closure.file(root, "`files` of the workload").unwrap();
        for path in ["loop", "again", "sub/up", "sub/gone", "sub/deeper/top", "sub/deeper/data"] {
            assert!(closure.files.tree.nodes.contains_key(&root.join(path)), "{path}");
        }
        assert!(!closure.files.tree.nodes.contains_key(&root.join("sub/fifo")));
        let told = &closure.notes;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].ends_with("sub/fifo is not packed: it is neither a file nor a directory"),
            "{told:?}"
        );
    }
}
