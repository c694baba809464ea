//! Recipe `bolt`: records the training run of the base kernel and rewrites its linked image.

use crate::recipe_parts::context::{FinalStep, PreparedBuild, RecipeContext};
use crate::recipe_parts::part::{PartFacts, RecipePart};
use crate::recipe_parts::steps::{reported, PROFILE, RECORD_TRAINING};
use crate::runs::record::RecordedProfile;
use crate::{Result, Session};
use kerntune_kernel::{Compiler, Kernel};
use kerntune_optimize::bolt::{self, prove, rewrite, BoltRewrite, NAME, REQUIREMENTS};
use kerntune_profile::Profile;

/// BOLT: the linked kernel with the blocks of each function in another order.
pub const ENTRY: Bolt = Bolt;

/// Type of the entry.
pub struct Bolt;

impl RecipePart for Bolt {
    fn facts(&self) -> &PartFacts {
        &PartFacts {
            name: NAME,
            about: "records which code of the plain kernel the workload runs and rewrites the linked image with LLVM's BOLT",
            place: 40,
            compiles: false,
            requirements: REQUIREMENTS,
            steps: &[RECORD_TRAINING, PROFILE],
            ..PartFacts::DEFAULT
        }
    }

    fn check_compiler(&self, compiler: &Compiler) -> kerntune_optimize::Result<()> {
        compiler.identify()?;
        bolt::Bolt::find().map(drop)
    }

    fn prepare<'a>(
        &self,
        context: &RecipeContext<'a>,
        _: Option<PreparedBuild<'a>>,
    ) -> Result<PreparedBuild<'a>> {
        let base = context.base;
        let rewrite = context.engine.run(PROFILE, (base, &context.record_base()?), rewrite_image)?;
        let final_step = FinalStep::Repack(Box::new(rewrite.clone()));
        Ok(PreparedBuild::of(rewrite.dir.clone(), final_step, move |tuned| {
            Ok(Box::new(prove(base, &rewrite, tuned)?))
        }))
    }
}

fn rewrite_image(session: &Session, (base, recording): (&Kernel, &RecordedProfile)) -> Result<BoltRewrite> {
    reported(session, rewrite(session.work, &Profile::load(&recording.path)?, base)?)
}
