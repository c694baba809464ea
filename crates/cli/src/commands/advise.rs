//! The command `kerntune advise`.

use super::characterize::costs;
use clap::Args;
use kerntune_command::{
    command, separate_damage, work_to_read, CliOutput, CommandEntry, Exit, Failure, FormatOptions,
    GlobalOptions, OutputFile, RunSubcommand,
};
use kerntune_guest::read_text;
use kerntune_kernel::find_recorded;
use kerntune_profile::{find, load_config, Manifest, Profile};
use kerntune_report::advise::{advise, built_in, AdviceRule, RecordedConfig};
use kerntune_report::characterize::CharacterSubject;
use kerntune_work::{IoContext, WorkDir};
use std::fs;
use std::path::{Path, PathBuf};

pub const COMMAND: CommandEntry = command::<AdviseOptions>("advise", 80, "Look");

/// Suggest changes that may help a workload: rules that apply to its profile, with evidence,
/// risk and source; writes the changes to a file for `ablate` (docs/advise.md)
#[derive(Debug, Args)]
pub struct AdviseOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    pub profile: String,
    /// Use only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Also apply the rules in this directory (*.toml); a rule replaces the built-in rule of the
    /// same name
    #[arg(long, value_name = "DIR")]
    pub rules: Option<PathBuf>,
    /// Also propose changes with less than 0.1 % of the busy time at stake, and list the rules that
    /// do not apply, each with the reason
    #[arg(long)]
    pub all: bool,
    /// Write the proposed changes to this file, for `kerntune ablate`
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for AdviseOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = self.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
        let rules = rules(self.rules.as_deref())?;
        let work = work_to_read(global)?;
        let directory = find(&work, &self.profile)?.path;
        let profile = Profile::load(&directory)?;
        let costs = costs(&profile.manifest);
        let wanted = CharacterSubject { profile: &profile, region: self.region.as_deref(), costs };
        let config = config(&work, &directory, &profile.manifest);
        let (config, damage) = separate_damage(config)?;
        let recorded = match (&config, &damage) {
            (Some(text), _) => RecordedConfig::Known(text),
            (None, None) => RecordedConfig::Missing,
            (None, Some(_)) => RecordedConfig::Damaged,
        };
        let advice = advise(&wanted, recorded, &rules)?;
        match self.format.json {
            true => output.print(&advice.json()?),
            false => output.print(&advice.text(output.style(), self.all)),
        }
        if let Some(file) = &file {
            match advice.changes(self.all) {
                Some(changes) => {
                    file.write(changes.as_bytes())?;
                    let (path, manifest) = (file.path().display(), &profile.manifest);
                    // The command that a live profile is of is no workload.
                    let next = match manifest.machine.as_str() {
                        "host" => {
                            "WORKLOAD, with a workload that does what was profiled (`kerntune workload new`)"
                        }
                        _ => manifest.workload.as_str(),
                    };
                    output.note(&format!("wrote {path}; next: kerntune ablate {path} --workload {next}"));
                }
                None => output
                    .note(&format!("no change is proposed, so {} was not written", file.path().display())),
            }
        }
        Ok(match damage {
            Some(damage) => {
                let unevaluated = advice.unevaluated();
                output.left_out(
                    &damage,
                    &format!("{} rules were not asked: {}", unevaluated.len(), unevaluated.join(", ")),
                )
            }
            None => Exit::Ok,
        })
    }

    fn is_read(&self) -> bool {
        true
    }
}

/// Returns the built-in rules and the rules in `directory`, sorted by name; a rule in the directory
/// replaces the built-in rule of the same name.
fn rules(directory: Option<&Path>) -> Result<Vec<AdviceRule>, Failure> {
    let mut rules = built_in();
    let Some(directory) = directory else { return Ok(rules) };
    let listed = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut files: Vec<PathBuf> =
        listed.at("list", directory)?.iter().map(fs::DirEntry::path).filter(|path| is_rule(path)).collect();
    files.sort();
    if files.is_empty() {
        return Err(Failure::usage(format!(
            "--rules {}: the directory has no .toml file",
            directory.display()
        )));
    }
    for file in &files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let rule = AdviceRule::parse(&name, &read_text("read", file)?)
            .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
        rules.retain(|known| known.name() != rule.name());
        rules.push(rule);
    }
    rules.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(rules)
}

fn is_rule(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "toml")
}

/// Returns the configuration that the profile brings, or else that of the recorded kernel; `None` if
/// this kernel is not in the work directory either.
///
/// # Errors
/// The file or the kernel exists and is damaged.
fn config(work: &WorkDir, directory: &Path, manifest: &Manifest) -> Result<Option<String>, Failure> {
    if let Some(text) = load_config(directory, manifest.host.as_ref())? {
        return Ok(Some(text));
    }
    let kernel = find_recorded(work, &manifest.kernel.id)?;
    Ok(kernel.map(|kernel| read_text("read", &kernel.config())).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{KernelId, Tables};

    /// Checks that `ablate` accepts the change of every rule, even of rules that do not apply.
    #[test]
    fn every_change_that_is_built_in_can_be_tried() {
        let directory = tempfile::tempdir().unwrap();
        for rule in built_in() {
            let name = rule.name().to_owned();
            let path =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/advice").join(format!("{name}.toml"));
            let text = fs::read_to_string(path).unwrap();
            let Some((_, change)) = text.split_once("\n[change]\n") else { continue };
            // A condition that always holds.
            let head = "about = \"a\"\nwhy = \"w\"\nrisk = \"r\"\nsource = \"s\"\n[[when]]\nconfig = [\"CONFIG_X=y\"]\n";
            let rule = AdviceRule::parse(&name, &format!("{head}[change]\n{change}")).unwrap();
            let manifest = Manifest::new("p", KernelId::default(), "w", "emulator");
            let profile = Profile { manifest, tables: Tables::default() };
            let wanted = CharacterSubject { profile: &profile, region: None, costs: None };
            let changes = advise(&wanted, RecordedConfig::Known("CONFIG_X=y\n"), &[rule])
                .unwrap()
                .changes(true)
                .unwrap();
            let parsed = kerntune_tune::trial::parse(&changes, &directory.path().join("changes.toml"));
            assert_eq!(parsed.unwrap()[0].name, name, "{changes}");
        }
    }

    #[test]
    fn rules_of_a_directory_take_the_place_of_those_built_in() {
        let directory = tempfile::tempdir().unwrap();
        let empty = rules(Some(directory.path())).unwrap_err();
        assert!(empty.message.contains("no .toml file"), "{}", empty.message);
        let text = "about = \"ours\"\nwhy = \"w\"\nrisk = \"r\"\nsource = \"s\"\n[[when]]\nfact = \"cpus\"\nat_least = 1\n";
        fs::write(directory.path().join("timer-rate.toml"), text).unwrap();
        fs::write(directory.path().join("zzz.toml"), text).unwrap();
        let all = rules(Some(directory.path())).unwrap();
        assert_eq!(all.len(), built_in().len() + 1);
        assert!(all.windows(2).all(|pair| pair[0].name() < pair[1].name()));
        fs::write(directory.path().join("bad.toml"), "about = 1").unwrap();
        let bad = rules(Some(directory.path())).unwrap_err().message;
        assert!(bad.contains("bad.toml") && bad.contains("rule bad"), "{bad}");
    }
}
