//! Trimming: switches off options whose code is used neither by several workloads nor by the
//! functional checks.
//!
//! The recorder lists the functions that ran (`Recording::ran_since_boot`) from the first program
//! on, including services and setup. Options used only during boot may go; if the machine does not
//! boot without them, they come back first. The Makefiles show which files belong to an option
//! ([`BuildConditions`]), Kconfig shows its dependents. The trimmed kernel is then measured like
//! any other change ([`trial`](crate::trial::trial())).
//!
//! `ran` reads recordings, `keep` lists options that stay in any case, `choose` decides (pure),
//! `lines` writes configurations, `proof` builds and measures.

mod choose;
mod keep;
mod lines;
mod proof;
mod ran;

pub use choose::KeepReason;

use crate::dry_run::DryRun;
use crate::runs::model::Model;
use crate::trial::PROBE_RUNS;
use crate::{Error, Result, Session};
use choose::{ConfigOptions, TrimInputs};
use keep::KeepList;
use kerntune_guest::Workload;
use kerntune_kernel::{
    build, preview, resolve_config, BuildConditions, BuildRequest, Kconfig, Kernel, ResolvedConfig, Symbols,
};
use kerntune_work::{interrupt, write_atomic, IoContext, NoProgress};
use lines::ConfigLines;
use proof::TrimProof;
use ran::{barely_used_files, executed_code, option_uses};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Format and version of the result in JSON.
pub const SCHEMA: &str = "kerntune-trim/1";

/// Kernel, workloads and limits of a trim.
#[derive(Debug)]
pub struct TrimRequest<'a> {
    /// Request of the base kernel.
    pub build: &'a BuildRequest,
    /// Workloads whose code must stay.
    pub workloads: &'a [Workload],
    /// Options to keep in any case: names without `CONFIG_`, with `*` as wildcard.
    pub keep: &'a [String],
    /// Minimum share of functions in an option's files that must run for it to count as used, in
    /// percent; 0 for any.
    pub min_percent: f64,
    /// True to build no modules and no support for them.
    pub no_modules: bool,
    /// Front-end model of the measurements.
    pub model: &'a Model,
    /// Number of runs of each kernel if figures depend on the start offset.
    pub runs: u32,
    /// Time after which no new build or run is started.
    pub budget: Option<Duration>,
    /// True to stop at the plan: only the base kernel is built.
    pub plan_only: bool,
}

/// An option that is off: one with files of its own, or one without files that selected such an
/// option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DisabledOption {
    /// Name of the option, without `CONFIG_`.
    pub option: String,
    /// Bytes of functions in the files that are not compiled without it. Files of nested options
    /// count for each.
    pub text_bytes: u64,
    /// Number of these files; 0 for an option that only selects others.
    pub files: usize,
    /// True if it becomes a module, because a module selects it.
    pub module: bool,
}

/// An option that stays, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptOption {
    /// Name of the option, without `CONFIG_`.
    pub option: String,
    /// Bytes of functions, as for [`DisabledOption`].
    pub text_bytes: u64,
    /// Number of functions in files that depend on this option and on no narrower one.
    pub own_functions: usize,
    /// Number of these functions that ran.
    pub own_ran: usize,
    /// Reason why the option stays.
    #[serde(flatten)]
    pub because: KeepReason,
}

/// Bytes of functions below a directory that are no longer compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RemovedCode {
    /// Path of the directory.
    pub directory: String,
    /// Bytes of all its functions in the base kernel.
    pub text_bytes: u64,
    /// Bytes of functions in files that are no longer compiled.
    pub gone_bytes: u64,
}

/// Sizes of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelSize {
    /// Id of the kernel.
    pub id: String,
    /// Number of options that are built in.
    pub options: usize,
    /// Number of functions.
    pub functions: usize,
    /// Bytes of `.text` covered by functions.
    pub text_bytes: u64,
    /// Bytes of the bootable image.
    pub image_bytes: u64,
}

/// Path length of a workload on both kernels.
#[derive(Debug, Clone, Serialize)]
pub struct WorkloadPath {
    /// Name of the workload.
    pub workload: String,
    /// Kernel instructions on the base kernel; the mean of several runs.
    pub base: f64,
    /// Kernel instructions on the trimmed kernel.
    pub trimmed: f64,
    /// Noise threshold: smaller differences are not significant.
    pub noise: f64,
    /// Number of runs of each kernel.
    pub runs: u32,
    /// True if the path got longer by more than the noise.
    pub longer: bool,
}

