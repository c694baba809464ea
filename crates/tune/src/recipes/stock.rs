//! The stock ways: what others do, by the book, with the same counts. There to be compared with, so that their
//! proof is told and not asked for.

use super::clang_autofdo::ClangAutofdo;
use super::gcc_pgo::{train_instrumented, GccPgo};
use super::{Compiles, Given, Job, Make, RecipeOptions, Way};
use crate::plan::StepName;
use crate::{Error, Result, Session};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::prepare_as_exported;
use kerntune_optimize::{Proof, Recipe};
use std::path::{Path, PathBuf};

/// What the kernel's documentation of gcov (`Documentation/dev-tools/gcov.rst`) brings out, compiled in with
/// `-fprofile-use`: all of [`GccPgo`] but the summary that GCC looks for.
pub(super) struct Gcov;

impl Way for Gcov {
    fn steps(&self) -> Vec<StepName> {
        GccPgo.steps()
    }

    fn check(&self, options: RecipeOptions) -> Result<()> {
        match options.values {
            true => Err(Error::NoValues(Recipe::StockGcov.name())),
            false => Ok(()),
        }
    }

    fn check_given(&self, given: &Given) -> Result<()> {
        GccPgo.check_given(given)
    }

    fn base(&self, session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        GccPgo.base(session, request)
    }

    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf> {
        let (instrumented, counters) = train_instrumented(job, given, make)?;
        make(StepName::Profile, &mut || {
            Ok(prepare_as_exported(job.session.work, &counters, &instrumented)?.dir)
        })
    }

    fn build(&self, job: &Job, profile: &Path, label: &str) -> Result<Kernel> {
        self.compile(job, profile, label)
    }

    fn prove(&self, job: &Job, profile: &Path, tuned: &Kernel) -> Result<Proof> {
        Ok(Proof::Stock(Box::new(GccPgo.prove(job, profile, tuned)?)))
    }
}

impl Compiles for Gcov {
    fn request(&self, job: &Job, profile: &Path) -> Result<BuildRequest> {
        let request = GccPgo.request(job, profile)?;
        Ok(BuildRequest { recipe: Some(Recipe::StockGcov.to_string()), ..request })
    }
}

/// AutoFDO, linked as others do.
pub(super) struct Autofdo {
    /// The recipe with the same profile.
    pub like: ClangAutofdo,
    /// Whether each function has a section, which lld sorts by the profile's call graph.
    pub movable: bool,
}

impl Way for Autofdo {
    fn steps(&self) -> Vec<StepName> {
        self.like.steps()
    }

    fn check(&self, options: RecipeOptions) -> Result<()> {
        self.like.check(options)
    }

    fn check_given(&self, given: &Given) -> Result<()> {
        self.like.check_given(given)
    }

    fn base(&self, session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        self.like.base(session, request)
    }

    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf> {
        self.like.profile(job, given, make)
    }

    fn build(&self, job: &Job, profile: &Path, label: &str) -> Result<Kernel> {
        self.compile(job, profile, label)
    }

    fn prove(&self, job: &Job, profile: &Path, tuned: &Kernel) -> Result<Proof> {
        Ok(Proof::Stock(Box::new(self.like.prove(job, profile, tuned)?)))
    }
}

impl Compiles for Autofdo {
    fn request(&self, job: &Job, profile: &Path) -> Result<BuildRequest> {
        let request = self.like.request(job, profile)?;
        Ok(BuildRequest { movable: request.movable || self.movable, ..request })
    }
}
