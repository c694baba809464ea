//! Options of a kernel of which several workloads and the functional checks run nothing, switched off.
//!
//! What ran is told by the recorder (`Recording::ran_since_boot`): from the first program on, with services, set-up and all. What
//! only booted the machine may go; if the machine does not boot without it, it is the first that comes back. Which files an option stands for is told by the Makefiles
//! ([`Gates`]), what hangs on it by Kconfig itself. Whether the kernel without them is as good is then tried like any other
//! change ([`trial`](crate::trial::trial())).

mod choose;

pub use choose::Because;

use crate::compare::measure;
use crate::model::Model;
use crate::record::{record, Capture, RecordRequest, Recorded, Repeat};
use crate::run_files::recording;
use crate::selftest::{agree, selftest};
use crate::trial::{self, Change, Trial, TrialRequest, Verdict};
use crate::{Error, Result, Session};
use choose::{widest, Chosen, Known, Options};
use kerntune_compare::{Metric, TOTAL};
use kerntune_guest::Workload;
use kerntune_kernel::{
    build, configured, fragment, BuildRequest, Configured, Function, Gates, Kconfig, Kernel, Symbols,
};
use kerntune_work::{interrupt, write_atomic, IoContext, NoProgress};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use wildmatch::WildMatch;

/// Format and version of the result in JSON.
pub const SCHEMA: &str = "kerntune-trim/1";

/// What stays although nothing of it ran, with why.
const KEPT: &str = include_str!("kept.txt");

/// The checks as a workload with a region, so that they can be recorded.
const CHECKS: &str = "description = \"Functional checks of a kernel\"\nmemory_mb = 512\ntime_limit_seconds = 600\n\
    [measured]\n[[measured.step]]\nregion = \"checks\"\noperations = 1\ncommand = [\"selftest\", \"--report\"]\n";

/// What says which blocks ran.
const BLOCKS: Capture = Capture { functions: false, edges: true };

/// What to trim, and by what.
#[derive(Debug)]
pub struct TrimRequest<'a> {
    /// What the kernel is built from.
    pub build: &'a BuildRequest,
    /// What it is for: all that they run stays.
    pub workloads: &'a [Workload],
    /// Options to keep whatever runs: names without `CONFIG_`, with `*`.
    pub keep: &'a [String],
    /// An option counts as used if at least so many per cent of its own functions ran; 0: if any did.
    pub least_percent: f64,
    /// The front-end model of the measurements.
    pub model: &'a Model,
    /// Runs of each kernel where figures depend on when they begin.
    pub runs: u32,
    /// After this time nothing new is begun.
    pub budget: Option<Duration>,
    /// Say what would go, and build nothing but the base kernel.
    pub plan_only: bool,
}

/// An option that is off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Off {
    /// Its name, without `CONFIG_`.
    pub option: String,
    /// Bytes of functions in the files that are not compiled without it. Files of nested options count for each.
    pub text_bytes: u64,
    /// How many files these are.
    pub files: usize,
    /// Whether it is a module instead: one selects it that is a module.
    pub module: bool,
}

/// An option that stays, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stays {
    /// Its name, without `CONFIG_`.
    pub option: String,
    /// As for [`Off`].
    pub text_bytes: u64,
    /// Functions in files that hang on it and on no narrower option.
    pub own_functions: usize,
    /// How many of these ran.
    pub own_ran: usize,
    /// Why.
    #[serde(flatten)]
    pub because: Because,
}

/// Bytes of functions below a directory that are not compiled any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gone {
    /// The directory.
    pub directory: String,
    /// Of the base kernel.
    pub text_bytes: u64,
    /// Of these, in files that are not compiled any more.
    pub gone_bytes: u64,
}

/// Sizes of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Its id.
    pub id: String,
    /// Options that are built in.
    pub options: usize,
    /// Functions.
    pub functions: usize,
    /// Bytes of `.text` that functions cover.
    pub text_bytes: u64,
    /// Bytes of the image that boots.
    pub image_bytes: u64,
}

