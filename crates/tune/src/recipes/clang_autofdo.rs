//! Recipe `clang-autofdo`: records the training run of the base kernel, or of its surrogate, and
//! compiles with the counts.

use super::Entry;
use crate::engine::{Step, StepName};
use crate::recipe_parts::recipe_spec::{PreparedBuild, RecipeContext, TrainingRecording};
use crate::recipe_parts::steps::{add_kernel, report_quality, PROFILE, RECORD_TRAINING, TRAINING_KERNEL};
use crate::{Result, Session};
use kerntune_kernel::{BuildRequest, ImportedSource, Kernel};
use kerntune_optimize::clang_autofdo::{
    base_request, check_compiler, check_kernel, default_compiler, prepare_profile, prove, tuned_request,
    AutofdoProfile, LinkMode, NAME, REQUIREMENTS,
};
use kerntune_optimize::quality::GateFinding;
use kerntune_optimize::BoxedProof;
use kerntune_profile::Profile;
use kerntune_work::Key;

/// AutoFDO: exact counts of the production kernel, compiled in with Clang's `-fprofile-sample-use`.
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
    make: |context, _| make(context, link(context)),
    ..Entry::DEFAULT
};

/// Returns how objects are linked, which depends on the modifiers.
pub(super) fn link(context: &RecipeContext) -> LinkMode {
    if context.has("thinlto") {
        LinkMode::ThinLto
    } else if context.has("layout") && !context.has("propeller") {
        // Upstream's link splits off code that never ran, and the order is of the rest.
        LinkMode::Upstream
    } else {
        LinkMode::Objects
    }
}

pub(super) fn make<'a>(context: &RecipeContext<'a>, link: LinkMode) -> Result<PreparedBuild<'a>> {
    let base = context.base;
    let trained = context.trained()?;
    let profile = context.engine.run(&PrepareAutofdoProfile { trained: &trained })?;
    let request = tuned_request(context.request, base, &profile, link)?;
    let request = listed(context, "", request);
    Ok(PreparedBuild::to_compile(&profile.dir.clone(), request, move |tuned| -> Result<BoxedProof> {
        Ok(Box::new(prove(base, &profile, tuned, &tuned.build_log())?))
    }))
}

/// Sets label and recipe name of the request. `what` is a suffix of the label.
pub(super) fn listed(context: &RecipeContext, what: &str, request: BuildRequest) -> BuildRequest {
    let recipe = context.compiled();
    let label = format!("{}-{recipe}{what}", context.request.label);
    BuildRequest { label, recipe: Some(recipe.to_string()), ..request }
}

fn base(session: &Session, request: &BuildRequest) -> Result<BuildRequest> {
    // The flags depend on the source's version.
    let source = ImportedSource::import(session.work, &request.source, session.progress)?;
    Ok(base_request(request, source.version())?)
}

/// Converts counts to Clang's format.
struct PrepareAutofdoProfile<'a> {
    trained: &'a TrainingRecording,
}

impl Step for PrepareAutofdoProfile<'_> {
    type Output = AutofdoProfile;

    fn name(&self) -> StepName {
        PROFILE
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let TrainingRecording { kernel, recording } = self.trained;
        Ok(add_kernel(key, "base", kernel)?.field("recording", &recording.manifest.id))
    }

    fn make(&self, session: &Session) -> Result<AutofdoProfile> {
        let TrainingRecording { kernel, recording } = self.trained;
        let prepared = prepare_profile(session.work, &Profile::load(&recording.path)?, kernel)?;
        report_quality(session, prepared.quality()?);
        Ok(prepared)
    }
}

fn asks(recipe: &str, kernel: &Kernel) -> Option<GateFinding> {
    let reason = check_kernel(kernel).err()?;
    let found = format!("recipe {recipe} cannot use counts of this kernel");
    Some(GateFinding::refused("recipe", found, reason.to_string()))
}
