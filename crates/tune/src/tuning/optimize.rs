//! Tuning of an existing kernel: a kernel and a workload → a tuned kernel and the proof.

use crate::engine::{Engine, TuningPlan};
use crate::recipe_parts::exclude::ExcludedObjects;
use crate::recipe_parts::recipe_spec::{RecipeContext, RecipeOptions, SuppliedProfile};
use crate::recipe_parts::steps::{add_kernel, BuildKernel, PackImage, BASE_KERNEL};
use crate::runs::model::Model;
use crate::tuning::tune::{carry_out, ProvenKernel};
use crate::{Error, Recipe, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{Exclusion, Exclusions};
use kerntune_optimize::BoxedProof;
use kerntune_work::{Key, WorkDir};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Workload, recipe and options of a tuning.
#[derive(Debug, Clone, Copy)]
pub struct OptimizeRequest<'a> {
    /// Workload that the kernel is tuned for.
    pub workload: &'a Workload,
    /// Recipe that tunes the kernel.
    pub recipe: Recipe,
    /// Options of the recipe.
    pub options: RecipeOptions,
    /// Front-end model whose cache recipes with an order optimize for.
    pub model: &'a Model,
    /// Training data to use instead of a training run.
    pub supplied: Option<&'a SuppliedProfile>,
    /// Further training workloads, each with its weight.
    pub also_trained_on: &'a [(Workload, u32)],
    /// Objects that the recipe leaves out.
    pub exclusions: &'a Exclusions,
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
    // Every field is named here, so that a new one is not forgotten.
    let OptimizeRequest { workload, recipe, options, model, supplied, also_trained_on, exclusions, jobs } =
        *request;
    if supplied.is_none() {
        workload.require_run("training")?;
    }
    let asked = BuildRequest { jobs, ..request_of(session.work, &kernel)? };
    recipe.check_arch(asked.arch)?;
    recipe.check_compiler(&asked.compiler)?;
    recipe.check_options(options, &[], exclusions)?;
    also_trained_on.iter().try_for_each(|(workload, _)| workload.require_run("training"))?;
    if !also_trained_on.is_empty() && !asked.arch.can_be_recorded() && !recipe.counts_by_itself() {
        return Err(Error::OneTraining { arch: asked.arch });
    }
    if let Some(supplied) = supplied {
        recipe.check_supplied(supplied)?;
    }
    let key = add_kernel(Key::new("optimize/1", crate::CODE), "kernel", &kernel)?
        .field("workload", workload.content_hash()?)
        .field("recipe", recipe.name())
        .field("model", &model.text)
        .field("machine", &session.machine_id)
        .value("exclusions", exclusions.entries())?;
    let mut key = options.add_to_key(key);
    // Optional inputs are added only if present, so that the keys of other results stay.
    if let Some(supplied) = supplied {
        key = supplied.add_to_key(key);
    }
    for (workload, weight) in also_trained_on {
        key = key.field("also", workload.content_hash()?).field("weight", weight.to_string());
    }
    let about = vec![
        format!("kernel {}", kernel.manifest.label),
        format!("workload {}", workload.name),
        format!("recipe {recipe}"),
    ];
    let plan = TuningPlan::open(session.work, &key.id(), recipe.steps_on(asked.arch), about)?;
    let engine = Engine::new(session, plan, &|_, _| {});
    let base_request = recipe.base(session, &asked)?;
    let image = engine.run(&PackImage { workload })?;
    let base = match base_request == asked {
        true => kernel,
        false => engine.run(&BuildKernel { name: BASE_KERNEL, request: &base_request })?,
    };
    let excluded = ExcludedObjects::open(exclusions, Some(engine.directory().join("exclude.toml")))?;
    let context = RecipeContext {
        engine: &engine,
        recipe: recipe.name(),
        parts: recipe.parts(),
        workload,
        image: &image,
        request: &base_request,
        base: &base,
        model,
        options,
        supplied,
        also_trained_on,
        excluded: &excluded,
        object_flags: &[],
    };
    let ProvenKernel { tuned, profile, proof } = carry_out(recipe, &context, &asked.label)?;
    let excluded = excluded.list().entries().to_vec();
    Ok(OptimizeResult { base, tuned, profile, proof, excluded })
}