/// What became of the path of a workload.
#[derive(Debug, Clone, Serialize)]
pub struct PathOf {
    /// The workload's name.
    pub workload: String,
    /// Kernel instructions on the base kernel; a mean if there are several runs.
    pub base: f64,
    /// On the trimmed kernel.
    pub trimmed: f64,
    /// What is not told from nothing.
    pub noise: f64,
    /// Runs of each.
    pub runs: u32,
    /// Whether it is longer by more than that.
    pub longer: bool,
}

/// All that was found.
#[derive(Debug, Serialize)]
pub struct Trim {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Functions of the base kernel of which code ran since the first program began.
    pub functions_ran: usize,
    /// The base kernel.
    pub base: Size,
    /// The trimmed one; none if only the plan was asked for.
    pub trimmed: Option<Size>,
    /// Options with files of their own that are off, the largest first.
    pub off: Vec<Off>,
    /// Options that went with them.
    pub went_with_them: Vec<String>,
    /// Options that are on instead.
    pub on_instead: Vec<String>,
    /// Options with files that stay, the largest first.
    pub stay: Vec<Stays>,
    /// By directory, the largest first.
    pub gone: Vec<Gone>,
    /// Of each workload; empty if only the plan was asked for.
    pub paths: Vec<PathOf>,
    /// Whether the time was up before all was tried.
    pub time_was_up: bool,
}

/// What hears of each step.
pub type Tell<'a> = dyn Fn(&str) + 'a;

/// Trims. What was made before is found again.
///
/// # Errors
/// Those of the base kernel and of its runs; [`Error::NothingToTrim`]; an interrupt.
pub fn trim(session: &Session, request: &TrimRequest, tell: &Tell) -> Result<Trim> {
    let started = Instant::now();
    let base = build(session.work, request.build, session.progress)?;
    tell("what the workloads and the functional checks run");
    let symbols = base.symbols()?;
    let mut ran = ran(session, &base, &symbols, request.workloads)?;

    tell("what Kconfig makes of it");
    let config = configured(session.work, request.build, session.progress)?;
    let files: BTreeSet<String> = base.source_files()?;
    if files.is_empty() {
        return Err(Error::NothingToTrim {
            kernel: base.manifest.label.clone(),
            why: "its build did not tell of which files its functions are".into(),
        });
    }
    let arch = base.manifest.arch.source_directory();
    let gates = Gates::read(&config.source, arch, files.iter().map(String::as_str));
    let kconfig = Kconfig::read(&config.source, arch);
    let built_in = config.built_in();
    let keep = Keep::new(request)?;
    let own = own(&gates, &built_in, &ran.counts);
    for (files, count) in own.values() {
        if 100.0 * (count.ran as f64) < request.least_percent * count.all as f64 {
            // What it did there others made it do: that it was made, closed, asked for its name.
            files.iter().for_each(|file| drop(ran.files.remove(*file)));
        }
    }
    let known = Known {
        built_in: &built_in,
        gates: &gates,
        kconfig: &kconfig,
        ran: &ran.files,
        asked: &|option| keep.why(option),
    };
    let scratch = tempfile::Builder::new().prefix("trim-").tempdir().at("create", std::env::temp_dir())?;
    let configured_without = |off: &Options| -> Result<Configured> {
        interrupt::check()?;
        // As a fragment: what does not take is no error, but the answer.
        let path = scratch.path().join("off.config");
        write_atomic(&path, (lines(off, &Options::new()).join("\n") + "\n").as_bytes())?;
        let mut asked = request.build.clone();
        asked.fragments.push(path);
        Ok(configured(session.work, &asked, &NoProgress)?)
    };
    let mut chosen = known.choose(&mut |off| Ok(configured_without(off)?.built_in()))?;
    // What a module selects can be one, too, and no less.
    let modules = configured_without(&chosen.off)?.modules();
    if chosen.off.is_empty() {
        return Err(Error::NothingToTrim {
            kernel: base.manifest.label.clone(),
            why: "every option with files of its own has one that ran, or is to be kept".into(),
        });
    }

    let mut found = Trim {
        schema: SCHEMA,
        workloads: request.workloads.iter().map(|workload| workload.name.clone()).collect(),
        functions_ran: ran.functions,
        base: size(&base, &symbols, built_in.len()),
        trimmed: None,
        off: Vec::new(),
        went_with_them: Vec::new(),
        on_instead: Vec::new(),
        stay: Vec::new(),
        gone: Vec::new(),
        paths: Vec::new(),
        time_was_up: false,
    };
    if !request.plan_only {
        let by_option = gates.by_option();
        let is_safe = |option: &str| {
            let mut files = by_option.get(option).into_iter().flatten();
            !files.any(|file| ran.with_boot.contains(*file))
        };
        let lines = |off: &Options| lines(off, &modules);
        let proof = Proof { session, request, base: &base, lines: &lines, is_safe: &is_safe, started, tell };
        proof.prove(&mut chosen, &mut found)?;
    }
    let bytes = text_by_file(&symbols);
    let by_option = gates.by_option();
    let of = |option: &str| {
        let files = by_option.get(option).map_or(0, BTreeSet::len);
        let bytes = by_option.get(option).into_iter().flatten().filter_map(|file| bytes.get(*file));
        (bytes.sum::<u64>(), files)
    };
    let off = |option: &String| {
        let (text_bytes, files) = of(option);
        Off { option: option.clone(), text_bytes, files, module: modules.contains(option) }
    };
    found.off = chosen.off.iter().map(off).collect();
    found.off.sort_by(|a, b| (b.text_bytes, &a.option).cmp(&(a.text_bytes, &b.option)));
    let stays = |(option, because): (&String, &Because)| Stays {
        option: option.clone(),
        text_bytes: of(option).0,
        own_functions: own.get(option.as_str()).map_or(0, |(_, count)| count.all),
        own_ran: own.get(option.as_str()).map_or(0, |(_, count)| count.ran),
        because: because.clone(),
    };
    found.stay = chosen.stay.iter().map(stays).collect();
    found.stay.sort_by(|a, b| (b.text_bytes, &a.option).cmp(&(a.text_bytes, &b.option)));
    let went = built_in.difference(&chosen.built_in).filter(|option| !chosen.off.contains(*option));
    found.went_with_them = went.cloned().collect();
    found.on_instead = chosen.built_in.difference(&built_in).cloned().collect();
    found.gone = gone(&bytes, |file| !gates.compiles(file, |option| chosen.built_in.contains(option)));
    Ok(found)
}

