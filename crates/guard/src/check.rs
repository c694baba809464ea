//! Compares the figures of a kernel with those of another, and explains every row that grew.

use crate::baseline::{Baseline, MeasuredSubject};
use crate::cause::{causes, ChangedFunction, Compensation, RowCauses};
use crate::cell::{measure_kernel, CellFigures, KernelName, MeasuredCell};
use crate::deferred::DeferralClass;
use crate::figures::RowFigure;
use crate::file::Tolerance;
use crate::judge::{self, DeferredWork, RowVerdict};
use crate::lines;
use crate::project::{GuardProject, GuardedWorkload};
use crate::texts::SourceTexts;
use crate::{Error, Result};
use kerntune_kernel::Kernel;
use kerntune_profile::Profile;
use kerntune_tune::Session;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Schema of the JSON form.
pub const SCHEMA: &str = "kerntune-guard-check/1";

/// Share of a row's absolute changes that the listed functions must explain.
const SHARE: f64 = 0.95;
/// Largest number of functions to list.
const FUNCTIONS: usize = 20;
/// Largest number of compensated changes to list.
const PLACES: usize = 5;

/// Explanation of a row's change. Pairs are base and new.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowExplanation {
    /// Number of operations.
    pub operations: [u64; 2],
    /// Kernel instructions of the operations themselves, without deferred work.
    pub own: [i128; 2],
    /// Functions with the largest changes.
    pub functions: Vec<ChangedFunction>,
    /// Number of further functions that changed.
    pub more_functions: usize,
    /// Sum of their changes.
    pub more_change: i128,
    /// Part of `own` in no function, including returns to user code.
    pub elsewhere: [i128; 2],
    /// Change of `own` that functions and `elsewhere` do not explain; always 0.
    pub rest: i128,
    /// Instructions of deferred work during the row, by class.
    #[serde(rename = "put_off")]
    pub deferred: BTreeMap<DeferralClass, [i128; 2]>,
    /// Compensated changes, the largest first.
    #[serde(rename = "made_up")]
    pub compensated: Vec<Compensation>,
}

impl RowExplanation {
    /// Selects the largest causes, and locates them in the source.
    fn of(found: RowCauses, texts: &[SourceTexts; 2]) -> Self {
        let all: u128 = found.functions.iter().map(|row| row.change().unsigned_abs()).sum();
        let (mut shown, mut sum) = (0, 0_u128);
        for row in found.functions.iter().take(FUNCTIONS) {
            if row.change() == 0 || sum as f64 >= all as f64 * SHARE && shown > 0 {
                break;
            }
            sum += row.change().unsigned_abs();
            shown += 1;
        }
        let mut functions = found.functions;
        let rest = functions.split_off(shown);
        // Both sides of the largest compensated change are listed even if other functions changed
        // more.
        let named: Vec<&String> = found
            .compensated
            .first()
            .into_iter()
            .flat_map(|of| of.longer.iter().chain(&of.shorter).take(4).map(|(name, _)| name))
            .collect();
        let (more, rest): (Vec<ChangedFunction>, Vec<ChangedFunction>) =
            rest.into_iter().partition(|row| row.change() != 0 && named.contains(&&row.function));
        functions.extend(more);
        for row in &mut functions {
            let Some(file) = row.file.clone() else { continue };
            let texts = texts.each_ref().map(|side| side.read(&file));
            row.source =
                lines::locate_function(&file, &row.function, [texts[0].as_deref(), texts[1].as_deref()]);
        }
        Self {
            operations: found.operations,
            own: found.own,
            functions,
            more_functions: rest.iter().filter(|row| row.change() != 0).count(),
            more_change: rest.iter().map(ChangedFunction::change).sum(),
            elsewhere: found.elsewhere,
            rest: found.rest,
            deferred: found.deferred,
            compensated: found.compensated.into_iter().take(PLACES).collect(),
        }
    }
}

