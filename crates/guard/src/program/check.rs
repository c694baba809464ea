//! Compares the figures of programs with recorded ones, and names what grew (pure, but for the
//! source lines).

use super::baseline::{ProgramBaseline, ProgramCell};
use super::figures::{CallFigure, FaultKind, ProgramFigure, ENTRY};
use super::place::{FunctionPlaces, SourcePlace};
use crate::cell::KernelName;
use crate::file::Tolerance;
use crate::finding::FindingRule;
use crate::judge::{is_beyond, percent};
use crate::project::{GuardProject, GuardedWorkload};
use crate::{Error, Result};
use kerntune_kernel::Kernel;
use kerntune_tune::Session;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Schema of the JSON form.
pub const PROGRAM_CHECK_SCHEMA: &str = "kerntune-guard-program-check/1";

/// Largest number of changes of one figure to list.
const CHANGES: usize = 20;
/// Share of a figure's changes that the list must hold.
const SHARE: f64 = 0.95;
/// Page faults of files that a row may gain in all: a file that is a page longer has more pages.
const FILE_FAULTS: u64 = 2;

/// A figure of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramMetric {
    /// Instructions of an operation, in the kernel and in user code.
    Whole,
    /// Instructions of user code.
    User,
    /// Kernel instructions, without deferred work.
    Kernel,
    /// System calls.
    SystemCalls,
    /// Page faults that ask for new memory.
    MemoryFaults,
    /// Other page faults.
    FileFaults,
}

impl ProgramMetric {
    /// All figures, in the order of tables.
    pub const ALL: [Self; 6] =
        [Self::Whole, Self::User, Self::Kernel, Self::SystemCalls, Self::MemoryFaults, Self::FileFaults];

    /// Returns the figure's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole path",
            Self::User => "user code",
            Self::Kernel => "kernel",
            Self::SystemCalls => "system calls",
            Self::MemoryFaults => "memory faults",
            Self::FileFaults => "file faults",
        }
    }

    /// Returns the kind of finding if the figure grows; `None` for the sum of two others.
    pub(crate) fn rule(self) -> Option<FindingRule> {
        match self {
            Self::Whole => None,
            Self::User => Some(FindingRule::UserCode),
            Self::Kernel => Some(FindingRule::LongerPath),
            Self::SystemCalls => Some(FindingRule::SystemCalls),
            Self::MemoryFaults | Self::FileFaults => Some(FindingRule::PageFaults),
        }
    }

    /// Returns the unit of one operation's figure.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Whole | Self::User | Self::Kernel => "instructions",
            Self::SystemCalls => "calls",
            Self::MemoryFaults | Self::FileFaults => "faults",
        }
    }
}

/// A figure of a row, of one operation. Pairs are baseline and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedFigure {
    /// The counted events.
    pub metric: ProgramMetric,
    /// Figures of one operation.
    pub values: [f64; 2],
    /// Change in percent; `None` if it was 0.
    pub change_percent: Option<f64>,
    /// True if it grew by more than its tolerance: a finding. Never for the whole path, whose parts
    /// are judged.
    pub grew: bool,
    /// True if it fell by more than its tolerance.
    pub fell: bool,
}

/// A part of a figure that changed. Pairs are baseline and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramChange {
    /// The figure.
    pub metric: ProgramMetric,
    /// User function, system call, or kind of page.
    pub name: String,
    /// Function that makes the system call or causes the fault; `None` for user functions.
    pub caller: Option<String>,
    /// Figures of one operation.
    pub values: [f64; 2],
    /// Line at which the user function begins; `None` without debug information.
    pub place: Option<SourcePlace>,
}

impl ProgramChange {
    fn change(&self) -> f64 {
        self.values[1] - self.values[0]
    }
}

/// A row of a check. Pairs are baseline and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedProgramRow {
    /// Name of the row.
    pub row: String,
    /// Number of operations.
    pub operations: [u64; 2],
    /// Tolerances of the row.
    pub tolerance: Tolerance,
    /// Each figure.
    pub figures: Vec<CheckedFigure>,
    /// Parts of figures that grew, the largest change first; with `all`, of those that fell as well.
    pub changes: Vec<ProgramChange>,
}

impl CheckedProgramRow {
    /// Returns the figures that grew.
    pub fn findings(&self) -> impl Iterator<Item = &CheckedFigure> {
        self.figures.iter().filter(|figure| figure.grew)
    }
}

/// A workload of a check. Pairs are baseline and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramCheckCell {
    /// Name of the workload.
    pub workload: String,
    /// Kernel that ran both.
    pub kernel: KernelName,
    /// Guarded files in the guest.
    pub programs: BTreeSet<String>,
    /// Ids of the recorded profiles.
    pub profiles: [String; 2],
    /// Rows that both have.
    pub rows: Vec<CheckedProgramRow>,
    /// Rows that only one of them has.
    pub missing: Vec<String>,
}

