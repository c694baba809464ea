//! Whether a kernel is sound: found out once for each, and remembered.

use super::Failure;
use crate::selftest::{answers, selftest, Check, Patience};
use crate::{Result, Session};
use kerntune_kernel::Kernel;
use kerntune_work::{read_versioned, write_json, IoContext, Key};
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
    key: &Key,
    make: impl FnOnce(&Path) -> Result<Option<Failure>>,
) -> Result<Option<Failure>> {
    let staged = session.work.stage(ROOM, key)?;
    if let Some(done) = staged.already() {
        let stored: Stored = read_versioned(&done.join(FILE), SCHEMA)?;
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
    let key = Key::new("verdict/2", crate::CODE)
        .field("kernel", &kernel.manifest.id)
        .field("images", kernel.content()?)
        .field("image", &right.image)
        .field("machine", &session.machine_id);
    // Answers have a place of their own; only a run that breaks off is remembered here.
    let mut checks = None;
    let broke = match session.work.sound(ROOM, &key.id()) {
        Some(_) => remembered(session, &key, |_| Ok(None))?,
        None => match selftest(session, kernel) {
            Ok(done) => {
                checks = Some(done.checks);
                None
            }
            Err(error) => {
                let failure = Failure::of_run(error)?;
                remembered(session, &key, |_| Ok(Some(failure)))?
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
