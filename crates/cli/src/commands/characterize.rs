//! The command `kerntune characterize`.

use clap::Args;
use kerntune_command::{
    command, work_to_read, CliOutput, CommandEntry, Exit, Failure, FormatOptions, GlobalOptions, OutputFile,
    RunSubcommand,
};
use kerntune_compare::ModelCosts;
use kerntune_profile::{find, Error, Manifest, Profile};
use kerntune_report::characterize::{
    characterize, references, CharacterSubject, ProcStep, ReferenceWorkload, PROC_FILES,
};
use kerntune_tune::model;
use kerntune_tune::run_files::RUN;
use kerntune_work::{checked, WorkDir};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub const COMMAND: CommandEntry = command::<CharacterizeOptions>("characterize", 75, "Look");

/// Describe a workload on one page: what dominates it, what it does per operation and per
/// second, and how similar it is to others (docs/characterize.md)
#[derive(Debug, Args)]
#[command(alias = "characterise")]
pub struct CharacterizeOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    pub profile: String,
    /// Use only events in the regions of this name; adds figures per operation
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Compare with this profile, for example of another workload or a later dump, and show their
    /// similarity. PROFILE uses the same --region, PROFILE:NAME the regions of that name, and
    /// PROFILE: the whole profile; reference:NAME is a reference workload of that name or kind
    /// (reference:nginx, reference:web). May be repeated
    #[arg(long, alias = "beside", value_name = "PROFILE[:NAME]|reference:NAME")]
    pub against: Vec<String>,
    /// Write a self-contained page instead of text
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Save the figures and the distribution of time as a reference file, for comparison with other
    /// profiles (docs/characterize.md)
    #[arg(long, value_name = "FILE.toml", requires = "kind")]
    pub save_reference: Option<PathBuf>,
    /// Kind of work of the reference: web, OLTP, key-value
    #[arg(long, value_name = "WORDS", requires = "save_reference")]
    pub kind: Option<String>,
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for CharacterizeOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let page = self.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
        let work = work_to_read(global)?;
        let path = find(&work, &self.profile)?.path;
        let profile = Profile::load(&path)?;
        let region = self.region.as_deref();
        let (references, others): (Vec<&String>, Vec<&String>) =
            self.against.iter().partition(|named| named.starts_with(REFERENCE));
        let references =
            references.into_iter().map(|named| reference(named)).collect::<Result<Vec<_>, _>>()?;
        let beside = others
            .into_iter()
            .map(|named| other(&work, named, region))
            .collect::<Result<Vec<(Profile, Option<&str>)>, Failure>>()?;
        let others: Vec<CharacterSubject> =
            beside.iter().map(|(profile, region)| wanted(profile, *region)).collect();
        let mut found = characterize(&wanted(&profile, region), &others)?;
        if region.is_none() {
            found = found.with_proc_checks(&profile, &readings(&path)?);
        }
        for reference in references.iter().flatten() {
            found = found.beside_reference(reference);
        }
        if let (Some(file), Some(kind)) = (&self.save_reference, &self.kind) {
            let file = OutputFile::new("--save-reference", file)?;
            let text = found.reference(kind, env!("CARGO_PKG_VERSION"))?.text()?;
            file.write(text.as_bytes())?;
            output.note(&format!("wrote {} ({} KiB)", file.path().display(), text.len().div_ceil(1024)));
            return Ok(Exit::Ok);
        }
        if let Some(page) = &page {
            let html = found.html(concat!("kerntune ", env!("CARGO_PKG_VERSION")));
            page.write(html.as_bytes())?;
            output.note(&format!("wrote {} ({} KiB)", page.path().display(), html.len().div_ceil(1024)));
        }
        if self.format.json {
            output.print(&found.json()?);
        } else if page.is_none() {
            output.print(&found.text(output.style()));
        }
        Ok(Exit::Ok)
    }

    fn is_read(&self) -> bool {
        true
    }
}