/// Result of a trim.
#[derive(Debug, Serialize)]
pub struct TrimResult {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// Names of the workloads.
    pub workloads: Vec<String>,
    /// Number of functions of the base kernel that ran since the first program began.
    pub functions_ran: usize,
    /// Sizes of the base kernel.
    pub base: KernelSize,
    /// Sizes of the trimmed kernel; `None` if only the plan was requested.
    pub trimmed: Option<KernelSize>,
    /// Number of modules that are no longer built.
    pub modules_off: usize,
    /// Configuration lines that turn the base kernel into the trimmed one.
    #[serde(skip)]
    pub lines: Vec<String>,
    /// Options that are off, largest first.
    pub off: Vec<DisabledOption>,
    /// Options that depended on these and went with them.
    pub went_with_them: Vec<String>,
    /// Options that are on only in the trimmed kernel.
    pub on_instead: Vec<String>,
    /// Options with files that stay, largest first.
    pub stay: Vec<KeptOption>,
    /// Removed code by directory, largest first.
    pub gone: Vec<RemovedCode>,
    /// Path length of each workload; empty if only the plan was requested.
    pub paths: Vec<WorkloadPath>,
    /// True if time was up before every option was tried.
    pub time_was_up: bool,
}

/// Callback with a description of each step.
pub type OnTrimProgress<'a> = dyn Fn(&str) + 'a;

/// Trims the kernel. Earlier results are used again.
///
/// # Errors
/// Those of the base kernel and its runs; [`Error::NothingToTrim`]; an interrupt.
pub fn trim(session: &Session, request: &TrimRequest, on_progress: &OnTrimProgress) -> Result<TrimResult> {
    let started = Instant::now();
    let base = build(session.work, request.build, session.progress)?;
    on_progress("what the workloads and the functional checks run");
    let symbols = base.symbols()?;
    let mut ran = executed_code(session, &base, &symbols, request.workloads)?;

    on_progress("what Kconfig makes of it");
    let whole = resolve_config(session.work, request.build, session.progress)?;
    let keep = KeepList::new(request)?;
    let scratch = tempfile::Builder::new().prefix("trim-").tempdir().at("create", std::env::temp_dir())?;
    let configured_with = |lines: &[String]| -> Result<ResolvedConfig> {
        interrupt::check()?;
        // As a fragment: a line without effect is an answer here, not an error.
        let path = scratch.path().join("off.config");
        write_atomic(&path, (lines.join("\n") + "\n").as_bytes())?;
        let mut asked = request.build.clone();
        asked.fragments.push(path);
        Ok(resolve_config(session.work, &asked, &NoProgress)?)
    };
    let (mut lines, mut config) = (ConfigLines::default(), whole.clone());
    if request.no_modules {
        lines = ConfigLines::without_modules(&whole, |option| keep.is_named(option));
        config = configured_with(&lines.of(&ConfigOptions::new()))?;
        lines = lines.taken(&config);
    }
    let modules_off = whole.modules().len() - config.modules().len();
    let files: BTreeSet<String> = base.source_files()?;
    if files.is_empty() {
        return Err(Error::NothingToTrim {
            kernel: base.manifest.label.clone(),
            why: "its build did not tell of which files its functions are".into(),
        });
    }
    let arch = base.manifest.arch.source_directory();
    let gates = BuildConditions::read(&config.source, arch, files.iter().map(String::as_str));
    let kconfig = Kconfig::read(&config.source, arch);
    let (before, built_in) = (whole.built_in(), config.built_in());
    let used = option_uses(&gates, &built_in, &ran.counts);
    for file in barely_used_files(&used, request.min_percent) {
        // The option is used so little that its code counts as unused, for example only opened and
        // closed by others.
        ran.files.remove(file);
    }
    let known = TrimInputs {
        built_in: &built_in,
        gates: &gates,
        kconfig: &kconfig,
        ran: &ran.files,
        asked: &|option| keep.why(option, &kconfig),
    };
    let mut chosen = known.choose(&mut |off| Ok(configured_with(&lines.of(off))?.built_in()))?;
    // An option that a module selects can become a module, but cannot be off.
    let lines = match request.no_modules {
        true => lines,
        false => ConfigLines::default().with_modules(&configured_with(&lines.of(&chosen.off))?),
    };
    if chosen.off.is_empty() && modules_off == 0 {
        return Err(Error::NothingToTrim {
            kernel: base.manifest.label.clone(),
            why: "every option with files of its own has one that ran, or is to be kept".into(),
        });
    }

    let mut found = TrimResult {
        schema: SCHEMA,
        workloads: request.workloads.iter().map(|workload| workload.name.clone()).collect(),
        functions_ran: ran.functions,
        base: size(&base, &symbols, before.len()),
        trimmed: None,
        modules_off,
        lines: Vec::new(),
        off: Vec::new(),
        went_with_them: Vec::new(),
        on_instead: Vec::new(),
        stay: Vec::new(),
        gone: Vec::new(),
        paths: Vec::new(),
        time_was_up: false,
    };
    let by_option = gates.by_option();
    if !request.plan_only {
        // Recordings show nothing about options without files, so these are not safe.
        let is_safe = |option: &str| {
            by_option.get(option).is_some_and(|files| !files.iter().any(|file| ran.with_boot.contains(*file)))
        };
        let lines = |off: &ConfigOptions| lines.of(off);
        let proof = TrimProof {
            session,
            request,
            base: &base,
            lines: &lines,
            is_safe: &is_safe,
            started,
            on_progress,
        };
        proof.prove(&mut chosen, &mut found)?;
    }
    let bytes = text_by_file(&symbols);
    let of = |option: &str| {
        let files = by_option.get(option).map_or(0, BTreeSet::len);
        let bytes = by_option.get(option).into_iter().flatten().filter_map(|file| bytes.get(*file));
        (bytes.sum::<u64>(), files)
    };
    let off = |option: &String| {
        let (text_bytes, files) = of(option);
        DisabledOption { option: option.clone(), text_bytes, files, module: lines.is_module(option) }
    };
    found.lines = lines.of(&chosen.off);
    found.off = chosen.off.iter().map(off).collect();
    found.off.sort_by(|a, b| (b.text_bytes, &a.option).cmp(&(a.text_bytes, &b.option)));
    let stays = |(option, because): (&String, &KeepReason)| KeptOption {
        option: option.clone(),
        text_bytes: of(option).0,
        own_functions: used.get(option.as_str()).map_or(0, |of| of.own.all),
        own_ran: used.get(option.as_str()).map_or(0, |of| of.own.ran),
        because: because.clone(),
    };
    found.stay = chosen.stay.iter().map(stays).collect();
    found.stay.sort_by(|a, b| (b.text_bytes, &a.option).cmp(&(a.text_bytes, &b.option)));
    let went = before.difference(&chosen.built_in).filter(|option| !chosen.off.contains(*option));
    found.went_with_them = went.cloned().collect();
    found.on_instead = chosen.built_in.difference(&before).cloned().collect();
    found.gone =
        removed_by_directory(&bytes, |file| !gates.compiles(file, |option| chosen.built_in.contains(option)));
    Ok(found)
}

