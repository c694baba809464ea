//! Recipe `layout`, alone or after a recipe that compiles: links the objects in an order computed
//! from a recording of themselves.

use super::Entry;
use crate::engine::{Step, StepName};
use crate::recipe_parts::exclude::BuildVariants;
use crate::recipe_parts::recipe_spec::{
    FinalStep, PreparedBuild, RecipeContext, RecipeSpec, TrainingRecording,
};
use crate::recipe_parts::steps::{add_kernel, report_quality, RECORD_TRAINING, TRAINING_KERNEL};
use crate::runs::model::Model;
use crate::runs::record::{CaptureOptions, RecordedProfile};
use crate::{Result, Session};
use kerntune_kernel::{relink, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::layout::{
    prepare_coloring, prepare_order, prepare_order_like, prove, PreparedOrder, DEFAULT_ALGORITHM, NAME,
    REQUIREMENTS,
};
use kerntune_optimize::quality::GateFinding;
use kerntune_profile::Profile;
use kerntune_work::Key;

/// Function layout: the same objects linked in another order.
pub const ENTRY: Entry = Entry {
    name: NAME,
    about: "records who calls whom and links the same objects with functions that do next to each other",
    about_after: ", and then layout by a recording of the kernel that came out",
    place: 30,
    follows,
    uses_model: true,
    requirements: REQUIREMENTS,
    asks,
    steps: &[MOVABLE_KERNEL, RECORD_MOVABLE, ORDER],
    elsewhere: Ok(&[TRAINING_KERNEL, RECORD_TRAINING, MOVABLE_KERNEL, ORDER]),
    make,
    ..Entry::DEFAULT
};

const MOVABLE_KERNEL: StepName =
    StepName::new("movable-kernel", "build the kernel whose functions can be moved").compiling();
const RECORD_MOVABLE: StepName = StepName::new("record-movable", "record the training on that kernel");
const ORDER: StepName = StepName::new("order", "order its functions by who calls whom");

/// Returns whether `before` is empty, or compiles and brings no order of its own.
fn follows(before: &[&RecipeSpec]) -> bool {
    let orders = |part: &&RecipeSpec| part.uses_model || part.then.is_some() || part.is_upstream;
    before.iter().all(|part| part.compiles) && !before.iter().any(orders)
}

fn make<'a>(context: &RecipeContext<'a>, before: Option<PreparedBuild<'a>>) -> Result<PreparedBuild<'a>> {
    let RecipeContext { request, model, recipe, .. } = *context;
    let (whole, supplied) = match &before {
        Some(PreparedBuild { final_step: FinalStep::Compile(whole), .. }) => (&**whole, None),
        _ => (request, context.supplied_recording()?),
    };
    let movable = |request: &BuildRequest| {
        let label = format!("{}-movable", request.label);
        BuildRequest { movable: true, label, ..request.clone() }
    };
    let asked = |exclusions: &Exclusions| -> Result<BuildRequest> {
        Ok(context.for_objects(movable(whole), exclusions))
    };
    let plain = || Ok(movable(request));
    let variants = BuildVariants { request: &asked, plain: &plain, tuned_only: true };
    let movable = context.build_excluding_broken(MOVABLE_KERNEL, &variants)?;
    if let Some(before) = &before {
        let proof = (before.prove)(&movable)?;
        if !movable.manifest.arch.can_be_recorded() {
            // Reports what the recorded kernel does not share with this one; the last proof is of
            // the order alone.
            context.session().progress.note(&proof.to_string());
        }
        proof.verdict()?;
    }
    let order = if !movable.manifest.arch.can_be_recorded() {
        // No machine records this kernel: call counts come from its surrogate.
        context.engine.run(&TransferOrder { movable: &movable, trained: &context.trained()? })?
    } else {
        let recording = match supplied {
            Some(supplied) => supplied,
            // Functions show which of them run in the same region and so compete for the cache. The
            // model shows how much of the cache programs use.
            None => {
                let capture = CaptureOptions { functions: true, edges: true };
                context.record(RECORD_MOVABLE, &movable, capture, Some(model))?
            }
        };
        context.engine.run(&OrderFunctions { movable: &movable, recording: &recording, model, recipe })?
    };
    let (profile, of_movable, of_order) = (order.dir.clone(), movable.clone(), order.clone());
    let prove = move |tuned: &Kernel| {
        let proof = prove(&of_movable, &of_order, tuned)?;
        match &before {
            Some(before) => (before.prove_ordered)(tuned, proof),
            None => Ok(Box::new(proof) as _),
        }
    };
    Ok(PreparedBuild {
        profile,
        final_step: FinalStep::Relink(Box::new((movable, order))),
        prove: Box::new(prove),
        prove_ordered: Box::new(|_, order| Ok(Box::new(order))),
    })
}

/// Orders the functions of a movable kernel by its own recording.
struct OrderFunctions<'a> {
    movable: &'a Kernel,
    recording: &'a RecordedProfile,
    /// Model of the instruction cache.
    model: &'a Model,
    recipe: &'a str,
}

impl Step for OrderFunctions<'_> {
    type Output = PreparedOrder;

    fn name(&self) -> StepName {
        ORDER
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { movable, recording, model, recipe } = self;
        Ok(add_kernel(key, "movable", movable)?
            .field("recording", &recording.manifest.id)
            .value("cache", &model.l1i)?
            .field("algorithm", format!("{}, by sets", DEFAULT_ALGORITHM.name()))
            .field("recipe", recipe))
    }

    fn make(&self, session: &Session) -> Result<PreparedOrder> {
        let Self { movable, recording, model, recipe } = *self;
        let Session { work, progress, .. } = *session;
        let recording = Profile::load(&recording.path)?;
        let order = prepare_order(work, &recording, movable, DEFAULT_ALGORITHM)?;
        report_quality(session, order.quality()?);
        let label = format!("{}-{}", movable.manifest.label, DEFAULT_ALGORITHM.name());
        let linked = relink(work, movable, &order.order, (label.as_str(), recipe), progress)?;
        Ok(prepare_coloring(work, &recording, (movable, &linked), &order, &model.l1i, progress)?)
    }
}

/// Orders the functions of a movable kernel by the call counts of its surrogate.
struct TransferOrder<'a> {
    movable: &'a Kernel,
    trained: &'a TrainingRecording,
}

impl Step for TransferOrder<'_> {
    type Output = PreparedOrder;

    fn name(&self) -> StepName {
        ORDER
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { movable, trained: TrainingRecording { kernel, recording } } = self;
        let key = add_kernel(add_kernel(key, "movable", movable)?, "recorded", kernel)?;
        Ok(key.field("recording", &recording.manifest.id).field("algorithm", DEFAULT_ALGORITHM.name()))
    }

    fn make(&self, session: &Session) -> Result<PreparedOrder> {
        let Self { movable, trained: TrainingRecording { kernel, recording } } = self;
        let recording = Profile::load(&recording.path)?;
        let order = prepare_order_like(session.work, &recording, (kernel, movable), DEFAULT_ALGORITHM)?;
        report_quality(session, order.quality()?);
        Ok(order)
    }
}

fn asks(recipe: &str, kernel: &Kernel) -> Option<GateFinding> {
    if kernel.manifest.movable {
        return None;
    }
    let label = &kernel.manifest.label;
    let found = format!("recipe {recipe} moves functions, and those of kernel {label} cannot be moved");
    let fix = "build it with `kerntune kernel build --movable`, and record that kernel".into();
    Some(GateFinding::refused("recipe", found, fix))
}
