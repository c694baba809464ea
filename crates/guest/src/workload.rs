//! The workload: what runs in the kernel.

use crate::disk::Disk;
use crate::{shell, Error, Result};
use kerntune_isa::{Guest, Isa};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The runs that a workload may have, in the order in which `tune` uses them. The second each one has.
pub const RUNS: [&str; 2] = ["training", "measured"];

/// A program and its arguments. The first word is a name searched in the guest's PATH or an
/// absolute path; what is not one of our programs comes from the host.
pub type Command = Vec<String>;

/// A workload as read from `workloads/NAME.toml`; `guest/README.md` describes the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workload {
    /// Letters, digits, `-`, `_`; the file's name unless the file says otherwise.
    pub name: String,
    /// What it does, for people.
    pub description: String,
    /// Debian packages of the host whose programs, `/etc` and `/usr/lib` files are packed.
    pub packages: Vec<String>,
    /// Host programs needed besides those that the commands name.
    pub binaries: Vec<String>,
    /// Host files or directories, absolute.
    pub files: Vec<PathBuf>,
    /// Files whose text the workload brings itself, by their path in the guest.
    pub texts: BTreeMap<PathBuf, String>,
    /// Programs of ours needed besides those that the commands name (`kt-mark` in a script).
    pub programs: Vec<String>,
    /// Environment variables of its programs, by name.
    pub env: BTreeMap<String, String>,
    /// Run one after the other before the services.
    pub setup: Vec<Command>,
    /// Programs that run in the background, in the order in which they start.
    pub services: Vec<Service>,
    /// Without steps: none, as for who only records.
    pub training: Run,
    /// What is measured; at least one step.
    pub measured: Run,
    /// Of the guest, in MiB.
    pub memory_mb: u32,
    /// Of the guest, 1 to [`MAX_CPUS`].
    pub cpus: u32,
    /// The CPU that needs mitigations and that the guest's passes for, by a name of [`Isa::VULNERABLE`](kerntune_isa::Isa);
    /// `None` for one that needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mitigations: Option<String>,
    /// Whether the CPU copies memory fast with one instruction.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fast_strings: bool,
    /// For the whole guest, wall clock.
    pub time_limit_seconds: u64,
    /// Network cards, all on one wire: `eth0`, `eth1`, …
    pub network_cards: u32,
    /// For the guest kernel's command line.
    pub append: String,
    /// A disk of the guest's own; files are on a tmpfs otherwise.
    pub disk: Option<Disk>,
    /// What random numbers of the guest come from: 1, unless somebody asks for another ([`Workload::with_seed`]). `{seed}` in a
    /// command is this number.
    #[serde(skip)]
    pub seed: u32,
    /// Whether init can read /proc around steps ([`crate::Collect::proc`]): of no file, but of who records.
    #[serde(skip)]
    pub proc: bool,
    /// Of a measured run that is a command which somebody gave instead of a file's runs.
    #[serde(skip)]
    pub context: Option<CommandContext>,
}

/// CPUs of a guest at most: QEMU has room for the counters of so many.
pub const MAX_CPUS: u32 = 16;

/// Whether there is a vulnerable CPU of this name.
///
/// # Errors
/// A sentence with the names there are.
pub fn vulnerable(name: &str) -> Result<(), String> {
    let mut known = Guest::VULNERABLE.iter().map(|cpu| cpu.name);
    match known.any(|known| known == name) {
        true => Ok(()),
        false => {
            let names: Vec<_> = Guest::VULNERABLE.iter().map(|cpu| cpu.name).collect();
            Err(format!("\"{name}\" is no CPU that needs mitigations; there are {}", names.join(" and ")))
        }
    }
}

/// What a command finds in the guest as it is here. What it starts by names that nobody sees here is packed as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandContext {
    /// Where it runs, if it names something relative to that; the root directory otherwise.
    pub directory: Option<PathBuf>,
    /// What it reads.
    pub input: Option<StandardInput>,
    /// Whether [`Workload::files`] are every file and link that is packed, and directories among them are empty.
    pub lists_files: bool,
}

/// The bytes of a command's standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandardInput {
    /// From where the descriptor stands to the end.
    pub bytes: Vec<u8>,
    /// Whether not every user of this machine may read them.
    pub is_private: bool,
}

/// What a text is run by, if it begins with `#!` ([`shell::interpreters`]).
pub(crate) fn interpreters(text: &str) -> Vec<&str> {
    let line = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    line.map(shell::interpreters).unwrap_or_default()
}

/// A program that stays in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Service {
    /// The name in messages and of its log.
    pub name: String,
    /// The program and its arguments.
    pub command: Command,
    /// When it is ready to be used.
    pub ready: Ready,
}

/// How a service is seen to be ready, and within how many guest seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// What to look at.
    pub probe: Probe,
    /// Guest seconds until it must be ready.
    pub within_seconds: u32,
}

/// One look at a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// A connection to this port of 127.0.0.1 is accepted.
    Tcp(u16),
    /// A connection to this Unix socket is accepted.
    Unix(String),
    /// This file is there.
    File(String),
    /// This command ends with status 0.
    Command(Command),
}

