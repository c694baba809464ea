//! Hints of the source, `likely()` and `unlikely()`, against what happens under a workload.
//!
//! A kernel is built whose hints have an instruction for each outcome (patch set `hints`). The blocks
//! of a recording say how often each of these instructions ran. So the counts are exact, of the
//! recorded regions alone, and nothing in the guest counts. `correct` writes patches for hints that
//! are wrong (pure).

mod correct;

pub use correct::{write_changes, HintCorrection};

use crate::dry_run::DryRun;
use crate::measuring::compare::counters_of;
use crate::runs::model::Model;
use crate::{Error, Result, Session};
use correct::correction;
use kerntune_guest::Workload;
use kerntune_kernel::{build, preview, BuildRequest, HintOutcome, ImportedSource, Kernel, PatchSet};
use kerntune_profile::{ExecutionCounts, Profile, RegionScope};
use kerntune_work::{RelativePath, WorkDir};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Format and version of the result in JSON.
pub const SCHEMA: &str = "kerntune-hints/1";

/// Label of the kernel whose hints are counted.
const LABEL: &str = "hints";
/// Most functions to name for a hint.
const FUNCTIONS: usize = 3;

/// Kernel and workload whose hints are checked.
#[derive(Debug)]
pub struct HintsRequest<'a> {
    /// Request of the kernel that has the hints.
    pub build: &'a BuildRequest,
    /// Workload to run.
    pub workload: &'a Workload,
    /// Front-end model of the recording.
    pub model: &'a Model,
}

/// A hint and the outcomes of its condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountedHint {
    /// Source file, from the top of the source.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// True for `likely()`, false for `unlikely()`.
    pub expected: bool,
    /// Times that the condition was as expected.
    pub right: u64,
    /// Times that it was not.
    pub wrong: u64,
    /// Functions that executed it most, with how often, inlined code by the function around it.
    pub functions: Vec<(String, u64)>,
    /// Text of the line; `None` if the source is not available.
    pub text: Option<String>,
    /// Correction of a hint that is wrong more often than right; `None` if it stands in a macro
    /// elsewhere.
    pub correction: Option<HintCorrection>,
}

impl CountedHint {
    /// Returns the jumps that a correct hint saves: code for the outcome that is not expected stands
    /// apart, so that each time it is reached by a jump.
    pub fn saved(&self) -> u64 {
        self.wrong.saturating_sub(self.right)
    }

    /// Returns `likely` or `unlikely`.
    pub fn name(&self) -> &'static str {
        if self.expected {
            "likely"
        } else {
            "unlikely"
        }
    }
}

/// Hints of a kernel under a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HintsResult {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Id of the kernel that counts.
    pub kernel: String,
    /// Version of its source.
    pub version: String,
    /// Name of the workload.
    pub workload: String,
    /// Id of the recording.
    pub profile: String,
    /// Taken branches of the kernel in the recording.
    pub taken_branches: u64,
    /// Hints in the image, each source line once.
    pub in_image: usize,
    /// Hints that were executed; those that save most first.
    pub hints: Vec<CountedHint>,
}

/// Returns the request of the kernel that counts.
fn request(session: &Session, of: &BuildRequest) -> Result<BuildRequest> {
    let version = ImportedSource::version_of(session.work, &of.source, session.progress)?;
    let set = match PatchSet::named("hints", &version) {
        Some(own) => Some(own),
        None => {
            let source = ImportedSource::import(session.work, &of.source, session.progress)?;
            PatchSet::fitting("hints", &source)?
        }
    };
    let set = set.ok_or_else(|| Error::NoHintPatches { version: version.clone() })?;
    set.borrowed(&version).iter().for_each(|sentence| session.progress.note(sentence));
    let ours = set.write(session.work)?;
    let patches = of.patches.iter().cloned().chain(ours).collect();
    Ok(BuildRequest { patches, label: LABEL.into(), ..of.clone() })
}

