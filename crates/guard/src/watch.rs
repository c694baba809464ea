//! Checks each new commit of a branch against the one before it.

use crate::baseline::MeasuredSubject;
use crate::cell::MeasuredCell;
use crate::check::{check, CheckBase, CheckReport};
use crate::ledger::CommitLedger;
use crate::project::{BuildVariant, GuardProject, GuardedWorkload};
use crate::tree::{Commit, GitTree};
use crate::Result;
use kerntune_tune::Session;
use kerntune_work::{interrupt, read_sealed, write_sealed, ContentHash, IoContext};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// State of a watched branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WatchState {
    /// Last commit that was examined.
    last: Commit,
    /// Last commit with figures, which the next one is compared with.
    measured: Option<Commit>,
}

/// Result of examining a commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WatchedCommit {
    /// The examined commit.
    pub commit: Commit,
    /// Commit that it was compared with; `None` for the first.
    pub against: Option<Commit>,
    /// Result of the comparison.
    pub check: Option<CheckReport>,
    /// Reason why the commit has no figures; `None` if it has.
    pub failure: Option<String>,
}

impl WatchedCommit {
    /// Checks whether any row grew.
    pub fn is_finding(&self) -> bool {
        self.check.as_ref().is_some_and(|check| check.findings > 0)
    }
}

/// A branch to watch.
#[derive(Debug)]
pub struct WatchedBranch<'a> {
    /// Git tree of the branch.
    pub tree: &'a GitTree,
    /// Name of the branch.
    pub name: &'a str,
    /// Commit to begin after if the branch was never watched; `None` means its tip.
    pub since: Option<&'a str>,
}

impl WatchedBranch<'_> {
    /// Examines every new commit, oldest first, and records it. Calls `tell` for each.
    ///
    /// # Errors
    /// Errors that are not a commit's fault; an interrupt. Earlier commits stay recorded.
    pub fn check_new_commits(
        &self,
        session: &Session,
        project: &GuardProject,
        tell: &mut dyn FnMut(&WatchedCommit) -> Result<()>,
    ) -> Result<()> {
        let path = self.path();
        let mut seen = self.seen()?;
        let directory = path.parent().unwrap_or(&path);
        fs::create_dir_all(directory).at("create", directory)?;
        write_sealed(&path, &seen)?;
        let tip = self.tree.commit(self.name)?;
        if !self.has(&seen.last, &tip) {
            session.progress.note(&format!(
                "{} was rewritten: {} is not in it any more; it is watched from its tip on",
                self.name,
                seen.last.short()
            ));
            seen = WatchState { last: tip.clone(), measured: Some(tip.clone()) };
            write_sealed(&path, &seen)?;
        }
        for id in self.tree.between(&seen.last.id, &tip.id)? {
            interrupt::check()?;
            let commit = self.tree.commit(&id)?;
            let watched = self.check_commit(session, project, seen.measured.as_ref(), commit)?;
            tell(&watched)?;
            seen.last = watched.commit.clone();
            if watched.failure.is_none() {
                seen.measured = Some(watched.commit);
            }
            write_sealed(&path, &seen)?;
        }
        Ok(())
    }

    /// Returns the commits that [`check_new_commits`](Self::check_new_commits) would measure, oldest
    /// first; the first is one to compare with.
    ///
    /// # Errors
    /// A branch that the tree does not have.
    pub fn commits_to_measure(&self) -> Result<Vec<Commit>> {
        let seen = self.seen()?;
        let tip = self.tree.commit(self.name)?;
        if !self.has(&seen.last, &tip) {
            return Ok(Vec::new());
        }
        let new = self.tree.between(&seen.last.id, &tip.id)?;
        let new = new.iter().map(|id| self.tree.commit(id)).collect::<Result<Vec<_>>>()?;
        let before = seen.measured.filter(|_| !new.is_empty());
        Ok(before.into_iter().chain(new).collect())
    }

    /// Returns the state that was kept, or that of a branch that was never watched.
    fn seen(&self) -> Result<WatchState> {
        if let Ok(seen) = read_sealed::<WatchState>(&self.path()) {
            return Ok(seen);
        }
        let from = self.tree.commit(self.since.unwrap_or(self.name))?;
        Ok(WatchState { last: from.clone(), measured: Some(from) })
    }

    /// Returns false after the branch was rewritten.
    fn has(&self, last: &Commit, tip: &Commit) -> bool {
        // A commit that no longer exists is no ancestor either.
        self.tree.is_before(&last.id, &tip.id).unwrap_or(false)
    }

    fn path(&self) -> PathBuf {
        let name = ContentHash::new("guard-branch/1").field("name", self.name).finish();
        self.tree.directory().join("watched").join(format!("{name}.json"))
    }

    fn check_commit(
        &self,
        session: &Session,
        project: &GuardProject,
        before: Option<&Commit>,
        commit: Commit,
    ) -> Result<WatchedCommit> {
        let mut watched = WatchedCommit { commit, against: None, check: None, failure: None };
        let new = match measure_commit(session, project, self.tree, &watched.commit)? {
            Ok(new) => new,
            Err(failure) => {
                watched.failure = Some(failure);
                return Ok(watched);
            }
        };
        let Some(before) = before else { return Ok(watched) };
        // The commit at which watching began may be no working kernel; then there is nothing to
        // compare with.
        if let Ok(base) = measure_commit(session, project, self.tree, before)? {
            let subject = subject_of(before);
            let against = CheckBase::Measured(&subject, &base);
            watched.check =
                Some(check(session, project, &against, (&subject_of(&watched.commit), &new), false)?);
            watched.against = Some(before.clone());
        }
        Ok(watched)
    }
}

/// Describes a commit as a subject of figures.
pub fn subject_of(commit: &Commit) -> MeasuredSubject {
    MeasuredSubject {
        what: format!("commit {} ({})", commit.short(), commit.subject),
        commit: Some(commit.id.clone()),
    }
}

/// Measures a commit in every variant and workload of `guard.toml`; the inner error is the reason
/// why one of them has no figures.
///
/// # Errors
/// Errors that are not the commit's fault.
pub fn measure_commit(
    session: &Session,
    project: &GuardProject,
    tree: &GitTree,
    commit: &Commit,
) -> Result<std::result::Result<Vec<MeasuredCell>, String>> {
    let mut all = Vec::new();
    for variant in project.variants() {
        for work in &project.works {
            match measure_cell(session, project, (tree, commit), &variant, work)? {
                Ok(measured) => all.push(measured),
                Err(failure) => return Ok(Err(failure)),
            }
        }
    }
    Ok(Ok(all))
}

fn measure_cell(
    session: &Session,
    project: &GuardProject,
    (tree, commit): (&GitTree, &Commit),
    variant: &BuildVariant,
    work: &GuardedWorkload,
) -> Result<std::result::Result<MeasuredCell, String>> {
    let ledger = CommitLedger::open(session, project, tree, variant, work)?;
    match ledger.entry(commit)?.failure {
        Some(failure) => Ok(Err(failure)),
        None => Ok(Ok(ledger.measured(commit)?)),
    }
}
