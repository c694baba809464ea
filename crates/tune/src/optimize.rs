//! A kernel and a workload → a tuned kernel and the proof.

use crate::recipes::{tuned_label, way, Given, Job, RecipeOptions};
use crate::sound::Excluded;
use crate::{model, Error, Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{Exclusion, Exclusions};
use kerntune_optimize::{Proof, Recipe};
use std::path::PathBuf;

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
/// [`Error::TunedAlready`].
pub fn request_of(kernel: &Kernel) -> Result<BuildRequest> {
    let manifest = &kernel.manifest;
    let made = [&manifest.profile_id, &manifest.order_id, &manifest.rewrite_id];
    if made.iter().any(|id| id.is_some()) {
        return Err(Error::TunedAlready { kernel: manifest.label.clone() });
    }
    Ok(BuildRequest::of(kernel)?)
}

/// Tunes `kernel` for `workload`. With `given`, that is what the profile is made of instead of a training run.
pub fn optimize(
    session: &Session,
    recipe: Recipe,
    kernel: Kernel,
    workload: &Workload,
    options: RecipeOptions,
    given: Option<&Given>,
    exclusions: &Exclusions,
) -> Result<Optimized> {
    let asked = request_of(&kernel)?;
    recipe.check_compiler(&asked.compiler)?;
    let way = way(recipe);
    way.check(options)?;
    let request = way.base(session, &asked)?;
    let base = if request == asked { kernel } else { build(session.work, &request, session.progress)? };
    let excluded = Excluded::open(exclusions, None)?;
    let excluded = &excluded;
    let model = &model::find(model::DEFAULT)?;
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
