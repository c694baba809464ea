//! Recipe `clang-autofdo`: the training run of the base kernel itself is recorded.

use super::{check_recording, not_of, record_training, tell, Compiles, Given, Job, Make, RecipeOptions, Way};
use crate::plan::StepName;
use crate::{Error, Result, Session};
use kerntune_kernel::{BuildRequest, ImportedSource, Kernel};
use kerntune_optimize::clang_autofdo::{
    base_request, prepare_profile, prove, tuned_request, Link, PreparedProfile,
};
use kerntune_optimize::{Proof, Recipe};
use kerntune_profile::Profile;
use std::path::{Path, PathBuf};

pub(super) struct ClangAutofdo {
    /// What it is called.
    pub recipe: Recipe,
    /// How the objects become a kernel.
    pub link: Link,
}

impl Way for ClangAutofdo {
    fn steps(&self) -> Vec<StepName> {
        vec![StepName::RecordTraining, StepName::Profile]
    }

    fn check(&self, options: RecipeOptions) -> Result<()> {
        if options.values {
            return Err(Error::NoValues(self.recipe.name()));
        }
        Ok(())
    }

    fn check_given(&self, given: &Given) -> Result<()> {
        match given {
            Given::Recording(directory) => check_recording(directory),
            Given::Counters(_) => Err(not_of(self.recipe, "--gcda", "--profile")),
        }
    }

    fn base(&self, session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        // The flags depend on what the source's Kbuild knows.
        let source = ImportedSource::import(session.work, &request.source, session.progress)?;
        Ok(base_request(request, source.version())?)
    }

    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf> {
        let Job { session, workload, base, .. } = *job;
        let recording = match given {
            Some(Given::Recording(directory)) => directory.clone(),
            Some(Given::Counters(_)) => return Err(not_of(self.recipe, "--gcda", "--profile")),
            None => make(StepName::RecordTraining, &mut || record_training(session, base, workload))?,
        };
        make(StepName::Profile, &mut || {
            let prepared = prepare_profile(session.work, &Profile::load(&recording)?, base)?;
            tell(session, prepared.quality()?);
            Ok(prepared.dir)
        })
    }

    fn build(&self, job: &Job, profile: &Path, label: &str) -> Result<Kernel> {
        self.compile(job, profile, label)
    }

    fn prove(&self, job: &Job, profile: &Path, tuned: &Kernel) -> Result<Proof> {
        Ok(prove(job.base, &PreparedProfile::load(profile)?, tuned, &tuned.build_log())?.into())
    }
}

impl Compiles for ClangAutofdo {
    fn request(&self, job: &Job, profile: &Path) -> Result<BuildRequest> {
        let profile = PreparedProfile::load(profile)?;
        let mut request = tuned_request(job.request, job.base, &profile, self.link)?;
        request.label = format!("{}-{}", job.request.label, self.recipe);
        request.recipe = Some(self.recipe.to_string());
        Ok(request)
    }
}
