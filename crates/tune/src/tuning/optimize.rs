//! Tuning of an existing kernel: a kernel and a workload → a tuned kernel and the proof.

use crate::dry_run::DryRun;
use crate::engine::{Engine, StepInput, TuningPlan};
use crate::recipe_parts::context::{PreparedBuild, RecipeContext};
use crate::recipe_parts::exclude::ExcludedObjects;
use crate::recipe_parts::settings::TuningSettings;
use crate::recipe_parts::steps::{build_kernel, pack_image, BASE_KERNEL, IMAGE};
use crate::{Error, Recipe, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::Exclusion;
use kerntune_optimize::{BaselineProof, BoxedProof};
use kerntune_work::{Key, WorkDir};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Workload, recipe and settings of a tuning.
#[derive(Debug, Clone, Copy)]
pub struct OptimizeRequest<'a> {
    /// Workload that the kernel is tuned for.
    pub workload: &'a Workload,
    /// Recipe that tunes the kernel.
    pub recipe: Recipe,
    /// Settings of the tuning.
    pub settings: TuningSettings<'a>,
    /// Jobs of make; `None` for one per processor.
    pub jobs: Option<NonZeroUsize>,
}

/// A tuned kernel with its base kernel, profile and proof.
#[derive(Debug)]
pub struct OptimizeResult {
    /// Kernel to compare with: the one that was given, or, if the recipe needs more of it, that
    /// kernel built again.
    pub base: Kernel,
    /// The tuned kernel.
    pub tuned: Kernel,
    /// Directory of the recipe's profile.
    pub profile: PathBuf,
    /// Evidence that the tuned kernel carries the profile.
    pub proof: BoxedProof,
    /// Exclusions, those of the user and those that bisection found.
    pub excluded: Vec<Exclusion>,
}

/// Returns the request that builds `kernel` again, so that a recipe can vary it.
///
/// # Errors
/// [`Error::TunedAlready`]; an imported kernel whose manifest names programs to run.
pub fn request_of(work: &WorkDir, kernel: &Kernel) -> Result<BuildRequest> {
    let manifest = &kernel.manifest;
    let made = [&manifest.profile_id, &manifest.order_id, &manifest.rewrite_id];
    if made.iter().any(|id| id.is_some()) {
        return Err(Error::TunedAlready { kernel: manifest.label.clone() });
    }
    Ok(BuildRequest::of(work, kernel)?)
}

/// Tunes `kernel` for the request's workload.
///
/// # Errors
/// Arguments that do not fit together are reported before anything is built.
pub fn optimize(session: &Session, kernel: Kernel, request: &OptimizeRequest) -> Result<OptimizeResult> {
    let OptimizeRequest { workload, recipe, settings, .. } = *request;
    let (asked, plan) = plan(session, &kernel, request)?;
    let engine = Engine::new(session, plan, &|_, _| {});
    carry_out(&engine, recipe, (&asked, Some(kernel)), workload, settings)
}

/// Adds the steps that tune `kernel` to a dry run.
///
/// # Errors
/// Those of [`optimize`] before it builds anything.
pub fn dry_run(kernel: &Kernel, request: &OptimizeRequest, dry: &mut DryRun) -> Result<()> {
    let (asked, plan) = plan(dry.session(), kernel, request)?;
    let base = request.recipe.base_request(dry.session(), &asked)?;
    let is_it = base == asked;
    dry.recipe((request.recipe, &plan), (&base, is_it.then_some(kernel)), request.workload)
}

/// Returns the request that builds `kernel`, and the plan of its tuning.
fn plan(session: &Session, kernel: &Kernel, request: &OptimizeRequest) -> Result<(BuildRequest, TuningPlan)> {
    let OptimizeRequest { workload, recipe, settings, jobs } = *request;
    let asked = BuildRequest { jobs, ..request_of(session.work, kernel)? };
    check(recipe, &asked, workload, &settings)?;
    let key = kernel
        .add_to(Key::new("optimize/1", crate::CODE), session)?
        .field("workload", workload.content_hash()?)
        .field("recipe", recipe.name())
        .field("machine", &session.machine_id);
    let key = settings.add_to_key(key)?;
    let about = vec![
        format!("kernel {}", kernel.manifest.label),
        format!("workload {}", workload.name),
        format!("recipe {recipe}"),
    ];
    let plan = TuningPlan::open(session.work, &key.id(), recipe.steps_on(asked.arch), about)?;
    Ok((asked, plan))
}

/// Checks whether a kernel built from `asked` can be tuned so.
///
/// # Errors
/// Arguments that do not fit together; an absent compiler.
pub(crate) fn check(
    recipe: Recipe,
    asked: &BuildRequest,
    workload: &Workload,
    settings: &TuningSettings,
) -> Result<()> {
    let TuningSettings { options, object_flags, exclusions, supplied, also_trained_on, .. } = *settings;
    if supplied.is_none() {
        workload.require_run("training")?;
    }
    recipe.check_arch(asked.arch)?;
    recipe.check_compiler(&asked.compiler)?;
    recipe.check_options(options, object_flags, exclusions)?;
    also_trained_on.iter().try_for_each(|(workload, _)| workload.require_run("training"))?;
    if !also_trained_on.is_empty() && !asked.arch.can_be_recorded() && !recipe.counts_by_itself() {
        return Err(Error::OneTraining { arch: asked.arch });
    }
    supplied.map_or(Ok(()), |supplied| recipe.check_supplied(supplied))
}

/// Carries out the recipe's own steps on the kernel of request `asked`, which is built unless it is
/// given and the recipe needs no more of it; makes the tuned kernel and proves it.
pub(crate) fn carry_out(
    engine: &Engine,
    recipe: Recipe,
    (asked, kernel): (&BuildRequest, Option<Kernel>),
    workload: &Workload,
    settings: TuningSettings,
) -> Result<OptimizeResult> {
    let base_request = |asked: &BuildRequest| recipe.base_request(engine.session(), asked);
    let request = base_request(asked)?;
    engine.run(IMAGE, workload, pack_image)?;
    let base = match kernel.filter(|_| request == *asked) {
        Some(kernel) => kernel,
        None => engine.run(BASE_KERNEL, &request, build_kernel)?,
    };
    let file = engine.directory().join("exclude.toml");
    let excluded = ExcludedObjects::open(settings.exclusions, Some(file))?;
    let context = RecipeContext {
        engine,
        recipe: recipe.name(),
        parts: &recipe.parts(),
        workload,
        base_request: &base_request,
        request: &request,
        base: &base,
        settings,
        excluded: &excluded,
    };
    let PreparedBuild { profile, final_step, prove, .. } = recipe.prepare(&context)?;
    let tuned = context.build_tuned(&final_step, &asked.label)?;
    // Cheap compared with a build, so the proof is made each time.
    let proof = prove(&tuned)?;
    drop(prove);
    let proof = if recipe.is_upstream() { Box::new(BaselineProof(proof)) } else { proof };
    let excluded = excluded.list().entries().to_vec();
    Ok(OptimizeResult { base, tuned, profile, proof, excluded })
}
