//! Recipe `layout`, alone or after one that compiles: the objects are linked in the order that a recording of
//! themselves asks for.

use super::Entry;
use crate::engine::{Step, StepName};
use crate::model::Model;
use crate::part::{Job, Last, Made, Part, Trained};
use crate::record::{Capture, Recorded};
use crate::sound::Varied;
use crate::steps::{of_kernel, tell, RECORD_TRAINING, TRAINING_KERNEL};
use crate::{Result, Session};
use kerntune_kernel::{relink, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::layout::{
    prepare_order, prepare_order_like, prepare_sets, prove, PreparedOrder, DEFAULT_ALGORITHM, NAME,
    REQUIREMENTS,
};
use kerntune_optimize::quality::Finding;
use kerntune_profile::Profile;
use kerntune_work::Key;

/// The same objects in another order.
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
    ..Entry::USUAL
};

const MOVABLE_KERNEL: StepName =
    StepName::new("movable-kernel", "build the kernel whose functions can be moved").compiling();
const RECORD_MOVABLE: StepName = StepName::new("record-movable", "record the training on that kernel");
const ORDER: StepName = StepName::new("order", "order its functions by who calls whom");

/// Nothing, or what compiles and brings no order of its own.
fn follows(before: &[&Part]) -> bool {
    let orders = |part: &&Part| part.uses_model || part.then.is_some() || part.is_upstream;
    before.iter().all(|part| part.compiles) && !before.iter().any(orders)
}

fn make<'a>(job: &Job<'a>, before: Option<Made<'a>>) -> Result<Made<'a>> {
    let Job { request, model, recipe, .. } = *job;
    let (whole, given) = match &before {
        Some(Made { last: Last::Compile(whole), .. }) => (&**whole, None),
        _ => (request, job.given_recording()?),
    };
    let movable = |request: &BuildRequest| {
        let label = format!("{}-movable", request.label);
        BuildRequest { movable: true, label, ..request.clone() }
    };
    let asked =
        |exclusions: &Exclusions| -> Result<BuildRequest> { Ok(job.for_objects(movable(whole), exclusions)) };
    let plain = || Ok(movable(request));
    let varied = Varied { request: &asked, plain: &plain, tuned_only: true };
    let movable = job.sound(MOVABLE_KERNEL, &varied)?;
    if let Some(before) = &before {
        let proof = (before.prove)(&movable)?;
        if !movable.manifest.arch.is_default() {
            // What the kernel that was recorded does not share with this one; the last proof is of the order alone.
            job.session().progress.note(&proof.to_string());
        }
        proof.verdict()?;
    }
    let order = if !movable.manifest.arch.is_default() {
        // No machine records it: the calls are those of the kernel that stands for it.
        job.engine.run(&OrderLike { movable: &movable, trained: &job.trained()? })?
    } else {
        let recording = match given {
            Some(given) => given,
            // With functions: which of them run in the same region, and so are in each other's way. With the model: how much of
            // the cache the programs take.
            None => {
                let capture = Capture { functions: true, edges: true };
                job.record(RECORD_MOVABLE, &movable, capture, Some(model))?
            }
        };
        job.engine.run(&OrderFunctions { movable: &movable, recording: &recording, model, recipe })?
    };
    let (profile, of_movable, of_order) = (order.dir.clone(), movable.clone(), order.clone());
    let prove = move |tuned: &Kernel| {
        let proof = prove(&of_movable, &of_order, tuned)?;
        match &before {
            Some(before) => (before.prove_ordered)(tuned, proof),
            None => Ok(Box::new(proof) as _),
        }
    };
    Ok(Made {
        profile,
        last: Last::Relink(Box::new((movable, order))),
        prove: Box::new(prove),
        prove_ordered: Box::new(|_, order| Ok(Box::new(order))),
    })
}

/// Orders the functions of a movable kernel.
struct OrderFunctions<'a> {
    movable: &'a Kernel,
    recording: &'a Recorded,
    /// For whose cache.
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
        Ok(of_kernel(key, "movable", movable)?
            .field("recording", &recording.manifest.id)
            .field("cache", format!("{:?}", model.l1i))
            .field("algorithm", format!("{}, by sets", DEFAULT_ALGORITHM.name()))
            .field("recipe", recipe))
    }

    fn make(&self, session: &Session) -> Result<PreparedOrder> {
        let Self { movable, recording, model, recipe } = *self;
        let Session { work, progress, .. } = *session;
        let recording = Profile::load(&recording.path)?;
        let order = prepare_order(work, &recording, movable, DEFAULT_ALGORITHM)?;
        tell(session, order.quality()?);
        let label = format!("{}-{}", movable.manifest.label, DEFAULT_ALGORITHM.name());
        let linked = relink(work, movable, &order.order, (label.as_str(), recipe), progress)?;
        Ok(prepare_sets(work, &recording, (movable, &linked), &order, &model.l1i, progress)?)
    }
}

/// Orders the functions of a movable kernel by the calls of another one of the same source.
struct OrderLike<'a> {
    movable: &'a Kernel,
    trained: &'a Trained,
}

impl Step for OrderLike<'_> {
    type Output = PreparedOrder;

    fn name(&self) -> StepName {
        ORDER
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { movable, trained: Trained { kernel, recording } } = self;
        let key = of_kernel(of_kernel(key, "movable", movable)?, "recorded", kernel)?;
        Ok(key.field("recording", &recording.manifest.id).field("algorithm", DEFAULT_ALGORITHM.name()))
    }

    fn make(&self, session: &Session) -> Result<PreparedOrder> {
        let Self { movable, trained: Trained { kernel, recording } } = self;
        let recording = Profile::load(&recording.path)?;
        let order = prepare_order_like(session.work, &recording, (kernel, movable), DEFAULT_ALGORITHM)?;
        tell(session, order.quality()?);
        Ok(order)
    }
}

fn asks(recipe: &str, kernel: &Kernel) -> Option<Finding> {
    if kernel.manifest.movable {
        return None;
    }
    let label = &kernel.manifest.label;
    let found = format!("recipe {recipe} moves functions, and those of kernel {label} cannot be moved");
    let mend = "build it with `kerntune kernel build --movable`, and record that kernel".into();
    Some(Finding::refused("recipe", found, mend))
}
