//! Code of a kernel that runs with some workloads and with the functional checks.

use super::choose::ConfigOptions;
use crate::dry_run::DryRun;
use crate::runs::record::{record, CaptureOptions, RecordRequest, RecordedProfile, Repetition};
use crate::runs::run_files::recording;
use crate::{Error, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{BuildConditions, Kernel, KernelFunction, Symbols};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The checks as a workload with a region, so that they can be recorded.
const CHECKS: &str = "description = \"Functional checks of a kernel\"\nmemory_mb = 512\ntime_limit_seconds = 600\n\
    [measured]\n[[measured.step]]\nregion = \"checks\"\noperations = 1\ncommand = [\"selftest\", \"--report\"]\n";

/// Capture of executed blocks alone.
const BLOCKS: CaptureOptions = CaptureOptions { functions: false, edges: true };

/// Number of functions, and of those that ran.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FunctionCount {
    pub all: usize,
    pub ran: usize,
}

/// Files of an option that is built in, and their functions. `own` files depend on no narrower
/// option.
pub(super) struct OptionUse<'a> {
    pub files: BTreeSet<&'a str>,
    pub all: FunctionCount,
    pub own_files: Vec<&'a str>,
    pub own: FunctionCount,
}

impl OptionUse<'_> {
    /// Returns whether fewer than `least_percent` of its functions ran.
    fn is_little(&self, min_percent: f64) -> bool {
        100.0 * (self.all.ran as f64) < min_percent * self.all.all as f64
    }
}

/// Returns files whose executed code does not count: files of options that are used too little,
/// except those of nested options that are used enough. Options that are used enough only through
/// nested ones count by their own files.
pub(super) fn barely_used_files<'a>(
    used: &BTreeMap<&str, OptionUse<'a>>,
    min_percent: f64,
) -> BTreeSet<&'a str> {
    let (little, much): (Vec<_>, Vec<_>) = used.values().partition(|of| of.is_little(min_percent));
    let mut files = BTreeSet::new();
    for of in little {
        let within = much.iter().filter(|other| other.files.is_subset(&of.files));
        let used: BTreeSet<&str> = within.flat_map(|other| other.files.iter().copied()).collect();
        files.extend(of.files.difference(&used));
    }
    let is_little = |own: FunctionCount| 100.0 * (own.ran as f64) < min_percent * own.all as f64;
    files.extend(much.iter().filter(|of| is_little(of.own)).flat_map(|of| of.own_files.iter().copied()));
    files
}

/// Returns the use of each option that is built in.
pub(super) fn option_uses<'a>(
    gates: &'a BuildConditions,
    built_in: &ConfigOptions,
    counts: &BTreeMap<String, FunctionCount>,
) -> BTreeMap<&'a str, OptionUse<'a>> {
    let sum = |files: &mut dyn Iterator<Item = &&'a str>| {
        files.filter_map(|file| counts.get(*file)).fold(FunctionCount::default(), |sum, count| {
            FunctionCount { all: sum.all + count.all, ran: sum.ran + count.ran }
        })
    };
    let by_option = gates.by_option().into_iter().filter(|(option, _)| built_in.contains(*option));
    let mut found: BTreeMap<&str, OptionUse> = by_option
        .map(|(option, files)| {
            let all = sum(&mut files.iter());
            (option, OptionUse { files, all, own_files: Vec::new(), own: FunctionCount::default() })
        })
        .collect();
    let mut narrowest: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (option, of) in &found {
        for file in &of.files {
            let known = narrowest.entry(file).or_insert((of.files.len(), option));
            *known = (*known).min((of.files.len(), option));
        }
    }
    for (file, (_, option)) in narrowest {
        found.entry(option).and_modify(|of| of.own_files.push(file));
    }
    for of in found.values_mut() {
        of.own = sum(&mut of.own_files.iter());
    }
    found
}

/// Code of a kernel that ran.
pub(super) struct ExecutedCode {
    /// Files with code that ran since the first program began, each with a function of it.
    pub files: BTreeMap<String, String>,
    /// Functions of each file, without initialization.
    pub counts: BTreeMap<String, FunctionCount>,
    /// Files with code that ran, boot included.
    pub with_boot: BTreeSet<String>,
    /// Number of functions that ran since the first program began.
    pub functions: usize,
}

