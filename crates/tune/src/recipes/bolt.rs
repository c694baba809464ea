//! Recipe `bolt`: records the training run of the base kernel and rewrites its linked image.

use super::Entry;
use crate::engine::{Step, StepName};
use crate::recipe_parts::recipe_spec::{FinalStep, PreparedBuild, RecipeContext};
use crate::recipe_parts::steps::{add_kernel, report_quality, PROFILE, RECORD_TRAINING};
use crate::runs::record::RecordedProfile;
use crate::{Result, Session};
use kerntune_kernel::{Compiler, Kernel};
use kerntune_optimize::bolt::{prove, rewrite, Bolt, BoltRewrite, NAME, REQUIREMENTS};
use kerntune_profile::Profile;
use kerntune_work::Key;

/// BOLT: the linked kernel with the blocks of each function in another order.
pub const ENTRY: Entry = Entry {
    name: NAME,
    about: "records which code of the plain kernel the workload runs and rewrites the linked image with LLVM's BOLT",
    place: 40,
    compiles: false,
    requirements: REQUIREMENTS,
    check_compiler,
    steps: &[RECORD_TRAINING, PROFILE],
    make,
    ..Entry::DEFAULT
};

fn check_compiler(compiler: &Compiler) -> kerntune_optimize::Result<()> {
    compiler.identify()?;
    Bolt::find().map(drop)
}

fn make<'a>(context: &RecipeContext<'a>, _: Option<PreparedBuild<'a>>) -> Result<PreparedBuild<'a>> {
    let base = context.base;
    let rewrite = context.engine.run(&RewriteImage { base, recording: &context.record_base()? })?;
    Ok(PreparedBuild {
        profile: rewrite.dir.clone(),
        final_step: FinalStep::Repack(Box::new(rewrite.clone())),
        prove: Box::new(move |tuned| Ok(Box::new(prove(base, &rewrite, tuned)?))),
        prove_ordered: Box::new(|_, order| Ok(Box::new(order))),
    })
}

/// Rewrites an image with BOLT.
struct RewriteImage<'a> {
    base: &'a Kernel,
    recording: &'a RecordedProfile,
}

impl Step for RewriteImage<'_> {
    type Output = BoltRewrite;

    fn name(&self) -> StepName {
        PROFILE
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        Ok(add_kernel(key, "base", self.base)?.field("recording", &self.recording.manifest.id))
    }

    fn make(&self, session: &Session) -> Result<BoltRewrite> {
        let rewrite = rewrite(session.work, &Profile::load(&self.recording.path)?, self.base)?;
        report_quality(session, rewrite.quality()?);
        Ok(rewrite)
    }
}
