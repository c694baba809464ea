//! The whole tuning: build, train, rebuild, prove, check, measure and compare.

use crate::dry_run::DryRun;
use crate::engine::{Engine, OnStep, StepInput, StepProgress, TuningPlan};
use crate::measuring::compare::{compare_adding_offsets, measured_request};
use crate::recipe_parts::settings::TuningSettings;
use crate::recipe_parts::steps::{compare_selftests, CHECK, MEASURE_BASE, MEASURE_BASE_AGAIN, MEASURE_TUNED};
use crate::runs::record::{record, RecordedProfile};
use crate::tuning::optimize::{carry_out, check, OptimizeResult};
use crate::{Recipe, Result, Session};
use kerntune_compare::Comparison;
use kerntune_guest::Workload;
use kerntune_kernel::{preview, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::Exclusion;
use kerntune_optimize::BoxedProof;
use kerntune_work::{write_atomic, write_json, IoContext, Key};
use std::fs;
use std::path::{Path, PathBuf};

/// Source, workload, recipe and settings of a tuning.
#[derive(Debug)]
pub struct TuneRequest<'a> {
    /// Request of the base kernel.
    pub build: &'a BuildRequest,
    /// Workload that the kernel is tuned for.
    pub workload: &'a Workload,
    /// Recipe that tunes the kernel.
    pub recipe: Recipe,
    /// Settings of the tuning.
    pub settings: TuningSettings<'a>,
}

/// Kernels, proof and comparison of a finished tuning.
#[derive(Debug)]
pub struct TuneResult {
    /// Directory of the plan and its files: comparison, report, tuned image.
    pub directory: PathBuf,
    /// All steps with their results.
    pub steps: Vec<StepProgress>,
    /// The base kernel.
    pub base: Kernel,
    /// The tuned kernel.
    pub tuned: Kernel,
    /// Directory of the recipe's profile.
    pub profile: PathBuf,
    /// Evidence that the tuned kernel carries the profile.
    pub proof: BoxedProof,
    /// Exclusions, those of the user and those that bisection found.
    pub excluded: Vec<Exclusion>,
    /// Comparison of the tuned kernel with the base kernel.
    pub comparison: Comparison,
    /// First recording of the base kernel.
    pub before: RecordedProfile,
    /// Recording of the tuned kernel.
    pub after: RecordedProfile,
}

impl TuneRequest<'_> {
    /// Checks the request, and adds its steps to a dry run.
    ///
    /// # Errors
    /// A source, a configuration or a patch that cannot be used; missing tools; options that the
    /// recipe would ignore.
    pub fn dry_run(&self, dry: &mut DryRun) -> Result<()> {
        let session = dry.session();
        let Self { build, workload, recipe, settings } = *self;
        check(recipe, build, workload, &settings)?;
        preview(session.work, build)?;
        let plan = self.plan(session)?;
        let base = recipe.base_request(session, build)?;
        dry.recipe((recipe, &plan), (&base, None), workload)
    }

    /// Returns the plan with the results that exist. Builds nothing.
    ///
    /// # Errors
    /// Options that the recipe would ignore; inputs that cannot be read.
    pub fn plan(&self, session: &Session) -> Result<TuningPlan> {
        let Self { build, workload, recipe, settings } = *self;
        recipe.check_options(settings.options, settings.object_flags, settings.exclusions)?;
        let about = vec![
            format!("source {}", build.source),
            format!("workload {}", workload.name),
            format!("recipe {recipe}"),
            format!("model {}", settings.model.name),
        ];
        // A step of the same name may do something else in other code. Results that are still valid
        // are found by content.
        let key = build
            .add_to(Key::new("tune/3", crate::CODE), session)?
            .field("workload", workload.content_hash()?)
            .field("recipe", recipe.name())
            .field("machine", &session.machine_id);
        TuningPlan::open(session.work, &settings.add_to_key(key)?.id(), recipe.steps(), about)
    }
}

/// Carries out every step that has no result yet. `on_step` is called as each step begins, with its
/// result if it exists.
///
/// # Errors
/// Those of the steps; a tuned kernel that does not carry the profile or fails a functional check.
pub fn tune(session: &Session, request: &TuneRequest, on_step: &OnStep) -> Result<TuneResult> {
    let TuneRequest { build, workload, recipe, settings } = *request;
    check(recipe, build, workload, &settings)?;
    let engine = Engine::new(session, request.plan(session)?, on_step);
    let OptimizeResult { base, tuned, profile, proof, excluded } =
        carry_out(&engine, recipe, (build, None), workload, settings)?;
    // Only proved kernels are measured.
    proof.verdict()?;
    engine.run(CHECK, (&base, &tuned), compare_selftests)?;

    let measure = |kernel, repeat| measured_request(kernel, workload, settings.model, repeat);
    let runs = [measure(&base, 0), measure(&base, 1), measure(&tuned, 0)];
    let names = [MEASURE_BASE, MEASURE_BASE_AGAIN, MEASURE_TUNED];
    let steps = [0, 1, 2].map(|at| (names[at], &runs[at]));
    let [before, again, after] = engine.run_all(workload.memory_mb, steps, record)?;
    let recorded = [&before, &again, &after];
    let comparison = compare_adding_offsets(session, [&base, &tuned], recorded, workload, settings.model)?;

    let directory = engine.directory();
    engine.forget_files()?;
    write_atomic(&directory.join("comparison.json"), comparison.to_json().as_bytes())?;
    write_json(&directory.join("proof.json"), &proof)?;
    link(&tuned.image(), &directory.join("bzImage"))?;
    engine.vouch_for(&["comparison.json", "proof.json", "bzImage"])?;
    let steps = engine.steps();
    Ok(TuneResult { directory, steps, base, tuned, profile, proof, excluded, comparison, before, after })
}

/// Hard-links `from` to `to`; copies it if the file system has no links.
fn link(from: &Path, to: &Path) -> Result<()> {
    let _ = fs::remove_file(to);
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).at("copy the tuned kernel to", to)?;
    }
    Ok(())
}
