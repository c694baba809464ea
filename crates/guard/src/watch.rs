//! Each new commit of a branch, held against the one before it.

use crate::baseline::Subject;
use crate::cell::Measured;
use crate::check::{check, Against, Check};
use crate::ledger::Ledger;
use crate::project::{Project, Variant, Work};
use crate::tree::{Commit, Tree};
use crate::Result;
use kerntune_tune::Session;
use kerntune_work::{interrupt, read_sealed, write_sealed, ContentHash, IoContext};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// How far a branch was watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// The last commit that was looked at.
    last: Commit,
    /// The last that has figures: what the next one is held against.
    measured: Option<Commit>,
}

/// What became of a commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Watched {
    /// The commit.
    pub commit: Commit,
    /// What it was held against; none of the first one.
    pub against: Option<Commit>,
    /// What came of that.
    pub check: Option<Check>,
    /// Why it has no figures.
    pub failure: Option<String>,
}

impl Watched {
    /// Whether something grew.
    pub fn is_finding(&self) -> bool {
        self.check.as_ref().is_some_and(|check| check.findings > 0)
    }
}

/// A branch that is watched.
#[derive(Debug)]
pub struct Branch<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// The branch's name.
    pub name: &'a str,
    /// Where to begin if it was never watched: a commit that is taken for known; its tip otherwise.
    pub since: Option<&'a str>,
}

impl Branch<'_> {
    /// Looks at every commit that is new, oldest first, and remembers it. `tell` hears of each.
    ///
    /// # Errors
    /// What says nothing of a commit; an interrupt. What was looked at before it is remembered.
    pub fn look(
        &self,
        session: &Session,
        project: &Project,
        tell: &mut dyn FnMut(&Watched) -> Result<()>,
    ) -> Result<()> {
        let path = self.path()?;
        let mut seen: Seen = match read_sealed::<Seen>(&path) {
            Ok(seen) => seen,
            Err(_) => {
                let from = self.tree.commit(self.since.unwrap_or(self.name))?;
                Seen { last: from.clone(), measured: Some(from) }
            }
        };
        write_sealed(&path, &seen)?;
        let tip = self.tree.commit(self.name)?;
        // One that is gone altogether is not before anything either.
        if !self.tree.is_before(&seen.last.id, &tip.id).unwrap_or(false) {
            session.progress.note(&format!(
                "{} was rewritten: {} is not in it any more; it is watched from its tip on",
                self.name,
                seen.last.short()
            ));
            seen = Seen { last: tip.clone(), measured: Some(tip.clone()) };
            write_sealed(&path, &seen)?;
        }
        for id in self.tree.between(&seen.last.id, &tip.id)? {
            interrupt::check()?;
            let commit = self.tree.commit(&id)?;
            let watched = self.one(session, project, seen.measured.as_ref(), commit)?;
            tell(&watched)?;
            seen.last = watched.commit.clone();
            if watched.failure.is_none() {
                seen.measured = Some(watched.commit);
            }
            write_sealed(&path, &seen)?;
        }
        Ok(())
    }

    fn path(&self) -> Result<PathBuf> {
        let room = self.tree.room().join("watched");
        fs::create_dir_all(&room).at("create", &room)?;
        let name = ContentHash::new("guard-branch/1").field("name", self.name).finish();
        Ok(room.join(format!("{name}.json")))
    }

    fn one(
        &self,
        session: &Session,
        project: &Project,
        before: Option<&Commit>,
        commit: Commit,
    ) -> Result<Watched> {
        let mut watched = Watched { commit, against: None, check: None, failure: None };
        let new = match measured(session, project, self.tree, &watched.commit)? {
            Ok(new) => new,
            Err(failure) => {
                watched.failure = Some(failure);
                return Ok(watched);
            }
        };
        let Some(before) = before else { return Ok(watched) };
        // The one at which watching began may be no kernel: then there is nothing to hold this one against.
        if let Ok(base) = measured(session, project, self.tree, before)? {
            let subject = subject(before);
            let against = Against::Measured(&subject, &base);
            watched.check =
                Some(check(session, project, &against, (&self::subject(&watched.commit), &new), false)?);
            watched.against = Some(before.clone());
        }
        Ok(watched)
    }
}

/// What a commit is called.
pub fn subject(commit: &Commit) -> Subject {
    Subject {
        what: format!("commit {} ({})", commit.short(), commit.subject),
        commit: Some(commit.id.clone()),
    }
}

/// A commit under every variant and workload of the file; why not, if one of them has no figures.
///
/// # Errors
/// What says nothing of the commit.
pub fn measured(
    session: &Session,
    project: &Project,
    tree: &Tree,
    commit: &Commit,
) -> Result<std::result::Result<Vec<Measured>, String>> {
    let mut all = Vec::new();
    for variant in project.variants() {
        for work in &project.works {
            match one(session, project, (tree, commit), &variant, work)? {
                Ok(measured) => all.push(measured),
                Err(failure) => return Ok(Err(failure)),
            }
        }
    }
    Ok(Ok(all))
}

fn one(
    session: &Session,
    project: &Project,
    (tree, commit): (&Tree, &Commit),
    variant: &Variant,
    work: &Work,
) -> Result<std::result::Result<Measured, String>> {
    let ledger = Ledger::open(session, project, tree, variant, work)?;
    match ledger.entry(commit)?.failure {
        Some(failure) => Ok(Err(failure)),
        None => Ok(Ok(ledger.measured(commit)?)),
    }
}