/// Adds the steps of [`trim`] to a dry run. The options that go are known after the recordings, and
/// the trimmed kernel compiles less than the base kernel.
///
/// # Errors
/// Those of [`trim`] before it builds anything.
pub fn dry_run(dry: &mut DryRun, request: &TrimRequest) -> Result<()> {
    let base = dry.kernel("build the base kernel", request.build)?;
    ran::dry_run(dry, base.as_ref(), request.workloads)?;
    if request.plan_only {
        return Ok(());
    }
    let estimate = preview(dry.session().work, request.build)?;
    let what = "build the kernel without the options that nothing uses; again if it does not work";
    dry.add("kernel", what, None, |_| Some(estimate.into()));
    dry.selftests("run the functional checks on both kernels", &[base.as_ref(), None])?;
    for workload in request.workloads {
        let what =
            format!("run {} on both kernels, from {PROBE_RUNS} starts on the base kernel", workload.name);
        dry.runs(what, workload, "measured", PROBE_RUNS + 3);
    }
    Ok(())
}

fn size(kernel: &Kernel, symbols: &Symbols, options: usize) -> KernelSize {
    KernelSize {
        id: kernel.manifest.id.clone(),
        options,
        functions: symbols.functions().len(),
        text_bytes: kernel.manifest.text_bytes,
        image_bytes: kernel.manifest.image_bytes,
    }
}

/// Returns the bytes of functions by file.
fn text_by_file(symbols: &Symbols) -> BTreeMap<String, u64> {
    let mut bytes = BTreeMap::new();
    for function in symbols.functions() {
        if let Some(file) = &function.file {
            *bytes.entry(file.clone()).or_insert(0) += function.size;
        }
    }
    bytes
}

/// Sums up removed code by directory: two levels of `drivers/` and the like, one elsewhere.
fn removed_by_directory(bytes: &BTreeMap<String, u64>, is_gone: impl Fn(&str) -> bool) -> Vec<RemovedCode> {
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
    let mut list: Vec<RemovedCode> = directories
        .into_iter()
        .filter(|(_, (_, gone))| *gone > 0)
        .map(|(directory, (text_bytes, gone_bytes))| RemovedCode { directory, text_bytes, gone_bytes })
        .collect();
    list.sort_by(|a, b| (b.gone_bytes, &a.directory).cmp(&(a.gone_bytes, &b.directory)));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let found =
            removed_by_directory(&bytes, |file| file != "drivers/tty/n_tty.c" && file != "kernel/fork.c");
        let of = |at: usize| (found[at].directory.as_str(), found[at].text_bytes, found[at].gone_bytes);
        assert_eq!(
            (found.len(), of(0), of(1), of(2)),
            (3, ("drivers/tty", 15, 10), ("net/ipv4", 3, 3), ("net", 2, 2))
        );
    }
}
