//! Recipe `layout`, alone or after a recipe that compiles: links the objects in an order computed
//! from a recording of themselves.

use crate::engine::StepName;
use crate::recipe_parts::context::{FinalStep, PreparedBuild, RecipeContext, TrainingRecording};
use crate::recipe_parts::part::{PartFacts, RecipePart};
use crate::recipe_parts::steps::{reported, RECORD_TRAINING, TRAINING_KERNEL};
use crate::runs::record::{CaptureOptions, RecordedProfile};
use crate::{Result, Session};
use kerntune_kernel::{relink, BuildRequest, Kernel, ObjectGroup};
use kerntune_layout::CacheConfig;
use kerntune_optimize::layout::{
    prepare_coloring, prepare_order, prepare_order_like, prove, PreparedOrder, DEFAULT_ALGORITHM, NAME,
    REQUIREMENTS,
};
use kerntune_optimize::quality::GateFinding;
use kerntune_profile::Profile;

/// Function layout: the same objects linked in another order.
pub const ENTRY: Layout = Layout;

const MOVABLE_KERNEL: StepName =
    StepName::new("movable-kernel", "build the kernel whose functions can be moved").compiling();
const RECORD_MOVABLE: StepName =
    StepName::new("record-movable", "record the training on that kernel").running("training");
const ORDER: StepName = StepName::new("order", "order its functions by who calls whom");

/// Type of the entry.
pub struct Layout;

impl RecipePart for Layout {
    fn facts(&self) -> &PartFacts {
        &PartFacts {
            name: NAME,
            about:
                "records who calls whom and links the same objects with functions that do next to each other",
            about_after: ", and then layout by a recording of the kernel that came out",
            place: 30,
            uses_model: true,
            requirements: REQUIREMENTS,
            steps: &[MOVABLE_KERNEL, RECORD_MOVABLE, ORDER],
            elsewhere: Ok(&[TRAINING_KERNEL, RECORD_TRAINING, MOVABLE_KERNEL, ORDER]),
            ..PartFacts::DEFAULT
        }
    }

    /// Returns whether `before` is empty, or compiles and brings no order of its own.
    fn follows(&self, before: &[&dyn RecipePart]) -> bool {
        before
            .iter()
            .map(|part| part.facts())
            .all(|part| part.compiles && !(part.uses_model || part.then.is_some() || part.is_upstream))
    }

    fn refusal(&self, recipe: &str, kernel: &Kernel) -> Option<GateFinding> {
        if kernel.manifest.movable {
            return None;
        }
        let label = &kernel.manifest.label;
        let found = format!("recipe {recipe} moves functions, and those of kernel {label} cannot be moved");
        let fix = "build it with `kerntune kernel build --movable`, and record that kernel".into();
        Some(GateFinding::refused("recipe", found, fix))
    }

    fn prepare<'a>(
        &self,
        context: &RecipeContext<'a>,
        before: Option<PreparedBuild<'a>>,
    ) -> Result<PreparedBuild<'a>> {
        let RecipeContext { engine, request, settings, recipe, .. } = *context;
        let (whole, supplied) = match &before {
            Some(PreparedBuild { final_step: FinalStep::Compile(whole), .. }) => (&**whole, None),
            _ => (request, context.supplied_recording()?),
        };
        // What does not run keeps its place, and needs no section.
        let sections = before.as_ref().and_then(|before| before.executed.clone());
        let sections = sections.map(ObjectGroup::with_sections);
        let movable = |request: &BuildRequest| {
            let mut movable = BuildRequest { movable: true, ..request.clone() };
            movable.label.push_str("-movable");
            movable.object_groups.extend(sections.clone());
            movable.begin_with.clone_from(&whole.begin_with);
            movable
        };
        let movable = context.build_with_profile(MOVABLE_KERNEL, &movable(whole), &movable(request))?;
        let recorded = movable.manifest.arch.can_be_recorded();
        if let Some(before) = &before {
            let proof = (before.prove)(&movable)?;
            if !recorded {
                // Reports what the recorded kernel does not share with this one; the last proof is
                // of the order alone.
                context.session().progress.note(&proof.to_string());
            }
            proof.verdict()?;
        }
        let order = if recorded {
            let recording = match supplied {
                Some(supplied) => supplied,
                // Functions show which of them run in the same region and so compete for the cache.
                // The model shows how much of the cache programs use.
                None => {
                    let capture = CaptureOptions { functions: true, edges: true };
                    context.record(RECORD_MOVABLE, &movable, capture, Some(settings.model))?
                }
            };
            engine.run(ORDER, (&movable, &recording, &settings.model.l1i, recipe), order_functions)?
        } else {
            // No machine records this kernel: call counts come from its surrogate.
            let TrainingRecording { kernel, recording } = context.trained()?;
            engine.run(ORDER, (&movable, &kernel, &recording), transfer_order)?
        };
        let final_step = FinalStep::Relink(Box::new((movable.clone(), order.clone())));
        Ok(PreparedBuild::of(order.dir.clone(), final_step, move |tuned| {
            let proof = prove(&movable, &order, tuned)?;
            match &before {
                Some(before) => (before.prove_ordered)(tuned, proof),
                None => Ok(Box::new(proof)),
            }
        }))
    }
}

/// Orders the functions of a movable kernel by its own recording, for this instruction cache.
fn order_functions(
    session: &Session,
    (movable, recording, cache, recipe): (&Kernel, &RecordedProfile, &CacheConfig, &str),
) -> Result<PreparedOrder> {
    let Session { work, progress, .. } = *session;
    let recording = Profile::load(&recording.path)?;
    let order = reported(session, prepare_order(work, &recording, movable, DEFAULT_ALGORITHM)?)?;
    if order.summary.counts.is_some() {
        // Calls do not show which lines of the cache a function uses.
        return Ok(order);
    }
    let label = format!("{}-{}", movable.manifest.label, DEFAULT_ALGORITHM.name());
    let linked = relink(work, movable, &order.order, (label.as_str(), recipe), progress)?;
    Ok(prepare_coloring(work, &recording, (movable, &linked), &order, cache, progress)?)
}

/// Orders the functions of a movable kernel by the call counts of its surrogate `kernel`.
fn transfer_order(
    session: &Session,
    (movable, kernel, recording): (&Kernel, &Kernel, &RecordedProfile),
) -> Result<PreparedOrder> {
    let recording = Profile::load(&recording.path)?;
    let kernels = (kernel, movable);
    reported(session, prepare_order_like(session.work, &recording, kernels, DEFAULT_ALGORITHM)?)
}
