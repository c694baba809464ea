//! Recipe `gcc-pgo`: an instrumented kernel is trained.

use super::{not_of, tell, Compiles, Given, Job, Make, RecipeOptions, Way};
use crate::plan::StepName;
use crate::train::train;
use crate::{Result, Session};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{
    check_files, instrumented_request, prepare_profile, prove, tuned_request, without_counters, Exclusions,
    PreparedProfile, Values,
};
use kerntune_optimize::{Proof, Recipe};
use std::path::{Path, PathBuf};

pub(super) struct GccPgo;

impl Way for GccPgo {
    fn steps(&self) -> Vec<StepName> {
        vec![StepName::InstrumentedKernel, StepName::Training, StepName::Profile]
    }

    fn check(&self, _: RecipeOptions) -> Result<()> {
        Ok(())
    }

    fn check_given(&self, given: &Given) -> Result<()> {
        match given {
            Given::Counters(directory) => Ok(check_files(directory)?),
            Given::Recording(_) => Err(not_of(Recipe::GccPgo, "--profile", "--gcda")),
        }
    }

    fn base(&self, _: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        Ok(request.clone())
    }

    fn profile(&self, job: &Job, given: Option<&Given>, make: &mut Make) -> Result<PathBuf> {
        let (instrumented, counters) = train_instrumented(job, given, make)?;
        make(StepName::Profile, &mut || {
            let runs = std::slice::from_ref(&counters);
            let prepared = prepare_profile(job.session.work, runs, &instrumented)?;
            tell(job.session, prepared.quality()?);
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

impl Compiles for GccPgo {
    fn request(&self, job: &Job, profile: &Path) -> Result<BuildRequest> {
        let profile = PreparedProfile::load(profile)?;
        Ok(tuned_request(job.request, job.base, &profile, values(job)?.as_ref())?)
    }
}

/// The instrumented kernel and the counters of its training run, a directory.
pub(super) fn train_instrumented(
    job: &Job,
    given: Option<&Given>,
    make: &mut Make,
) -> Result<(Kernel, PathBuf)> {
    let Job { session, workload, base, options, .. } = *job;
    let values = values(job)?;
    if values.is_none() && options.values {
        let of = &base.manifest;
        let text = format!(
            "no patches profile values in Linux {} for {}: arcs alone are counted",
            of.version, of.arch
        );
        session.progress.note(&text);
    }
    let instrumented = make(StepName::InstrumentedKernel, &mut || {
        let request = |exclusions: &Exclusions| -> Result<BuildRequest> {
            let exclusions = Exclusions::maintained()?.and(exclusions);
            Ok(instrumented_request(job.request, base, &exclusions, values.as_ref())?)
        };
        let plain = || -> Result<BuildRequest> {
            let none = Exclusions::default();
            Ok(without_counters(instrumented_request(job.request, base, &none, values.as_ref())?))
        };
        Ok(job.sound(&request, &plain, false)?.dir)
    })?;
    let instrumented = Kernel::load(&instrumented)?;
    let counters = match given {
        Some(Given::Counters(directory)) => directory.clone(),
        Some(Given::Recording(_)) => return Err(not_of(Recipe::GccPgo, "--profile", "--gcda")),
        None => make(StepName::Training, &mut || {
            train(session, &instrumented, workload, &session.image(workload)?)
        })?,
    };
    Ok((instrumented, counters))
}

/// What it takes to profile values; None if that is not wanted or there are no patches for this kernel.
fn values(job: &Job) -> Result<Option<Values>> {
    if !job.options.values {
        return Ok(None);
    }
    Ok(Values::of(job.session.work, job.base)?)
}
