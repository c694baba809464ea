//! Recipe `gcc-pgo`: trains an instrumented kernel and compiles with its counters.

use crate::engine::{ResultDirectory, StepName};
use crate::recipe_parts::context::{PreparedBuild, RecipeContext, TRAINING_CAPTURE};
use crate::recipe_parts::instrumented::{counting_nothing, value_patches, with_counters};
use crate::recipe_parts::part::{PartFacts, RecipePart, TrainingKind};
use crate::recipe_parts::settings::{RecipeOptions, SuppliedProfile};
use crate::recipe_parts::steps::{reported, train_kernel, PROFILE, RECORD_TRAINING};
use crate::runs::record::RecordedProfile;
use crate::runs::train::counters_of_recording;
use crate::{Result, Session};
use kerntune_kernel::{BuildRequest, Compiler, Kernel};
use kerntune_optimize::executed_objects;
use kerntune_optimize::gcc_pgo::{
    check_compiler, counted_request, prepare_as_exported, prepare_profile, prove, tuned_request, Exclusions,
    GccPgoProfile, UntrainedCode, ValuePatches, WeightedRun, NAME, REQUIREMENTS,
};
use kerntune_optimize::quality::GateFinding;
use kerntune_profile::Profile;

/// GCC PGO: arc counters of a gcov kernel, compiled in with GCC's `-fprofile-use`.
pub const ENTRY: GccPgo = GccPgo {
    facts: PartFacts {
        name: NAME,
        about: "trains a gcov kernel on the workload and rebuilds with the counters of its branches (GCC)",
        place: 10,
        counts_values: true,
        tells_untrained: true,
        trained_by: TrainingKind::Counters,
        requirements: REQUIREMENTS,
        steps: &[RECORD_TRAINING, INSTRUMENTED_KERNEL, TRAINING, COUNTERS, PROFILE],
        elsewhere: Ok(STEPS),
        ..PartFacts::DEFAULT
    },
    as_exported: false,
};

/// Steps without a recording of the base kernel, which says what to count.
pub const STEPS: &[StepName] = &[INSTRUMENTED_KERNEL, TRAINING, PROFILE];
const INSTRUMENTED_KERNEL: StepName =
    StepName::new("instrumented-kernel", "build the instrumented kernel").compiling();
const TRAINING: StepName =
    StepName::new("training", "run the training on the instrumented kernel").running("training");

const COUNTERS: StepName = StepName::new("counters", "take the counters from the recording");

/// The recipe and its upstream baseline.
pub struct GccPgo {
    pub facts: PartFacts,
    /// True if counters stay as gcov exports them.
    pub as_exported: bool,
}

impl RecipePart for GccPgo {
    fn facts(&self) -> &PartFacts {
        &self.facts
    }

    fn check_compiler(&self, compiler: &Compiler) -> kerntune_optimize::Result<()> {
        check_compiler(compiler)
    }

    fn refusal(&self, recipe: &str, _: &Kernel) -> Option<GateFinding> {
        let found = format!("recipe {recipe} takes counters of an instrumented kernel and no recording");
        let fix = "leave the training to it, or give counters with --gcda".to_string();
        Some(GateFinding::refused("recipe", found, fix))
    }

    fn base_request(&self, _: &Session, request: &BuildRequest) -> Result<BuildRequest> {
        Ok(BuildRequest { keep_objects: !self.as_exported, ..request.clone() })
    }

    fn prepare<'a>(
        &self,
        context: &RecipeContext<'a>,
        _: Option<PreparedBuild<'a>>,
    ) -> Result<PreparedBuild<'a>> {
        let RecipeContext { engine, base, request, settings, .. } = *context;
        let values = value_patches(context.session(), base, settings.options.values)?;
        let executed = self.executed_objects(context)?;
        let (instrumented, counters) = match (settings.supplied, &executed) {
            (Some(SuppliedProfile::Counters(runs)), _) => {
                (build_instrumented(context, values.as_ref())?, repeated(runs))
            }
            (Some(supplied), _) => return Err(supplied.not_of(context.recipe)),
            (None, Some(executed)) => count_by_recording(context, executed)?,
            (None, None) => {
                let instrumented = build_instrumented(context, values.as_ref())?;
                let counters = train(context, &instrumented)?;
                (instrumented, counters)
            }
        };
        let inputs = (&instrumented, &counters[..], self.as_exported);
        let profile = engine.run(PROFILE, inputs, convert_counters)?;
        let untrained = (!self.as_exported).then_some(settings.options.untrained);
        let request = tuned_request(request, base, &profile, values.as_ref(), untrained)?;
        let prepared = PreparedBuild::to_compile(context, profile.dir.clone(), request, move |tuned| {
            Ok(Box::new(prove(base, &profile, tuned)?))
        });
        Ok(PreparedBuild { executed, ..prepared })
    }
}

