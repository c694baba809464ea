//! Recipe `gcc-pgo`: trains an instrumented kernel and compiles with its counters.

use super::Entry;
use crate::engine::{ResultDirectory, Step, StepName};
use crate::recipe_parts::exclude::BuildVariants;
use crate::recipe_parts::recipe_spec::{
    wrong_profile_kind, PreparedBuild, RecipeContext, SuppliedProfile, TrainingKind,
};
use crate::recipe_parts::steps::{add_kernel, report_quality, TrainKernel, PROFILE};
use crate::runs::train::train;
use crate::{Result, Session};
use kerntune_kernel::{hash_tree, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{
    check_compiler, instrumented_request, prepare_as_exported, prepare_profile, prove, tuned_request,
    without_counters, Exclusions, GccPgoProfile, ValuePatches, NAME, REQUIREMENTS,
};
use kerntune_optimize::quality::GateFinding;
use kerntune_optimize::BoxedProof;
use kerntune_work::Key;
use std::path::PathBuf;

/// GCC PGO: arc counters of a gcov kernel, compiled in with GCC's `-fprofile-use`.
pub const ENTRY: Entry = Entry {
    name: NAME,
    about: "trains a gcov kernel on the workload and rebuilds with the counters of its branches (GCC)",
    place: 10,
    counts_values: true,
    trained_by: TrainingKind::Counters,
    requirements: REQUIREMENTS,
    check_compiler,
    asks,
    steps: STEPS,
    elsewhere: Ok(STEPS),
    make: |context, _| make(context, false),
    ..Entry::DEFAULT
};

const STEPS: &[StepName] = &[INSTRUMENTED_KERNEL, TRAINING, PROFILE];
const INSTRUMENTED_KERNEL: StepName =
    StepName::new("instrumented-kernel", "build the instrumented kernel").compiling();
const TRAINING: StepName = StepName::new("training", "run the training on the instrumented kernel");

/// Carries out the recipe. With `as_exported`, counters stay as gcov exports them.
pub(super) fn make<'a>(context: &RecipeContext<'a>, as_exported: bool) -> Result<PreparedBuild<'a>> {
    let RecipeContext { engine, base, request, .. } = *context;
    let values = values(context)?;
    let instrumented = instrumented(context, values.as_ref())?;
    let counters = match context.supplied {
        Some(SuppliedProfile::Counters(directory)) => vec![ResultDirectory(directory.clone())],
        Some(supplied) => return Err(wrong_profile_kind(context.recipe, supplied)),
        None => trainings(context, &instrumented)?,
    };
    let profile =
        engine.run(&PrepareGcovProfile { instrumented: &instrumented, counters: &counters, as_exported })?;
    let request = tuned_request(request, base, &profile, values.as_ref())?;
    Ok(PreparedBuild::to_compile(&profile.dir.clone(), request, move |tuned| -> Result<BoxedProof> {
        Ok(Box::new(prove(base, &profile, tuned, &tuned.build_log())?))
    }))
}

/// Returns the counters of each training workload, repeated by its weight.
fn trainings(context: &RecipeContext, instrumented: &Kernel) -> Result<Vec<ResultDirectory>> {
    let RecipeContext { engine, workload, image, also_trained_on, .. } = *context;
    let mut counters =
        vec![engine.run(&TrainKernel { name: TRAINING, kernel: instrumented, workload, image })?];
    for (workload, weight) in also_trained_on {
        let session = context.session();
        let of = train(session, instrumented, workload, &session.image(workload)?)?;
        counters.extend((0..*weight).map(|_| ResultDirectory(of.clone())));
    }
    Ok(counters)
}

/// Builds the instrumented kernel.
fn instrumented(context: &RecipeContext, values: Option<&ValuePatches>) -> Result<Kernel> {
    let RecipeContext { base, options, .. } = *context;
    if values.is_none() && options.values {
        let of = &base.manifest;
        let text = format!(
            "no patches profile values in Linux {} for {}: arcs alone are counted",
            of.version, of.arch
        );
        context.session().progress.note(&text);
    }
    let request = |exclusions: &Exclusions| -> Result<BuildRequest> {
        let exclusions = Exclusions::maintained()?.and(exclusions);
        Ok(instrumented_request(context.request, base, &exclusions, values)?)
    };
    let plain = || -> Result<BuildRequest> {
        let none = Exclusions::default();
        Ok(without_counters(instrumented_request(context.request, base, &none, values)?))
    };
    context.build_excluding_broken(
        INSTRUMENTED_KERNEL,
        &BuildVariants { request: &request, plain: &plain, tuned_only: false },
    )
}

/// Returns the flags and patches for value profiling; `None` if it was not requested or there are
/// no patches for this kernel.
fn values(context: &RecipeContext) -> Result<Option<ValuePatches>> {
    if !context.options.values {
        return Ok(None);
    }
    Ok(ValuePatches::of(context.session().work, context.base)?)
}

/// Converts counters to GCC's format.
struct PrepareGcovProfile<'a> {
    instrumented: &'a Kernel,
    /// Directories with the counters of each run, to be added up.
    counters: &'a [ResultDirectory],
    /// True if counters stay as gcov exports them.
    as_exported: bool,
}

impl Step for PrepareGcovProfile<'_> {
    type Output = GccPgoProfile;

    fn name(&self) -> StepName {
        PROFILE
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let key = add_kernel(key, "instrumented", self.instrumented)?;
        // Supplied counters are no result of ours, so their content is hashed.
        let mut key = key;
        for ResultDirectory(counters) in self.counters {
            key = key.field("counters", hash_tree(counters)?);
        }
        Ok(key.field("as exported", self.as_exported.to_string()))
    }

    fn make(&self, session: &Session) -> Result<GccPgoProfile> {
        let Self { instrumented, counters, as_exported } = self;
        let counters: Vec<PathBuf> =
            counters.iter().map(|ResultDirectory(counters)| counters.clone()).collect();
        match &counters[..] {
            [alone] if *as_exported => {
                return Ok(prepare_as_exported(session.work, alone, instrumented)?);
            }
            _ => {}
        }
        let prepared = prepare_profile(session.work, &counters, instrumented)?;
        report_quality(session, prepared.quality()?);
        Ok(prepared)
    }
}

pub(super) fn asks(recipe: &str, _: &Kernel) -> Option<GateFinding> {
    let found = format!("recipe {recipe} takes counters of an instrumented kernel and no recording");
    let fix = "leave the training to it, or give counters with --gcda".to_string();
    Some(GateFinding::refused("recipe", found, fix))
}
