//! Preparation of GCC's profile from the counters that the gcov kernel exported.

use super::compiler::gcc_version;
use super::complete;
use super::dispatch;
use super::gcno::GcnoFile;
use super::profile::{COUNTS, TREE};
use super::value_health::{ValueHealth, MAX_UNLISTED_SHARE};
use super::{GccPgoProfile, GccPgoSummary, ObjectCounts, ValueSummary};
use crate::quality::{self, ProfileQuality};
use crate::stored::store;
use crate::{Error, Result};
use kerntune_convert::gcda::{summarize, CounterKind, Gcda, GcdaFunction, GcovVersion, MergeWeights};
use kerntune_kernel::Kernel;
use kerntune_work::{write_json, IoContext, Key, WorkDir};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Checks, merges and completes the counters of one or more training runs.
///
/// Each of `runs` is a directory with a copy of the guest's `/sys/kernel/debug/gcov`: files such as
/// `<build path>/kernel/fork.gcda`, at its top or in a directory `gcov` of any depth, as in
/// `sys/kernel/debug/gcov`. `gcov` is the kernel that ran, with its objects kept. Counters of
/// several runs are added up, each times its weight.
///
/// Files that belong to no object of the build are left out, and their number and names are noted:
/// those of other trees, and those of modules that were built elsewhere or at another time. Counters
/// of the build's own modules are used like those of the image.
///
/// Every case of a large `switch` gets a share of its weight, so that other work does not pay for
/// what the training never took. Each file gets the program summary, which the kernel does not
/// export and without which GCC silently ignores the whole profile. The result is named by its
/// content; an existing result is reused.
///
/// # Errors
/// Counters that do not pass the gate ([`crate::quality`]): nothing exported, files missing, of
/// another build or compiler, damaged, counters that overflowed, nothing executed.
pub fn prepare_profile(work: &WorkDir, runs: &[WeightedRun], gcov: &Kernel) -> Result<GccPgoProfile> {
    prepare(work, runs, gcov, true)
}

/// Prepares the files of one training run as the kernel exported them, without a summary: what
/// scripts give to GCC that follow the kernel's documentation. For comparisons; the checks are the
/// same.
///
/// # Errors
/// As [`prepare_profile`].
pub fn prepare_as_exported(work: &WorkDir, run: &Path, gcov: &Kernel) -> Result<GccPgoProfile> {
    prepare(work, &[WeightedRun::from(run)], gcov, false)
}

/// Returns the gate's figures of the counters that [`prepare_profile`] would accept or refuse. `note`
/// receives messages about files that are left out.
///
/// # Errors
/// As [`prepare_profile`].
pub fn check_profile(
    runs: &[WeightedRun],
    gcov: &Kernel,
    note: &mut dyn FnMut(&str),
) -> Result<ProfileQuality> {
    Ok(MergedCounters::read(runs, gcov, true, note)?.quality)
}

/// Counters of a training run, and how often they count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedRun {
    /// Directory with the counters.
    pub dir: PathBuf,
    /// Factor of all counters, at least 1.
    pub weight: u32,
}

impl From<&Path> for WeightedRun {
    /// Counts the run once.
    fn from(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), weight: 1 }
    }
}

/// Checks that `run` is a directory of `.gcda` files, of which most can be read; of any build. For
/// callers that want to know this before that kernel is built.
///
/// # Errors
/// [`Error::NothingExported`], [`Error::BadFile`].
pub fn check_files(run: &Path) -> Result<()> {
    let files = exported(run)?;
    let (mut bad, mut first) = (0, None);
    for path in &files {
        match read(path) {
            Ok(_) => {}
            Err(error @ Error::BadFile { .. }) => {
                bad += 1;
                first = first.or(Some(error));
            }
            Err(other) => return Err(other),
        }
    }
    match first {
        Some(error) if bad * 2 > files.len() => Err(error),
        _ => Ok(()),
    }
}

/// Returns the `.gcda` files below a directory, at least one.
fn exported(run: &Path) -> Result<Vec<PathBuf>> {
    match find_gcda(run)? {
        none if none.is_empty() => Err(Error::NothingExported { dir: run.to_owned() }),
        found => Ok(found),
    }
}

fn read(path: &Path) -> Result<Gcda> {
    let bytes = fs::read(path).at("read", path)?;
    Gcda::parse(&bytes).map_err(|source| Error::BadFile { file: path.to_owned(), source })
}

