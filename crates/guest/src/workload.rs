//! Workloads: what runs in the kernel.

use crate::discovered::DiscoveredFiles;
use crate::disk::Disk;
use crate::drivers::has_option;
use crate::process_attributes::ProcessAttributes;
use crate::{shell, Error, Result};
use kerntune_isa::{GuestIsa, Isa};
use kerntune_work::ContentHash;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names of runs, in the order in which `tune` uses them. Every workload has the second.
pub const RUNS: [&str; 2] = ["training", "measured"];

/// A program and its arguments. The first word is an absolute path, or a name searched in the
/// guest's PATH; programs that are not kerntune's come from the host.
pub type CommandLine = Vec<String>;

/// A workload as read from `data/workloads/NAME.toml`; `embedded/guest/README.md` describes the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workload {
    /// Name of letters, digits, `-` and `_`; by default the file's name.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// Debian packages of the host whose programs, `/etc` and `/usr/lib` files are packed.
    pub packages: Vec<String>,
    /// Host programs needed besides those that the commands name.
    pub binaries: Vec<String>,
    /// Absolute paths of host files or directories to pack.
    pub files: Vec<PathBuf>,
    /// Files whose text is in the workload file, by their path in the guest.
    pub texts: BTreeMap<PathBuf, String>,
    /// Host files by their path in the guest. The paths on the host are absolute; they decide nothing,
    /// the contents do.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub copies: BTreeMap<PathBuf, PathBuf>,
    /// Programs of kerntune's needed besides those that the commands name (`kt-mark` in a script).
    pub programs: Vec<String>,
    /// Kernel modules that the guest loads before all else, by name. What is built into the kernel
    /// is there without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// Options that the kernel must have, as lines of its configuration: `CONFIG_NFSD=y`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernel_config: Vec<String>,
    /// Environment variables of its programs.
    pub env: BTreeMap<String, String>,
    /// Commands that run one after the other before the services.
    pub setup: Vec<CommandLine>,
    /// Programs that run in the background, in the order in which they start.
    pub services: Vec<Service>,
    /// Training run; without steps if the workload is only recorded.
    pub training: WorkloadRun,
    /// Measured run, with at least one step.
    pub measured: WorkloadRun,
    /// Memory of the guest in MiB.
    pub memory_mb: u32,
    /// CPUs of the guest, 1 to [`MAX_CPUS`].
    pub cpus: u32,
    /// NUMA nodes of the guest, 1 to [`MAX_NODES`]: CPUs and memory are split between them.
    #[serde(skip_serializing_if = "is_one")]
    pub nodes: u32,
    /// Vulnerable CPU that the guest's CPU pretends to be, by a name of
    /// [`Isa::VULNERABLE`](kerntune_isa::Isa); `None` for one that needs no mitigations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mitigations: Option<String>,
    /// True if the CPU copies memory fast with one instruction.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fast_strings: bool,
    /// Wall-clock limit of the whole guest.
    pub time_limit_seconds: u64,
    /// Network cards on one wire: `eth0`, `eth1`, …
    pub network_cards: u32,
    /// Additions to the guest kernel's command line.
    pub append: String,
    /// Disk of the guest; without one, files are on a tmpfs.
    pub disk: Option<Disk>,
    /// Seed of the guest's random numbers and replacement for `{seed}` in commands; by default 1
    /// ([`Workload::with_seed`]).
    #[serde(skip)]
    pub seed: u32,
    /// True if init reads /proc around steps ([`crate::CollectOptions::proc`]). Set by the
    /// recording, never by a file.
    #[serde(skip)]
    pub proc: bool,
    /// True if init reads the clock around steps. Set where the machine has a clock, never by a
    /// file.
    #[serde(skip)]
    pub times: bool,
    /// Surroundings of a command that replaces the file's runs.
    #[serde(skip)]
    pub context: Option<CommandContext>,
}