/// One run: warm-ups outside of the measurement, then the steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Run {
    /// Run one after the other before the steps, without a region.
    pub warmup: Vec<Command>,
    /// Run one after the other.
    pub steps: Vec<Step>,
}

/// One program of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Step {
    /// The region that init marks around the program; `None`: the program marks its own.
    pub region: Option<String>,
    /// Operations done in the region; `None`: as many as the program marks.
    pub operations: Option<u64>,
    /// The program and its arguments.
    pub command: Command,
    /// Guest seconds; `None`: [`LIMIT_SECONDS`].
    pub limit_seconds: Option<u32>,
    /// Regular expressions of what the program must not print, though it end with status 0.
    pub fail: Vec<String>,
    /// Regular expressions of what it must print.
    pub expect: Vec<String>,
    /// Numbers that it prints; [`Step::judge`] reads them.
    pub metrics: Vec<Metric>,
}

/// Guest seconds that one program may take unless its step says otherwise.
pub const LIMIT_SECONDS: u32 = 600;

/// A number that a step prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// The name in results.
    pub name: String,
    /// With exactly one group, which holds the number; the first match counts.
    pub regex: String,
    /// The unit, for people: `requests/s`.
    pub unit: String,
    /// Which way it should go.
    pub better: Better,
}

/// Which way a metric should go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better: a throughput.
    Higher,
    /// Less is better: a latency.
    Lower,
}

/// What random numbers come from if nobody asks for another number.
pub const SEED: u32 = 1;

/// What stands in a command for the workload's seed.
const SEED_WORD: &str = "{seed}";

/// A command with a seed where it asks for one.
pub(crate) fn with_seed(command: &Command, seed: u32) -> Command {
    command.iter().map(|word| word.replace(SEED_WORD, &seed.to_string())).collect()
}

impl Workload {
    /// The same work with other random numbers.
    pub fn with_seed(&self, seed: u32) -> Self {
        Self { seed, ..self.clone() }
    }

    /// A command of the workload's as it is run: with the seed where it asks for it.
    pub fn as_run(&self, command: &Command) -> Command {
        with_seed(command, self.seed)
    }

    /// Whether a command of the run asks for the seed. If none does, only what the guest's kernel draws at random changes with
    /// it, and what programs ask the kernel for.
    pub fn takes_seed(&self, run: &str) -> bool {
        let asks = |command: &Command| command.iter().any(|word| word.contains(SEED_WORD));
        self.runs().iter().any(|(name, of)| {
            *name == run && (of.warmup.iter().any(asks) || of.steps.iter().any(|step| asks(&step.command)))
        })
    }

    /// The runs that it has, with their names, in the order of [`RUNS`].
    pub fn runs(&self) -> Vec<(&'static str, &Run)> {
        let mut runs = vec![(RUNS[0], &self.training), (RUNS[1], &self.measured)];
        runs.retain(|(_, run)| !run.steps.is_empty());
        runs
    }

    /// For whoever needs the run of that name, before anything long is begun.
    ///
    /// # Errors
    /// [`Error::NoRun`].
    pub fn require_run(&self, name: &str) -> Result<()> {
        if self.runs().iter().any(|(run, _)| *run == name) {
            return Ok(());
        }
        Err(Error::NoRun { workload: self.name.clone(), run: name.to_owned() })
    }

    /// The texts that begin with `#!`: path, interpreters, text.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = (&Path, Vec<&str>, &str)> {
        let texts = self.texts.iter().map(|(path, text)| (path.as_path(), interpreters(text), text.as_str()));
        texts.filter(|(_, interpreters, _)| !interpreters.is_empty())
    }

    /// Every command of the workload, with the key under which it stands.
    pub(crate) fn commands(&self) -> Vec<(String, &Command)> {
        let mut all: Vec<(String, &Command)> = Vec::new();
        all.extend(self.setup.iter().map(|c| ("setup".into(), c)));
        for service in &self.services {
            all.push((format!("service {}", service.name), &service.command));
            if let Probe::Command(command) = &service.ready.probe {
                all.push((format!("readiness of service {}", service.name), command));
            }
        }
        for (name, run) in self.runs() {
            all.extend(run.warmup.iter().map(|c| (format!("{name} warm-up"), c)));
            all.extend(run.steps.iter().map(|s| (format!("{name} step"), &s.command)));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_without_training_says_so_to_who_needs_it() {
        let text = "[[measured.step]]\ncommand = [\"rr\"]\n";
        let workload = Workload::parse(text, Path::new("mine.toml")).unwrap();
        assert_eq!(workload.runs().len(), 1);
        assert!(!crate::Plan::of(&workload).text().contains("training"));
        workload.require_run("measured").unwrap();
        assert_eq!(
            workload.require_run("training").unwrap_err().to_string(),
            "workload mine has no run `training`; add [[training.step]] with a command to its file, or choose another workload"
        );
    }
}
