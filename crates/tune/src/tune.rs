//! All of it.

use crate::compare::{settled, CAPTURE};
use crate::engine::{Engine, Plan, StepName, StepState, Tell};
use crate::model::Model;
use crate::part::{Job, RecipeOptions};
use crate::record::Recorded;
use crate::sound::Excluded;
use crate::steps::{
    of_request, Agree, BaseKernel, PackImage, Record, BASE_KERNEL, MEASURE_BASE, MEASURE_BASE_AGAIN,
    MEASURE_TUNED,
};
use crate::{Recipe, Result, Session};
use kerntune_compare::Comparison;
use kerntune_guest::Workload;
use kerntune_kernel::{preview, BuildRequest, Estimate, Kernel, ObjectFlags};
use kerntune_optimize::gcc_pgo::{Exclusion, Exclusions};
use kerntune_optimize::Proof;
use kerntune_work::{write_atomic, write_json, IoContext, Key};
use std::fs;
use std::path::{Path, PathBuf};

/// What to tune, for what, and how.
#[derive(Debug)]
pub struct TuneRequest<'a> {
    /// What the base kernel is built from.
    pub build: &'a BuildRequest,
    /// What it is tuned for.
    pub workload: &'a Workload,
    /// How.
    pub recipe: Recipe,
    /// What the recipe is told beside that.
    pub options: RecipeOptions,
    /// The front-end model of the measurements.
    pub model: &'a Model,
    /// What is different for single objects of the tuned kernel; the base kernel goes without.
    pub object_flags: &'a [ObjectFlags],
    /// What the recipe leaves out.
    pub exclusions: &'a Exclusions,
}

/// What came of it.
#[derive(Debug)]
pub struct Tuned {
    /// Where the plan's own files are.
    pub directory: PathBuf,
    /// The steps, all done.
    pub steps: Vec<StepState>,
    /// What was started from.
    pub base: Kernel,
    /// What came out.
    pub tuned: Kernel,
    /// What the training showed: the recipe's profile, a directory.
    pub profile: PathBuf,
    /// That the profile took.
    pub proof: Proof,
    /// What the recipe left out: what was asked for, and what was found to make a kernel fail.
    pub excluded: Vec<Exclusion>,
    /// Both kernels against each other.
    pub comparison: Comparison,
    /// Recording of the base kernel.
    pub before: Recorded,
    /// Recording of the tuned kernel.
    pub after: Recorded,
}

impl TuneRequest<'_> {
    /// Checks what the plan names before it is shown, and estimates what each step that compiles a kernel costs. Makes nothing.
    ///
    /// # Errors
    /// A source, a configuration or a patch that cannot be used; missing tools.
    pub fn estimate(&self, session: &Session) -> Result<Vec<(StepName, Estimate)>> {
        self.workload.require_run("training")?;
        self.recipe.check_compiler(&self.build.compiler)?;
        let estimate = preview(session.work, self.build)?;
        let compiling = self.recipe.steps().into_iter().filter(|step| self.recipe.compiles(*step));
        Ok(compiling.map(|step| (step, estimate.clone())).collect())
    }

    /// The plan as far as it was made before. Makes nothing.
    ///
    /// # Errors
    /// Options that the recipe would ignore; inputs that cannot be read.
    pub fn plan(&self, session: &Session) -> Result<Plan> {
        // Every field is named here, so that a new one is not forgotten.
        let Self { build, workload, recipe, options, model, object_flags, exclusions } = *self;
        recipe.check_options(options, object_flags, exclusions)?;
        let about = vec![
            format!("source {}", build.source),
            format!("workload {}", workload.name),
            format!("recipe {recipe}"),
            format!("model {}", model.name),
        ];
        // Other code may do other things in a step of the same name; what is still the same it finds by content.
        let key = of_request(Key::new("tune/3", crate::CODE), "build", build, session)?
            .field("workload", format!("{workload:?}"))
            .field("recipe", recipe.name())
            .field("options", format!("{options:?}"))
            .field("model", &model.text)
            .field("machine", &session.machine_id)
            .field("object flags", format!("{object_flags:?}"))
            .field("exclusions", format!("{:?}", exclusions.entries()));
        Plan::open(session.work, &key.id(), recipe.steps(), about)
    }
}

/// Makes every step that is not made yet. `tell` hears of each step as it begins, with its result
/// if it was made before.
///
/// # Errors
/// Those of the steps; a tuned kernel that does not carry the profile or misbehaves.
pub fn tune(session: &Session, request: &TuneRequest, tell: &Tell) -> Result<Tuned> {
    let TuneRequest { build: asked, workload, recipe, options, model, object_flags, exclusions } = *request;
    workload.require_run("training")?;
    recipe.check_compiler(&asked.compiler)?;
    let engine = Engine::new(session, request.plan(session)?, tell);
    let base_request = recipe.base(session, asked)?;

    let image = engine.run(&PackImage { workload })?;
    let base = engine.run(&BaseKernel { name: BASE_KERNEL, request: &base_request })?;
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
        given: None,
        also: &[],
        excluded: &excluded,
        object_flags,
    };
    let Done { tuned, profile, proof } = carry_out(recipe, &job, &asked.label)?;
    // Nothing is measured that was not proved.
    proof.verdict()?;
    engine.run(&Agree { base: &base, tuned: &tuned })?;

    let measure = |name, kernel, repeat| {
        let (run, model) = ("measured", Some(model));
        let (image, capture, elsewhere) = (&image, CAPTURE, false);
        Record { name, kernel, workload, image, run, capture, model, repeat, elsewhere }
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
    let comparison = settled(session, [&base, &tuned], [&before, &again, &after], workload, model)?;

    let directory = engine.directory();
    engine.forget_files()?;
    write_atomic(&directory.join("comparison.json"), comparison.to_json().as_bytes())?;
    write_json(&directory.join("proof.json"), &proof)?;
    link(&tuned.bzimage(), &directory.join("bzImage"))?;
    engine.vouch_for(&["comparison.json", "proof.json", "bzImage"])?;
    let (steps, excluded) = (engine.steps(), excluded.list().entries().to_vec());
    Ok(Tuned { directory, steps, base, tuned, profile, proof, excluded, comparison, before, after })
}

/// A tuned kernel and what it was made of.
pub(crate) struct Done {
    pub tuned: Kernel,
    /// What the training showed.
    pub profile: PathBuf,
    pub proof: Proof,
}

/// A recipe's own steps, the tuned kernel, listed after `label`, and its proof.
pub(crate) fn carry_out(recipe: Recipe, job: &Job, label: &str) -> Result<Done> {
    let made = recipe.make(job)?;
    let tuned = job.finish(&made.last, &format!("{label}-{recipe}-{}", job.trained_on()))?;
    // Cheap next to a build: asked again each time.
    let proof = (made.prove)(&tuned)?;
    Ok(Done { tuned, profile: made.profile, proof })
}

/// The same file under a second name; a copy where the file system has no links.
fn link(from: &Path, to: &Path) -> Result<()> {
    let _ = fs::remove_file(to);
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).at("copy the tuned kernel to", to)?;
    }
    Ok(())
}
