//! Bisects commits for the one that made a row longer.

use crate::cell::MeasuredCell;
use crate::check::{explain, RowExplanation};
use crate::figures::RowFigure;
use crate::judge::is_beyond;
use crate::ledger::{CommitLedger, LedgerEntry};
use crate::project::{BuildVariant, GuardProject, GuardedWorkload};
use crate::texts::SourceTexts;
use crate::tree::{Commit, GitTree};
use crate::{Error, Result};
use kerntune_tune::Session;
use serde::Serialize;

/// Schema of the JSON form.
pub const SCHEMA: &str = "kerntune-guard-bisect/1";

/// Parameters of a bisection.
#[derive(Debug, Clone, Copy)]
pub struct BisectRequest<'a> {
    /// Commit or other revision where the row is short.
    pub good: &'a str,
    /// Commit or other revision where the row is long.
    pub bad: &'a str,
    /// Workload to consider; `None` means all.
    pub workload: Option<&'a str>,
    /// Row to search for; `None` means the one that grew most.
    pub row: Option<&'a str>,
    /// Configuration and compiler of the kernels.
    pub variant: &'a BuildVariant,
}

/// Verdict over a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommitVerdict {
    /// The row is about as short as at the good end.
    Good,
    /// The row is about as long as at the bad end.
    Bad,
    /// The commit has no figures.
    Skipped,
}

/// A commit that the bisection tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TriedCommit {
    /// The tried commit.
    pub commit: Commit,
    /// Verdict over the commit.
    pub judged: CommitVerdict,
    /// Path length of the row, in instructions per operation.
    pub path: Option<f64>,
    /// Reason why the commit has no figures.
    pub because: Option<String>,
    /// Number of objects compiled; `None` if the kernel existed already.
    pub objects: Option<u64>,
    /// Wall-clock seconds spent when the commit was first tried.
    pub seconds: f64,
}

/// Result of a bisection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BisectResult {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Name of the workload.
    pub workload: String,
    /// Name of the row.
    pub row: String,
    /// Good and bad end, with the row's path length there.
    pub ends: [(Commit, f64); 2],
    /// Path length above which a commit is bad.
    pub limit: f64,
    /// Number of commits to choose from.
    pub commits: usize,
    /// First bad commit, if it could be determined.
    pub first_bad: Option<Commit>,
    /// Commits that may be the first bad one: one, or several if some before it have no figures.
    pub suspects: Vec<Commit>,
    /// Tried commits, in order.
    pub tried: Vec<TriedCommit>,
    /// Number of kernels built.
    pub builds: usize,
    /// Number of commits without figures.
    pub skipped: usize,
    /// Wall-clock seconds of all tried commits, including those tried by earlier runs.
    pub seconds: f64,
    /// Differences between the last good and the first bad commit.
    pub explained: Option<RowExplanation>,
    /// Good commit that these differences are relative to.
    pub against: Option<Commit>,
}