/// Result of a check of programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramCheck {
    /// [`PROGRAM_CHECK_SCHEMA`].
    pub schema: &'static str,
    /// Comparison of every workload.
    pub cells: Vec<ProgramCheckCell>,
    /// Number of figures that grew and of missing rows.
    pub findings: usize,
}

/// Compares the programs of the guarded workloads with a baseline. With `all`, figures that fell are
/// explained too.
///
/// # Errors
/// Figures that are missing, or that were made on another kernel, with other files, or by another
/// kerntune or QEMU.
pub fn check_programs(
    session: &Session,
    project: &GuardProject,
    kernel: &Kernel,
    (baseline, path): (&ProgramBaseline, &Path),
    measured: &[ProgramCell],
    all: bool,
) -> Result<ProgramCheck> {
    let mut cells = Vec::new();
    for now in measured {
        let missing = || Error::NoFigures { path: path.to_owned(), what: now.workload.clone() };
        let known = baseline.cells.iter().find(|cell| cell.workload == now.workload).ok_or_else(missing)?;
        let work = project.works.iter().find(|work| work.name == now.workload).ok_or_else(missing)?;
        require_same_making(path, known, now)?;
        let places = places(session, project, kernel, work, &now.inputs.programs)?;
        cells.push(check_cell(project, known, now, &places, all));
    }
    let of = |cell: &ProgramCheckCell| {
        cell.missing.len() + cell.rows.iter().map(|row| row.findings().count()).sum::<usize>()
    };
    let findings = cells.iter().map(of).sum();
    Ok(ProgramCheck { schema: PROGRAM_CHECK_SCHEMA, cells, findings })
}

/// Refuses figures that differ by more than the program.
fn require_same_making(path: &Path, known: &ProgramCell, now: &ProgramCell) -> Result<()> {
    let mut differs = known.inputs.differences(&now.inputs, &now.workload);
    if known.kernel.id != now.kernel.id {
        let KernelName { label, id, .. } = &known.kernel;
        differs.insert(0, format!("they are of kernel {label} ({id}), and this is {}", now.kernel.id));
    }
    if known.inputs == now.inputs && known.profile == now.profile && known.rows != now.rows {
        differs.push("the same recording has other figures here: the file was changed".to_owned());
    }
    match differs.is_empty() {
        true => Ok(()),
        false => Err(Error::OtherProgramMaking { path: path.to_owned(), differs: differs.join("; ") }),
    }
}

fn places(
    session: &Session,
    project: &GuardProject,
    kernel: &Kernel,
    work: &GuardedWorkload,
    programs: &BTreeSet<String>,
) -> Result<FunctionPlaces> {
    let image = session.image_on(kernel, &work.workload)?;
    let mut files: Vec<PathBuf> = Vec::new();
    for program in programs {
        files.extend(kerntune_guest::locate(session.work, &work.workload, &image.manifest, program)?);
    }
    Ok(FunctionPlaces::read(&files, &project.dir))
}

fn check_cell(
    project: &GuardProject,
    known: &ProgramCell,
    now: &ProgramCell,
    places: &FunctionPlaces,
    all: bool,
) -> ProgramCheckCell {
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for before in &known.rows {
        let name = &before.kernel.row;
        match now.row(name) {
            Some(after) => {
                let tolerance = project.file.tolerance(&now.workload, name);
                rows.push(check_row([before, after], tolerance, places, all));
            }
            None => missing.push(name.clone()),
        }
    }
    let only_now = now.rows.iter().filter(|row| known.row(&row.kernel.row).is_none());
    missing.extend(only_now.map(|row| row.kernel.row.clone()));
    ProgramCheckCell {
        workload: now.workload.clone(),
        kernel: now.kernel.clone(),
        programs: now.inputs.programs.clone(),
        profiles: [known.profile.clone(), now.profile.clone()],
        rows,
        missing,
    }
}

fn check_row(
    sides: [&ProgramFigure; 2],
    tolerance: Tolerance,
    places: &FunctionPlaces,
    all: bool,
) -> CheckedProgramRow {
    let operations = sides.map(|side| side.kernel.operations);
    let mut figures = Vec::new();
    let mut changes = Vec::new();
    for metric in ProgramMetric::ALL {
        let mut parts = parts(metric, sides);
        parts.sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()).then(a.name.cmp(&b.name)));
        let figure = judge(metric, sides, &parts, &tolerance);
        if figure.grew || all && figure.fell {
            changes.extend(largest(parts));
        }
        figures.push(figure);
    }
    for change in &mut changes {
        let function = match change.metric {
            ProgramMetric::User => Some(change.name.as_str()),
            _ => change.caller.as_deref(),
        };
        change.place = function.and_then(|function| places.find(function));
    }
    CheckedProgramRow { row: sides[0].kernel.row.clone(), operations, tolerance, figures, changes }
}

