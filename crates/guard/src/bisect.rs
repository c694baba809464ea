//! The commit by which a row got longer.

use crate::cell::Measured;
use crate::check::{explain, Explained};
use crate::figures::RowFigure;
use crate::judge::is_beyond;
use crate::ledger::{Entry, Ledger};
use crate::project::{Project, Variant, Work};
use crate::texts::Texts;
use crate::tree::{Commit, Tree};
use crate::{Error, Result};
use kerntune_tune::Session;
use serde::Serialize;

/// Format and version in JSON.
pub const SCHEMA: &str = "kerntune-guard-bisect/1";

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// A commit before.
    pub good: &'a str,
    /// A commit after.
    pub bad: &'a str,
    /// Only in this workload.
    pub workload: Option<&'a str>,
    /// Only in this row; the one that grew most otherwise.
    pub row: Option<&'a str>,
    /// By what kernels are built.
    pub variant: &'a Variant,
}

/// What a commit was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// The row is as short as at the good end.
    Good,
    /// It is as long as at the bad end.
    Bad,
    /// It has no figures.
    Skipped,
}

/// A commit that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// The commit.
    pub commit: Commit,
    /// What it was found to be.
    pub judged: Judged,
    /// Instructions of an operation.
    pub path: Option<f64>,
    /// Why it has no figures.
    pub because: Option<String>,
    /// Objects that were compiled; none if its kernel was there.
    pub objects: Option<u64>,
    /// What it took when it was tried, seconds.
    pub seconds: f64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bisected {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The workload.
    pub workload: String,
    /// The row.
    pub row: String,
    /// Both ends, and the row's path there.
    pub ends: [(Commit, f64); 2],
    /// A longer path is bad.
    pub limit: f64,
    /// How many commits there were to choose from.
    pub commits: usize,
    /// The first bad one, if one alone is left.
    pub first_bad: Option<Commit>,
    /// Those that are left: one, or it and those before it that have no figures.
    pub suspects: Vec<Commit>,
    /// Every commit that was asked for, in that order.
    pub tried: Vec<Tried>,
    /// How many kernels were built.
    pub builds: usize,
    /// How many commits had no figures.
    pub skipped: usize,
    /// What all of it took, seconds, also what was done by calls before.
    pub seconds: f64,
    /// What the last good one and the first bad one differ in.
    pub explained: Option<Explained>,
    /// The good commit that it is held against there.
    pub against: Option<Commit>,
}

/// Looks for the commit. What was found out before is not found out again. `tell` hears of each commit that is tried.
///
/// # Errors
/// Ends that have no figures, or between which nothing grew; what says nothing of a commit.
pub fn bisect(
    session: &Session,
    project: &Project,
    tree: &Tree,
    search: &Search,
    tell: &dyn Fn(&Tried),
) -> Result<Bisected> {
    let [good, bad] = [tree.commit(search.good)?, tree.commit(search.bad)?];
    if good.id == bad.id || !tree.is_before(&good.id, &bad.id)? {
        return Err(Error::NotBefore { good: search.good.into(), bad: search.bad.into() });
    }
    let mut run = Run { tried: Vec::new(), tell };
    let (work, row) = which(session, project, tree, search, [&good, &bad])?;
    let ledger = Ledger::open(session, project, tree, search.variant, work)?;
    let ends = [end(&ledger, &good, &row)?, end(&ledger, &bad, &row)?];
    let tolerance = project.file.tolerance(&work.name, &row);
    let [before, after] = ends;
    if after <= before {
        return Err(Error::NotLonger {
            row,
            good: search.good.into(),
            bad: search.bad.into(),
            paths: format!("{before:.2} to {after:.2}"),
        });
    }
    if search.row.is_none() && !is_beyond(before, after, &tolerance) {
        return Err(nothing(work, search));
    }
    // Half of what it grew: what falls to the one side or the other without a reason is less.
    let limit = before + (after - before) / 2.0;
    run.note(&good, Judged::Good, Some(before), None, &ledger.entry(&good)?);
    run.note(&bad, Judged::Bad, Some(after), None, &ledger.entry(&bad)?);
    let (mut goods, mut worst, mut skipped) = (vec![good.id.clone()], bad.clone(), Vec::<String>::new());
    let commits = tree.suspects(&bad.id, &goods)?.len();
    let mut in_turn = 0;
    let suspects = loop {
        let left = tree.suspects(&worst.id, &goods)?;
        let open: Vec<&String> = left.iter().filter(|id| **id != worst.id && !skipped.contains(id)).collect();
        let Some(next) = choose(&open, in_turn) else { break left };
        let commit = tree.commit(next)?;
        let entry = ledger.entry(&commit)?;
        let path = entry.cell.as_ref().and_then(|cell| cell.row(&row)).map(RowFigure::path);
        let judged = match path {
            None => Judged::Skipped,
            Some(path) if path > limit => Judged::Bad,
            Some(_) => Judged::Good,
        };
        in_turn = if judged == Judged::Skipped { in_turn + 1 } else { 0 };
        run.note(&commit, judged, path, entry.failure.clone(), &entry);
        match judged {
            Judged::Good => goods.push(commit.id),
            Judged::Bad => worst = commit,
            Judged::Skipped => skipped.push(commit.id),
        }
    };
    let suspects = suspects.iter().map(|id| tree.commit(id)).collect::<Result<Vec<_>>>()?;
    let first_bad = (suspects.len() == 1).then(|| worst.clone());
    // What it is held against: its parent, if that has figures, or the last that was found good.
    let parent = tree.parent(&worst.id).filter(|parent| goods.contains(parent));
    let against = tree.commit(parent.as_ref().or(goods.last()).unwrap_or(&good.id))?;
    let sides: [Measured; 2] = [ledger.measured(&against)?, ledger.measured(&worst)?];
    let texts = [&against, &worst].map(|commit| Some(Texts::Commit(tree.clone(), commit.id.clone())));
    let explained = explain(session, [&sides[0], &sides[1]], &row, texts)?;
    let tried = run.tried;
    Ok(Bisected {
        schema: SCHEMA,
        workload: work.name.clone(),
        row,
        ends: [(good, before), (bad, after)],
        limit,
        commits,
        first_bad,
        suspects,
        builds: tried.iter().filter(|tried| tried.objects.is_some()).count(),
        skipped: skipped.len(),
        seconds: tried.iter().map(|tried| tried.seconds).sum(),
        tried,
        explained: Some(explained),
        against: Some(against),
    })
}