/// Prefix of reference workloads in `--against`.
const REFERENCE: &str = "reference:";

/// Returns the reference workload `named`, or all of that kind.
fn reference(named: &str) -> Result<Vec<ReferenceWorkload>, Failure> {
    let word = named.strip_prefix(REFERENCE).unwrap_or(named);
    let all = references();
    let list = all.iter().map(|reference| format!("{} ({})", reference.name(), reference.kind()));
    let list = list.collect::<Vec<_>>().join(", ");
    let (mut named_so, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|reference| reference.name() == word);
    if named_so.is_empty() {
        named_so = others.into_iter().filter(|reference| reference.kind() == word).collect();
    }
    if named_so.is_empty() {
        return Err(Failure::usage(format!(
            "--against {named}: no reference has that name or kind; there are {list}"
        )));
    }
    Ok(named_so)
}

/// Returns the guest's /proc counters around each step, in order of the steps; empty if the profile
/// was recorded without `--proc`.
fn readings(profile: &Path) -> Result<Vec<ProcStep>, Failure> {
    const BEFORE: &str = "-before";
    let directory = profile.join(RUN).join("guest/proc");
    let failed = |path: &Path, error: std::io::Error| Failure {
        exit: Exit::Profile,
        message: format!("cannot read {}: {error}", path.display()),
    };
    let mut names = Vec::new();
    match fs::read_dir(&directory) {
        Ok(entries) => {
            for entry in entries {
                let name = entry.map_err(|error| failed(&directory, error))?.file_name();
                names.extend(name.to_string_lossy().strip_suffix(BEFORE).map(str::to_owned));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&directory, error)),
    }
    names.sort();
    checked(profile, &["run/guest/proc/"])?;
    let read = |name: &str, when: &str| -> Result<BTreeMap<String, String>, Failure> {
        let mut texts = BTreeMap::new();
        for file in PROC_FILES {
            let path = directory.join(format!("{name}{when}")).join(file);
            match fs::read(&path) {
                Ok(bytes) => texts.insert(file.to_owned(), String::from_utf8_lossy(&bytes).into_owned()),
                // A small kernel may lack this file.
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(failed(&path, error)),
            };
        }
        Ok(texts)
    };
    names
        .iter()
        .map(|name| Ok(ProcStep { before: read(name, BEFORE)?, after: read(name, "-after")? }))
        .collect()
}

/// Loads another profile to compare with, and selects its regions: `PROFILE`, `PROFILE:NAME` or
/// `PROFILE:`. An existing directory may have a colon in its path.
fn other<'a>(
    work: &WorkDir,
    named: &'a str,
    region: Option<&'a str>,
) -> Result<(Profile, Option<&'a str>), Failure> {
    let of =
        |failure: Failure| Failure { message: format!("--against {named}: {}", failure.message), ..failure };
    let (entry, region) = match (find(work, named), named.split_once(':')) {
        (Err(Error::NotFound { .. } | Error::NotAProfile { .. }), Some((name, its))) => {
            (find(work, name), Some(its).filter(|its| !its.is_empty()))
        }
        (entry, _) => (entry, region),
    };
    let profile = entry.and_then(|entry| Profile::load(&entry.path)).map_err(|error| of(error.into()))?;
    // Checked here, where the error can name the profile.
    kerntune_report::scope(&profile, region).map_err(|error| of(error.into()))?;
    Ok((profile, region))
}

fn wanted<'a>(profile: &'a Profile, region: Option<&'a str>) -> CharacterSubject<'a> {
    CharacterSubject { profile, region, costs: costs(&profile.manifest) }
}

/// Returns the costs of events in the profile's front-end model. `None` if the model is not built
/// in, because its file may have changed since the recording.
pub fn costs(manifest: &Manifest) -> Option<ModelCosts> {
    let name = manifest.model.as_deref().filter(|name| !name.contains(['/', '.']))?;
    model::find(name).ok()?.costs
}