fn judge(
    metric: ProgramMetric,
    sides: [&ProgramFigure; 2],
    parts: &[ProgramChange],
    tolerance: &Tolerance,
) -> CheckedFigure {
    let sums = sides.map(|side| match metric {
        ProgramMetric::Whole => side.whole(),
        ProgramMetric::User => side.user_instructions,
        ProgramMetric::Kernel => side.kernel.own(),
        ProgramMetric::SystemCalls => side.calls(),
        ProgramMetric::MemoryFaults => side.faults(FaultKind::Memory),
        ProgramMetric::FileFaults => side.faults(FaultKind::File),
    });
    let [before, after] = [0, 1].map(|side| sums[side] as f64 / operations(sides[side]));
    let more = |change: f64| change > tolerance.calls;
    let (grew, fell) = match metric {
        ProgramMetric::Whole => (false, false),
        ProgramMetric::User | ProgramMetric::Kernel => {
            let path = if metric == ProgramMetric::Kernel { tolerance.kernel } else { tolerance.path };
            let beyond = is_beyond(before, after, &Tolerance { path, ..*tolerance });
            (beyond && after > before, beyond && after < before)
        }
        // One call more and another one less are two changes.
        ProgramMetric::SystemCalls => {
            let mut names: BTreeMap<&str, f64> = BTreeMap::new();
            for part in parts {
                *names.entry(&part.name).or_default() += part.change();
            }
            (names.values().any(|change| more(*change)), names.values().any(|change| more(-change)))
        }
        ProgramMetric::MemoryFaults => (more(after - before), more(before - after)),
        ProgramMetric::FileFaults => {
            let beyond = sums[1].abs_diff(sums[0]) > FILE_FAULTS;
            (beyond && more(after - before), beyond && more(before - after))
        }
    };
    CheckedFigure { metric, values: [before, after], change_percent: percent(before, after), grew, fell }
}

fn operations(of: &ProgramFigure) -> f64 {
    of.kernel.operations.max(1) as f64
}

/// Returns the parts of a figure, of one operation.
fn parts(metric: ProgramMetric, sides: [&ProgramFigure; 2]) -> Vec<ProgramChange> {
    let mut sums: BTreeMap<(&str, Option<&str>), [f64; 2]> = BTreeMap::new();
    for (side, of) in sides.into_iter().enumerate() {
        let mut add = |name, caller, count: u64| {
            sums.entry((name, caller)).or_default()[side] += count as f64 / operations(of);
        };
        let calls = || of.system_calls.iter();
        let faults = || of.page_faults.iter();
        match metric {
            ProgramMetric::Whole => {}
            ProgramMetric::User => of.functions.iter().for_each(|(name, count)| add(name, None, *count)),
            ProgramMetric::Kernel => {
                calls().for_each(|call| add(kernel_name(call), Some(&call.caller), call.instructions));
                faults().for_each(|fault| add("[page fault]", Some(&fault.caller), fault.instructions));
            }
            ProgramMetric::SystemCalls => {
                calls().for_each(|call| add(&call.name, Some(&call.caller), call.calls));
            }
            ProgramMetric::MemoryFaults | ProgramMetric::FileFaults => {
                let (kind, name) = match metric {
                    ProgramMetric::MemoryFaults => (FaultKind::Memory, "memory"),
                    _ => (FaultKind::File, "file"),
                };
                let of_kind = faults().filter(|fault| fault.kind == kind);
                of_kind.for_each(|fault| add(name, Some(&fault.caller), fault.faults));
            }
        }
    }
    let part = |((name, caller), values): ((&str, Option<&str>), [f64; 2])| ProgramChange {
        metric,
        name: name.to_owned(),
        caller: caller.map(str::to_owned),
        values,
        place: None,
    };
    sums.into_iter().map(part).collect()
}

fn kernel_name(call: &CallFigure) -> &str {
    match call.name.as_str() {
        ENTRY => "[entry and exit]",
        name => name,
    }
}

/// Returns the parts that hold most of the change; they are sorted by it.
fn largest(parts: Vec<ProgramChange>) -> impl Iterator<Item = ProgramChange> {
    let all: f64 = parts.iter().map(|part| part.change().abs()).sum();
    let mut sum = 0.0;
    let is_wanted = move |part: &ProgramChange| {
        let wanted = part.change() != 0.0 && sum < all * SHARE;
        sum += part.change().abs();
        wanted
    };
    parts.into_iter().take_while(is_wanted).take(CHANGES)
}
