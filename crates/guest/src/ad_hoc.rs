//! A workload of one command, for who has no workload file.

mod arguments;

use crate::workload::{Command, CommandContext, Run, Step};
use crate::{Result, Workload};
use arguments::Arguments;
use std::collections::BTreeMap;
use std::path::Path;

/// Of the guest, in MiB, if the command's files do not ask for more.
const MEMORY_MB: u32 = 1024;
/// Of the guest at most: what the command names may be half of it.
const MEMORY_MAX_MB: u32 = 3072;
/// For the whole guest, wall clock.
const TIME_LIMIT_SECONDS: u64 = 900;
/// Characters of a name, so that it fits into a table.
const NAME_WIDTH: usize = 60;

/// What is packed for a command, and what is not.
#[derive(Debug)]
pub struct AdHoc {
    /// One measured step, region `command`; the files and directories of this machine that the command's arguments name.
    pub workload: Workload,
    /// Sentences about arguments that name something here which the guest will not have.
    pub notes: Vec<String>,
}

impl Workload {
    /// The workload of one command: the program with all that it needs, and what its arguments name. Relative names are of
    /// `directory`; if there are any, the command runs there.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] if that is more than a guest holds.
    pub fn of_command(command: &[String], directory: &Path) -> Result<AdHoc> {
        let packed = Arguments::of(command, directory)?;
        let mut workload = Self {
            name: name_of(command),
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
            context: Some(CommandContext {
                directory: packed.relative.then(|| directory.to_owned()),
                input: None,
                lists_files: true,
            }),
        };
        workload.measured = one_step(command);
        Ok(AdHoc { workload, notes: packed.notes })
    }

    /// Has this command run instead of the workload's runs; its services and files stay.
    pub fn run_instead(&mut self, command: &[String]) {
        self.name = name_of(command);
        self.training = Run::default();
        self.measured = one_step(command);
        self.context = Some(CommandContext::default());
        // The workload's own commands have busybox by its name; `sh` of this command is this machine's.
        self.binaries.retain(|word| word != "busybox");
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

#[cfg(test)]
mod tests;
