//! Workloads of a single command, without a workload file.

mod arguments;

use crate::discovered::DiscoveredFiles;
use crate::limits::too_large_for;
use crate::workload::{CommandContext, CommandLine, WorkloadRun, WorkloadStep};
use crate::{CommandSystem, Error, Result, Workload};
use arguments::ArgumentFiles;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Default memory of the guest, in MiB.
const MEMORY_MB: u32 = 1024;
/// Largest memory of the guest, in MiB; the files that the command names may take half of it.
const MEMORY_MAX_MB: u32 = 3072;
/// Wall-clock limit of the whole guest.
const TIME_LIMIT_SECONDS: u64 = 900;
/// Largest number of characters of a name, so that it fits into a table.
const NAME_WIDTH: usize = 60;

/// The workload of a command, and notes about what it lacks.
#[derive(Debug)]
pub struct AdHocWorkload {
    /// One measured step with the region `command`, and the files and directories that the
    /// command's arguments name.
    pub workload: Workload,
    /// Sentences about files that the arguments name but the guest will not have.
    pub notes: Vec<String>,
}

impl Workload {
    /// Creates the workload of one command, with the program, all that it needs, and the files that
    /// its arguments name. Relative names start at `directory`; if there are any, the command runs
    /// there.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] if that is more than a guest holds.
    pub fn of_command(command: &[String], directory: &Path) -> Result<AdHocWorkload> {
        Self::of_command_with(command, directory, &[], false)
    }

    /// Creates the workload of one command as [`Self::of_command`] does, with more files and
    /// directories; `runs_there` makes `directory` the command's in any case.
    ///
    /// # Errors
    /// As [`Self::of_command`].
    pub fn of_command_with(
        command: &[String],
        directory: &Path,
        files: &[PathBuf],
        runs_there: bool,
    ) -> Result<AdHocWorkload> {
        let mut packed = ArgumentFiles::of(command, directory)?;
        for path in files {
            packed.whole(&path.to_string_lossy())?;
        }
        if runs_there {
            packed.directory();
        }
        let mut workload = Self::alone(command, memory_mb(packed.bytes));
        workload.files = packed.files;
        workload.context = Some(CommandContext {
            directory: packed.relative.then(|| directory.to_owned()),
            lists_files: true,
            ..CommandContext::default()
        });
        Ok(AdHocWorkload { workload, notes: [packed.missing, packed.notes].concat() })
    }

    /// Creates a workload of one command and nothing else.
    fn alone(command: &[String], memory_mb: u32) -> Self {
        Self {
            name: name_of(command),
            description: String::new(),
            packages: Vec::new(),
            binaries: Vec::new(),
            files: Vec::new(),
            texts: BTreeMap::new(),
            copies: BTreeMap::new(),
            programs: Vec::new(),
            modules: Vec::new(),
            kernel_config: Vec::new(),
            env: BTreeMap::new(),
            setup: Vec::new(),
            services: Vec::new(),
            training: WorkloadRun::default(),
            measured: one_step(command),
            memory_mb,
            cpus: 1,
            nodes: 1,
            mitigations: None,
            fast_strings: false,
            time_limit_seconds: TIME_LIMIT_SECONDS,
            network_cards: 0,
            append: String::new(),
            disk: None,
            seed: crate::workload::SEED,
            proc: false,
            times: false,
            context: None,
        }
    }

    /// Creates the workload of one command, with what it used in its first run in this system.
    pub fn of_discovered(
        command: &[String],
        system: CommandSystem,
        found: DiscoveredFiles,
    ) -> Result<AdHocWorkload> {
        let CommandSystem { root, directory, environment, process } = system;
        // What the command names and does not find may be a mistake; what else it looks for is its own affair.
        let named = root.is_of_this_machine().then(|| ArgumentFiles::of(command, &directory));
        let missing = named.and_then(Result::ok).map_or(Vec::new(), |named| named.missing);
        let notes = [missing, found.notes()].concat();
        let mut workload = Self::alone(command, memory_for(command, found.bytes())?);
        workload.env = environment;
        workload.context = Some(CommandContext {
            directory: Some(directory),
            discovered: Some(found),
            process: Some(process),
            ..CommandContext::default()
        });
        Ok(AdHocWorkload { workload, notes })
    }

    /// Gives the guest the contents of all files that the command looked at in its first run, not only
    /// of those that it read. Returns false if that is so already, or if there was no such run.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] if that is more than a guest holds.
    pub fn take_all_contents(&mut self) -> Result<bool> {
        let found = self.context.as_mut().and_then(|context| context.discovered.as_mut());
        let Some(found) = found.filter(|found| !found.with_all_contents) else { return Ok(false) };
        found.with_all_contents = true;
        self.make_room()?;
        Ok(true)
    }

    /// Gives the guest of a command at least the memory for its files and its input.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] if that is more than a guest holds.
    pub fn make_room(&mut self) -> Result<()> {
        let Some(CommandContext { input, discovered: Some(found), .. }) = &self.context else {
            return Ok(());
        };
        let input = input.as_ref().map_or(0, |input| input.bytes.len() as u64);
        let files = self.files.iter().map(|path| size_of(path));
        let bytes = files.fold(found.bytes().saturating_add(input), u64::saturating_add);
        let command = self.measured.steps.first().map_or(&[][..], |step| &step.command);
        self.memory_mb = self.memory_mb.max(memory_for(command, bytes)?);
        Ok(())
    }

    /// Replaces the workload's runs by this command; its services and files stay.
    pub fn run_instead(&mut self, command: &[String]) {
        self.name = name_of(command);
        self.training = WorkloadRun::default();
        self.measured = one_step(command);
        self.context = Some(CommandContext::default());
        // The workload's own commands call busybox by name; for this command, `sh` is this
        // machine's.
        self.binaries.retain(|word| word != "busybox");
    }
}

fn one_step(command: &[String]) -> WorkloadRun {
    let command: CommandLine = command.to_vec();
    let step = WorkloadStep {
        region: Some("command".into()),
        operations: Some(1),
        command,
        ..WorkloadStep::default()
    };
    WorkloadRun { warmup: Vec::new(), steps: vec![step] }
}

/// Returns the name of a command's profile: its words, as many as fit into a table.
pub fn name_of(command: &[String]) -> String {
    let line = command.join(" ").replace(|c: char| c.is_control(), " ");
    match line.char_indices().nth(NAME_WIDTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Total size in bytes of a file, or of the files in a directory; 0 for what cannot be read.
fn size_of(path: &Path) -> u64 {
    let Ok(meta) = path.symlink_metadata() else { return 0 };
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| size_of(&entry.path()));
    sizes.fold(if meta.is_file() { meta.len() } else { 0 }, u64::saturating_add)
}

/// Memory for a guest with so many bytes of files.
fn memory_for(command: &[String], bytes: u64) -> Result<u32> {
    if too_large_for(bytes, MEMORY_MAX_MB).is_none() {
        return Ok(memory_mb(bytes));
    }
    let problem = format!(
        "the command uses {} MiB of files, and a guest holds {}; write a workload file (docs/your-workload.md)",
        bytes >> 20,
        MEMORY_MAX_MB / 2
    );
    Err(Error::TooLarge { workload: name_of(command), problem })
}

/// Memory for the archive twice, since it is kept while it is unpacked, and for the programs.
fn memory_mb(bytes: u64) -> u32 {
    let mib = bytes.div_ceil(1 << 20);
    u32::try_from(mib * 2).unwrap_or(u32::MAX).saturating_add(MEMORY_MB / 2).max(MEMORY_MB)
}

#[cfg(test)]
mod tests;