/// Largest number of guest CPUs, by QEMU's room for their counters.
pub const MAX_CPUS: u32 = 16;
/// Largest number of NUMA nodes, by the kernels that are built for them (`numa.config`).
pub const MAX_NODES: u32 = 8;

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Checks that there is a vulnerable CPU of this name.
///
/// # Errors
/// A sentence with the known names.
pub fn vulnerable(name: &str) -> Result<(), String> {
    let mut known = GuestIsa::VULNERABLE.iter().map(|cpu| cpu.name);
    match known.any(|known| known == name) {
        true => Ok(()),
        false => {
            let names: Vec<_> = GuestIsa::VULNERABLE.iter().map(|cpu| cpu.name).collect();
            Err(format!("\"{name}\" is no CPU that needs mitigations; there are {}", names.join(" and ")))
        }
    }
}

/// Surroundings that a command has in the guest as on this machine. Utilities that it may start
/// under names we cannot see are packed too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandContext {
    /// Working directory, if the command names relative paths; otherwise the root directory.
    pub directory: Option<PathBuf>,
    /// Standard input.
    pub input: Option<StandardInput>,
    /// True if [`Workload::files`] lists every packed file and link, so that directories in it are
    /// packed empty.
    pub lists_files: bool,
    /// Files of the command's first run on this machine; the guest has them and nothing else of this
    /// machine, except for [`Workload::files`] and [`Workload::packages`].
    pub discovered: Option<DiscoveredFiles>,
    /// User, limits and mask; init's own if it is `None`.
    pub process: Option<ProcessAttributes>,
}

/// The bytes of a command's standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandardInput {
    /// Bytes from the descriptor's position to the end.
    pub bytes: Vec<u8>,
    /// True if not every user of this machine may read them.
    pub is_private: bool,
}

impl CommandContext {
    fn content_hash(&self) -> String {
        let Self { directory, input, lists_files, discovered, process } = self;
        let mut hash = ContentHash::new("command-context/1")
            .list("directory", directory.as_ref().map(|path| path.as_os_str().as_encoded_bytes()))
            .field("lists files", lists_files.to_string())
            .list("discovered", discovered.as_ref().map(DiscoveredFiles::content_hash))
            .list("process", process.as_ref().map(|process| format!("{process:?}")));
        if let Some(StandardInput { bytes, is_private }) = input {
            hash = hash.field("input", bytes).field("private", is_private.to_string());
        }
        hash.finish()
    }
}

/// Returns those options that a configuration lacks. One that must be `y` may be a module.
pub fn lacking_options<'a>(options: &'a [String], config: &str) -> Vec<&'a str> {
    let is_module = |line: &str| match line.strip_suffix("=y") {
        Some(option) => has_option(config, option, "=m"),
        None => false,
    };
    let has = |line: &&str| config.lines().any(|one| one == *line) || is_module(line);
    options.iter().map(String::as_str).filter(|line| !has(line)).collect()
}

/// Returns the interpreters of a text that begins with `#!` ([`shell::interpreters`]).
pub(crate) fn interpreters(text: &str) -> Vec<&str> {
    let line = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    line.map(shell::interpreters).unwrap_or_default()
}

/// A program that stays in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Service {
    /// Name in messages and of its log.
    pub name: String,
    /// Program and arguments.
    pub command: CommandLine,
    /// Condition under which it counts as ready.
    pub ready: ServiceReadiness,
}

/// Readiness condition of a service, with a time limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceReadiness {
    /// Condition to poll.
    pub probe: ReadinessProbe,
    /// Time limit in guest seconds.
    pub within_seconds: u32,
}

/// Condition to poll until a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadinessProbe {
    /// A connection to this port of 127.0.0.1 is accepted.
    Tcp(u16),
    /// A connection to this Unix socket is accepted.
    Unix(String),
    /// This file exists.
    File(String),
    /// This command ends with status 0.
    Command(CommandLine),
}

/// A run: warm-ups outside of the measurement, then the steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkloadRun {
    /// Commands that run before the steps, without a region.
    pub warmup: Vec<CommandLine>,
    /// Steps that run one after the other.
    pub steps: Vec<WorkloadStep>,
}

