//! Recipe `clang-autofdo`: the training run of the base kernel itself is recorded, or, where no machine records that one, of a
//! kernel for a PC of the same source.

use super::Entry;
use crate::engine::{Step, StepName};
use crate::part::{Job, Made, Trained};
use crate::steps::{of_kernel, tell, PROFILE, RECORD_TRAINING, TRAINING_KERNEL};
use crate::{Result, Session};
use kerntune_kernel::{BuildRequest, ImportedSource, Kernel};
use kerntune_optimize::clang_autofdo::{
    base_request, check_compiler, default_compiler, prepare_profile, prove, takes, tuned_request, Link,
    PreparedProfile, NAME, REQUIREMENTS,
};
use kerntune_optimize::quality::Finding;
use kerntune_optimize::Proof;
use kerntune_profile::Profile;
use kerntune_work::Key;

/// Exact counts of the production kernel, compiled in with Clang's `-fprofile-sample-use`.
pub const ENTRY: Entry = Entry {
    name: NAME,
    about: "records which code of the plain kernel the workload runs and rebuilds with these counts (Clang)",
    place: 20,
    requirements: REQUIREMENTS,
    default_compiler,
    check_compiler,
    asks,
    base,
    steps: &[RECORD_TRAINING, PROFILE],
    elsewhere: Ok(&[TRAINING_KERNEL, RECORD_TRAINING, PROFILE]),
    make: |job, _| make(job, link(job)),
    ..Entry::USUAL
};

/// How the objects become a kernel.
pub(super) fn link(job: &Job) -> Link {
    if job.has("thinlto") {
        Link::ThinLto
    } else if job.has("layout") && !job.has("propeller") {
        // What never ran is split off where there is a place for it: the order is of what is left.
        Link::Upstream
    } else {
        Link::Objects
    }
}

pub(super) fn make<'a>(job: &Job<'a>, link: Link) -> Result<Made<'a>> {
    let base = job.base;
    let trained = job.trained()?;
    let profile = job.engine.run(&Prepare { trained: &trained })?;
    let request = tuned_request(job.request, base, &profile, link)?;
    let request = listed(job, "", request);
    Ok(Made::to_compile(&profile.dir.clone(), request, move |tuned| -> Result<Proof> {
        Ok(Box::new(prove(base, &profile, tuned, &tuned.build_log())?))
    }))
}

/// A request as it is listed.
pub(super) fn listed(job: &Job, what: &str, request: BuildRequest) -> BuildRequest {
    let recipe = job.compiled();
    let label = format!("{}-{recipe}{what}", job.request.label);
    BuildRequest { label, recipe: Some(recipe.to_string()), ..request }
}

fn base(session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
    // The flags depend on what the source's Kbuild knows.
    let source = ImportedSource::import(session.work, &request.source, session.progress)?;
    Ok(base_request(request, source.version())?)
}

/// Turns counts into what Clang reads.
struct Prepare<'a> {
    trained: &'a Trained,
}

impl Step for Prepare<'_> {
    type Output = PreparedProfile;

    fn name(&self) -> StepName {
        PROFILE
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Trained { kernel, recording } = self.trained;
        Ok(of_kernel(key, "base", kernel)?.field("recording", &recording.manifest.id))
    }

    fn make(&self, session: &Session) -> Result<PreparedProfile> {
        let Trained { kernel, recording } = self.trained;
        let prepared = prepare_profile(session.work, &Profile::load(&recording.path)?, kernel)?;
        tell(session, prepared.quality()?);
        Ok(prepared)
    }
}

fn asks(recipe: &str, kernel: &Kernel) -> Option<Finding> {
    let reason = takes(kernel).err()?;
    let found = format!("recipe {recipe} cannot use counts of this kernel");
    Some(Finding::refused("recipe", found, reason.to_string()))
}
