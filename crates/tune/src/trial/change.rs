//! Changes to try, as listed in a file.

use crate::Error;
use kerntune_guest::Workload;
use kerntune_kernel::BuildRequest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Example of a file of changes, for error messages.
const EXAMPLE: &str = "[[change]]\nname = \"no-audit\"\nconfig = [\"CONFIG_AUDIT=n\"]";

/// Maximum number of changes in a file: each costs a kernel or a run, and sets of them are 64-bit
/// words.
pub const MAX_CHANGES: usize = 32;

/// A change to a kernel, to its command line, or to the workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TrialChange {
    /// Name of the change: letters, digits, `-` and `_`.
    pub name: String,
    /// Description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Configuration lines. A line without effect is an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<String>,
    /// Patches for the source (`-p1`), in order; relative to the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<PathBuf>,
    /// Compiler flags for the whole kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kcflags: Vec<String>,
    /// Words for the kernel's command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command_line: String,
    /// Settings below `/proc/sys`, applied before the workload's own setup:
    /// `"net.ipv4.tcp_autocorking" = "0"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, String>,
    /// Environment of the workload's programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Commands that run before the workload's own setup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<Vec<String>>,
    /// Words behind the command of each service that runs the program of this name:
    /// `postgres = ["-c", "huge_pages=on"]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service_arguments: BTreeMap<String, Vec<String>>,
    /// Command in front of each service's: `["chrt", "-r", "1"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrap_services: Vec<String>,
    /// Command in front of the command of each step and of each warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrap_steps: Vec<String>,
    /// Recipe that tunes the kernel for the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ChangesFile {
    change: Vec<TrialChange>,
}

/// Formats changes as a file, for [`parse`].
pub(super) fn text(changes: Vec<TrialChange>) -> String {
    // Strings, lists and tables of strings have a form in TOML.
    toml::to_string(&ChangesFile { change: changes }).unwrap_or_default()
}

/// Parses a file of changes. `path` locates patches and appears in messages.
///
/// # Errors
/// [`Error::Changes`] with the place, the mistake and the fix.
pub fn parse(text: &str, path: &Path) -> crate::Result<Vec<TrialChange>> {
    read(text, path).map_err(Error::Changes)
}

fn read(text: &str, path: &Path) -> Result<Vec<TrialChange>, String> {
    let at = path.display();
    let ChangesFile { change: mut changes } = toml::from_str(text).map_err(|e| {
        format!("{at}: {}\na file of changes looks like this:\n{EXAMPLE}", e.to_string().trim_end())
    })?;
    if changes.is_empty() || changes.len() > MAX_CHANGES {
        return Err(format!("{at} has {} changes; 1 to {MAX_CHANGES} can be tried at a time", changes.len()));
    }
    let mut names = BTreeSet::new();
    let beside = path.parent().unwrap_or(Path::new("."));
    for change in &mut changes {
        let name = &change.name;
        let refused = |why: String| Err(format!("{at}: change \"{name}\" {why}"));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || name.len() > 40 || !name.chars().all(plain) {
            return refused("has a name that is not 1 to 40 letters, digits, `-` and `_`".into());
        }
        if !names.insert(name.clone()) {
            return refused("is there twice: give each a name of its own".into());
        }
        if change.is_empty() {
            return refused(
                "changes nothing: give it config, patches, kcflags, command_line, sysctl, env, setup, \
                 service_arguments, wrap_services, wrap_steps or recipe"
                    .into(),
            );
        }
        if change.command_line.contains(|c: char| c.is_control()) {
            return refused("has a control character in command_line".into());
        }
        let words = |word: &str| {
            word.contains(|c: char| c.is_control() || c == '=') || word.trim() != word || word.is_empty()
        };
        if let Some(knob) = change.sysctl.keys().find(|knob| words(knob)) {
            return refused(format!(
                "has the knob \"{knob}\" in sysctl, which is none; name one as sysctl does: vm.swappiness"
            ));
        }
        if let Some(line) = change.config.iter().find(|line| !is_config_line(line)) {
            return refused(format!(
                "has the line \"{line}\" in config, which is none; write CONFIG_NAME=y, =n or =VALUE"
            ));
        }
        let mut wrapped = [&change.wrap_services, &change.wrap_steps].into_iter();
        if wrapped.any(|words| words.first().is_some_and(String::is_empty)) {
            return refused("has no program before the commands that it wraps".into());
        }
        if change.setup.iter().any(Vec::is_empty) {
            return refused("has an empty command in setup".into());
        }
        for patch in &mut change.patches {
            *patch = beside.join(&*patch);
            if let Err(error) = kerntune_work::open_file(&*patch) {
                let name = &change.name;
                return Err(format!("{at}: change \"{name}\": cannot read {}: {error}", patch.display()));
            }
        }
    }
    Ok(changes)
}

fn is_config_line(line: &str) -> bool {
    line.starts_with("CONFIG_") && kerntune_kernel::config_line(line).is_ok()
}

impl TrialChange {
    fn is_empty(&self) -> bool {
        // Every field is named here, so that a new one is not forgotten.
        let Self {
            name: _,
            about: _,
            config,
            patches,
            kcflags,
            command_line,
            sysctl,
            env,
            setup,
            service_arguments,
            wrap_services,
            wrap_steps,
            recipe,
        } = self;
        config.is_empty()
            && patches.is_empty()
            && kcflags.is_empty()
            && command_line.trim().is_empty()
            && sysctl.is_empty()
            && env.is_empty()
            && setup.is_empty()
            && service_arguments.is_empty()
            && wrap_services.is_empty()
            && wrap_steps.is_empty()
            && recipe.is_none()
    }

