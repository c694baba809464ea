//! The whole tuning: build, train, rebuild, prove, check, measure and compare.

use crate::engine::{Engine, OnStep, StepName, StepProgress, TuningPlan};
use crate::measuring::compare::{compare_adding_offsets, CAPTURE};
use crate::recipe_parts::exclude::ExcludedObjects;
use crate::recipe_parts::recipe_spec::{RecipeContext, RecipeOptions};
use crate::recipe_parts::steps::{
    add_request, BuildKernel, CompareSelfTests, PackImage, RecordRun, BASE_KERNEL, MEASURE_BASE,
    MEASURE_BASE_AGAIN, MEASURE_TUNED,
};
use crate::runs::model::Model;
use crate::runs::record::RecordedProfile;
use crate::{Recipe, Result, Session};
use kerntune_compare::Comparison;
use kerntune_guest::Workload;
use kerntune_kernel::{preview, BuildEstimate, BuildRequest, Kernel, ObjectFlags};
use kerntune_optimize::gcc_pgo::{Exclusion, Exclusions};
use kerntune_optimize::BoxedProof;
use kerntune_work::{write_atomic, write_json, IoContext, Key};
use std::fs;
use std::path::{Path, PathBuf};

/// Source, workload, recipe and options of a tuning.
#[derive(Debug)]
pub struct TuneRequest<'a> {
    /// Request of the base kernel.
    pub build: &'a BuildRequest,
    /// Workload that the kernel is tuned for.
    pub workload: &'a Workload,
    /// Recipe that tunes the kernel.
    pub recipe: Recipe,
    /// Options of the recipe.
    pub options: RecipeOptions,
    /// Front-end model of the measurements.
    pub model: &'a Model,
    /// Extra compiler flags of single objects of the tuned kernel; the base kernel is built without
    /// them.
    pub object_flags: &'a [ObjectFlags],
    /// Objects that the recipe leaves out.
    pub exclusions: &'a Exclusions,
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
    /// Checks the request and estimates the cost of each step that compiles a kernel. Builds
    /// nothing.
    ///
    /// # Errors
    /// A source, a configuration or a patch that cannot be used; missing tools.
    pub fn estimate(&self, session: &Session) -> Result<Vec<(StepName, BuildEstimate)>> {
        self.workload.require_run("training")?;
        self.recipe.check_compiler(&self.build.compiler)?;
        let estimate = preview(session.work, self.build)?;
        let compiling = self.recipe.steps().into_iter().filter(|step| self.recipe.compiles(*step));
        Ok(compiling.map(|step| (step, estimate.clone())).collect())
    }

    /// Returns the plan with the results that exist. Builds nothing.
    ///
    /// # Errors
    /// Options that the recipe would ignore; inputs that cannot be read.
    pub fn plan(&self, session: &Session) -> Result<TuningPlan> {
        // Every field is named here, so that a new one is not forgotten.
        let Self { build, workload, recipe, options, model, object_flags, exclusions } = *self;
        recipe.check_options(options, object_flags, exclusions)?;
        let about = vec![
            format!("source {}", build.source),
            format!("workload {}", workload.name),
            format!("recipe {recipe}"),
            format!("model {}", model.name),
        ];
        // A step of the same name may do something else in other code. Results that are still valid
        // are found by content.
        let key = add_request(Key::new("tune/3", crate::CODE), "build", build, session)?
            .field("workload", workload.content_hash()?)
            .field("recipe", recipe.name())
            .field("model", &model.text)
            .field("machine", &session.machine_id)
            .value("object flags", object_flags)?
            .value("exclusions", exclusions.entries())?;
        let key = options.add_to_key(key);
        TuningPlan::open(session.work, &key.id(), recipe.steps(), about)
    }
}

/// Carries out every step that has no result yet. `on_step` is called as each step begins, with its
/// result if it exists.
///
/// # Errors
/// Those of the steps; a tuned kernel that does not carry the profile or fails a functional check.
pub fn tune(session: &Session, request: &TuneRequest, on_step: &OnStep) -> Result<TuneResult> {
    let TuneRequest { build: asked, workload, recipe, options, model, object_flags, exclusions } = *request;
    workload.require_run("training")?;
    recipe.check_compiler(&asked.compiler)?;
    let engine = Engine::new(session, request.plan(session)?, on_step);
    let base_request = recipe.base(session, asked)?;

    let image = engine.run(&PackImage { workload })?;
    let base = engine.run(&BuildKernel { name: BASE_KERNEL, request: &base_request })?;
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
        supplied: None,
        also_trained_on: &[],
        excluded: &excluded,
        object_flags,
    };
    let ProvenKernel { tuned, profile, proof } = carry_out(recipe, &context, &asked.label)?;
    // Only proved kernels are measured.
    proof.verdict()?;
    engine.run(&CompareSelfTests { base: &base, tuned: &tuned })?;

    let measure = |name, kernel, repeat| {
        let (run, model) = ("measured", Some(model));
        let (image, capture, elsewhere) = (&image, CAPTURE, false);
        RecordRun { name, kernel, workload, image, run, capture, model, repeat, elsewhere }
    };
    let measured = engine.run_all(
        workload.memory_mb,
        [
            measure(MEASURE_BASE, &base, 0),
            measure(MEASURE_BASE_AGAIN, &base, 1),
            measure(MEASURE_TUNED, &tuned, 0),
        ],
    )?;
    let [before, again, after] = measured;
    let comparison =
        compare_adding_offsets(session, [&base, &tuned], [&before, &again, &after], workload, model)?;

    let directory = engine.directory();
    engine.forget_files()?;
    write_atomic(&directory.join("comparison.json"), comparison.to_json().as_bytes())?;
    write_json(&directory.join("proof.json"), &proof)?;
    link(&tuned.image(), &directory.join("bzImage"))?;
    engine.vouch_for(&["comparison.json", "proof.json", "bzImage"])?;
    let (steps, excluded) = (engine.steps(), excluded.list().entries().to_vec());
    Ok(TuneResult { directory, steps, base, tuned, profile, proof, excluded, comparison, before, after })
}

/// A tuned kernel with its profile and proof.
pub(crate) struct ProvenKernel {
    pub tuned: Kernel,
    pub profile: PathBuf,
    pub proof: BoxedProof,
}

/// Carries out the recipe's own steps, makes the tuned kernel, whose label begins with `label`, and
/// proves it.
pub(crate) fn carry_out(recipe: Recipe, context: &RecipeContext, label: &str) -> Result<ProvenKernel> {
    let made = recipe.make(context)?;
    let tuned =
        context.build_tuned(&made.final_step, &format!("{label}-{recipe}-{}", context.trained_on()))?;
    // Cheap compared with a build, so the proof is made each time.
    let proof = (made.prove)(&tuned)?;
    Ok(ProvenKernel { tuned, profile: made.profile, proof })
}

/// Hard-links `from` to `to`; copies it if the file system has no links.
fn link(from: &Path, to: &Path) -> Result<()> {
    let _ = fs::remove_file(to);
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).at("copy the tuned kernel to", to)?;
    }
    Ok(())
}