/// Comparison of a row. Pairs are base and new.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedRow {
    /// Name of the row.
    pub row: String,
    /// Path length: instructions of an operation itself, without deferred work.
    pub path: [f64; 2],
    /// Change of the path length in percent; `None` if it was 0.
    pub change_percent: Option<f64>,
    /// Largest compensated change, in instructions per operation.
    #[serde(rename = "made_up")]
    pub compensated: f64,
    /// Tolerances of the row.
    pub tolerance: Tolerance,
    /// Verdict over the row.
    pub verdict: RowVerdict,
    /// Explanation of findings, and of all changed rows if asked for.
    pub explained: Option<RowExplanation>,
}

/// Comparison of a workload on two kernels. Pairs are base and new.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedCell {
    /// Name of the configuration; empty if the user named the kernels.
    pub configuration: String,
    /// Compiler as in `guard.toml`; empty if the user named the kernels.
    pub compiler: String,
    /// Name of the workload.
    pub workload: String,
    /// The compared kernels.
    pub kernels: [KernelName; 2],
    /// Ids of the recorded profiles.
    pub profiles: [String; 2],
    /// Rows that both kernels have.
    pub rows: Vec<CheckedRow>,
    /// Rows that only one of them has.
    pub missing: Vec<String>,
    /// Deferred work of all rows together.
    #[serde(rename = "put_off")]
    pub deferred: DeferredWork,
    /// Reason why nothing could be explained; `None` if it could.
    pub unexplained: Option<String>,
    /// Reason why the baseline's kernel was measured again instead of using the baseline's figures;
    /// `None` if it was not.
    pub remeasured: Option<String>,
}

impl CheckReport {
    /// Returns the distinct reasons why kernels of the baseline were measured again.
    pub fn remeasured(&self) -> Vec<&str> {
        let mut said: Vec<&str> = Vec::new();
        for why in self.cells.iter().filter_map(|cell| cell.remeasured.as_deref()) {
            if !said.contains(&why) {
                said.push(why);
            }
        }
        said
    }
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Base and new subject.
    pub subjects: [MeasuredSubject; 2],
    /// Comparison of every workload on every kernel.
    pub cells: Vec<CheckedCell>,
    /// Number of rows that grew, are compensated or missing, and of workloads with more deferred
    /// work.
    pub findings: usize,
}

/// Figures to compare with.
#[derive(Debug)]
pub enum CheckBase<'a> {
    /// A baseline file and its path.
    File(&'a Baseline, &'a Path),
    /// Measured cells and their subject.
    Measured(&'a MeasuredSubject, &'a [MeasuredCell]),
}

/// The base or the new side of a cell.
struct CheckSide {
    cell: CellFigures,
    profile: Option<Profile>,
    texts: SourceTexts,
    remeasured: Option<String>,
}

impl CheckSide {
    fn of(
        session: &Session,
        project: &GuardProject,
        subject: &MeasuredSubject,
        measured: &MeasuredCell,
    ) -> Result<Self> {
        let texts = texts(session, project, subject, &measured.kernel);
        Ok(Self { cell: measured.cell.clone(), profile: Some(measured.load()?), texts, remeasured: None })
    }
}

/// Returns a kernel's source; that of its commit if the checkout has moved on since the build.
fn texts(
    session: &Session,
    project: &GuardProject,
    subject: &MeasuredSubject,
    kernel: &Kernel,
) -> SourceTexts {
    match (SourceTexts::of(session.work, kernel), &subject.commit) {
        (SourceTexts::Gone, Some(commit)) => commit_texts(session, project, commit),
        (texts, _) => texts,
    }
}