/// Records all workloads, both runs of each, and the checks, and returns the code that ran.
pub(super) fn executed_code(
    session: &Session,
    kernel: &Kernel,
    symbols: &Symbols,
    workloads: &[Workload],
) -> Result<ExecutedCode> {
    let functions = symbols.functions();
    let start = symbols.address_of("_sinittext").unwrap_or(u64::MAX);
    let end = symbols.address_of("_einittext").unwrap_or(0);
    let is_initialization = |function: &KernelFunction| (start..end).contains(&function.address);
    let (mut ever, mut since) = (BTreeSet::new(), BTreeSet::new());
    let mut add = |workload: &Workload, run: &str| -> Result<()> {
        let recording = recording(&record_with_region(session, kernel, workload, run)?.path)?;
        ever.extend(recording.ran);
        since.extend(recording.ran_since_boot);
        Ok(())
    };
    for workload in workloads {
        for (run, _) in workload.runs() {
            add(workload, run)?;
        }
    }
    add(&Workload::parse(CHECKS, Path::new("checks.toml"))?, "measured")?;
    let function = |at: &u32| functions.get(*at as usize).filter(|function| !is_initialization(function));
    let since: Vec<&KernelFunction> = since.iter().filter_map(function).collect();
    if since.is_empty() {
        return Err(Error::NothingToTrim {
            kernel: kernel.manifest.label.clone(),
            why: "its runs do not say what ran: they are of another machine than the emulator".into(),
        });
    }
    let mut files = BTreeMap::new();
    for function in &since {
        if let Some(file) = &function.file {
            files.entry(file.clone()).or_insert_with(|| function.name.clone());
        }
    }
    let mut counts: BTreeMap<String, FunctionCount> = BTreeMap::new();
    for function in
        functions.iter().filter(|function| function.part_of.is_none() && !is_initialization(function))
    {
        if let Some(file) = &function.file {
            counts.entry(file.clone()).or_default().all += 1;
        }
    }
    for file in since.iter().filter_map(|function| function.file.as_ref()) {
        if let Some(count) = counts.get_mut(file) {
            count.ran += 1;
        }
    }
    let with_boot = ever.iter().filter_map(function).filter_map(|function| function.file.clone()).collect();
    Ok(ExecutedCode { files, counts, with_boot, functions: since.len() })
}

/// Adds the recordings of [`executed_code`] to a dry run.
///
/// # Errors
/// Those of a recording before it boots the kernel.
pub(super) fn dry_run(dry: &mut DryRun, kernel: Option<&Kernel>, workloads: &[Workload]) -> Result<()> {
    let checks = Workload::parse(CHECKS, Path::new("checks.toml"))?;
    let runs = workloads
        .iter()
        .flat_map(|workload| workload.runs().into_iter().map(move |(run, _)| (workload, run)));
    for (workload, run) in runs.chain([(&checks, "measured")]) {
        let found = match kernel {
            Some(kernel) => dry.find(|session| record_with_region(session, kernel, workload, run))?,
            None => None,
        };
        let what = format!("record what {} runs of the kernel ({run})", workload.name);
        let found = found.as_ref().map(|found| &*found.path);
        dry.add("record", what, found, |dry| Some(dry.of_runs(workload, run, 1)));
    }
    Ok(())
}

/// Records a run; adds a region if it marks none.
fn record_with_region(
    session: &Session,
    kernel: &Kernel,
    workload: &Workload,
    run: &str,
) -> Result<RecordedProfile> {
    let capture = |workload: &Workload| {
        let request = RecordRequest {
            kernel,
            workload,
            run,
            capture: BLOCKS,
            model: None,
            repeat: Repetition::Number(0),
        };
        record(session, &request)
    };
    match capture(workload) {
        Err(Error::NothingRecorded { .. }) => {
            let mut marked = workload.clone();
            let steps =
                if run == "training" { &mut marked.training.steps } else { &mut marked.measured.steps };
            if let Some(step) = steps.first_mut() {
                step.region = Some("run".into());
                step.operations = Some(1);
            }
            capture(&marked)
        }
        recorded => recorded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn of_what_is_little_used_stays_what_is_used_within_it() {
        let dir = tempfile::tempdir().unwrap();
        // NET contains SIX and UNIX; six/proc.o also depends on PROC, which is used.
        for (path, text) in [
            ("Kbuild", "obj-$(CONFIG_NET) += net/\nobj-$(CONFIG_PROC) += proc.o\n"),
            ("net/Makefile", "obj-y += core.o\nobj-$(CONFIG_SIX) += six/\nobj-$(CONFIG_UNIX) += unix.o\n"),
            ("net/six/Makefile", "obj-y += six.o\nobj-$(CONFIG_PROC) += proc.o\n"),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let files = ["net/core.c", "net/six/six.c", "net/six/proc.c", "net/unix.c", "proc.c"];
        let gates = BuildConditions::read(dir.path(), "x86", files);
        let built_in: ConfigOptions = ["NET", "SIX", "UNIX", "PROC"].map(String::from).into();
        let counts: BTreeMap<String, FunctionCount> = files
            .iter()
            .zip([(100, 2), (80, 4), (4, 4), (10, 6), (10, 8)])
            .map(|(file, (all, ran))| ((*file).to_string(), FunctionCount { all, ran }))
            .collect();
        let used = option_uses(&gates, &built_in, &counts);
        let count = |option: &str| (used[option].all.all, used[option].all.ran, used[option].own.all);
        assert_eq!((count("NET"), count("SIX"), count("PROC")), ((194, 16, 100), (84, 8, 80), (14, 12, 14)));
        assert_eq!(barely_used_files(&used, 0.0), BTreeSet::new());
        // SIX and NET are little used; UNIX, within NET, is used.
        assert_eq!(barely_used_files(&used, 10.0), ["net/core.c", "net/six/proc.c", "net/six/six.c"].into());
        // SIX is used through its file that depends on PROC: its own files do not count.
        assert_eq!(barely_used_files(&used, 9.0), ["net/core.c", "net/six/six.c"].into());
    }
}
