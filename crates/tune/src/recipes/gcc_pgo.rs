//! Recipe `gcc-pgo`: an instrumented kernel is trained.

use super::{not_of, Compiles, Given, Job, Make, Way};
use crate::plan::StepName;
use crate::sound::sound;
use crate::train::train;
use crate::{Result, Session};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{
    instrumented_request, prepare_profile, prove, tuned_request, without_counters, Exclusions,
    PreparedProfile,
};
use kerntune_optimize::{Proof, Recipe};
use std::path::{Path, PathBuf};

pub(super) struct GccPgo;

impl Way for GccPgo {
    fn steps(&self) -> Vec<StepName> {
        vec![StepName::InstrumentedKernel, StepName::Training, StepName::Profile]
    }

    fn base(&self, _: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        Ok(request.clone())
    }

    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf> {
        let Job { session, workload, .. } = *job;
        let instrumented = make(StepName::InstrumentedKernel, &mut || {
            let request = |exclusions: &Exclusions| -> Result<BuildRequest> {
                let exclusions = Exclusions::maintained()?.and(exclusions);
                Ok(instrumented_request(job.request, job.base, &exclusions)?)
            };
            let plain = || -> Result<BuildRequest> {
                let request = instrumented_request(job.request, job.base, &Exclusions::default())?;
                Ok(without_counters(request))
            };
            Ok(sound(job, &request, &plain, false)?.dir)
        })?;
        let instrumented = Kernel::load(&instrumented)?;
        let counters = match given {
            Some(Given::Counters(directory)) => directory.clone(),
            Some(Given::Recording(_)) => return Err(not_of(Recipe::GccPgo, "--profile", "--gcda")),
            None => make(StepName::Training, &mut || {
                train(session, &instrumented, workload, &session.image(workload)?)
            })?,
        };
        make(StepName::Profile, &mut || {
            Ok(prepare_profile(session.work, std::slice::from_ref(&counters), &instrumented)?.dir)
        })
    }

    fn build(&self, job: &Job, profile: &Path, label: &str) -> Result<Kernel> {
        self.compile(job, profile, label)
    }

    fn prove(&self, job: &Job, profile: &Path, tuned: &Kernel) -> Result<Proof> {
        Ok(prove(job.base, &PreparedProfile::load(profile)?, tuned, &tuned.build_log())?.into())
    }
}

impl Compiles for GccPgo {
    fn request(&self, job: &Job, profile: &Path) -> Result<BuildRequest> {
        Ok(tuned_request(job.request, job.base, &PreparedProfile::load(profile)?)?)
    }
}
