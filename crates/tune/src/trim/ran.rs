//! What ran of a kernel with some workloads and with the functional checks.

use super::choose::Options;
use crate::record::{record, Capture, RecordRequest, Recorded, Repeat};
use crate::run_files::recording;
use crate::{Error, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{Function, Gates, Kernel, Symbols};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The checks as a workload with a region, so that they can be recorded.
const CHECKS: &str = "description = \"Functional checks of a kernel\"\nmemory_mb = 512\ntime_limit_seconds = 600\n\
    [measured]\n[[measured.step]]\nregion = \"checks\"\noperations = 1\ncommand = [\"selftest\", \"--report\"]\n";

/// What says which blocks ran.
const BLOCKS: Capture = Capture { functions: false, edges: true };

/// Functions, and how many of them ran.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub all: usize,
    pub ran: usize,
}

/// Functions in the files that hang on each option that is built in: in all of them, and in those that hang on no narrower one.
pub(super) struct Use<'a> {
    pub files: BTreeSet<&'a str>,
    pub all: Count,
    pub own_files: Vec<&'a str>,
    pub own: Count,
}

impl Use<'_> {
    /// Whether less of its functions ran than counts.
    fn is_little(&self, least_percent: f64) -> bool {
        100.0 * (self.all.ran as f64) < least_percent * self.all.all as f64
    }
}

/// Files of which what ran does not count: those that hang on an option that is little used, but for those of options within it
/// that are used. Of an option that is used for those within it, its own files are looked at.
pub(super) fn unused<'a>(used: &BTreeMap<&str, Use<'a>>, least_percent: f64) -> BTreeSet<&'a str> {
    let (little, much): (Vec<_>, Vec<_>) = used.values().partition(|of| of.is_little(least_percent));
    let mut files = BTreeSet::new();
    for of in little {
        let within = much.iter().filter(|other| other.files.is_subset(&of.files));
        let used: BTreeSet<&str> = within.flat_map(|other| other.files.iter().copied()).collect();
        files.extend(of.files.difference(&used));
    }
    let is_little = |own: Count| 100.0 * (own.ran as f64) < least_percent * own.all as f64;
    files.extend(much.iter().filter(|of| is_little(of.own)).flat_map(|of| of.own_files.iter().copied()));
    files
}

/// How much of each option that is built in ran.
pub(super) fn used<'a>(
    gates: &'a Gates,
    built_in: &Options,
    counts: &BTreeMap<String, Count>,
) -> BTreeMap<&'a str, Use<'a>> {
    let sum = |files: &mut dyn Iterator<Item = &&'a str>| {
        files
            .filter_map(|file| counts.get(*file))
            .fold(Count::default(), |sum, count| Count { all: sum.all + count.all, ran: sum.ran + count.ran })
    };
    let by_option = gates.by_option().into_iter().filter(|(option, _)| built_in.contains(*option));
    let mut found: BTreeMap<&str, Use> = by_option
        .map(|(option, files)| {
            let all = sum(&mut files.iter());
            (option, Use { files, all, own_files: Vec::new(), own: Count::default() })
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

/// What ran of a kernel.
pub(super) struct Ran {
    /// Files of which code ran since the first program began, each with a function that did.
    pub files: BTreeMap<String, String>,
    /// Functions of each file, initialisation left out.
    pub counts: BTreeMap<String, Count>,
    /// Files of which code ran, the boot included.
    pub with_boot: BTreeSet<String>,
    /// How many functions did since the first program began.
    pub functions: usize,
}

/// What ran of the kernel with all workloads, in both of their runs, and with the checks.
pub(super) fn ran(
    session: &Session,
    kernel: &Kernel,
    symbols: &Symbols,
    workloads: &[Workload],
) -> Result<Ran> {
    let functions = symbols.functions();
    let start = symbols.address_of("_sinittext").unwrap_or(u64::MAX);
    let end = symbols.address_of("_einittext").unwrap_or(0);
    let is_initialisation = |function: &Function| (start..end).contains(&function.address);
    let (mut ever, mut since) = (BTreeSet::new(), BTreeSet::new());
    let mut add = |workload: &Workload, run: &str| -> Result<()> {
        let recording = recording(&covered(session, kernel, workload, run)?.path)?;
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
    let function = |at: &u32| functions.get(*at as usize).filter(|function| !is_initialisation(function));
    let since: Vec<&Function> = since.iter().filter_map(function).collect();
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
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for function in
        functions.iter().filter(|function| function.part_of.is_none() && !is_initialisation(function))
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
    Ok(Ran { files, counts, with_boot, functions: since.len() })
}

/// A recording of a run; one that marks no region gets one.
fn covered(session: &Session, kernel: &Kernel, workload: &Workload, run: &str) -> Result<Recorded> {
    let capture = |workload: &Workload| {
        let request =
            RecordRequest { kernel, workload, run, capture: BLOCKS, model: None, repeat: Repeat::Number(0) };
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
        // NET has SIX and UNIX within it; six/proc.o hangs on PROC as well, which is used.
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
        let gates = Gates::read(dir.path(), "x86", files);
        let built_in: Options = ["NET", "SIX", "UNIX", "PROC"].map(String::from).into();
        let counts: BTreeMap<String, Count> = files
            .iter()
            .zip([(100, 2), (80, 4), (4, 4), (10, 6), (10, 8)])
            .map(|(file, (all, ran))| ((*file).to_string(), Count { all, ran }))
            .collect();
        let used = used(&gates, &built_in, &counts);
        let count = |option: &str| (used[option].all.all, used[option].all.ran, used[option].own.all);
        assert_eq!((count("NET"), count("SIX"), count("PROC")), ((194, 16, 100), (84, 8, 80), (14, 12, 14)));
        assert_eq!(unused(&used, 0.0), BTreeSet::new());
        // SIX and NET are little used; UNIX, within NET, is used.
        assert_eq!(unused(&used, 10.0), ["net/core.c", "net/six/proc.c", "net/six/six.c"].into());
        // SIX is used, for its file that hangs on PROC: of its own files nothing counts.
        assert_eq!(unused(&used, 9.0), ["net/core.c", "net/six/six.c"].into());
    }
}
