//! Recipe `bolt`: the training run of the base kernel itself is recorded, and its image rewritten.

use super::{check_recording, not_of, record_training, tell, Given, Job, Make, RecipeOptions, Way};
use crate::plan::StepName;
use crate::{Error, Result, Session};
use kerntune_kernel::{repack, BuildRequest, Kernel, Rewritten};
use kerntune_optimize::bolt::{prove, rewrite, Rewrite};
use kerntune_optimize::{Proof, Recipe};
use kerntune_profile::Profile;
use std::path::{Path, PathBuf};

pub(super) struct Bolt;

impl Way for Bolt {
    fn steps(&self) -> Vec<StepName> {
        vec![StepName::RecordTraining, StepName::Profile]
    }

    fn check(&self, options: RecipeOptions) -> Result<()> {
        match options.values {
            true => Err(Error::NoValues(Recipe::Bolt.name())),
            false => Ok(()),
        }
    }

    fn check_given(&self, given: &Given) -> Result<()> {
        match given {
            Given::Recording(directory) => check_recording(directory),
            Given::Counters(_) => Err(not_of(Recipe::Bolt, "--gcda", "--profile")),
        }
    }

    fn base(&self, _: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        Ok(request.clone())
    }

    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf> {
        let Job { session, workload, base, .. } = *job;
        let recording = match given {
            Some(Given::Recording(directory)) => directory.clone(),
            Some(Given::Counters(_)) => return Err(not_of(Recipe::Bolt, "--gcda", "--profile")),
            None => make(StepName::RecordTraining, &mut || record_training(session, base, workload))?,
        };
        make(StepName::Profile, &mut || {
            let rewrite = rewrite(session.work, &Profile::load(&recording)?, base)?;
            tell(session, rewrite.quality()?);
            Ok(rewrite.dir)
        })
    }

    fn build(&self, job: &Job, profile: &Path, label: &str) -> Result<Kernel> {
        let rewrite = Rewrite::load(profile)?;
        let rewritten = Rewritten { vmlinux: &rewrite.vmlinux(), id: &rewrite.id };
        let listed = (label, Recipe::Bolt.name());
        Ok(repack(job.session.work, job.base, rewritten, listed, job.session.progress)?)
    }

    fn prove(&self, job: &Job, profile: &Path, tuned: &Kernel) -> Result<Proof> {
        Ok(prove(job.base, &Rewrite::load(profile)?, tuned)?.into())
    }
}
