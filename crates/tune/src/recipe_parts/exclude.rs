//! Building by a recipe with bisection: objects that break the kernel are found and left out.

use crate::bisect::{bisect, judge, Culprit};
use crate::engine::StepInput;
use crate::{Error, Result, Session};
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{Exclusion, Exclusions};
use kerntune_work::{write_atomic, IoContext, Key};
use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

/// Objects that a recipe leaves out: the user's exclusions and those that bisection found.
#[derive(Debug, Default)]
pub struct ExcludedObjects {
    list: RefCell<Exclusions>,
    /// File that keeps the exclusions that were found.
    file: Option<PathBuf>,
}

impl ExcludedObjects {
    /// Combines the user's exclusions with those in `file`, which were found earlier.
    pub fn open(said: &Exclusions, file: Option<PathBuf>) -> Result<Self> {
        let mut list = said.clone();
        if let Some(path) = file.as_ref().filter(|path| path.is_file()) {
            let text = fs::read_to_string(path).at("read", path)?;
            for entry in Exclusions::parse(&text)?.entries() {
                list.push(entry.clone())?;
            }
        }
        Ok(Self { list: RefCell::new(list), file })
    }

    /// Returns all exclusions.
    pub fn list(&self) -> Exclusions {
        self.list.borrow().clone()
    }

    /// Adds culprits and returns the new list, or `None` if it has them all.
    fn add(&self, culprits: &[Culprit], tuned_only: bool) -> Result<Option<Exclusions>> {
        let mut list = self.list();
        let before = list.entries().len();
        for entry in entries(culprits, tuned_only) {
            let covers = |there: &Exclusion| there.path == entry.path && (tuned_only || !there.tuned_only);
            if !list.entries().iter().any(covers) {
                list.push(entry)?;
            }
        }
        if list.entries().len() == before {
            return Ok(None);
        }
        if let Some(path) = &self.file {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).at("create", parent)?;
            }
            write_atomic(path, list.text().as_bytes())?;
        }
        *self.list.borrow_mut() = list.clone();
        Ok(Some(list))
    }
}

/// Converts culprits to entries of an exclusion list. Set `tuned_only` if the instrumented kernel
/// may keep the objects.
pub fn entries(culprits: &[Culprit], tuned_only: bool) -> Vec<Exclusion> {
    let of = |culprit: &Culprit| {
        let alone = culprit.objects.len() == 1;
        let together = |object: &String| {
            let others: Vec<&str> =
                culprit.objects.iter().filter(|o| *o != object).map(String::as_str).collect();
            format!("together with {}, ", others.join(", "))
        };
        let reason = |object: &String| {
            let with = if alone { String::new() } else { together(object) };
            format!("{with}the kernel {}", culprit.failure)
        };
        let entry = |object: &String| {
            let (path, reason) = (object.clone(), reason(object));
            Exclusion { path, from: None, until: None, values: false, tuned_only, reason }
        };
        culprit.objects.iter().map(entry).collect::<Vec<_>>()
    };
    culprits.iter().flat_map(of).collect()
}

/// Requests for a kernel of a recipe and for the same kernel without the recipe.
pub struct BuildVariants<'a> {
    /// Kernel whose checks are the reference.
    pub base: &'a Kernel,
    /// Exclusions so far; those that are found are added.
    pub excluded: &'a ExcludedObjects,
    /// Returns the request of the recipe's kernel with these exclusions.
    pub request: &'a dyn Fn(&Exclusions) -> Result<BuildRequest>,
    /// Request of the same kernel with every object compiled without the recipe.
    pub plain: &'a BuildRequest,
    /// True if exclusions that are found apply to the tuned kernel only.
    pub tuned_only: bool,
}

impl StepInput for BuildVariants<'_> {
    fn add_to(&self, key: Key, session: &Session) -> Result<Key> {
        let Self { base, excluded, request, plain, tuned_only } = self;
        (*base, &request(&excluded.list())?, *plain, *tuned_only).add_to(key, session)
    }
}

/// Builds a kernel by a recipe. While it fails the checks that the base kernel passes, bisects it
/// and builds it again without the objects that break it.
///
/// # Errors
/// [`Error::StillFails`]; [`Error::NotTheObjects`]; those of builds.
pub(crate) fn build_excluding_broken(session: &Session, variants: &BuildVariants) -> Result<Kernel> {
    let BuildVariants { base, excluded, request, plain, tuned_only } = *variants;
    loop {
        let asked = request(&excluded.list())?;
        let kernel = build(session.work, &asked, session.progress)?;
        let Some(failure) = judge(session, &kernel, base)? else { return Ok(kernel) };
        let label = kernel.manifest.label.clone();
        session.progress.note(&format!("kernel {label} {failure}: looking for the objects that break it"));
        let keep = |request| BuildRequest { keep_objects: true, ..request };
        let good = build(session.work, &keep(plain.clone()), session.progress)?;
        let bad = build(session.work, &keep(asked), session.progress)?;
        let found = bisect(session, &bad, &good)?;
        let Some(_) = excluded.add(&found.culprits, tuned_only)? else {
            return Err(Error::StillFails { kernel: label, failure: failure.to_string() });
        };
        for entry in entries(&found.culprits, tuned_only) {
            session.progress.note(&format!("excluded: {}: {}", entry.path, entry.reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::KernelFailure;

    fn culprit(objects: &[&str]) -> Culprit {
        let objects = objects.iter().map(ToString::to_string).collect();
        Culprit { objects, failure: KernelFailure::DoesNotBoot { how: "hangs".into() } }
    }

    #[test]
    fn what_was_found_is_kept_and_added_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("plan/exclude.toml");
        let excluded = ExcludedObjects::open(&Exclusions::default(), Some(file.clone())).unwrap();
        let culprits = [culprit(&["fs/namei.o"]), culprit(&["a/b.o", "a/c.o"])];
        assert_eq!(excluded.add(&culprits, true).unwrap().unwrap().entries().len(), 3);
        assert_eq!(excluded.add(&culprits[..1], true).unwrap(), None);
        assert!(excluded.add(&culprits[..1], false).unwrap().is_some(), "it does not bear counters either");
        let again = ExcludedObjects::open(&Exclusions::default(), Some(file)).unwrap();
        assert_eq!(again.list(), excluded.list());
        let reasons: Vec<String> = again.list().entries().iter().map(|entry| entry.reason.clone()).collect();
        assert_eq!(reasons[0], "the kernel does not boot (hangs)");
        assert_eq!(reasons[1], "together with a/c.o, the kernel does not boot (hangs)");
    }
}
