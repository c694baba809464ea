//! Recipe `bolt`, alone or after `layout`: records the training run of a linked kernel and rewrites
//! its image.

use crate::engine::StepName;
use crate::recipe_parts::context::{FinalStep, PreparedBuild, RecipeContext, TRAINING_CAPTURE};
use crate::recipe_parts::part::{PartFacts, RecipePart};
use crate::recipe_parts::steps::{relink_kernel, reported, PROFILE, RECORD_TRAINING};
use crate::runs::record::RecordedProfile;
use crate::{Error, Result, Session};
use kerntune_kernel::{Compiler, Kernel};
use kerntune_optimize::bolt::{self, prove, rewrite, BoltRewrite, NAME, REQUIREMENTS};
use kerntune_profile::Profile;

/// BOLT: the linked kernel with the blocks of each function in another order.
pub const ENTRY: Bolt = Bolt;

const ORDERED_KERNEL: StepName =
    StepName::new("ordered-kernel", "link the kernel with its functions in order");
const RECORD_ORDERED: StepName =
    StepName::new("record-ordered", "record the training on that kernel").running("training");

/// Type of the entry.
pub struct Bolt;

impl RecipePart for Bolt {
    fn facts(&self) -> &PartFacts {
        &PartFacts {
            name: NAME,
            about: "records which code of the plain kernel the workload runs and rewrites the linked image with LLVM's BOLT",
            about_after: ", and then the blocks of each function in order by BOLT; nothing is compiled by a profile",
            place: 40,
            compiles: false,
            requirements: REQUIREMENTS,
            steps: &[RECORD_TRAINING, PROFILE],
            steps_after: Some(&[ORDERED_KERNEL, RECORD_ORDERED, PROFILE]),
            ..PartFacts::DEFAULT
        }
    }

    /// Returns whether `before` is empty, or orders functions and compiles nothing by a profile.
    fn follows(&self, before: &[&dyn RecipePart]) -> bool {
        before.is_empty() || matches!(before, [one] if one.facts().name == kerntune_optimize::layout::NAME)
    }

    fn check_compiler(&self, compiler: &Compiler) -> kerntune_optimize::Result<()> {
        compiler.identify()?;
        bolt::Bolt::find(compiler).map(drop)
    }

    fn prepare<'a>(
        &self,
        context: &RecipeContext<'a>,
        before: Option<PreparedBuild<'a>>,
    ) -> Result<PreparedBuild<'a>> {
        let engine = context.engine;
        bolt::check(context.base)?;
        let (kernel, recording) = match before {
            None => (context.base.clone(), context.record_base()?),
            Some(PreparedBuild { final_step: FinalStep::Relink(of), prove, .. }) => {
                let (movable, order) = *of;
                let label = format!("{}-ordered", movable.manifest.label);
                let inputs = (&movable, &order, label.as_str(), kerntune_optimize::layout::NAME);
                let ordered = engine.run(ORDERED_KERNEL, inputs, relink_kernel)?;
                // BOLT keeps the address of each function, so this proof holds for the tuned kernel.
                prove(&ordered)?.verdict()?;
                let recording = context.record(RECORD_ORDERED, &ordered, TRAINING_CAPTURE, None)?;
                (ordered, recording)
            }
            Some(_) => return Err(Error::NothingToModify),
        };
        let rewrite = engine.run(PROFILE, (&kernel, &recording), rewrite_image)?;
        let final_step = FinalStep::Repack(Box::new((kernel.clone(), rewrite.clone())));
        Ok(PreparedBuild::of(rewrite.dir.clone(), final_step, move |tuned| {
            Ok(Box::new(prove(&kernel, &rewrite, tuned)?))
        }))
    }
}

fn rewrite_image(session: &Session, (kernel, recording): (&Kernel, &RecordedProfile)) -> Result<BoltRewrite> {
    reported(session, rewrite(session.work, &Profile::load(&recording.path)?, kernel)?)
}
