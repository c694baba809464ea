//! Verdicts on kernels, computed once for each and stored.

use super::KernelFailure;
use crate::runs::selftest::{run_checks, selftest, CheckLimits, SelfTestCheck};
use crate::{Result, Session};
use kerntune_kernel::Kernel;
use kerntune_work::{read_versioned, write_json, IoContext, Key};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Kind of verdicts in the work directory. Each has the console of its run.
pub const KIND: &str = "verdicts";
const FILE: &str = "verdict.json";
const SCHEMA: &str = "kerntune-verdict/1";

#[derive(Serialize, Deserialize)]
struct StoredVerdict {
    schema: String,
    /// `None` for a working kernel.
    failure: Option<KernelFailure>,
}

/// Returns the verdict `key`. If there is none, `make` computes it in a directory, which is kept.
pub(super) fn load_or_make(
    session: &Session,
    key: &Key,
    make: impl FnOnce(&Path) -> Result<Option<KernelFailure>>,
) -> Result<Option<KernelFailure>> {
    let staged = session.work.stage(KIND, key)?;
    if let Some(done) = staged.already() {
        let stored: StoredVerdict = read_versioned(&done.join(FILE), SCHEMA)?;
        return Ok(stored.failure);
    }
    staged.clear()?;
    let failure = make(staged.path())?;
    write_json(
        &staged.path().join(FILE),
        &StoredVerdict { schema: SCHEMA.into(), failure: failure.clone() },
    )?;
    staged.publish()?;
    Ok(failure)
}

/// Returns the failure of `kernel`; `None` if it passes all checks that `base` passes.
///
/// # Errors
/// Those of `base`; errors that keep a kernel from being tried.
pub fn judge(session: &Session, kernel: &Kernel, base: &Kernel) -> Result<Option<KernelFailure>> {
    let right = selftest(session, base)?;
    let key = Key::new("verdict/2", crate::CODE)
        .field("kernel", &kernel.manifest.id)
        .field("images", kernel.content()?)
        .field("image", &right.image)
        .field("machine", &session.machine_id);
    // Results of checks are stored by the self-test; only runs that break off are stored here.
    let mut checks = None;
    let broke = match session.work.find_verified(KIND, &key.id()) {
        Some(_) => load_or_make(session, &key, |_| Ok(None))?,
        None => match selftest(session, kernel) {
            Ok(done) => {
                checks = Some(done.checks);
                None
            }
            Err(error) => {
                let failure = KernelFailure::of_run(error)?;
                load_or_make(session, &key, |_| Ok(Some(failure)))?
            }
        },
    };
    Ok(broke.or_else(|| checks.and_then(|checks| KernelFailure::of_answers(&right.checks, &checks))))
}

/// Runs the checks of a temporary kernel in `directory` and returns its failure.
pub(super) fn run_and_judge(
    session: &Session,
    kernel: &Kernel,
    right: &[SelfTestCheck],
    directory: &Path,
    patience: CheckLimits,
) -> Result<Option<KernelFailure>> {
    let run = directory.join("run");
    fs::create_dir(&run).at("create", &run)?;
    match run_checks(session, kernel, &run, patience) {
        Ok(checks) => Ok(KernelFailure::of_answers(right, &checks)),
        Err(error) => KernelFailure::of_run(error).map(Some),
    }
}