fn prepare(work: &WorkDir, runs: &[WeightedRun], gcov: &Kernel, complete: bool) -> Result<GccPgoProfile> {
    let mut note = |text: &str| work.note(text);
    let MergedCounters { files, counts, run_count, summary, values, quality } =
        MergedCounters::read(runs, gcov, complete, &mut note)?;
    let mut key = Key::new("gcc-pgo/2", crate::CODE)
        .field("kernel", &gcov.manifest.id)
        .field("images", gcov.content()?);
    for (name, gcda) in &files {
        key = key.field("name", name.to_string_lossy().as_bytes()).field("gcda", gcda.to_bytes());
    }
    store(work, &key, Some(&quality), |dir| {
        for (name, gcda) in &files {
            let path = dir.join(TREE).join(name);
            let parent = path.parent().unwrap_or(dir);
            fs::create_dir_all(parent).at("create", parent)?;
            fs::write(&path, gcda.to_bytes()).at("write", &path)?;
        }
        write_json(&dir.join(COUNTS), &counts)?;
        let (gcov_kernel, compiler) = (gcov.manifest.id.clone(), gcov.manifest.compiler.version.clone());
        let (dir, id, runs) = (dir.into(), key.id(), run_count);
        Ok(GccPgoProfile { dir, id, gcov_kernel, compiler, runs, summary, values })
    })
}

/// Counters summed over all runs.
struct MergedCounters {
    files: GcdaFiles,
    counts: Vec<ObjectCounts>,
    run_count: u32,
    summary: GccPgoSummary,
    values: Option<ValueSummary>,
    quality: ProfileQuality,
}

impl MergedCounters {
    /// Reads and adds up the runs. `note` receives messages about files that are left out.
    fn read(runs: &[WeightedRun], gcov: &Kernel, complete: bool, note: &mut dyn FnMut(&str)) -> Result<Self> {
        let (first, others) = runs.split_first().ok_or(Error::NoRuns)?;
        let build = GcovBuild::of(gcov)?;
        let scaled = |run: &WeightedRun, name: &Path, gcda: Gcda| match run.weight {
            1 => Ok(gcda),
            weight => Gcda::merge(&gcda, &gcda, MergeWeights { a: weight, b: 0 })
                .map_err(|source| Error::BadFile { file: run.dir.join(name), source }),
        };
        let mut merged = GcdaFiles::new();
        let files = build.read_run(&first.dir, note)?;
        let mut each = vec![build.counts(&files)?];
        for (name, gcda) in files {
            let gcda = scaled(first, &name, gcda)?;
            merged.insert(name, gcda);
        }
        for other in others {
            let files = build.read_run(&other.dir, note)?;
            each.push(build.counts(&files)?);
            for (name, gcda) in files {
                let sum = match merged.get(&name) {
                    Some(so_far) => Gcda::merge(so_far, &gcda, MergeWeights { a: 1, b: other.weight })
                        .map_err(|source| Error::BadFile { file: other.dir.join(&name), source })?,
                    // An object that only this run exported.
                    None => scaled(other, &name, gcda)?,
                };
                merged.insert(name, sum);
            }
        }
        overflowed(&merged, &first.dir)?;
        let summary = GccPgoSummary::from(summarize(merged.values()));
        if summary.executed_functions == 0 {
            let GccPgoSummary { files, counters, .. } = summary;
            return Err(Error::NothingExecuted { dir: first.dir.clone(), files, counters });
        }
        let run_count = runs.iter().fold(0u32, |sum, run| sum.saturating_add(run.weight));
        for gcda in merged.values_mut().filter(|_| complete) {
            gcda.set_summary(run_count, summary.sum_max);
        }
        let counts = build.counts(&merged)?;
        // After the summary: GCC measures what is hot by what the training counted.
        for (name, gcda) in merged.iter_mut().filter(|_| complete) {
            dispatch::balance(gcda, &build.notes(name, name)?);
        }
        let name = |run: &WeightedRun| match run.weight {
            1 => run.dir.display().to_string(),
            weight => format!("{} × {weight}", run.dir.display()),
        };
        let name = runs.iter().map(name).collect::<Vec<_>>().join(" and ");
        let quality = quality::pass_counters(gcov, name, &counts, &each)?;
        let health = runs.iter().map(|run| ValueHealth::of_run(&run.dir)).filter_map(Result::transpose);
        let values = ValueSummary::of(merged.values(), &counts, health.collect::<Result<_>>()?);
        if let Some(values) = &values {
            check_lists(values, &first.dir)?;
        }
        Ok(Self { files: merged, counts, run_count, summary, values, quality })
    }
}

/// Refuses sums that reached the largest value of a counter.
fn overflowed(merged: &GcdaFiles, dir: &Path) -> Result<()> {
    for (name, gcda) in merged {
        let full = |function: &&GcdaFunction| {
            let arcs = function.counters_of(CounterKind::Arcs);
            arcs.is_some_and(|arcs| arcs.values.iter().any(|value| value == i64::MAX))
        };
        if let Some(function) = gcda.functions.iter().find(full) {
            return Err(Error::WeightOverflow { file: dir.join(name), ident: function.ident });
        }
    }
    Ok(())
}

