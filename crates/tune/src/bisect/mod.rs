//! Boot bisect: which objects of a kernel are to blame that it does not boot, dies, or fails a check.
//!
//! Two kernels of one source, configuration and compiler: a good one and a bad one, with the same objects compiled in
//! two ways. Kernels are linked from objects of both ([`Mixer`]) and run the functional checks; [`search`] says which
//! mixes. Nothing is compiled, so that each mix costs a link and a boot. Verdicts are kept by what was mixed: what was
//! interrupted goes on where it was.

mod failure;
pub mod search;
mod verdict;

pub use failure::{Differing, Failure};
pub use verdict::{judge, ROOM as VERDICTS};

use crate::selftest::{selftest, Patience};
use crate::{Error, Result, Session};
use kerntune_kernel::{Kernel, Mixer};
use kerntune_work::{read_versioned, write_json, IoContext, Key};
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::Instant;

/// Where results are in the work directory.
pub const ROOM: &str = "bisects";
const FILE: &str = "bisect.json";
const SCHEMA: &str = "kerntune-bisect/1";

/// Objects that make a kernel fail together and not without each other, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Culprit {
    /// From the top of the source tree, with `.o`.
    pub objects: Vec<String>,
    /// What they cause.
    pub failure: Failure,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bisected {
    /// [`SCHEMA`].
    pub schema: String,
    /// Id of the bad kernel.
    pub kernel: String,
    /// Id of the good one.
    pub good: String,
    /// Objects in which they differ.
    pub objects: usize,
    /// Mixes that were tried, in this call or an earlier one.
    pub mixes: usize,
    /// Who is to blame, the first fault first. All other objects of the bad kernel together are sound.
    pub culprits: Vec<Culprit>,
}

/// Finds the objects of `bad` to blame that it does not do what `good` does. Both need their objects.
///
/// # Errors
/// [`Error::NotTheObjects`] where `good` with all objects of `bad` does what it should; a good kernel that fails;
/// objects that cannot be mixed.
pub fn bisect(session: &Session, bad: &Kernel, good: &Kernel) -> Result<Bisected> {
    let right = selftest(session, good)?;
    let name = |what: &str| {
        let key = Key::new(what, crate::CODE)
            .field("bad", &bad.manifest.id)
            .field("bad images", bad.content()?)
            .field("good", &good.manifest.id)
            .field("good images", good.content()?);
        Ok::<Key, Error>(key.field("image", &right.image).field("machine", &session.machine_id))
    };
    let staged = session.work.stage(ROOM, &name("bisect/2")?)?;
    if let Some(done) = staged.already() {
        return Ok(read_versioned(&done.join(FILE), SCHEMA)?);
    }
    staged.clear()?;
    // Linked kernels take turns here: each is gone when its verdict is there.
    let mixed = staged.path().join("mixed");
    let mut mixer = Mixer::open(session.work, good, bad)?;
    let names = mixer.objects().to_vec();
    let (mut mixes, mut patience) = (0, Patience::default());
    let mut attempt = |parts: &[usize]| -> Result<Option<Failure>> {
        let mut hash = name("mix/2")?;
        for object in parts.iter().filter_map(|at| names.get(*at)) {
            hash = hash.field("object", object);
        }
        mixes += 1;
        let label =
            format!("mix {mixes} ({} of {} objects of {})", parts.len(), names.len(), bad.manifest.label);
        let mut made = false;
        let failure = verdict::remembered(session, &hash, |directory| {
            made = true;
            if mixed.is_dir() {
                fs::remove_dir_all(&mixed).at("remove", &mixed)?;
            }
            fs::create_dir_all(&mixed).at("create", &mixed)?;
            let mut kernel = match mixer.link(parts, &mixed, &label, session.progress) {
                Err(kerntune_kernel::Error::Make { first, .. }) if is_their_fault(parts, &first) => {
                    let how = first.lines().next().unwrap_or_default().trim().to_string();
                    return Ok(Some(Failure::DoesNotLink { how }));
                }
                other => other?,
            };
            kernel.manifest.label.clone_from(&label);
            let started = Instant::now();
            let failure = verdict::run(session, &kernel, &right.checks, directory, patience)?;
            if parts.is_empty() {
                patience = Patience::after(started.elapsed());
            }
            Ok(failure)
        })?;
        let said = failure.as_ref().map_or("is sound".into(), ToString::to_string);
        session.progress.note(&format!("{label} {said}{}", if made { "" } else { " (as found before)" }));
        Ok(failure)
    };
    let label = |kernel: &Kernel| kernel.manifest.label.clone();
    if let Some(failure) = attempt(&[])? {
        return Err(Error::LinkedAgain { good: label(good), failure: failure.to_string() });
    }
    let groups = search::blame(names.len(), &mut attempt)?;
    if groups.is_empty() {
        return Err(Error::NotTheObjects { kernel: label(bad), good: label(good) });
    }
    let objects = |parts: Vec<usize>| parts.iter().filter_map(|at| names.get(*at).cloned()).collect();
    let culprits =
        groups.into_iter().map(|group| Culprit { objects: objects(group.parts), failure: group.symptom });
    let found = Bisected {
        schema: SCHEMA.into(),
        kernel: bad.manifest.id.clone(),
        good: good.manifest.id.clone(),
        objects: names.len(),
        culprits: culprits.collect(),
        mixes,
    };
    drop(mixer);
    staged.clear()?;
    write_json(&staged.path().join(FILE), &found)?;
    staged.publish()?;
    Ok(found)
}

/// Whether the objects that were mixed are to blame for a link that failed.
fn is_their_fault(parts: &[usize], said: &str) -> bool {
    !parts.is_empty() && !said.contains("No space left")
}
