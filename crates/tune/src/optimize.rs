//! A kernel and a workload → a tuned kernel and the proof.

use crate::engine::{Engine, Plan};
use crate::model::Model;
use crate::part::{Given, Job, RecipeOptions};
use crate::sound::Excluded;
use crate::steps::{of_kernel, BaseKernel, PackImage, BASE_KERNEL};
use crate::tune::{carry_out, Done};
use crate::{Error, Recipe, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{Exclusion, Exclusions};
use kerntune_optimize::Proof;
use kerntune_work::{Key, WorkDir};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What to make of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct OptimizeRequest<'a> {
    /// What it is tuned for.
    pub workload: &'a Workload,
    /// How.
    pub recipe: Recipe,
    /// What the recipe is told beside that.
    pub options: RecipeOptions,
    /// The front-end model for whose cache recipes with an order place functions.
    pub model: &'a Model,
    /// What the profile is made of instead of a training run.
    pub given: Option<&'a Given>,
    /// Workloads that it is trained on as well, each so many times.
    pub also: &'a [(Workload, u32)],
    /// What the recipe leaves out.
    pub exclusions: &'a Exclusions,
    /// Jobs of make; None for one per processor.
    pub jobs: Option<NonZeroUsize>,
}

/// What came of it.
#[derive(Debug)]
pub struct Optimized {
    /// The kernel that it is to be compared with: the one that was started from, or, where the recipe
    /// needs more of it, that kernel built again.
    pub base: Kernel,
    /// The tuned kernel.
    pub tuned: Kernel,
    /// The recipe's profile, a directory.
    pub profile: PathBuf,
    /// That it took.
    pub proof: Proof,
    /// What the recipe left out: what was asked for, and what was found to make a kernel fail.
    pub excluded: Vec<Exclusion>,
}

/// The request that builds `kernel` again, so that a recipe can vary it.
///
/// # Errors
/// [`Error::TunedAlready`]; a kernel from elsewhere that names something to run.
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
/// What does not fit together is found before anything is built.
pub fn optimize(session: &Session, kernel: Kernel, request: &OptimizeRequest) -> Result<Optimized> {
    // Every field is named here, so that a new one is not forgotten.
    let OptimizeRequest { workload, recipe, options, model, given, also, exclusions, jobs } = *request;
    if given.is_none() {
        workload.require_run("training")?;
    }
    let asked = BuildRequest { jobs, ..request_of(session.work, &kernel)? };
    recipe.check_arch(asked.arch)?;
    recipe.check_compiler(&asked.compiler)?;
    recipe.check_options(options, &[], exclusions)?;
    also.iter().try_for_each(|(workload, _)| workload.require_run("training"))?;
    if !also.is_empty() && !asked.arch.is_default() && !recipe.counts_by_itself() {
        return Err(Error::OneTraining { arch: asked.arch });
    }
    if let Some(given) = given {
        recipe.check_given(given)?;
    }
    let key = of_kernel(Key::new("optimize/1", crate::CODE), "kernel", &kernel)?
        .field("workload", format!("{workload:?}"))
        .field("recipe", recipe.name())
        .field("options", format!("{options:?}"))
        .field("model", &model.text)
        .field("machine", &session.machine_id)
        .field("given", format!("{given:?}"))
        .field("exclusions", format!("{:?}", exclusions.entries()));
    // What only some have is named only there, so that the keys of the others stay.
    let key = match also {
        [] => key,
        also => key.field("also", format!("{also:?}")),
    };
    let about = vec![
        format!("kernel {}", kernel.manifest.label),
        format!("workload {}", workload.name),
        format!("recipe {recipe}"),
    ];
    let plan = Plan::open(session.work, &key.id(), recipe.steps_on(asked.arch), about)?;
    let engine = Engine::new(session, plan, &|_, _| {});
    let base_request = recipe.base(session, &asked)?;
    let image = engine.run(&PackImage { workload })?;
    let base = match base_request == asked {
        true => kernel,
        false => engine.run(&BaseKernel { name: BASE_KERNEL, request: &base_request })?,
    };
    let excluded = Excluded::open(exclusions, Some(engine.directory().join("exclude.toml")))?;
    let job = Job {
        engine: &engine,
        recipe: recipe.name(),
        parts: recipe.parts(),
        workload,
        image: &image,
        request: &base_request,
        base: &base,
        model,
        options,
        given,
        also,
        excluded: &excluded,
        object_flags: &[],
    };
    let Done { tuned, profile, proof } = carry_out(recipe, &job, &asked.label)?;
    let excluded = excluded.list().entries().to_vec();
    Ok(Optimized { base, tuned, profile, proof, excluded })
}