/// Compares measured cells with a base. With `all`, rows that got shorter are explained too.
///
/// # Errors
/// Figures that are missing, or not comparable and not reproducible here; errors of recordings.
pub fn check(
    session: &Session,
    project: &GuardProject,
    against: &CheckBase,
    (subject, measured): (&MeasuredSubject, &[MeasuredCell]),
    all: bool,
) -> Result<CheckReport> {
    let mut cells = Vec::new();
    for new in measured {
        let base = match against {
            CheckBase::File(baseline, path) => baseline_side(session, project, baseline, path, &new.cell)?,
            CheckBase::Measured(of_base, base) => {
                let alike = |of: &&MeasuredCell| of.cell.workload == new.cell.workload;
                let exact = base.iter().find(|of| of.cell.is_same_cell(&new.cell));
                let found = exact.or_else(|| base.iter().find(alike));
                let what = || Error::NoFigures {
                    path: project.dir.join(&project.file.baseline),
                    what: new.cell.display_name(),
                };
                CheckSide::of(session, project, of_base, found.ok_or_else(what)?)?
            }
        };
        cells.push(check_cell(project, &base, &CheckSide::of(session, project, subject, new)?, all)?);
    }
    let of = |cell: &CheckedCell| {
        let rows = cell.rows.iter().filter(|row| row.verdict.is_finding()).count();
        rows + cell.missing.len() + usize::from(cell.deferred.longer)
    };
    let findings = cells.iter().map(of).sum();
    let base = match against {
        CheckBase::File(baseline, _) => &baseline.subject,
        CheckBase::Measured(subject, _) => subject,
    };
    Ok(CheckReport { schema: SCHEMA, subjects: [base.clone(), subject.clone()], cells, findings })
}

/// Returns a baseline's cell, with its profile if that exists or can be recorded again.
fn baseline_side(
    session: &Session,
    project: &GuardProject,
    baseline: &Baseline,
    path: &Path,
    new: &CellFigures,
) -> Result<CheckSide> {
    let missing = || Error::NoFigures { path: path.to_owned(), what: new.display_name() };
    let known = baseline.cell_for(new).ok_or_else(missing)?;
    let work = project.works.iter().find(|work| work.name == new.workload).ok_or_else(missing)?;
    let kernel = kerntune_kernel::find(session.work, &known.kernel.id).ok();
    let same = known.making == new.making && has_rows(known, work);
    let differs = || match known.making == new.making {
        true => "for other rows than guard.toml asks for".to_owned(),
        false => format!("with {}", describe_differences(known, new)),
    };
    if let Some(kernel) = kernel {
        // Finds the recording, or makes it again with this machine's QEMU, image and code.
        let again = measure_kernel(session, project, &kernel, None, work)?;
        if same && again.cell.rows != known.rows {
            return Err(Error::OtherMaking {
                path: path.to_owned(),
                differs: format!(
                    "kernel {} has other figures here, made in the same way: the file was changed",
                    known.kernel.id
                ),
            });
        }
        let remeasured = (!same).then(|| {
            let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            let KernelName { id, label, .. } = &known.kernel;
            format!("{file} was made {}: measured its kernel {label} ({id}) again", differs())
        });
        let texts = texts(session, project, &baseline.subject, &kernel);
        let cell = CellFigures {
            rows: again.cell.rows.clone(),
            profile: again.cell.profile.clone(),
            ..known.clone()
        };
        return Ok(CheckSide { cell, profile: Some(again.load()?), texts, remeasured });
    }
    if !same {
        let differs = format!(
            "they were made {}, and kernel {} is not in this work directory to be measured again",
            differs(),
            known.kernel.id
        );
        return Err(Error::OtherMaking { path: path.to_owned(), differs });
    }
    let profile = kerntune_profile::find(session.work, &known.profile).ok();
    let profile = profile.and_then(|found| Profile::load(&found.path).ok());
    Ok(CheckSide { cell: known.clone(), profile, texts: SourceTexts::Gone, remeasured: None })
}

/// Describes how the inputs of two measurements differ.
fn describe_differences(known: &CellFigures, new: &CellFigures) -> String {
    let of_both = known.means.as_ref().zip(new.means.as_ref());
    let found = of_both.map(|(before, now)| before.differences(now, &new.workload));
    match found.filter(|found| !found.is_empty()) {
        Some(found) => found.join(" and "),
        None => "another machine, guest, workload or version of kerntune".to_owned(),
    }
}