/// A program of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkloadStep {
    /// Region that init marks around the program; `None` if the program marks its own.
    pub region: Option<String>,
    /// Operations done in the region; `None` means as many as the program marks.
    pub operations: Option<u64>,
    /// Program and arguments.
    pub command: CommandLine,
    /// Time limit in guest seconds; `None` means [`LIMIT_SECONDS`].
    pub limit_seconds: Option<u32>,
    /// Regular expressions that the output must not match, even if the program ends with status 0.
    pub fail: Vec<String>,
    /// Regular expressions that the output must match.
    pub expect: Vec<String>,
    /// Numbers that the program prints; [`WorkloadStep::judge`] parses them.
    pub metrics: Vec<WorkloadMetric>,
}

/// Default time limit of a program, in guest seconds.
pub const LIMIT_SECONDS: u32 = 600;

/// A number that a step prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkloadMetric {
    /// Name in results.
    pub name: String,
    /// Regular expression with exactly one group, which matches the number; the first match counts.
    pub regex: String,
    /// Unit for people: `requests/s`.
    pub unit: String,
    /// Direction of better values.
    pub better: MetricDirection,
}

/// Direction of better values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricDirection {
    /// More is better: a throughput.
    Higher,
    /// Less is better: a latency.
    Lower,
}

/// Default seed of random numbers.
pub const SEED: u32 = 1;

/// Placeholder for the seed in commands.
const SEED_WORD: &str = "{seed}";

/// Replaces the seed's placeholder in a command.
pub(crate) fn with_seed(command: &CommandLine, seed: u32) -> CommandLine {
    command.iter().map(|word| word.replace(SEED_WORD, &seed.to_string())).collect()
}

impl Workload {
    /// Returns the same workload with another seed.
    pub fn with_seed(&self, seed: u32) -> Self {
        Self { seed, ..self.clone() }
    }

    /// Returns a command of the workload as it runs, with the seed filled in.
    pub fn as_run(&self, command: &CommandLine) -> CommandLine {
        with_seed(command, self.seed)
    }

    /// Hashes every field, for the keys of results.
    ///
    /// # Errors
    /// None are known: only paths can lack a serialized form, and they are hashed as bytes.
    pub fn content_hash(&self) -> kerntune_work::Result<String> {
        // Lists every field, so that a new one is not forgotten.
        let Self {
            name,
            description,
            packages,
            binaries,
            files,
            texts,
            copies,
            programs,
            modules,
            kernel_config,
            env,
            setup,
            services,
            training,
            measured,
            memory_mb,
            cpus,
            nodes,
            mitigations,
            fast_strings,
            time_limit_seconds,
            network_cards,
            append,
            disk,
            seed,
            proc,
            times,
            context,
        } = self;
        let hash = ContentHash::new("workload/1")
            .field("name", name)
            .field("description", description)
            .list("packages", packages)
            .list("binaries", binaries)
            .list("files", files.iter().map(|path| path.as_os_str().as_encoded_bytes()))
            .list("text paths", texts.keys().map(|path| path.as_os_str().as_encoded_bytes()))
            .list("texts", texts.values())
            .list("programs", programs)
            .value("environment", env)?
            .value("setup", setup)?
            .value("services", services)?
            .value("training", training)?
            .value("measured", measured)?
            .field("memory", memory_mb.to_string())
            .field("cpus", cpus.to_string())
            .list("mitigations", mitigations)
            .field("fast strings", fast_strings.to_string())
            .field("time limit", time_limit_seconds.to_string())
            .field("network cards", network_cards.to_string())
            .field("append", append)
            .list("disk", disk.as_ref().map(Disk::content_hash))
            .field("seed", seed.to_string())
            .field("proc", proc.to_string())
            .list("context", context.as_ref().map(CommandContext::content_hash));
        // Named only where there are any, so that the keys of other workloads stay the same.
        let hash = match modules.is_empty() {
            true => hash,
            false => hash.list("modules", modules),
        };
        let hash = match kernel_config.is_empty() {
            true => hash,
            false => hash.list("kernel configuration", kernel_config),
        };
        let hash = match nodes {
            1 => hash,
            _ => hash.field("nodes", nodes.to_string()),
        };
        let hash = match copies.is_empty() {
            true => hash,
            false => hash.list("copies", copies.keys().map(|path| path.as_os_str().as_encoded_bytes())),
        };
        let hash = match times {
            true => hash.field("times", "true"),
            false => hash,
        };
        Ok(hash.finish())
    }