/// Bisects for the first bad commit, reusing what the ledger has. Calls `tell` for each tried
/// commit.
///
/// # Errors
/// Ends without figures, or between which nothing grew; errors that are not the commit's fault.
pub fn bisect(
    session: &Session,
    project: &GuardProject,
    tree: &GitTree,
    search: &BisectRequest,
    tell: &dyn Fn(&TriedCommit),
) -> Result<BisectResult> {
    let [good, bad] = [tree.commit(search.good)?, tree.commit(search.bad)?];
    if good.id == bad.id || !tree.is_before(&good.id, &bad.id)? {
        return Err(Error::NotBefore { good: search.good.into(), bad: search.bad.into() });
    }
    let mut run = BisectRun { tried: Vec::new(), tell };
    let (work, row) = choose_row(session, project, tree, search, [&good, &bad])?;
    let ledger = CommitLedger::open(session, project, tree, search.variant, work)?;
    let ends = [path_at_end(&ledger, &good, &row)?, path_at_end(&ledger, &bad, &row)?];
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
        return Err(nothing_grew(work, search));
    }
    // Halfway, since unrelated changes between the ends are smaller than half the growth.
    let limit = before + (after - before) / 2.0;
    run.note(&good, CommitVerdict::Good, Some(before), None, &ledger.entry(&good)?);
    run.note(&bad, CommitVerdict::Bad, Some(after), None, &ledger.entry(&bad)?);
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
            None => CommitVerdict::Skipped,
            Some(path) if path > limit => CommitVerdict::Bad,
            Some(_) => CommitVerdict::Good,
        };
        in_turn = if judged == CommitVerdict::Skipped { in_turn + 1 } else { 0 };
        run.note(&commit, judged, path, entry.failure.clone(), &entry);
        match judged {
            CommitVerdict::Good => goods.push(commit.id),
            CommitVerdict::Bad => worst = commit,
            CommitVerdict::Skipped => skipped.push(commit.id),
        }
    };
    let suspects = suspects.iter().map(|id| tree.commit(id)).collect::<Result<Vec<_>>>()?;
    let first_bad = (suspects.len() == 1).then(|| worst.clone());
    // Compare with the parent if it has figures, otherwise with the last good commit.
    let parent = tree.parent(&worst.id).filter(|parent| goods.contains(parent));
    let against = tree.commit(parent.as_ref().or(goods.last()).unwrap_or(&good.id))?;
    let sides: [MeasuredCell; 2] = [ledger.measured(&against)?, ledger.measured(&worst)?];
    let texts = [&against, &worst].map(|commit| Some(SourceTexts::Commit(tree.clone(), commit.id.clone())));
    let explained = explain(session, [&sides[0], &sides[1]], &row, texts)?;
    let tried = run.tried;
    Ok(BisectResult {
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

/// Chooses the next commit to try. After commits without figures it goes further away, because
/// their neighbors often have none either.
fn choose<'a>(open: &[&'a String], in_turn: usize) -> Option<&'a String> {
    let away = if in_turn == 0 { 0 } else { open.len() * (2 * in_turn - 1).min(7) / 8 };
    open.get(away.min(open.len().saturating_sub(1))).copied()
}

struct BisectRun<'a> {
    tried: Vec<TriedCommit>,
    tell: &'a dyn Fn(&TriedCommit),
}

impl BisectRun<'_> {
    fn note(
        &mut self,
        commit: &Commit,
        judged: CommitVerdict,
        path: Option<f64>,
        because: Option<String>,
        entry: &LedgerEntry,
    ) {
        let (objects, seconds) = (entry.objects, entry.seconds);
        let tried = TriedCommit { commit: commit.clone(), judged, path, because, objects, seconds };
        (self.tell)(&tried);
        self.tried.push(tried);
    }
}

/// Returns the row's path length at an end of the bisection.
fn path_at_end(ledger: &CommitLedger, commit: &Commit, row: &str) -> Result<f64> {
    let entry = ledger.entry(commit)?;
    let path = entry.cell.as_ref().and_then(|cell| cell.row(row)).map(RowFigure::path);
    path.ok_or_else(|| no_end(commit, entry.failure.unwrap_or_else(|| format!("it has no row {row}"))))
}

fn no_end(commit: &Commit, why: String) -> Error {
    Error::NoEnd { commit: format!("{} ({})", commit.short(), commit.subject), why }
}

fn nothing_grew(work: &GuardedWorkload, search: &BisectRequest) -> Error {
    Error::NothingGrew { workload: work.name.clone(), good: search.good.into(), bad: search.bad.into() }
}

/// Chooses the workload and the row: those that the request names, or the row that grew most.
fn choose_row<'a>(
    session: &Session,
    project: &'a GuardProject,
    tree: &GitTree,
    search: &BisectRequest,
    [good, bad]: [&Commit; 2],
) -> Result<(&'a GuardedWorkload, String)> {
    let named = |work: &&GuardedWorkload| search.workload.is_none_or(|name| work.name == name);
    let works: Vec<&GuardedWorkload> = project.works.iter().filter(named).collect();
    let Some(first) = works.first() else {
        let known = project.works.iter().map(|work| work.name.clone()).collect();
        let name = search.workload.unwrap_or_default().to_owned();
        return Err(Error::NotInFile { kind: "workload", name, known });
    };
    let mut max: Option<(f64, &GuardedWorkload, String)> = None;
    for work in &works {
        let ledger = CommitLedger::open(session, project, tree, search.variant, work)?;
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
            if beyond && max.as_ref().is_none_or(|(known, ..)| change > *known) {
                max = Some((change, work, row.row.clone()));
            }
        }
    }
    match (max, search.row) {
        (Some((_, work, row)), _) => Ok((work, row)),
        (None, Some(row)) => Err(Error::NotInFile {
            kind: "row",
            name: row.to_owned(),
            known: works.iter().map(|work| work.name.clone()).collect(),
        }),
        (None, None) => Err(nothing_grew(first, search)),
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