/// How a choice is proved.
struct Proof<'a> {
    session: &'a Session<'a>,
    request: &'a TrimRequest<'a>,
    base: &'a Kernel,
    /// Lines of a configuration with these options off.
    lines: &'a dyn Fn(&Options) -> Vec<String>,
    /// Whether an option did nothing at boot either.
    is_safe: &'a dyn Fn(&str) -> bool,
    started: Instant,
    tell: &'a Tell<'a>,
}

impl Proof<'_> {
    /// Builds it, has it make the checks and run the workloads, and measures. What does not work is taken back.
    fn prove(&self, chosen: &mut Chosen, found: &mut Trim) -> Result<()> {
        let Self { session, request, tell, .. } = *self;
        let is_late = || request.budget.is_some_and(|budget| self.started.elapsed() > budget);
        let mut fits = |off: &Options| -> Result<bool> {
            if off.is_empty() || is_late() {
                return Ok(off.is_empty());
            }
            tell(&format!("the kernel with {} options off", off.len()));
            match self.works(off) {
                Ok(()) => Ok(true),
                Err(error) => {
                    interrupt::check()?;
                    tell(&format!("it cannot be used: {error}"));
                    Ok(false)
                }
            }
        };
        let mut kept = Options::new();
        if fits(&chosen.off)? {
            kept.clone_from(&chosen.off);
        } else {
            // What booted the machine is the first to be suspected.
            let (safe, booted): (Vec<_>, Vec<_>) =
                chosen.off.iter().cloned().partition(|option| (self.is_safe)(option));
            kept = widest(&mut fits, kept, &safe)?;
            kept = widest(&mut fits, kept, &booted)?;
        }
        found.time_was_up = is_late() && kept != chosen.off;
        for option in chosen.off.difference(&kept) {
            chosen.stay.insert(option.clone(), Because::Fails);
        }
        let fewer = kept != chosen.off;
        chosen.off = kept;
        if chosen.off.is_empty() {
            return Ok(());
        }
        let asked = self.with(&chosen.off);
        if fewer {
            chosen.built_in = configured(session.work, &asked, session.progress)?.built_in();
        }
        let trimmed = build(session.work, &asked, session.progress)?;
        found.trimmed = Some(size(&trimmed, &trimmed.symbols()?, chosen.built_in.len()));
        let change = Change { name: "trim".into(), config: (self.lines)(&chosen.off), ..Change::default() };
        for workload in request.workloads {
            tell(&format!("the path of {}", workload.name));
            let asked = TrialRequest {
                build: request.build,
                workload,
                changes: std::slice::from_ref(&change),
                model: request.model,
                metric: Metric::PathLength,
                operation: TOTAL,
                runs: request.runs,
                budget: None,
            };
            found.paths.push(path(&trial::trial(session, &asked, &|_| {})?, workload)?);
        }
        Ok(())
    }

    /// An error unless the kernel without these options does all that it is for.
    fn works(&self, off: &Options) -> Result<()> {
        let Self { session, request, .. } = *self;
        let answers = selftest(session, self.base)?;
        let kernel = build(session.work, &self.with(off), session.progress)?;
        agree(&answers, &selftest(session, &kernel)?, &kernel.manifest.label)?;
        let run = |workload| measure(session, &kernel, workload, request.model, 0).map(drop);
        request.workloads.iter().try_for_each(run)
    }

    /// The request with these options off, by the name under which a trial of them lists its kernel.
    fn with(&self, off: &Options) -> BuildRequest {
        let mut request = self.request.build.clone();
        request.extra.extend((self.lines)(off));
        request.label = format!("{}-with-trim", request.label);
        request
    }
}

