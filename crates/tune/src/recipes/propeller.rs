//! Modifier `propeller`: compiles the profile in, records the result, and orders the blocks of each
//! function. `layout` comes after it and orders the functions.

use super::{clang_autofdo, layout, Entry};
use crate::engine::{Step, StepName};
use crate::recipe_parts::exclude::BuildVariants;
use crate::recipe_parts::recipe_spec::{PreparedBuild, RecipeContext};
use crate::recipe_parts::steps::{add_kernel, report_quality};
use crate::runs::record::{CaptureOptions, RecordedProfile};
use crate::{Error, Result, Session};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::clang_autofdo::AutofdoProfile;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::propeller::{
    mapped_request, ordered_request, prepare_blocks, prove, PreparedBlocks, PropellerProof,
};
use kerntune_profile::Profile;
use kerntune_work::Key;

/// Propeller: blocks of each function ordered, code that never ran split off.
pub const ENTRY: Entry = Entry {
    name: "propeller",
    about_after: ", then the blocks of each function in order and what never ran split off, then layout",
    place: 40,
    follows: |before| {
        matches!(before, [base, others @ ..]
            if base.name == clang_autofdo::ENTRY.name && others.iter().all(|other| other.name == "thinlto"))
    },
    then: Some(layout::ENTRY.name),
    steps: &[MAPPED_KERNEL, RECORD_MAPPED, BLOCKS],
    elsewhere: Err(
        "its list numbers the blocks of that kernel's own machine code, and no machine records a kernel that is a process: \
         the blocks of a kernel for a PC are others",
    ),
    make,
    ..Entry::DEFAULT
};

const MAPPED_KERNEL: StepName =
    StepName::new("mapped-kernel", "build a kernel with it that says where its blocks are").compiling();
const RECORD_MAPPED: StepName =
    StepName::new("record-mapped", "record the training on that kernel, block by block");
const BLOCKS: StepName = StepName::new("blocks", "put the blocks of each function in order");

fn make<'a>(context: &RecipeContext<'a>, before: Option<PreparedBuild<'a>>) -> Result<PreparedBuild<'a>> {
    let link = clang_autofdo::link(context);
    let before = before.ok_or(Error::NothingToModify)?;
    let profile = AutofdoProfile::load(&before.profile)?;
    let whole = clang_autofdo::listed(
        context,
        "-mapped",
        mapped_request(context.request, context.base, &profile, link)?,
    );
    let request = |exclusions: &Exclusions| -> Result<BuildRequest> {
        Ok(context.for_objects(whole.clone(), exclusions))
    };
    let plain = || Ok(BuildRequest { movable: true, ..context.request.clone() });
    let mapped = context.build_excluding_broken(
        MAPPED_KERNEL,
        &BuildVariants { request: &request, plain: &plain, tuned_only: true },
    )?;
    (before.prove)(&mapped)?.verdict()?;
    // Functions show how often a region runs each of them.
    let capture = CaptureOptions { functions: true, edges: true };
    let recording = context.record(RECORD_MAPPED, &mapped, capture, None)?;
    let blocks =
        context.engine.run(&OrderBlocks { mapped: &mapped, profile: &profile, recording: &recording })?;
    let request = ordered_request(context.request, context.base, &blocks, link)?;
    let of_order = blocks.clone();
    let made = PreparedBuild::to_compile(&blocks.dir.clone(), clang_autofdo::listed(context, "", request), {
        move |tuned| Ok(Box::new(prove(&blocks, tuned)?))
    });
    // Relinking does not change functions; the relinked kernel is proved as well.
    let prove_ordered = Box::new(move |tuned: &Kernel, order| {
        Ok(Box::new(PropellerProof { order: Some(order), ..prove(&of_order, tuned)? }) as _)
    });
    Ok(PreparedBuild { prove_ordered, ..made })
}

/// Orders the blocks of each function.
struct OrderBlocks<'a> {
    mapped: &'a Kernel,
    profile: &'a AutofdoProfile,
    recording: &'a RecordedProfile,
}

impl Step for OrderBlocks<'_> {
    type Output = PreparedBlocks;

    fn name(&self) -> StepName {
        BLOCKS
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { mapped, profile, recording } = self;
        let key = add_kernel(key, "mapped", mapped)?;
        Ok(key.field("profile", &profile.id).field("recording", &recording.manifest.id))
    }

    fn make(&self, session: &Session) -> Result<PreparedBlocks> {
        let recording = Profile::load(&self.recording.path)?;
        let blocks = prepare_blocks(session.work, &recording, self.mapped, self.profile)?;
        report_quality(session, blocks.quality()?);
        session.progress.note(&blocks.summary.to_string());
        Ok(blocks)
    }
}
