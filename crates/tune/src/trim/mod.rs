//! Options of a kernel of which several workloads and the functional checks run nothing, switched off.
//!
//! What ran is told by the recorder (`Recording::ran_since_boot`): from the first program on, with services, set-up and all. What
//! only booted the machine may go; if the machine does not boot without it, it is the first that comes back. Which files an
//! option stands for is told by the Makefiles ([`Gates`]), what hangs on it by Kconfig itself. Whether the kernel without them is
//! as good is then tried like any other change ([`trial`](crate::trial::trial())).
//!
//! `ran` asks the recordings, `keep` knows what stays in any case, `choose` decides (pure), `lines` writes it, `proof` builds and
//! measures.

mod choose;
mod keep;
mod lines;
mod proof;
mod ran;

pub use choose::Because;

use crate::model::Model;
use crate::{Error, Result, Session};
use choose::{Known, Options};
use keep::Keep;
use kerntune_guest::Workload;
use kerntune_kernel::{build, configured, BuildRequest, Configured, Gates, Kconfig, Kernel, Symbols};
use kerntune_work::{interrupt, write_atomic, IoContext, NoProgress};
use lines::Lines;
use proof::Proof;
use ran::{ran, unused, used};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Format and version of the result in JSON.
pub const SCHEMA: &str = "kerntune-trim/1";

/// What to trim, and by what.
#[derive(Debug)]
pub struct TrimRequest<'a> {
    /// What the kernel is built from.
    pub build: &'a BuildRequest,
    /// What it is for: all that they run stays.
    pub workloads: &'a [Workload],
    /// Options to keep whatever runs: names without `CONFIG_`, with `*`.
    pub keep: &'a [String],
    /// An option counts as used if at least so many per cent of the functions in its files ran; 0: if any did.
    pub least_percent: f64,
    /// Build none of the modules, and no support for them.
    pub no_modules: bool,
    /// The front-end model of the measurements.
    pub model: &'a Model,
    /// Runs of each kernel where figures depend on when they begin.
    pub runs: u32,
    /// After this time nothing new is begun.
    pub budget: Option<Duration>,
    /// Say what would go, and build nothing but the base kernel.
    pub plan_only: bool,
}

/// An option that is off: one with files of its own, or one without that selected such a one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Off {
    /// Its name, without `CONFIG_`.
    pub option: String,
    /// Bytes of functions in the files that are not compiled without it. Files of nested options count for each.
    pub text_bytes: u64,
    /// How many files these are; 0 for an option that only selects others.
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
    /// Modules that are not built: all of them, or none was asked to go.
    pub modules_off: usize,
    /// Lines of a configuration that make the trimmed kernel of the base kernel.
    #[serde(skip)]
    pub lines: Vec<String>,
    /// Options that are off, the largest first.
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
    let whole = configured(session.work, request.build, session.progress)?;
    let keep = Keep::new(request)?;
    let scratch = tempfile::Builder::new().prefix("trim-").tempdir().at("create", std::env::temp_dir())?;
    let configured_with = |lines: &[String]| -> Result<Configured> {
        interrupt::check()?;
        // As a fragment: what does not take is no error, but the answer.
        let path = scratch.path().join("off.config");
        write_atomic(&path, (lines.join("\n") + "\n").as_bytes())?;
        let mut asked = request.build.clone();
        asked.fragments.push(path);
        Ok(configured(session.work, &asked, &NoProgress)?)
    };
    let (mut lines, mut config) = (Lines::default(), whole.clone());
    if request.no_modules {
        lines = Lines::without_modules(&whole, |option| keep.is_named(option));
        config = configured_with(&lines.of(&Options::new()))?;
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
    let gates = Gates::read(&config.source, arch, files.iter().map(String::as_str));
    let kconfig = Kconfig::read(&config.source, arch);
    let (before, built_in) = (whole.built_in(), config.built_in());
    let used = used(&gates, &built_in, &ran.counts);
    for file in unused(&used, request.least_percent) {
        // What it did there others made it do: that it was made, closed, asked for its name.
        ran.files.remove(file);
    }
    let known = Known {
        built_in: &built_in,
        gates: &gates,
        kconfig: &kconfig,
        ran: &ran.files,
        asked: &|option| keep.why(option, &kconfig),
    };
    let mut chosen = known.choose(&mut |off| Ok(configured_with(&lines.of(off))?.built_in()))?;
    // What a module selects can be one, too, and no less.
    let lines = match request.no_modules {
        true => lines,
        false => Lines::default().with_modules(&configured_with(&lines.of(&chosen.off))?),
    };
    if chosen.off.is_empty() && modules_off == 0 {
        return Err(Error::NothingToTrim {
            kernel: base.manifest.label.clone(),
            why: "every option with files of its own has one that ran, or is to be kept".into(),
        });
    }

    let mut found = Trim {
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
        // What has no files cannot be asked what it did.
        let is_safe = |option: &str| {
            by_option.get(option).is_some_and(|files| !files.iter().any(|file| ran.with_boot.contains(*file)))
        };
        let lines = |off: &Options| lines.of(off);
        let proof = Proof { session, request, base: &base, lines: &lines, is_safe: &is_safe, started, tell };
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
        Off { option: option.clone(), text_bytes, files, module: lines.is_module(option) }
    };
    found.lines = lines.of(&chosen.off);
    found.off = chosen.off.iter().map(off).collect();
    found.off.sort_by(|a, b| (b.text_bytes, &a.option).cmp(&(a.text_bytes, &b.option)));
    let stays = |(option, because): (&String, &Because)| Stays {
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
    found.gone = gone(&bytes, |file| !gates.compiles(file, |option| chosen.built_in.contains(option)));
    Ok(found)
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
        let found = gone(&bytes, |file| file != "drivers/tty/n_tty.c" && file != "kernel/fork.c");
        let of = |at: usize| (found[at].directory.as_str(), found[at].text_bytes, found[at].gone_bytes);
        assert_eq!(
            (found.len(), of(0), of(1), of(2)),
            (3, ("drivers/tty", 15, 10), ("net/ipv4", 3, 3), ("net", 2, 2))
        );
    }
}
