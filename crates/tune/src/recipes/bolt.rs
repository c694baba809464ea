//! Recipe `bolt`: the training run of the base kernel itself is recorded, and its image rewritten.

use super::Entry;
use crate::engine::{Step, StepName};
use crate::part::{Job, Last, Made};
use crate::record::Recorded;
use crate::steps::{of_kernel, tell, PROFILE, RECORD_TRAINING};
use crate::{Result, Session};
use kerntune_kernel::{Compiler, Kernel};
use kerntune_optimize::bolt::{prove, rewrite, Bolt, Rewrite, NAME, REQUIREMENTS};
use kerntune_profile::Profile;
use kerntune_work::Key;

/// The linked kernel with the blocks of each function in another order.
pub const ENTRY: Entry = Entry {
    name: NAME,
    about: "records which code of the plain kernel the workload runs and rewrites the linked image with LLVM's BOLT",
    place: 40,
    compiles: false,
    requirements: REQUIREMENTS,
    check_compiler,
    steps: &[RECORD_TRAINING, PROFILE],
    make,
    ..Entry::USUAL
};

fn check_compiler(compiler: &Compiler) -> kerntune_optimize::Result<()> {
    compiler.identify()?;
    Bolt::find().map(drop)
}

fn make<'a>(job: &Job<'a>, _: Option<Made<'a>>) -> Result<Made<'a>> {
    let base = job.base;
    let rewrite = job.engine.run(&RewriteImage { base, recording: &job.record_base()? })?;
    Ok(Made {
        profile: rewrite.dir.clone(),
        last: Last::Repack(Box::new(rewrite.clone())),
        prove: Box::new(move |tuned| Ok(Box::new(prove(base, &rewrite, tuned)?))),
        prove_ordered: Box::new(|_, order| Ok(Box::new(order))),
    })
}

/// Has BOLT rewrite an image.
struct RewriteImage<'a> {
    base: &'a Kernel,
    recording: &'a Recorded,
}

impl Step for RewriteImage<'_> {
    type Output = Rewrite;

    fn name(&self) -> StepName {
        PROFILE
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        Ok(of_kernel(key, "base", self.base)?.field("recording", &self.recording.manifest.id))
    }

    fn make(&self, session: &Session) -> Result<Rewrite> {
        let rewrite = rewrite(session.work, &Profile::load(&self.recording.path)?, self.base)?;
        tell(session, rewrite.quality()?);
        Ok(rewrite)
    }
}