/// Builds a kernel with counted hints, runs the workload on it, and counts.
///
/// # Errors
/// A kernel for which there are no patches; errors of build and recording.
pub fn hints(session: &Session, asked: &HintsRequest) -> Result<HintsResult> {
    let kernel = build(session.work, &request(session, asked.build)?, session.progress)?;
    let recorded = counters_of(session, &kernel, asked.workload, asked.model)?;
    let profile = Profile::load(&recorded.path)?;
    let outcomes = HintOutcome::load(&kernel.vmlinux())?;
    let source = source_of(session.work, &kernel);
    let read = |file: &str| source.as_ref().and_then(|dir| read_source(dir, file));
    let (in_image, hints) = count(&outcomes, &profile, &kernel, &read)?;
    let regions = &profile.tables.regions;
    let taken = RegionScope::all(&profile.tables);
    let taken = taken.outermost().iter().filter_map(|region| regions.get(*region as usize));
    Ok(HintsResult {
        schema: SCHEMA,
        kernel: kernel.manifest.id.clone(),
        version: kernel.manifest.version.clone(),
        workload: asked.workload.name.clone(),
        profile: recorded.manifest.id,
        taken_branches: taken.map(|region| region.kernel_taken_branches).sum(),
        in_image,
        hints,
    })
}

/// Adds the steps of [`hints`] to a dry run.
///
/// # Errors
/// As of [`hints`], as far as nothing is built.
pub fn dry_run(dry: &mut DryRun, asked: &HintsRequest) -> Result<()> {
    let request = request(dry.session(), asked.build)?;
    let estimate = preview(dry.session().work, &request)?;
    dry.add("kernel", "build the kernel with counted hints", None, |_| Some(estimate.into()));
    dry.runs(format!("run {}", asked.workload.name), asked.workload, "measured", 1);
    Ok(())
}

/// Sums over the places of a hint.
#[derive(Default)]
struct HintSums {
    /// Executions with an outcome other than expected, and with the expected one.
    counts: [u64; 2],
    functions: BTreeMap<String, u64>,
}

/// Counts the outcomes. Returns the number of hints in the image, and those that were executed.
fn count(
    outcomes: &[HintOutcome],
    profile: &Profile,
    kernel: &Kernel,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<(usize, Vec<CountedHint>)> {
    let executions = ExecutionCounts::of(&profile.tables.blocks);
    let symbols = kernel.symbols()?;
    let mut functions: Vec<(u64, u64, &str)> =
        symbols.functions().iter().map(|of| (of.address, of.size, of.name.as_str())).collect();
    functions.sort_unstable();
    let function_at = |address: u64| {
        let at = functions.partition_point(|(start, _, _)| *start <= address).checked_sub(1)?;
        let (start, size, name) = functions[at];
        (address - start < size).then_some(name)
    };
    let mut sums: BTreeMap<(&str, u32, bool), HintSums> = BTreeMap::new();
    for of in outcomes {
        let sum = sums.entry((&of.file, of.line, of.expected)).or_default();
        let executed = executions.at(of.address);
        let count = &mut sum.counts[usize::from(of.outcome == of.expected)];
        *count = count.saturating_add(executed);
        if let Some(function) = function_at(of.address).filter(|_| executed > 0) {
            let name = kerntune_profile::source_name(function).0;
            *sum.functions.entry(name.to_owned()).or_default() += executed;
        }
    }
    let in_image = sums.len();
    let mut texts: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut hints = Vec::new();
    for ((file, line, expected), sum) in sums.into_iter().filter(|(_, sum)| sum.counts != [0, 0]) {
        let text = texts.entry(file).or_insert_with(|| read(file)).as_deref();
        let [wrong, right] = sum.counts;
        let mut functions: Vec<(String, u64)> = sum.functions.into_iter().collect();
        functions.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        functions.truncate(FUNCTIONS);
        let line_text = text.and_then(|text| text.lines().nth(line.checked_sub(1)? as usize));
        let correct = |text| correction(text, line, expected, [wrong, right]);
        hints.push(CountedHint {
            file: file.to_owned(),
            line,
            expected,
            right,
            wrong,
            functions,
            text: line_text.map(|text| text.trim().to_owned()),
            correction: text.filter(|_| wrong > right).and_then(correct),
        });
    }
    hints.sort_by(|a, b| {
        let key = |of: &CountedHint| (of.saved(), of.wrong);
        key(b).cmp(&key(a)).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
    });
    Ok((in_image, hints))
}

/// Returns the directory of a kernel's source, if it is in the work directory.
fn source_of(work: &WorkDir, kernel: &Kernel) -> Option<PathBuf> {
    work.find("sources", &kernel.manifest.source.hash)
}

/// Reads a file of the source; `None` if its path leads out of it.
fn read_source(dir: &Path, file: &str) -> Option<String> {
    let path: RelativePath = file.parse().ok()?;
    let path = dir.join(path);
    let small = path.metadata().is_ok_and(|what| what.is_file() && what.len() <= 8 << 20);
    let bytes = small.then(|| std::fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