/// Refuses lists of values that overflowed in the kernel.
fn check_lists(values: &ValueSummary, run: &Path) -> Result<()> {
    let unlisted = values.health.iter().fold(0u64, |sum, health| sum.saturating_add(health.unlisted));
    if unlisted as f64 <= MAX_UNLISTED_SHARE * values.listed as f64 {
        return Ok(());
    }
    let nodes = values.health.iter().map(|health| health.nodes_of).max().unwrap_or_default();
    Err(Error::Unlisted { dir: run.to_owned(), unlisted, listed: values.listed, nodes })
}

type GcdaFiles = BTreeMap<PathBuf, Gcda>;

/// Build that the counters must come from.
struct GcovBuild<'a> {
    kernel: &'a Kernel,
    /// Build directory with objects and notes.
    dir: PathBuf,
    /// Major and minor number of its GCC.
    gcc: Option<(u32, u32)>,
    /// Source files of the image's functions, without extension; empty if they are not known.
    sources: HashSet<PathBuf>,
    /// Objects of the build's modules, without extension.
    module_objects: HashSet<PathBuf>,
}

impl<'a> GcovBuild<'a> {
    fn of(kernel: &'a Kernel) -> Result<Self> {
        let missing = "build directory";
        let dir = kernel
            .kept_objects()?
            .ok_or_else(|| Error::NoObjects { kernel: kernel.manifest.label.clone(), missing })?;
        let stem = |source: &String| Path::new(source).with_extension("");
        let sources = kernel.source_files()?.iter().map(stem).collect();
        let module_objects = module_objects(&dir);
        Ok(Self { kernel, dir, gcc: gcc_version(&kernel.manifest.compiler), sources, module_objects })
    }

