//! Recipe `clang-autofdo`: the training run of the base kernel itself is recorded.

use super::Entry;
use crate::engine::{Step, StepName};
use crate::part::{Job, Made};
use crate::record::Recorded;
use crate::steps::{of_kernel, tell, PROFILE, RECORD_TRAINING};
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
    let recording = job.record_base()?;
    let profile = job.engine.run(&Prepare { base, recording: &recording })?;
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
    base: &'a Kernel,
    recording: &'a Recorded,
}

impl Step for Prepare<'_> {
    type Output = PreparedProfile;

    fn name(&self) -> StepName {
        PROFILE
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        Ok(of_kernel(key, "base", self.base)?.field("recording", &self.recording.manifest.id))
    }

    fn make(&self, session: &Session) -> Result<PreparedProfile> {
        let prepared = prepare_profile(session.work, &Profile::load(&self.recording.path)?, self.base)?;
        tell(session, prepared.quality()?);
        Ok(prepared)
    }
}

fn asks(recipe: &str, kernel: &Kernel) -> Option<Finding> {
    let reason = takes(kernel).err()?;
    let found = format!("recipe {recipe} cannot use counts of this kernel");
    Some(Finding::refused("recipe", found, reason.to_string()))
}