/// The figures of a trial of one change.
fn path(trial: &Trial, workload: &Workload) -> Result<PathOf> {
    let tried = trial.tried.iter().find(|tried| tried.changes.len() == 1);
    let by = tried.and_then(|tried| tried.difference).ok_or_else(|| Error::NothingToTrim {
        kernel: trial.base.clone(),
        why: tried.and_then(|tried| tried.because.clone()).unwrap_or_default(),
    })?;
    let longer = trial.judged.iter().any(|judged| judged.verdict == Verdict::Worse);
    Ok(PathOf {
        workload: workload.name.clone(),
        base: trial.base_figure,
        trimmed: trial.base_figure + by,
        noise: trial.noise,
        runs: trial.runs,
        longer,
    })
}

/// Lines of a configuration without these options, but for those that can only be modules.
fn lines(off: &Options, modules: &Options) -> Vec<String> {
    let value = |option: &String| if modules.contains(option) { 'm' } else { 'n' };
    off.iter().map(|option| format!("CONFIG_{option}={}", value(option))).collect()
}

fn size(kernel: &Kernel, symbols: &Symbols, options: usize) -> Size {
    Size {
        id: kernel.manifest.id.clone(),
        options,
        functions: symbols.functions().len(),
        text_bytes: kernel.manifest.text_bytes,
        image_bytes: kernel.manifest.image_bytes,
    }
}

/// Functions, and how many of them ran.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    all: usize,
    ran: usize,
}

/// Each option that is built in with its own files, those that hang on no narrower one, and the functions of these.
fn own<'a>(
    gates: &'a Gates,
    built_in: &Options,
    counts: &BTreeMap<String, Count>,
) -> BTreeMap<&'a str, (Vec<&'a str>, Count)> {
    let mut narrowest: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (option, files) in gates.by_option().into_iter().filter(|(option, _)| built_in.contains(*option)) {
        for file in &files {
            let known = narrowest.entry(file).or_insert((files.len(), option));
            *known = (*known).min((files.len(), option));
        }
    }
    let mut own: BTreeMap<&str, (Vec<&str>, Count)> = BTreeMap::new();
    for (file, (_, option)) in narrowest {
        let (files, sum) = own.entry(option).or_default();
        files.push(file);
        let count = counts.get(file).copied().unwrap_or_default();
        *sum = Count { all: sum.all + count.all, ran: sum.ran + count.ran };
    }
    own
}

/// What ran of a kernel.
struct Ran {
    /// Files of which code ran since the first program began, each with a function that did.
    files: BTreeMap<String, String>,
    /// Functions of each file, initialisation left out.
    counts: BTreeMap<String, Count>,
    /// Files of which code ran, the boot included.
    with_boot: BTreeSet<String>,
    /// How many functions did since the first program began.
    functions: usize,
}