fn has_rows(cell: &CellFigures, work: &GuardedWorkload) -> bool {
    work.rows.iter().all(|row| cell.row(row).is_some())
}

/// Returns a commit's source, if the project has a git tree.
fn commit_texts(session: &Session, project: &GuardProject, commit: &str) -> SourceTexts {
    let tree = project.tree().and_then(|origin| crate::tree::GitTree::open(session.work, &origin));
    tree.map_or(SourceTexts::Gone, |tree| SourceTexts::Commit(tree, commit.to_owned()))
}

fn check_cell(project: &GuardProject, base: &CheckSide, new: &CheckSide, all: bool) -> Result<CheckedCell> {
    let work = &new.cell.workload;
    let profiles = base.profile.as_ref().zip(new.profile.as_ref());
    let texts = [base.texts.clone(), new.texts.clone()];
    let (mut rows, mut missing, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    for before in &base.cell.rows {
        let Some(after) = new.cell.row(&before.row) else {
            missing.push(before.row.clone());
            continue;
        };
        let found = profiles.map(|(base, new)| causes([base, new], &before.row)).transpose()?;
        rows.push(check_row(project, work, [before, after], found, &texts, all));
        pairs.push([before, after]);
    }
    missing.extend(
        new.cell.rows.iter().filter(|row| base.cell.row(&row.row).is_none()).map(|row| row.row.clone()),
    );
    let tolerance = project.file.default_tolerance.deferred;
    let unexplained = profiles.is_none().then(|| {
        format!("kernel {} is not in this work directory, and its recording neither: nothing is explained, and nothing that is made up for is seen", base.cell.kernel.id)
    });
    Ok(CheckedCell {
        configuration: new.cell.configuration.clone(),
        compiler: new.cell.compiler.clone(),
        workload: work.clone(),
        kernels: [base.cell.kernel.clone(), new.cell.kernel.clone()],
        profiles: [base.cell.profile.clone(), new.cell.profile.clone()],
        deferred: DeferredWork::of(pairs.into_iter(), tolerance),
        rows,
        missing,
        unexplained,
        remeasured: base.remeasured.clone(),
    })
}

fn check_row(
    project: &GuardProject,
    work: &str,
    figures: [&RowFigure; 2],
    found: Option<RowCauses>,
    texts: &[SourceTexts; 2],
    all: bool,
) -> CheckedRow {
    let tolerance = project.file.tolerance(work, &figures[0].row);
    let compensated = found.as_ref().map_or(0.0, judge::compensated);
    let verdict = judge::judge_row(figures, &tolerance, || compensated);
    let path = figures.map(RowFigure::path);
    let wanted = verdict.is_finding() || all && verdict != RowVerdict::Same;
    CheckedRow {
        row: figures[0].row.clone(),
        path,
        change_percent: judge::percent(path[0], path[1]),
        compensated,
        tolerance,
        verdict,
        explained: found.filter(|_| wanted).map(|found| RowExplanation::of(found, texts)),
    }
}

/// Explains a row of two recordings, whatever the verdict.
///
/// # Errors
/// Errors of the profiles.
pub fn explain(
    session: &Session,
    sides: [&MeasuredCell; 2],
    row: &str,
    texts: [Option<SourceTexts>; 2],
) -> Result<RowExplanation> {
    let [base, new] = [sides[0].load()?, sides[1].load()?];
    let found = causes([&base, &new], row)?;
    let [of_base, of_new] = texts;
    let texts = [
        of_base.unwrap_or_else(|| SourceTexts::of(session.work, &sides[0].kernel)),
        of_new.unwrap_or_else(|| SourceTexts::of(session.work, &sides[1].kernel)),
    ];
    Ok(RowExplanation::of(found, &texts))
}