    /// Returns whether the change affects the kernel's build.
    pub fn is_of_kernel(&self) -> bool {
        !(self.config.is_empty() && self.patches.is_empty() && self.kcflags.is_empty())
            || self.recipe.is_some()
    }

    /// Applies the change to the request of a kernel.
    pub fn apply_to_build(&self, request: &mut BuildRequest) {
        request.extra.extend_from_slice(&self.config);
        request.patches.extend_from_slice(&self.patches);
        request.kcflags.extend_from_slice(&self.kcflags);
    }

    /// Applies the change to the workload. Of several changes the last one wins.
    pub fn apply_to_workload(&self, workload: &mut Workload) {
        let line = self.command_line.trim();
        if !line.is_empty() {
            workload.append = format!("{} {line}", workload.append).trim().to_owned();
        }
        workload.env.extend(self.env.clone());
        let knob = |(knob, value): (&String, &String)| {
            ["busybox", "sysctl", "-w", &format!("{knob}={value}")].map(String::from).to_vec()
        };
        let first: Vec<_> = self.sysctl.iter().map(knob).chain(self.setup.clone()).collect();
        workload.setup.splice(0..0, first);
        let wrap = |command: &mut Vec<String>, with: &[String]| {
            command.splice(0..0, with.iter().cloned());
        };
        for service in &mut workload.services {
            for (program, words) in &self.service_arguments {
                let is_program =
                    |word: &String| Path::new(word).file_name().is_some_and(|name| name == program.as_str());
                if service.command.iter().any(is_program) {
                    service.command.extend_from_slice(words);
                }
            }
            wrap(&mut service.command, &self.wrap_services);
        }
        for run in [&mut workload.training, &mut workload.measured] {
            let steps = run.steps.iter_mut().map(|step| &mut step.command);
            steps.chain(&mut run.warmup).for_each(|command| wrap(command, &self.wrap_steps));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<TrialChange>, String> {
        parse(text, Path::new("/nowhere/changes.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_change_is_what_the_file_says() {
        let text = "[[change]]\nname = \"a\"\nconfig = [\"CONFIG_HZ_100=y\"]\ncommand_line = \"nohz=off\"\n\
                    sysctl = { \"vm.swappiness\" = \"0\" }\nsetup = [[\"true\"]]\n";
        let changes = read(text).unwrap();
        let mut request = BuildRequest::new("debian:6.12".parse().unwrap(), "base");
        changes[0].apply_to_build(&mut request);
        assert_eq!(request.extra, ["CONFIG_HZ_100=y"]);
        let mut workload = Workload::find("rr", &[]).unwrap();
        let before = workload.setup.clone();
        changes[0].apply_to_workload(&mut workload);
        assert_eq!(workload.append, "nohz=off");
        assert_eq!(workload.setup[..2], [vec!["busybox", "sysctl", "-w", "vm.swappiness=0"], vec!["true"]]);
        assert_eq!(workload.setup[2..], before);
    }

    #[test]
    fn commands_are_wrapped() {
        let text = "[[change]]\nname = \"a\"\nwrap_services = [\"chrt\", \"-r\", \"1\"]\n\
                    wrap_steps = [\"taskset\", \"1\"]\n\
                    service_arguments = { redis-server = [\"--x\"], postgres = [\"-y\"] }\n";
        let mut workload = Workload::find("redis", &[]).unwrap();
        let before = workload.clone();
        read(text).unwrap()[0].apply_to_workload(&mut workload);
        for (service, plain) in workload.services.iter().zip(&before.services) {
            assert_eq!(service.command[..3], ["chrt", "-r", "1"]);
            assert_eq!(service.command[3..], [plain.command.clone(), vec!["--x".into()]].concat());
        }
        for (step, plain) in workload.measured.steps.iter().zip(&before.measured.steps) {
            assert_eq!(step.command[..2], ["taskset", "1"]);
            assert_eq!(step.command[2..], plain.command);
        }
        assert!(!workload.services.is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("[[change]]\nname = \"a\"\nwrap_steps = [\"\"]", "has no program before"),
            ("", "missing field `change`"),
            ("change = []", "has 0 changes"),
            ("[[change]]\nname = \"a b\"\nkcflags = [\"-O3\"]", "\"a b\" has a name"),
            ("[[change]]\nname = \"a\"", "changes nothing"),
            ("[[change]]\nname = \"a\"\nconfg = []", "unknown field `confg`"),
            ("[[change]]\nname = \"a\"\nconfig = [\"HZ=100\"]", "\"HZ=100\" in config"),
            ("[[change]]\nname = \"a\"\nsysctl = { \"a=b\" = \"1\" }", "the knob \"a=b\""),
            ("[[change]]\nname = \"a\"\npatches = [\"no.patch\"]", "cannot read /nowhere/no.patch"),
            (
                "[[change]]\nname = \"a\"\nrecipe = \"layout\"\n[[change]]\nname = \"a\"\nrecipe = \"layout\"",
                "is there twice",
            ),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(said) && message.contains("/nowhere/changes.toml"), "{text}: {message}");
        }
    }
}
