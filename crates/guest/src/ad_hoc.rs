//! A workload of one command, for who has no workload file.

use crate::image::too_large_for;
use crate::reader::HIDDEN;
use crate::workload::{Command, Run, Step};
use crate::{Error, Result, Workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Of the guest, in MiB, if the command's files do not ask for more.
const MEMORY_MB: u32 = 1024;
/// Of the guest at most: what the command names may be half of it.
const MEMORY_MAX_MB: u32 = 3072;
/// For the whole guest, wall clock.
const TIME_LIMIT_SECONDS: u64 = 900;
/// Characters of a name, so that it fits into a table.
const NAME_WIDTH: usize = 60;

/// What stands between words of a shell.
const IN_A_SHELL: [char; 13] = [' ', '\t', '\n', '\'', '"', '|', '<', '>', ';', '(', ')', '&', '`'];

/// What is packed for a command, and what is not.
#[derive(Debug)]
pub struct AdHoc {
    /// One measured step, region `command`; the files and directories of this machine that the command's arguments name.
    pub workload: Workload,
    /// Sentences about arguments that name something here which the guest will not have.
    pub notes: Vec<String>,
}

impl Workload {
    /// The workload of one command: the program with all that it needs, and what its arguments name by absolute paths.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if that is more than a guest holds.
    pub fn of_command(command: &[String]) -> Result<AdHoc> {
        let mut packed = Packed { name: name_of(command), ..Packed::default() };
        for word in command.iter().skip(1) {
            match word.contains(char::is_whitespace) {
                // A shell's string, or a text: what is a path in it.
                true => word
                    .split(IN_A_SHELL)
                    .filter(|word| word.starts_with('/'))
                    .try_for_each(|word| packed.argument(word))?,
                false => packed.argument(word)?,
            }
        }
        let mut workload = Self {
            name: packed.name,
            description: String::new(),
            packages: Vec::new(),
            binaries: Vec::new(),
            files: packed.files,
            texts: BTreeMap::new(),
            programs: Vec::new(),
            env: BTreeMap::new(),
            setup: Vec::new(),
            services: Vec::new(),
            training: Run::default(),
            measured: Run::default(),
            memory_mb: memory_mb(packed.bytes),
            cpus: 1,
            mitigations: None,
            fast_strings: false,
            time_limit_seconds: TIME_LIMIT_SECONDS,
            network_cards: 0,
            append: String::new(),
            disk: None,
            seed: crate::workload::SEED,
            proc: false,
        };
        workload.measured = one_step(command);
        Ok(AdHoc { workload, notes: packed.notes })
    }

    /// Has this command run instead of the workload's runs; its services and files stay.
    pub fn run_instead(&mut self, command: &[String]) {
        self.name = name_of(command);
        self.training = Run::default();
        self.measured = one_step(command);
    }
}

fn one_step(command: &[String]) -> Run {
    let command: Command = command.to_vec();
    let step = Step { region: Some("command".into()), operations: Some(1), command, ..Step::default() };
    Run { warmup: Vec::new(), steps: vec![step] }
}

/// What a command's profile is filed under: its words, as many as fit into a table.
pub fn name_of(command: &[String]) -> String {
    let line = command.join(" ").replace(|c: char| c.is_control(), " ");
    match line.char_indices().nth(NAME_WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The archive twice while it is unpacked, and room for the programs.
fn memory_mb(bytes: u64) -> u32 {
    let mib = bytes.div_ceil(1 << 20);
    u32::try_from(mib * 2).unwrap_or(u32::MAX).saturating_add(MEMORY_MB / 2).max(MEMORY_MB)
}

#[derive(Default)]
struct Packed {
    name: String,
    files: Vec<PathBuf>,
    bytes: u64,
    notes: Vec<String>,
}

impl Packed {
    fn argument(&mut self, word: &str) -> Result<()> {
        // `--directory=/srv`, `if=/etc/hosts`.
        let word = word.rsplit_once('=').map_or(word, |(_, value)| value);
        let path = Path::new(word);
        if word.is_empty() || path.symlink_metadata().is_err() {
            return Ok(());
        }
        if !path.is_absolute() {
            // A word that happens to be a file's name need not mean the file.
            if word.contains('/') || path.is_file() {
                self.notes.push(format!(
                    "`{word}` is a file here; the guest has what is named by an absolute path"
                ));
            }
            return Ok(());
        }
        if let Some(own) = HIDDEN.iter().find(|own| path.starts_with(own)) {
            if !["/dev", "/proc", "/sys"].contains(own) && path != Path::new(own) {
                self.notes.push(format!(
                    "`{word}` is not in the guest, whose {own} is its own: keep it in another directory"
                ));
            }
            return Ok(());
        }
        if path.parent().is_none() {
            return Ok(());
        }
        let before = self.files.len();
        let mut left_out = 0u64;
        self.walk(path, path, &mut left_out)?;
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
        // A link to a directory that is packed anyhow is one more entry; any other could bring a whole disk.
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

    fn add(&mut self, bytes: u64) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn what_the_arguments_name_is_packed() {
        let temporary =
            tempfile::Builder::new().prefix("ad-hoc").tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let dir = temporary.path();
        std::fs::create_dir_all(dir.join("sub/empty")).unwrap();
        std::fs::write(dir.join("sub/file"), "1234").unwrap();
        std::os::unix::fs::symlink("nowhere", dir.join("dangling")).unwrap();
        std::os::unix::fs::symlink("/", dir.join("all")).unwrap();
        std::os::unix::fs::symlink("sub", dir.join("again")).unwrap();
        let line =
            format!("ls -lR --color=never {0} if={0}/sub/file /proc/self /tmp /nothing/there", dir.display());
        let AdHoc { workload, notes } = Workload::of_command(&words(&line)).unwrap();
        let packed: Vec<_> =
            workload.files.iter().map(|path| path.strip_prefix(dir).unwrap().display().to_string()).collect();
        assert_eq!(packed, ["again", "sub/empty", "sub/file", "sub/file"]);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].contains("3 files and links are packed; 2 are not"), "{notes:?}");
        assert_eq!(workload.measured.steps[0].operations, Some(1));
        assert_eq!((workload.memory_mb, workload.cpus), (1024, 1));
    }

    #[test]
    fn what_the_guest_will_not_have_is_said() {
        let notes = |line: &str| Workload::of_command(&words(line)).unwrap().notes;
        assert!(
            notes("cat Cargo.toml")[0].contains("`Cargo.toml` is a file here"),
            "run in the crate's directory"
        );
        assert!(notes("echo hello").is_empty());
        let script = words("sh -c").into_iter().chain(["cat '/etc/hostname' </etc/hosts | wc".to_owned()]);
        let AdHoc { workload, .. } = Workload::of_command(&script.collect::<Vec<_>>()).unwrap();
        assert_eq!(workload.files, [PathBuf::from("/etc/hostname"), "/etc/hosts".into()]);
        let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        let said = notes(&format!("cat {}", file.path().display()));
        assert!(said[0].contains("whose /tmp is its own"), "{said:?}");
    }

    #[test]
    fn too_much_is_refused() {
        let mut packed = Packed { name: "tar".into(), ..Packed::default() };
        packed.add(1 << 30).unwrap();
        let error = packed.add(1 << 30).unwrap_err().to_string();
        assert!(error.contains("tar is too large") && error.contains("1536 MiB"), "{error}");
        assert_eq!(memory_mb(1 << 30), 2560);
    }

    #[test]
    fn a_command_is_filed_under_its_own_words() {
        let name = |words: &[&str]| name_of(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
        assert_eq!(name(&["sh", "-c", "ls\n\u{1b}[2J"]), "sh -c ls  [2J");
        assert_eq!(name(&["echo", &"ü".repeat(99)]), format!("echo {}…", "ü".repeat(55)));
    }
}