    /// Checks whether a command of the run takes the seed. If none does, a new seed changes only
    /// random numbers of the guest's kernel, and what programs ask the kernel for.
    pub fn takes_seed(&self, run: &str) -> bool {
        let asks = |command: &CommandLine| command.iter().any(|word| word.contains(SEED_WORD));
        self.runs().iter().any(|(name, of)| {
            *name == run && (of.warmup.iter().any(asks) || of.steps.iter().any(|step| asks(&step.command)))
        })
    }

    /// Returns the workload's runs with their names, in the order of [`RUNS`].
    pub fn runs(&self) -> Vec<(&'static str, &WorkloadRun)> {
        let mut runs = vec![(RUNS[0], &self.training), (RUNS[1], &self.measured)];
        runs.retain(|(_, run)| !run.steps.is_empty());
        runs
    }

    /// Checks that the workload has this run, before anything long begins.
    ///
    /// # Errors
    /// [`Error::NoRun`].
    pub fn require_run(&self, name: &str) -> Result<()> {
        if self.runs().iter().any(|(run, _)| *run == name) {
            return Ok(());
        }
        Err(Error::NoRun { workload: self.name.clone(), run: name.to_owned() })
    }

    /// Returns the texts that begin with `#!`: path, interpreters, text.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = (&Path, Vec<&str>, &str)> {
        let texts = self.texts.iter().map(|(path, text)| (path.as_path(), interpreters(text), text.as_str()));
        texts.filter(|(_, interpreters, _)| !interpreters.is_empty())
    }

    /// Returns every command of the workload with its key.
    pub(crate) fn commands(&self) -> Vec<(String, &CommandLine)> {
        let mut all: Vec<(String, &CommandLine)> = Vec::new();
        all.extend(self.setup.iter().map(|c| ("setup".into(), c)));
        for service in &self.services {
            all.push((format!("service {}", service.name), &service.command));
            if let ReadinessProbe::Command(command) = &service.ready.probe {
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
    fn the_hash_covers_fields_that_are_not_serialized() {
        let plain =
            Workload::parse("[[measured.step]]\ncommand = [\"rr\"]\n", Path::new("mine.toml")).unwrap();
        let hash = |workload: &Workload| workload.content_hash().unwrap();
        let context = Some(CommandContext::default());
        let others = [
            plain.with_seed(7),
            Workload { proc: true, ..plain.clone() },
            Workload { context, ..plain.clone() },
            Workload { files: vec!["/etc".into()], ..plain.clone() },
            Workload { memory_mb: plain.memory_mb + 1, ..plain.clone() },
            Workload { nodes: 2, ..plain.clone() },
            Workload { kernel_config: vec!["CONFIG_NFSD=y".into()], ..plain.clone() },
        ];
        assert_eq!(hash(&plain), hash(&plain.clone()));
        assert!(others.iter().all(|other| hash(other) != hash(&plain)));
    }

    #[test]
    fn a_workload_without_training_says_so_to_who_needs_it() {
        let text = "[[measured.step]]\ncommand = [\"rr\"]\n";
        let workload = Workload::parse(text, Path::new("mine.toml")).unwrap();
        assert_eq!(workload.runs().len(), 1);
        assert!(!crate::InitPlan::of(&workload).text().contains("training"));
        workload.require_run("measured").unwrap();
        assert_eq!(
            workload.require_run("training").unwrap_err().to_string(),
            "workload mine has no run `training`; add [[training.step]] with a command to its file, or choose another workload"
        );
    }
}
