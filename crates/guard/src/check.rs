//! Figures of a kernel held against those of another, and what explains each that grew.

use crate::baseline::{Baseline, Subject};
use crate::cause::{causes, Causes, Changed, MadeUp};
use crate::cell::{of_kernel, Cell, KernelName, Measured};
use crate::figures::RowFigure;
use crate::file::Tolerance;
use crate::judge::{self, PutOff, Verdict};
use crate::lines;
use crate::project::{Project, Work};
use crate::put_off::Class;
use crate::texts::Texts;
use crate::{Error, Result};
use kerntune_kernel::Kernel;
use kerntune_profile::Profile;
use kerntune_tune::Session;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Format and version of a check in JSON.
pub const SCHEMA: &str = "kerntune-guard-check/1";

/// The functions that are named make up this share of all changes of a row.
const SHARE: f64 = 0.95;
/// No more of them are named.
const FUNCTIONS: usize = 20;
/// No more places at which something is made up for.
const PLACES: usize = 5;

/// Why a row changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// Operations of both sides.
    pub operations: [u64; 2],
    /// Own instructions of all operations, of both sides.
    pub own: [i128; 2],
    /// The functions that changed most.
    pub functions: Vec<Changed>,
    /// How many more there are that changed.
    pub more_functions: usize,
    /// What these changed in all.
    pub more_change: i128,
    /// Own instructions in no function and on the way back to user code.
    pub elsewhere: [i128; 2],
    /// What is left of the change without all of these: 0.
    pub rest: i128,
    /// What was put off while the row ran.
    pub put_off: BTreeMap<Class, [i128; 2]>,
    /// What got longer and is made up for.
    pub made_up: Vec<MadeUp>,
}

impl Explained {
    /// Of all causes those that matter, each with its place in the source.
    fn of(found: Causes, texts: &[Texts; 2]) -> Self {
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
        // What is made up for by the two sides of one place is named even if others changed more.
        let named: Vec<&String> = found
            .made_up
            .first()
            .into_iter()
            .flat_map(|of| of.longer.iter().chain(&of.shorter).take(4).map(|(name, _)| name))
            .collect();
        let (more, rest): (Vec<Changed>, Vec<Changed>) =
            rest.into_iter().partition(|row| row.change() != 0 && named.contains(&&row.function));
        functions.extend(more);
        for row in &mut functions {
            let Some(file) = row.file.clone() else { continue };
            let texts = texts.each_ref().map(|side| side.read(&file));
            row.source = lines::place(&file, &row.function, [texts[0].as_deref(), texts[1].as_deref()]);
        }
        Self {
            operations: found.operations,
            own: found.own,
            functions,
            more_functions: rest.iter().filter(|row| row.change() != 0).count(),
            more_change: rest.iter().map(Changed::change).sum(),
            elsewhere: found.elsewhere,
            rest: found.rest,
            put_off: found.put_off,
            made_up: found.made_up.into_iter().take(PLACES).collect(),
        }
    }
}

/// A row of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedRow {
    /// Its name.
    pub row: String,
    /// Own instructions of an operation, of both sides.
    pub path: [f64; 2],
    /// By how much that changed, per cent; none from nothing.
    pub change_percent: Option<f64>,
    /// Instructions of an operation that are made up for at one place.
    pub made_up: f64,
    /// By how much it may grow.
    pub tolerance: Tolerance,
    /// What became of it.
    pub verdict: Verdict,
    /// Why, of a finding, and of what was asked for.
    pub explained: Option<Explained>,
}

/// A workload of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedCell {
    /// The configuration; empty of kernels that were named.
    pub configuration: String,
    /// The compiler; empty of kernels that were named.
    pub compiler: String,
    /// The workload.
    pub workload: String,
    /// Both kernels.
    pub kernels: [KernelName; 2],
    /// Both recordings.
    pub profiles: [String; 2],
    /// Every row.
    pub rows: Vec<CheckedRow>,
    /// Rows that only one side has.
    pub missing: Vec<String>,
    /// What was put off in all rows.
    pub put_off: PutOff,
    /// Why nothing is explained, if nothing is.
    pub unexplained: Option<String>,
    /// Why the file's figures were not used and their kernel was measured again, if it was.
    pub remeasured: Option<String>,
}

