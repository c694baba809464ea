//! A kernel and a workload → a tuned kernel and the proof.

use crate::train::train;
use crate::{Result, Session};
use kerntune_guest::Workload;
use kerntune_kernel::{build, BaseConfig, BuildRequest, Compiler, Kernel};
use kerntune_optimize::gcc_pgo::{self, Exclusions, PreparedProfile, Proof, Values};
use kerntune_optimize::Recipe;
use std::path::PathBuf;

/// What came of it.
#[derive(Debug)]
pub struct Optimized {
    /// The kernel that was started from.
    pub base: Kernel,
    /// The tuned kernel.
    pub tuned: Kernel,
    /// What the profile held.
    pub profile: PreparedProfile,
    /// That it took.
    pub proof: Proof,
}

/// The request that builds `kernel` again, so that a recipe can vary it.
pub fn request_of(kernel: &Kernel) -> Result<BuildRequest> {
    let manifest = &kernel.manifest;
    let mut request = BuildRequest::new(manifest.source.origin.parse()?, manifest.label.clone());
    request.patches = manifest.source.patches.iter().map(|name| kernel.dir.join(name)).collect();
    request.base = BaseConfig::File(kernel.config());
    request.compiler = manifest.cc.parse::<Compiler>()?;
    request.kcflags.clone_from(&manifest.kcflags);
    request.make_vars.clone_from(&manifest.make_vars);
    Ok(request)
}

/// What it takes to profile values, if that is `wanted` and there are patches for this kernel; else arcs
/// alone are counted.
pub fn values_of(session: &Session, base: &Kernel, wanted: bool) -> Result<Option<Values>> {
    if !wanted {
        return Ok(None);
    }
    let values = Values::of(session.work, base)?;
    if values.is_none() {
        let version = &base.manifest.version;
        session
            .progress
            .note(&format!("no patches profile values in Linux {version}: arcs alone are counted"));
    }
    Ok(values)
}

/// Tunes `base` for `workload`, with `values` by more than arcs. With `gcda`, these files are the profile
/// instead of a training run.
pub fn optimize(
    session: &Session,
    recipe: Recipe,
    base: Kernel,
    workload: &Workload,
    values: bool,
    gcda: Option<PathBuf>,
) -> Result<Optimized> {
    let request = request_of(&base)?;
    recipe.check_compiler(&request.compiler)?;
    let values = values_of(session, &base, values)?;
    let values = values.as_ref();
    let instrumented =
        build(session.work, &instrumented_request(&request, &base, values)?, session.progress)?;
    let counters = match gcda {
        Some(directory) => directory,
        None => train(session, &instrumented, workload, &session.image(workload)?)?,
    };
    let profile = gcc_pgo::prepare_profile(session.work, &[counters], &instrumented)?;
    let tuned = tuned_request(&request, &base, workload, &profile, values)?;
    let tuned = build(session.work, &tuned, session.progress)?;
    let proof = gcc_pgo::prove(&base, &profile, &tuned, &tuned.build_log())?;
    Ok(Optimized { base, tuned, profile, proof })
}

/// What the instrumented kernel of `base` is built from.
pub fn instrumented_request(
    request: &BuildRequest,
    base: &Kernel,
    values: Option<&Values>,
) -> Result<BuildRequest> {
    Ok(gcc_pgo::instrumented_request(request, base, &Exclusions::maintained()?, values)?)
}

/// What the tuned kernel is built from.
pub fn tuned_request(
    request: &BuildRequest,
    base: &Kernel,
    workload: &Workload,
    profile: &PreparedProfile,
    values: Option<&Values>,
) -> Result<BuildRequest> {
    let mut tuned = gcc_pgo::tuned_request(request, base, profile, values)?;
    tuned.label = format!("{}-{}", tuned.label, workload.name);
    Ok(tuned)
}
