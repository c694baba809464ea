//! Modifier `propeller`: after a profile is compiled in, the blocks of each function are put in order by a recording of
//! what came out. What functions then are is for `layout`, which comes after it.

use super::{clang_autofdo, layout, Entry};
use crate::engine::{Step, StepName};
use crate::part::{Job, Made};
use crate::record::{Capture, Recorded};
use crate::sound::Varied;
use crate::steps::{of_kernel, tell};
use crate::{Error, Result, Session};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_optimize::clang_autofdo::PreparedProfile;
use kerntune_optimize::gcc_pgo::Exclusions;
use kerntune_optimize::propeller::{
    mapped_request, ordered_request, prepare_blocks, prove, PreparedBlocks, Proof,
};
use kerntune_profile::Profile;
use kerntune_work::Key;

/// Blocks in order, and what never ran split off.
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
    ..Entry::USUAL
};

const MAPPED_KERNEL: StepName =
    StepName::new("mapped-kernel", "build a kernel with it that says where its blocks are").compiling();
const RECORD_MAPPED: StepName =
    StepName::new("record-mapped", "record the training on that kernel, block by block");
const BLOCKS: StepName = StepName::new("blocks", "put the blocks of each function in order");

fn make<'a>(job: &Job<'a>, before: Option<Made<'a>>) -> Result<Made<'a>> {
    let link = clang_autofdo::link(job);
    let before = before.ok_or(Error::NothingToModify)?;
    let profile = PreparedProfile::load(&before.profile)?;
    let whole = clang_autofdo::listed(job, "-mapped", mapped_request(job.request, job.base, &profile, link)?);
    let request =
        |exclusions: &Exclusions| -> Result<BuildRequest> { Ok(job.for_objects(whole.clone(), exclusions)) };
    let plain = || Ok(BuildRequest { movable: true, ..job.request.clone() });
    let mapped = job.sound(MAPPED_KERNEL, &Varied { request: &request, plain: &plain, tuned_only: true })?;
    (before.prove)(&mapped)?.verdict()?;
    // With functions: how often a region goes round that runs one.
    let capture = Capture { functions: true, edges: true };
    let recording = job.record(RECORD_MAPPED, &mapped, capture, None)?;
    let blocks =
        job.engine.run(&OrderBlocks { mapped: &mapped, profile: &profile, recording: &recording })?;
    let request = ordered_request(job.request, job.base, &blocks, link)?;
    let of_order = blocks.clone();
    let made = Made::to_compile(&blocks.dir.clone(), clang_autofdo::listed(job, "", request), {
        move |tuned| Ok(Box::new(prove(&blocks, tuned)?))
    });
    // Linking again leaves functions as they are: asked once more, of the kernel that it comes to.
    let prove_ordered = Box::new(move |tuned: &Kernel, order| {
        Ok(Box::new(Proof { order: Some(order), ..prove(&of_order, tuned)? }) as _)
    });
    Ok(Made { prove_ordered, ..made })
}

/// Orders the blocks of each function.
struct OrderBlocks<'a> {
    mapped: &'a Kernel,
    profile: &'a PreparedProfile,
    recording: &'a Recorded,
}

impl Step for OrderBlocks<'_> {
    type Output = PreparedBlocks;

    fn name(&self) -> StepName {
        BLOCKS
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let Self { mapped, profile, recording } = self;
        let key = of_kernel(key, "mapped", mapped)?;
        Ok(key.field("profile", &profile.id).field("recording", &recording.manifest.id))
    }

    fn make(&self, session: &Session) -> Result<PreparedBlocks> {
        let recording = Profile::load(&self.recording.path)?;
        let blocks = prepare_blocks(session.work, &recording, self.mapped, self.profile)?;
        tell(session, blocks.quality()?);
        session.progress.note(&blocks.summary.to_string());
        Ok(blocks)
    }
}
