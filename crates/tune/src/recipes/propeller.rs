//! Modifier `propeller`: compiles the profile in, records the result, and orders the blocks of each
//! function. `layout` comes after it and orders the functions.

use super::clang_autofdo;
use crate::engine::StepName;
use crate::recipe_parts::context::{PreparedBuild, RecipeContext};
use crate::recipe_parts::part::{PartFacts, RecipePart};
use crate::recipe_parts::steps::reported;
use crate::runs::record::{CaptureOptions, RecordedProfile};
use crate::{Error, Result, Session};
use kerntune_kernel::{BuildRequest, Compiler, Kernel};
use kerntune_optimize::clang_autofdo::AutofdoProfile;
use kerntune_optimize::propeller::{
    check_compiler, mapped_request, ordered_request, prepare_blocks, prove, PreparedBlocks, PropellerProof,
};
use kerntune_optimize::PreparedResult;
use kerntune_profile::Profile;

/// Propeller: blocks of each function ordered, code that never ran split off.
pub const ENTRY: Propeller = Propeller;

const MAPPED_KERNEL: StepName =
    StepName::new("mapped-kernel", "build a kernel with it that says where its blocks are").compiling();
const RECORD_MAPPED: StepName =
    StepName::new("record-mapped", "record the training on that kernel, block by block").running("training");
const BLOCKS: StepName = StepName::new("blocks", "put the blocks of each function in order");

/// Type of the entry.
pub struct Propeller;

impl RecipePart for Propeller {
    fn facts(&self) -> &PartFacts {
        &PartFacts {
            name: "propeller",
            about_after: ", then the blocks of each function in order and what never ran split off, then layout",
            place: 40,
            then: Some(kerntune_optimize::layout::NAME),
            steps: &[MAPPED_KERNEL, RECORD_MAPPED, BLOCKS],
            elsewhere: Err(
                "its list numbers the blocks of that kernel's own machine code, and no machine records a kernel that is a process: \
                 the blocks of a kernel for a PC are others",
            ),
            ..PartFacts::DEFAULT
        }
    }

    fn check_compiler(&self, compiler: &Compiler) -> kerntune_optimize::Result<()> {
        check_compiler(compiler)
    }

    fn follows(&self, before: &[&dyn RecipePart]) -> bool {
        matches!(before, [base, others @ ..]
            if base.facts().name == clang_autofdo::ENTRY.facts.name
                && others.iter().all(|other| other.facts().name == "thinlto"))
    }

    fn prepare<'a>(
        &self,
        context: &RecipeContext<'a>,
        before: Option<PreparedBuild<'a>>,
    ) -> Result<PreparedBuild<'a>> {
        let (request, base, link) = (context.request, context.base, clang_autofdo::link(context));
        let before = before.ok_or(Error::NothingToModify)?;
        let profile = AutofdoProfile::load(&before.profile)?;
        let mapped = context.named(mapped_request(request, base, &profile, link)?, "-mapped");
        let plain = BuildRequest { movable: true, ..request.clone() };
        let mapped = context.build_with_profile(MAPPED_KERNEL, &mapped, &plain)?;
        (before.prove)(&mapped)?.verdict()?;
        // Functions show how often a region runs each of them.
        let capture = CaptureOptions { functions: true, edges: true };
        let recording = context.record(RECORD_MAPPED, &mapped, capture, None)?;
        let blocks = context.engine.run(BLOCKS, (&mapped, &recording, &profile), order_blocks)?;
        let request = ordered_request(request, base, &blocks, link)?;
        let of_order = blocks.clone();
        let made = PreparedBuild::to_compile(context, blocks.dir.clone(), request, move |tuned| {
            Ok(Box::new(prove(&blocks, tuned)?))
        });
        // Relinking does not change functions; the relinked kernel is proved as well.
        let prove_ordered = Box::new(move |tuned: &Kernel, order| {
            Ok(Box::new(PropellerProof { order: Some(order), ..prove(&of_order, tuned)? }) as _)
        });
        Ok(PreparedBuild { prove_ordered, ..made })
    }
}

/// Orders the blocks of each function.
fn order_blocks(
    session: &Session,
    (mapped, recording, profile): (&Kernel, &RecordedProfile, &AutofdoProfile),
) -> Result<PreparedBlocks> {
    let recording = Profile::load(&recording.path)?;
    let blocks = reported(session, prepare_blocks(session.work, &recording, mapped, profile)?)?;
    session.progress.note(&blocks.summary.to_string());
    Ok(blocks)
}
