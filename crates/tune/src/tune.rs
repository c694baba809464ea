//! All of it.

use crate::compare::{from_recordings, measure};
use crate::model::Model;
use crate::plan::{Plan, Step, StepName};
use crate::recipes::{self, check_options, tuned_label, way, Job, RecipeOptions};
use crate::record::Recorded;
use crate::selftest::{agree, selftest};
use crate::sound::Excluded;
use crate::{Result, Session};
use kerntune_compare::Comparison;
use kerntune_guest::Workload;
use kerntune_kernel::{build, BaseConfig, BuildRequest, ImportedSource, Kernel, ObjectFlags, Source};
use kerntune_optimize::gcc_pgo::{Exclusion, Exclusions};
use kerntune_optimize::layout::DEFAULT_ALGORITHM;
use kerntune_optimize::{Proof, Recipe};
use kerntune_profile::load_manifest;
use kerntune_work::{write_atomic, write_json, ContentHash, IoContext, WorkDir};
use std::fs;
use std::os::unix::fs::MetadataExt;
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
    pub steps: Vec<Step>,
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
    /// The plan as far as it was made before. Makes nothing.
    pub fn plan(&self, session: &Session) -> Result<Plan> {
        check_options(self.recipe, self.options, self.object_flags, self.exclusions)?;
        let about = vec![
            format!("source {}", self.build.source),
            format!("workload {}", self.workload.name),
            format!("recipe {}", self.recipe),
            format!("model {}", self.model.name),
        ];
        Plan::open(session.work, &self.id(session)?, recipes::steps(self.recipe), about)
    }

    /// The plan's name: everything that the steps are made from, as far as it can be known before
    /// they are made. The steps themselves are named by content.
    fn id(&self, session: &Session) -> Result<String> {
        let request = self.build;
        let mut hash = ContentHash::new("tune/2")
            .field("source", source_state(session.work, &request.source, session)?)
            .field("compiler", format!("{:?}", request.compiler.identify()?))
            .field("extra", request.extra.join("\n"))
            .field("kcflags", request.kcflags.join("\n"))
            .field("make", format!("{:?}", request.make_vars))
            .field("workload", format!("{:?}", self.workload))
            .field("recipe", self.recipe.name())
            .field("options", format!("{:?}", self.options))
            .field("order", format!("{}, by sets", DEFAULT_ALGORITHM.name()))
            .field("model", &self.model.text)
            .field("machine", &session.machine_id)
            // Other code may do other things in a step of the same name; what is still the same it finds by content.
            .field("code", crate::CODE);
        if let BaseConfig::File(path) = &request.base {
            hash = hash.file("config", path)?;
        }
        for fragment in &request.fragments {
            hash = hash.file("fragment", fragment)?;
        }
        for patch in &request.patches {
            hash = hash.file("patch", patch)?;
        }
        // Nothing is added for nothing, so that plans of before are found again.
        for flags in self.object_flags {
            hash = hash.field("object flags", format!("{flags:?}"));
        }
        for entry in self.exclusions.entries() {
            hash = hash.field("exclusion", format!("{entry:?}"));
        }
        Ok(hash.finish())
    }
}

/// What a source is now, cheaply: a tarball by its place, size and time, a directory by content.
fn source_state(work: &WorkDir, source: &Source, session: &Session) -> Result<String> {
    let Some(tarball) = source.tarball() else {
        return Ok(ImportedSource::import(work, source, session.progress)?.hash().to_string());
    };
    let state = fs::metadata(&tarball).map(|m| format!("{} {}", m.len(), m.mtime())).unwrap_or_default();
    Ok(format!("{source} {} {state}", tarball.display()))
}

/// Makes every step that is not made yet. `tell` hears of each step as it begins, with its result
/// if it was made before.
pub fn tune(
    session: &Session,
    request: &TuneRequest,
    tell: &dyn Fn(StepName, Option<&Path>),
) -> Result<Tuned> {
    let TuneRequest { build: asked, workload, recipe, options, model, object_flags, exclusions } = *request;
    workload.require_run("training")?;
    recipe.check_compiler(&asked.compiler)?;
    let way = way(recipe);
    let mut plan = request.plan(session)?;
    let base_request = way.base(session, asked)?;

    plan.step(StepName::Image, tell, || Ok(session.image(workload)?.dir))?;
    let base = plan
        .step(StepName::BaseKernel, tell, || Ok(build(session.work, &base_request, session.progress)?.dir))?;
    let base = Kernel::load(&base)?;
    let excluded = Excluded::open(exclusions, Some(plan.directory().join("exclude.toml")))?;
    let excluded = &excluded;
    let request = &base_request;
    let job = Job { session, workload, request, base: &base, model, options, excluded, object_flags };
    let profile = way.profile(&job, None, &mut |name, make| plan.step(name, tell, make))?;
    let tuned = plan.step(StepName::TunedKernel, tell, || {
        Ok(way.build(&job, &profile, &tuned_label(&asked.label, recipe, workload))?.dir)
    })?;
    let tuned = Kernel::load(&tuned)?;
    // Cheap next to a build, and nothing is measured that was not proved.
    let proof = way.prove(&job, &profile, &tuned)?;
    proof.verdict()?;
    plan.step(StepName::Check, tell, || {
        let (before, after) = (selftest(session, &base)?, selftest(session, &tuned)?);
        agree(&before, &after, &tuned.manifest.label)?;
        Ok(after.dir)
    })?;

    let mut recorded = |name, kernel, repeat| -> Result<Recorded> {
        let path = plan.step(name, tell, || Ok(measure(session, kernel, workload, model, repeat)?.path))?;
        Ok(Recorded { manifest: load_manifest(&path)?, path })
    };
    let before = recorded(StepName::MeasureBase, &base, 0)?;
    let again = recorded(StepName::MeasureBaseAgain, &base, 1)?;
    let after = recorded(StepName::MeasureTuned, &tuned, 0)?;
    let comparison = from_recordings([&base, &tuned], [&before, &again, &after], workload, model)?;

    let directory = plan.directory().to_owned();
    write_atomic(&directory.join("comparison.json"), comparison.to_json().as_bytes())?;
    write_json(&directory.join("proof.json"), &proof)?;
    link(&tuned.bzimage(), &directory.join("bzImage"))?;
    let excluded = excluded.list().entries().to_vec();
    Ok(Tuned {
        directory,
        steps: plan.steps(),
        base,
        tuned,
        profile,
        proof,
        excluded,
        comparison,
        before,
        after,
    })
}

/// The same file under a second name; a copy where the file system has no links.
fn link(from: &Path, to: &Path) -> Result<()> {
    let _ = fs::remove_file(to);
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).at("copy the tuned kernel to", to)?;
    }
    Ok(())
}