/// What ran of the kernel with all workloads, in both of their runs, and with the checks.
fn ran(session: &Session, kernel: &Kernel, symbols: &Symbols, workloads: &[Workload]) -> Result<Ran> {
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

/// Bytes of functions by file.
fn text_by_file(symbols: &Symbols) -> BTreeMap<String, u64> {
    let mut bytes = BTreeMap::new();
    for function in symbols.functions() {
        if let Some(file) = &function.file {
            *bytes.entry(file.clone()).or_insert(0) += function.size;
        }
    }
    bytes
}

/// What is gone, by directory: two levels of `drivers/` and the like, one elsewhere.
fn gone(bytes: &BTreeMap<String, u64>, is_gone: impl Fn(&str) -> bool) -> Vec<Gone> {
    let mut directories: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (file, bytes) in bytes {
        let mut parts = file.split('/');
        let directory = match (parts.next(), parts.next(), parts.next()) {
            (Some(one @ ("drivers" | "net" | "fs" | "security" | "arch" | "sound")), Some(two), Some(_)) => {
                format!("{one}/{two}")
            }
            (Some(one), Some(_), _) => one.to_string(),
            _ => ".".to_string(),
        };
        let (all, gone) = directories.entry(directory).or_default();
        *all += bytes;
        *gone += if is_gone(file) { bytes } else { &0 };
    }
    let mut list: Vec<Gone> = directories
        .into_iter()
        .filter(|(_, (_, gone))| *gone > 0)
        .map(|(directory, (text_bytes, gone_bytes))| Gone { directory, text_bytes, gone_bytes })
        .collect();
    list.sort_by(|a, b| (b.gone_bytes, &a.directory).cmp(&(a.gone_bytes, &b.directory)));
    list
}

/// What is to be kept.
struct Keep {
    patterns: Vec<(WildMatch, String)>,
}

impl Keep {
    fn new(request: &TrimRequest) -> Result<Self> {
        let mut patterns = Vec::new();
        let mut add = |pattern: &str, why: &str| patterns.push((WildMatch::new(pattern), why.to_string()));
        for line in KEPT.lines().filter(|line| !line.starts_with('#')) {
            if let Some((pattern, why)) = line.split_once(' ') {
                add(pattern, why);
            }
        }
        for pattern in request.keep {
            add(pattern.strip_prefix("CONFIG_").unwrap_or(pattern), "asked for with --keep");
        }
        let set = |line: &str| Some(line.strip_prefix("CONFIG_")?.strip_suffix("=y")?.to_string());
        for option in fragment::REQUIRED.lines().filter_map(set) {
            add(&option, "every guest needs it");
        }
        for option in request.build.extra.iter().filter_map(|line| set(line)) {
            add(&option, "asked for, or a workload needs it");
        }
        for path in &request.build.fragments {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.lines().filter_map(set).for_each(|option| add(&option, "a fragment asks for it"));
        }
        Ok(Self { patterns })
    }

    fn why(&self, option: &str) -> Option<String> {
        self.patterns.iter().find(|(pattern, _)| pattern.matches(option)).map(|(_, why)| why.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_what_stays_is_well_formed() {
        for line in KEPT.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (pattern, why) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_*".contains(c);
            assert!(pattern.chars().all(is_name) && !why.trim().is_empty(), "{line}");
        }
    }

    #[test]
    fn what_is_gone_is_summed_by_directory() {
        let bytes = [
            ("drivers/tty/vt.c", 10),
            ("drivers/tty/n_tty.c", 5),
            ("kernel/fork.c", 7),
            ("net/ipv4/tcp.c", 3),
            ("net/socket.c", 2),
        ];
        let bytes = bytes.map(|(file, bytes)| (file.to_string(), bytes)).into();
        let found = gone(&bytes, |file| file != "drivers/tty/n_tty.c" && file != "kernel/fork.c");
        let of = |at: usize| (found[at].directory.as_str(), found[at].text_bytes, found[at].gone_bytes);
        assert_eq!(
            (found.len(), of(0), of(1), of(2)),
            (3, ("drivers/tty", 15, 10), ("net/ipv4", 3, 3), ("net", 2, 2))
        );
    }
}