impl Check {
    /// Why figures of the file were not used: a sentence for each reason.
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

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What it is held against, and what is held against it.
    pub subjects: [Subject; 2],
    /// Every workload on every kernel.
    pub cells: Vec<CheckedCell>,
    /// How many rows grew, are made up for, or are missing, and workloads of which more is put off.
    pub findings: usize,
}

/// What figures are held against.
#[derive(Debug)]
pub enum Against<'a> {
    /// A file of figures.
    File(&'a Baseline, &'a Path),
    /// What was measured.
    Measured(&'a Subject, &'a [Measured]),
}

/// One side of a cell.
struct Side {
    cell: Cell,
    profile: Option<Profile>,
    texts: Texts,
    remeasured: Option<String>,
}

impl Side {
    fn of(session: &Session, project: &Project, subject: &Subject, measured: &Measured) -> Result<Self> {
        let texts = texts(session, project, subject, &measured.kernel);
        Ok(Self { cell: measured.cell.clone(), profile: Some(measured.load()?), texts, remeasured: None })
    }
}

/// A kernel's source; a commit's, if the checkout in which it was built has another one by now.
fn texts(session: &Session, project: &Project, subject: &Subject, kernel: &Kernel) -> Texts {
    match (Texts::of(session.work, kernel), &subject.commit) {
        (Texts::Gone, Some(commit)) => of_commit(session, project, commit),
        (texts, _) => texts,
    }
}

/// Holds what was measured against what it was before. `all` explains rows, too, that got shorter.
///
/// # Errors
/// Figures that are not there, or of another making and not to be had again; those of recordings.
pub fn check(
    session: &Session,
    project: &Project,
    against: &Against,
    (subject, measured): (&Subject, &[Measured]),
    all: bool,
) -> Result<Check> {
    let mut cells = Vec::new();
    for new in measured {
        let base = match against {
            Against::File(baseline, path) => of_file(session, project, baseline, path, &new.cell)?,
            Against::Measured(of_base, base) => {
                let alike = |of: &&Measured| of.cell.workload == new.cell.workload;
                let exact = base.iter().find(|of| of.cell.same_place(&new.cell));
                let found = exact.or_else(|| base.iter().find(alike));
                let what = || Error::NoFigures {
                    path: project.dir.join(&project.file.baseline),
                    what: new.cell.named(),
                };
                Side::of(session, project, of_base, found.ok_or_else(what)?)?
            }
        };
        cells.push(cell(project, &base, &Side::of(session, project, subject, new)?, all)?);
    }
    let of = |cell: &CheckedCell| {
        let rows = cell.rows.iter().filter(|row| row.verdict.is_finding()).count();
        rows + cell.missing.len() + usize::from(cell.put_off.longer)
    };
    let findings = cells.iter().map(of).sum();
    let base = match against {
        Against::File(baseline, _) => &baseline.subject,
        Against::Measured(subject, _) => subject,
    };
    Ok(Check { schema: SCHEMA, subjects: [base.clone(), subject.clone()], cells, findings })
}