    /// Reads the files of a run, by path in the build directory. Leaves out files that belong to no
    /// object of the build, unless they are the majority.
    fn read_run(&self, run: &Path, note: &mut dyn FnMut(&str)) -> Result<GcdaFiles> {
        let (mut files, mut others) = (GcdaFiles::new(), Vec::new());
        let mut foreign = Vec::new();
        let found = exported(run)?;
        for path in &found {
            let Some(name) = self.place(run, path) else {
                others.push(path);
                continue;
            };
            let read = read(path).and_then(|gcda| self.check(path, &name, &gcda).map(|()| gcda));
            match read {
                Ok(gcda) => {
                    files.insert(name, gcda);
                }
                // A module may be of another build than the kernel that loaded it. The image cannot.
                Err(Error::OtherBuild { .. } | Error::OtherCompiler { .. }) if self.is_of_no_image(&name) => {
                    foreign.push(path);
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(first) = others.first() {
            let (left_out, all) = (others.len(), found.len());
            if left_out * 2 > all {
                let build_path = self.kernel.manifest.build_path.display();
                let reason = format!(
                    "{left_out} of {all} files are of a kernel that was built elsewhere than in {build_path}"
                );
                return Err(self.other_build(first, reason));
            }
        }
        let label = &self.kernel.manifest.label;
        for (left_out, what) in [
            (&others, format!("are of other trees than kernel {label}'s")),
            (&foreign, format!("are of modules that were not built with kernel {label}")),
        ] {
            if !left_out.is_empty() {
                let (count, all) = (left_out.len(), found.len());
                note(&format!(
                    "{count} of {all} .gcda files {what} and were left out: {}",
                    named(run, left_out)
                ));
            }
        }
        let modules = files.keys().filter(|name| self.is_of_module(name)).count();
        if modules > 0 {
            note(&format!("{modules} of {} .gcda files are of modules of kernel {label}", found.len()));
        }
        complete::check(self.kernel, &self.dir, run, |name| files.contains_key(name))?;
        Ok(files)
    }

    /// Returns true if the kernel's image is known to have no function of this object.
    fn is_of_no_image(&self, name: &Path) -> bool {
        !self.sources.is_empty() && !self.sources.contains(&name.with_extension(""))
    }

    /// Returns true if the object belongs to a module of this build.
    fn is_of_module(&self, name: &Path) -> bool {
        self.module_objects.contains(&name.with_extension(""))
    }

    /// Returns `kernel/fork.gcda` for `RUN/gcov/<build path>/kernel/fork.gcda`. The kernel's
    /// documentation collects the files below `RUN/sys/kernel/debug/gcov`.
    fn place(&self, run: &Path, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(run).unwrap_or(path);
        let build_path = &self.kernel.manifest.build_path;
        let expected: PathBuf =
            build_path.components().filter(|c| matches!(c, Component::Normal(_))).collect();
        let names: Vec<Component<'_>> = below.components().collect();
        let tops = (0..names.len()).filter(|at| *at == 0 || names[at - 1].as_os_str() == "gcov");
        let mut below = tops.map(|at| names[at..].iter().collect::<PathBuf>());
        below.find_map(|below| below.strip_prefix(&expected).ok().map(Path::to_owned))
    }

    fn check(&self, path: &Path, name: &Path, gcda: &Gcda) -> Result<()> {
        let overflowed = |function: &GcdaFunction| {
            let arcs = function.counters_of(CounterKind::Arcs);
            arcs.is_some_and(|arcs| arcs.values.iter().any(|value| value < 0))
        };
        if let Some(function) = gcda.functions.iter().find(|function| overflowed(function)) {
            return Err(Error::Overflowed { file: path.to_owned(), ident: function.ident });
        }
        if gcda.version.major_minor() != self.gcc {
            return Err(Error::OtherCompiler {
                file: path.to_owned(),
                found: gcda.version.to_string(),
                expected: self.kernel.manifest.compiler.version.clone(),
                kernel: self.kernel.manifest.label.clone(),
            });
        }
        let notes = self.notes(path, name)?;
        if GcovVersion(notes.version) != gcda.version || notes.stamp != gcda.stamp {
            let reason = format!(
                "it is of compilation {:08x}, this kernel's object of {:08x}",
                gcda.stamp, notes.stamp
            );
            return Err(self.other_build(path, reason));
        }
        ObjectCounts::join(String::new(), gcda, &notes)
            .map(drop)
            .map_err(|reason| self.other_build(path, reason))
    }

    /// Reads the notes of the object whose counters are in `path`.
    fn notes(&self, path: &Path, name: &Path) -> Result<GcnoFile> {
        let file = self.dir.join(name).with_extension("gcno");
        let bytes = fs::read(&file).map_err(|_| {
            self.other_build(
                path,
                format!("this kernel has no instrumented object of that name ({})", name.display()),
            )
        })?;
        GcnoFile::parse(&bytes).map_err(|reason| Error::BadNotes { file, reason })
    }

    fn counts(&self, files: &GcdaFiles) -> Result<Vec<ObjectCounts>> {
        let join = |(name, gcda): (&PathBuf, &Gcda)| {
            let object = name.with_extension("o").to_string_lossy().into_owned();
            ObjectCounts::join(object, gcda, &self.notes(name, name)?)
                .map_err(|reason| self.other_build(name, reason))
        };
        files.iter().map(join).collect()
    }

    fn other_build(&self, file: &Path, reason: String) -> Error {
        let kernel = self.kernel.manifest.label.clone();
        Error::OtherBuild { file: file.to_owned(), reason, kernel }
    }
}

/// Longest list of files in a message.
const MAX_NAMED: usize = 8;

/// Names files of a run.
fn named(run: &Path, files: &[&PathBuf]) -> String {
    let name = |path: &&PathBuf| path.strip_prefix(run).unwrap_or(path).display().to_string();
    let mut names: Vec<String> = files.iter().take(MAX_NAMED).map(name).collect();
    if files.len() > MAX_NAMED {
        names.push(format!("and {} more", files.len() - MAX_NAMED));
    }
    names.join(", ")
}

/// Returns the objects of the modules of a build, without extension: those that Kbuild's
/// `modules.order` and the `.mod` files beside the modules list. Empty without modules.
fn module_objects(build: &Path) -> HashSet<PathBuf> {
    let order = fs::read_to_string(build.join("modules.order")).unwrap_or_default();
    let mut objects = HashSet::new();
    for module in order.lines() {
        // `drivers/net/tun.ko` or, since 6.2, `drivers/net/tun.o`.
        let module = Path::new(module).with_extension("");
        let listed = fs::read_to_string(build.join(&module).with_extension("mod")).unwrap_or_default();
        objects.extend(listed.split_whitespace().map(|object| Path::new(object).with_extension("")));
        objects.insert(module);
    }
    objects
}

/// Returns the `.gcda` files below `top`, sorted. Does not follow links (the kernel exports one to
/// each `.gcno`).
fn find_gcda(top: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut dirs) = (Vec::new(), vec![top.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).at("list", &dir)? {
            let entry = entry.at("list", &dir)?;
            let (path, kind) = (entry.path(), entry.file_type().at("look at", entry.path())?);
            if kind.is_dir() {
                dirs.push(path);
            } else if kind.is_file() && path.extension() == Some(OsStr::new("gcda")) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
