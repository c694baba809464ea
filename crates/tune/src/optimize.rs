//! A kernel and a workload → a tuned kernel and the proof.

use crate::model::Model;
use crate::recipes::{check_options, tuned_label, way, Given, Job, RecipeOptions};
use crate::sound::Excluded;
use crate::{Error, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{Exclusion, Exclusions};
use kerntune_optimize::{Proof, Recipe};
use kerntune_work::WorkDir;
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
    /// What the recipe leaves out.
    pub exclusions: &'a Exclusions,
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
    let OptimizeRequest { workload, recipe, options, model, given, exclusions } = *request;
    if given.is_none() {
        workload.require_run("training")?;
    }
    let asked = request_of(session.work, &kernel)?;
    recipe.check_compiler(&asked.compiler)?;
    check_options(recipe, options, &[], exclusions)?;
    let way = way(recipe);
    if let Some(given) = given {
        way.check_given(given)?;
    }
    let request = way.base(session, &asked)?;
    let base = if request == asked { kernel } else { build(session.work, &request, session.progress)? };
    let excluded = Excluded::open(exclusions, None)?;
    let excluded = &excluded;
    let job = Job {
        session,
        workload,
        request: &request,
        base: &base,
        model,
        options,
        excluded,
        object_flags: &[],
    };
    let profile = way.profile(&job, given, &mut |_, make| make())?;
    let tuned = way.build(&job, &profile, &tuned_label(&asked.label, recipe, workload))?;
    let proof = way.prove(&job, &profile, &tuned)?;
    let excluded = excluded.list().entries().to_vec();
    Ok(Optimized { base, tuned, profile, proof, excluded })
}
