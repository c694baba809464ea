//! Steps that several recipes share. Steps of one recipe are in its own file in `recipes/`.

use crate::engine::{ResultDirectory, StepName};
use crate::runs::selftest::{require_same_answers, selftest};
use crate::runs::train::train;
use crate::{Result, Session};
use kerntune_guest::{GuestImage, Workload};
use kerntune_kernel::{build, relink, repack, BuildRequest, Kernel, RewrittenImage};
use kerntune_optimize::bolt::BoltRewrite;
use kerntune_optimize::layout::PreparedOrder;
use kerntune_optimize::PreparedResult;

/// First step of every recipe.
pub const IMAGE: StepName = StepName::new("image", "pack the workload into a guest image");
pub const BASE_KERNEL: StepName = StepName::new("base-kernel", "build the base kernel").compiling();
/// Step that builds the surrogate kernel, which is recorded if no machine records the base kernel.
pub const TRAINING_KERNEL: StepName =
    StepName::new("training-kernel", "build a kernel for a PC of the same source, to be recorded")
        .compiling();
/// Step that records the base kernel, or its surrogate.
pub const RECORD_TRAINING: StepName =
    StepName::new("record-training", "record the training on the base kernel").running("training");
/// Step that converts recorded counts to the format of the compiler or optimizer.
pub const PROFILE: StepName = StepName::new("profile", "turn what was counted into a profile");
/// Final step of every recipe.
pub const TUNED_KERNEL: StepName =
    StepName::new("tuned-kernel", "build the tuned kernel with the profile").compiling();
/// Step that compares the functional checks of both kernels.
pub const CHECK: StepName =
    StepName::new("check", "check that the tuned kernel does what the base kernel does");
pub const MEASURE_BASE: StepName =
    StepName::new("measure-base", "measure the base kernel").running("measured");
pub const MEASURE_BASE_AGAIN: StepName =
    StepName::new("measure-base-again", "measure the base kernel again (A/A)").running("measured");
pub const MEASURE_TUNED: StepName =
    StepName::new("measure-tuned", "measure the tuned kernel").running("measured");

/// Packs a workload into a guest image.
pub fn pack_image(session: &Session, workload: &Workload) -> Result<GuestImage> {
    session.image(workload)
}

/// Builds a kernel from a request as it is.
pub fn build_kernel(session: &Session, request: &BuildRequest) -> Result<Kernel> {
    Ok(build(session.work, request, session.progress)?)
}

/// Runs the training on an instrumented kernel. The result is the directory with its counters.
pub fn train_kernel(session: &Session, (kernel, workload): (&Kernel, &Workload)) -> Result<ResultDirectory> {
    Ok(ResultDirectory(train(session, kernel, workload, &session.image_on(kernel, workload)?)?))
}

/// Links the objects of a movable kernel in an order. The result has this label and recipe.
pub fn relink_kernel(
    session: &Session,
    (movable, order, label, recipe): (&Kernel, &PreparedOrder, &str, &str),
) -> Result<Kernel> {
    Ok(relink(session.work, movable, &order.order, (label, recipe), session.progress)?)
}

/// Makes a bootable image of a kernel whose code was rewritten. The result has this label and
/// recipe.
pub fn repack_kernel(
    session: &Session,
    (kernel, rewrite, label, recipe): (&Kernel, &BoltRewrite, &str, &str),
) -> Result<Kernel> {
    let rewritten = RewrittenImage { vmlinux: &rewrite.vmlinux(), id: &rewrite.id };
    Ok(repack(session.work, kernel, rewritten, (label, recipe), session.progress)?)
}

/// Compares the functional checks of two kernels. The result is the directory with the tuned
/// kernel's checks.
pub fn compare_selftests(session: &Session, (base, tuned): (&Kernel, &Kernel)) -> Result<ResultDirectory> {
    let (before, after) = (selftest(session, base)?, selftest(session, tuned)?);
    require_same_answers(&before, &after, &tuned.manifest.label)?;
    Ok(ResultDirectory(after.dir))
}

/// Reports the gate's judgment of the profile that `result` was made from, and returns the result.
pub fn reported<R: PreparedResult>(session: &Session, result: R) -> Result<R> {
    if let Some(quality) = result.quality()? {
        session.progress.note(&quality.line());
        for finding in &quality.findings {
            session.progress.note(&format!("warning: {finding}"));
        }
    }
    Ok(result)
}