/// The cell of a file of figures, with its profile if it is to be had.
fn of_file(
    session: &Session,
    project: &Project,
    baseline: &Baseline,
    path: &Path,
    new: &Cell,
) -> Result<Side> {
    let missing = || Error::NoFigures { path: path.to_owned(), what: new.named() };
    let known = baseline.cell_for(new).ok_or_else(missing)?;
    let work = project.works.iter().find(|work| work.name == new.workload).ok_or_else(missing)?;
    let kernel = kerntune_kernel::find(session.work, &known.kernel.id).ok();
    let same = known.making == new.making && has_rows(known, work);
    let differs = || match known.making == new.making {
        true => "for other rows than guard.toml asks for".to_owned(),
        false => format!("with {}", other_means(known, new)),
    };
    if let Some(kernel) = kernel {
        // Its recording is found, or made again as recordings are made here and now.
        let again = of_kernel(session, project, &kernel, None, work)?;
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
        let cell =
            Cell { rows: again.cell.rows.clone(), profile: again.cell.profile.clone(), ..known.clone() };
        return Ok(Side { cell, profile: Some(again.load()?), texts, remeasured });
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
    Ok(Side { cell: known.clone(), profile, texts: Texts::Gone, remeasured: None })
}

/// In what the makings of two cells differ, in words.
fn other_means(known: &Cell, new: &Cell) -> String {
    let of_both = known.means.as_ref().zip(new.means.as_ref());
    let found = of_both.map(|(before, now)| before.differences(now, &new.workload));
    match found.filter(|found| !found.is_empty()) {
        Some(found) => found.join(" and "),
        None => "another machine, guest, workload or version of kerntune".to_owned(),
    }
}

fn has_rows(cell: &Cell, work: &Work) -> bool {
    work.rows.iter().all(|row| cell.row(row).is_some())
}

/// A commit's source, if there is a tree that has it.
fn of_commit(session: &Session, project: &Project, commit: &str) -> Texts {
    let tree = project.tree().and_then(|origin| crate::tree::Tree::open(session.work, &origin));
    tree.map_or(Texts::Gone, |tree| Texts::Commit(tree, commit.to_owned()))
}

fn cell(project: &Project, base: &Side, new: &Side, all: bool) -> Result<CheckedCell> {
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
        rows.push(checked(project, work, [before, after], found, &texts, all));
        pairs.push([before, after]);
    }
    missing.extend(
        new.cell.rows.iter().filter(|row| base.cell.row(&row.row).is_none()).map(|row| row.row.clone()),
    );
    let tolerance = project.file.default_tolerance.put_off;
    let unexplained = profiles.is_none().then(|| {
        format!("kernel {} is not in this work directory, and its recording neither: nothing is explained, and nothing that is made up for is seen", base.cell.kernel.id)
    });
    Ok(CheckedCell {
        configuration: new.cell.configuration.clone(),
        compiler: new.cell.compiler.clone(),
        workload: work.clone(),
        kernels: [base.cell.kernel.clone(), new.cell.kernel.clone()],
        profiles: [base.cell.profile.clone(), new.cell.profile.clone()],
        put_off: PutOff::of(pairs.into_iter(), tolerance),
        rows,
        missing,
        unexplained,
        remeasured: base.remeasured.clone(),
    })
}

fn checked(
    project: &Project,
    work: &str,
    figures: [&RowFigure; 2],
    found: Option<Causes>,
    texts: &[Texts; 2],
    all: bool,
) -> CheckedRow {
    let tolerance = project.file.tolerance(work, &figures[0].row);
    let made_up = found.as_ref().map_or(0.0, judge::made_up);
    let verdict = judge::row(figures, &tolerance, || made_up);
    let path = figures.map(RowFigure::path);
    let wanted = verdict.is_finding() || all && verdict != Verdict::Same;
    CheckedRow {
        row: figures[0].row.clone(),
        path,
        change_percent: judge::percent(path[0], path[1]),
        made_up,
        tolerance,
        verdict,
        explained: found.filter(|_| wanted).map(|found| Explained::of(found, texts)),
    }
}

/// A row of two recordings, explained whatever became of it.
///
/// # Errors
/// Those of the profiles.
pub fn explain(
    session: &Session,
    sides: [&Measured; 2],
    row: &str,
    texts: [Option<Texts>; 2],
) -> Result<Explained> {
    let [base, new] = [sides[0].load()?, sides[1].load()?];
    let found = causes([&base, &new], row)?;
    let [of_base, of_new] = texts;
    let texts = [
        of_base.unwrap_or_else(|| Texts::of(session.work, &sides[0].kernel)),
        of_new.unwrap_or_else(|| Texts::of(session.work, &sides[1].kernel)),
    ];
    Ok(Explained::of(found, &texts))
}