impl GccPgo {
    /// Returns the objects that run in a recording of the base kernel, to be counted by another one;
    /// `None` if all objects are counted by the kernel's gcov.
    fn executed_objects(&self, context: &RecipeContext) -> Result<Option<Vec<String>>> {
        let RecipeContext { base, request, settings, .. } = *context;
        let RecipeOptions { values, untrained } = settings.options;
        let all = self.as_exported || values || untrained == UntrainedCode::Size;
        if all || settings.supplied.is_some() || request.modules || !base.manifest.arch.can_be_recorded() {
            return Ok(None);
        }
        let recording = context.record_base()?;
        Ok(executed_objects(&Profile::load(&recording.path)?, base)?)
    }
}

/// Builds a kernel with counters in the objects that ran, and takes their values from a recording of
/// its training.
fn count_by_recording(
    context: &RecipeContext,
    executed: &[String],
) -> Result<(Kernel, Vec<ResultDirectory>)> {
    let RecipeContext { engine, base, request: plain, .. } = *context;
    let request = |exclusions: &Exclusions| {
        Ok(counted_request(plain, base, &Exclusions::maintained()?.and(exclusions), executed)?)
    };
    let instrumented = context.build_excluding_broken(INSTRUMENTED_KERNEL, &request, plain, false)?;
    let recordings = context.record_each(TRAINING, &instrumented, TRAINING_CAPTURE, None)?;
    let mut counters = Vec::new();
    for (number, (recording, weight)) in recordings.iter().enumerate() {
        let of = match number {
            0 => engine.run(COUNTERS, (&instrumented, recording), counters_of)?,
            _ => counters_of(context.session(), (&instrumented, recording))?,
        };
        counters.extend((0..*weight).map(|_| of.clone()));
    }
    Ok((instrumented, counters))
}

fn build_instrumented(context: &RecipeContext, values: Option<&ValuePatches>) -> Result<Kernel> {
    let base = context.base;
    let request = |exclusions: &Exclusions| with_counters(context.request, base, exclusions, values);
    let plain = counting_nothing(context.request, base, values)?;
    context.build_excluding_broken(INSTRUMENTED_KERNEL, &request, &plain, false)
}

/// Writes the counters of a recording of the instrumented kernel.
fn counters_of(
    session: &Session,
    (instrumented, recording): (&Kernel, &RecordedProfile),
) -> Result<ResultDirectory> {
    Ok(ResultDirectory(counters_of_recording(session.work, instrumented, recording)?))
}

/// Returns the counters of each training workload, repeated by its weight.
fn train(context: &RecipeContext, instrumented: &Kernel) -> Result<Vec<ResultDirectory>> {
    let first = context.engine.run(TRAINING, (instrumented, context.workload), train_kernel)?;
    let mut counters = vec![first];
    for (workload, weight) in context.settings.also_trained_on {
        let of = train_kernel(context.session(), (instrumented, workload))?;
        counters.extend((0..*weight).map(|_| of.clone()));
    }
    Ok(counters)
}

/// Returns each directory as often as it counts.
fn repeated(runs: &[WeightedRun]) -> Vec<ResultDirectory> {
    let each =
        |run: &WeightedRun| (0..run.weight).map(|_| ResultDirectory(run.dir.clone())).collect::<Vec<_>>();
    runs.iter().flat_map(each).collect()
}

/// Converts counters to GCC's format. `counters` are the directories of each run, to be added up.
fn convert_counters(
    session: &Session,
    (instrumented, counters, as_exported): (&Kernel, &[ResultDirectory], bool),
) -> Result<GccPgoProfile> {
    if let ([ResultDirectory(alone)], true) = (counters, as_exported) {
        return Ok(prepare_as_exported(session.work, alone, instrumented)?);
    }
    let mut runs: Vec<WeightedRun> = Vec::new();
    for ResultDirectory(dir) in counters {
        match runs.last_mut().filter(|run| run.dir == *dir) {
            Some(run) => run.weight = run.weight.saturating_add(1),
            None => runs.push(WeightedRun::from(&**dir)),
        }
    }
    reported(session, prepare_profile(session.work, &runs, instrumented)?)
}