/// Which of those that are left to try. After commits that have no figures one further away is: those beside them often have none,
/// too.
fn choose<'a>(open: &[&'a String], in_turn: usize) -> Option<&'a String> {
    let away = if in_turn == 0 { 0 } else { open.len() * (2 * in_turn - 1).min(7) / 8 };
    open.get(away.min(open.len().saturating_sub(1))).copied()
}

struct Run<'a> {
    tried: Vec<Tried>,
    tell: &'a dyn Fn(&Tried),
}

impl Run<'_> {
    fn note(
        &mut self,
        commit: &Commit,
        judged: Judged,
        path: Option<f64>,
        because: Option<String>,
        entry: &Entry,
    ) {
        let (objects, seconds) = (entry.objects, entry.seconds);
        let tried = Tried { commit: commit.clone(), judged, path, because, objects, seconds };
        (self.tell)(&tried);
        self.tried.push(tried);
    }
}

/// A row's path at an end of the search.
fn end(ledger: &Ledger, commit: &Commit, row: &str) -> Result<f64> {
    let entry = ledger.entry(commit)?;
    let path = entry.cell.as_ref().and_then(|cell| cell.row(row)).map(RowFigure::path);
    path.ok_or_else(|| no_end(commit, entry.failure.unwrap_or_else(|| format!("it has no row {row}"))))
}

fn no_end(commit: &Commit, why: String) -> Error {
    Error::NoEnd { commit: format!("{} ({})", commit.short(), commit.subject), why }
}

fn nothing(work: &Work, search: &Search) -> Error {
    Error::NothingGrew { workload: work.name.clone(), good: search.good.into(), bad: search.bad.into() }
}

/// The workload and the row: those that are named, or the row that grew most.
fn which<'a>(
    session: &Session,
    project: &'a Project,
    tree: &Tree,
    search: &Search,
    [good, bad]: [&Commit; 2],
) -> Result<(&'a Work, String)> {
    let named = |work: &&Work| search.workload.is_none_or(|name| work.name == name);
    let works: Vec<&Work> = project.works.iter().filter(named).collect();
    let Some(first) = works.first() else {
        let known = project.works.iter().map(|work| work.name.clone()).collect();
        let name = search.workload.unwrap_or_default().to_owned();
        return Err(Error::NotInFile { kind: "workload", name, known });
    };
    let mut most: Option<(f64, &Work, String)> = None;
    for work in &works {
        let ledger = Ledger::open(session, project, tree, search.variant, work)?;
        let mut of = Vec::new();
        for commit in [good, bad] {
            let entry = ledger.entry(commit)?;
            let why = entry.failure.unwrap_or_default();
            of.push(entry.cell.ok_or_else(|| no_end(commit, why))?);
        }
        let [before, after] = &of[..] else { continue };
        for row in &before.rows {
            if search.row.is_some_and(|name| name != row.row) {
                continue;
            }
            let Some(after) = after.row(&row.row) else { continue };
            let (from, to) = (row.path(), after.path());
            let beyond =
                search.row.is_some() || is_beyond(from, to, &project.file.tolerance(&work.name, &row.row));
            let change = to / from - 1.0;
            if beyond && most.as_ref().is_none_or(|(known, ..)| change > *known) {
                most = Some((change, work, row.row.clone()));
            }
        }
    }
    match (most, search.row) {
        (Some((_, work, row)), _) => Ok((work, row)),
        (None, Some(row)) => Err(Error::NotInFile {
            kind: "row",
            name: row.to_owned(),
            known: works.iter().map(|work| work.name.clone()).collect(),
        }),
        (None, None) => Err(nothing(first, search)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_commits_without_figures_one_further_away_is_tried() {
        let all: Vec<String> = (0..16).map(|at| at.to_string()).collect();
        let open: Vec<&String> = all.iter().collect();
        let chosen = |in_turn| choose(&open, in_turn).map(String::as_str);
        assert_eq!(
            [chosen(0), chosen(1), chosen(2), chosen(9)],
            [Some("0"), Some("2"), Some("6"), Some("14")]
        );
        assert_eq!((choose(&open[..1], 5).map(String::as_str), choose(&[], 0)), (Some("0"), None));
    }
}
