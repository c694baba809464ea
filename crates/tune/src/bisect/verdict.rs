//! Whether a kernel is sound: found out once for each, and remembered.

use super::Failure;
use crate::selftest::{answers, selftest, Check, Patience};
use crate::{Result, Session};
use kerntune_kernel::Kernel;
use kerntune_work::{write_json, ContentHash, IoContext};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Where verdicts are in the work directory: each with the console of the run that it was made from.
pub const ROOM: &str = "verdicts";
const FILE: &str = "verdict.json";
const SCHEMA: &str = "kerntune-verdict/1";

#[derive(Serialize, Deserialize)]
struct Stored {
    schema: String,
    /// None for a sound kernel.
    failure: Option<Failure>,
}

/// The verdict `id`, made if it is not there; `make` gets a directory, which is kept.
pub(super) fn remembered(
    session: &Session,
    id: &str,
    make: impl FnOnce(&Path) -> Result<Option<Failure>>,
) -> Result<Option<Failure>> {
    let staged = session.work.stage(ROOM, id)?;
    if let Some(done) = staged.already() {
        let path = done.join(FILE);
        let bytes = fs::read(&path).at("read", &path)?;
        let stored: Stored =
            serde_json::from_slice(&bytes).map_err(|source| kerntune_work::Error::Json { path, source })?;
        let _ = fs::remove_dir(staged.path());
        return Ok(stored.failure);
    }
    staged.clear()?;
    let failure = make(staged.path())?;
    write_json(&staged.path().join(FILE), &Stored { schema: SCHEMA.into(), failure: failure.clone() })?;
    staged.publish()?;
    Ok(failure)
}

/// How `kernel` fails where `base`, which does not, is right; None if it does all that `base` does.
///
/// # Errors
/// Those of `base`; what keeps a kernel from being tried.
pub fn judge(session: &Session, kernel: &Kernel, base: &Kernel) -> Result<Option<Failure>> {
    let right = selftest(session, base)?;
    let id = |of: &str| {
        let hash = ContentHash::new("verdict/1").field("kernel", &kernel.manifest.id).field("image", of);
        hash.field("machine", &session.machine_id).finish()
    };
    // Answers have a place of their own; only a run that breaks off is remembered here.
    let mut checks = None;
    let broke = match session.work.find(ROOM, &id(&right.image)) {
        Some(_) => remembered(session, &id(&right.image), |_| Ok(None))?,
        None => match selftest(session, kernel) {
            Ok(done) => {
                checks = Some(done.checks);
                None
            }
            Err(error) => {
                let failure = Failure::of_run(error)?;
                remembered(session, &id(&right.image), |_| Ok(Some(failure)))?
            }
        },
    };
    Ok(broke.or_else(|| checks.and_then(|checks| Failure::of_answers(&right.checks, &checks))))
}

/// How a kernel that was not kept fails, run in `directory`.
pub(super) fn run(
    session: &Session,
    kernel: &Kernel,
    right: &[Check],
    directory: &Path,
    patience: Patience,
) -> Result<Option<Failure>> {
    let run = directory.join("run");
    fs::create_dir(&run).at("create", &run)?;
    match answers(session, kernel, &run, patience) {
        Ok(checks) => Ok(Failure::of_answers(right, &checks)),
        Err(error) => Failure::of_run(error).map(Some),
    }
}
