//! Boot bisect: finds the objects that make a kernel hang, die, or fail a check.
//!
//! Good and bad kernel have the same source, configuration and compiler; their objects are compiled
//! differently. Kernels are linked from objects of both ([`ObjectMixer`]) and run the functional
//! checks; [`search`] chooses the mixes. Nothing is compiled, so each mix costs a link and a boot.
//! Verdicts are stored by the objects of the mix, so an interrupted bisect resumes.

mod failure;
pub mod search;
mod verdict;

pub use failure::{DifferingCheck, KernelFailure};
pub use verdict::{judge, KIND as VERDICTS};

use crate::runs::selftest::{selftest, CheckLimits};
use crate::{Error, Result, Session};
use kerntune_kernel::{Kernel, ObjectMixer};
use kerntune_work::{read_versioned, write_json, IoContext, Key};
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::Instant;

/// Kind of bisect results in the work directory.
pub const KIND: &str = "bisects";
const FILE: &str = "bisect.json";
const SCHEMA: &str = "kerntune-bisect/1";

/// Objects that make a kernel fail together, and not without each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Culprit {
    /// Paths from the top of the source tree, with `.o`.
    pub objects: Vec<String>,
    /// Failure that they cause.
    pub failure: KernelFailure,
}

/// Result of a bisect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectBisection {
    /// Format and version of the file.
    pub schema: String,
    /// Id of the bad kernel.
    pub kernel: String,
    /// Id of the good kernel.
    pub good: String,
    /// Number of objects that differ.
    pub objects: usize,
    /// Number of mixes, in this call and earlier ones.
    pub mixes: usize,
    /// Groups of objects that break the kernel, in the order in which they were found. All other
    /// objects of the bad kernel together work.
    pub culprits: Vec<Culprit>,
}

/// Finds the objects of `bad` that make it fail checks which `good` passes. Both kernels must have
/// kept their objects.
///
/// # Errors
/// [`Error::NotTheObjects`] if `good` with all objects of `bad` works; a good kernel that fails;
/// objects that cannot be mixed.
pub fn bisect(session: &Session, bad: &Kernel, good: &Kernel) -> Result<ObjectBisection> {
    let right = selftest(session, good)?;
    let name = |what: &str| {
        let key = Key::new(what, crate::CODE)
            .field("bad", &bad.manifest.id)
            .field("bad images", bad.content()?)
            .field("good", &good.manifest.id)
            .field("good images", good.content()?);
        Ok::<Key, Error>(key.field("image", &right.image).field("machine", &session.machine_id))
    };
    let staged = session.work.stage(KIND, &name("bisect/2")?)?;
    if let Some(done) = staged.already() {
        return Ok(read_versioned(&done.join(FILE), SCHEMA)?);
    }
    staged.clear()?;
    // Directory of the current mix, which is replaced by the next one.
    let mixed = staged.path().join("mixed");
    let mut mixer = ObjectMixer::open(session.work, good, bad)?;
    let names = mixer.objects().to_vec();
    let (mut mixes, mut patience) = (0, CheckLimits::default());
    let mut attempt = |parts: &[usize]| -> Result<Option<KernelFailure>> {
        let mut hash = name("mix/2")?;
        for object in parts.iter().filter_map(|at| names.get(*at)) {
            hash = hash.field("object", object);
        }
        mixes += 1;
        let label =
            format!("mix {mixes} ({} of {} objects of {})", parts.len(), names.len(), bad.manifest.label);
        let mut made = false;
        let failure = verdict::load_or_make(session, &hash, |directory| {
            made = true;
            if mixed.is_dir() {
                fs::remove_dir_all(&mixed).at("remove", &mixed)?;
            }
            fs::create_dir_all(&mixed).at("create", &mixed)?;
            let mut kernel = match mixer.link(parts, &mixed, &label, session.progress) {
                Err(kerntune_kernel::Error::Make { first, .. }) if is_their_fault(parts, &first) => {
                    let how = first.lines().next().unwrap_or_default().trim().to_string();
                    return Ok(Some(KernelFailure::DoesNotLink { how }));
                }
                other => other?,
            };
            kernel.manifest.label.clone_from(&label);
            let started = Instant::now();
            let failure = verdict::run_and_judge(session, &kernel, &right.checks, directory, patience)?;
            if parts.is_empty() {
                patience = CheckLimits::after(started.elapsed());
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
    let groups = search::find_culprits(names.len(), &mut attempt)?;
    if groups.is_empty() {
        return Err(Error::NotTheObjects { kernel: label(bad), good: label(good) });
    }
    let objects = |parts: Vec<usize>| parts.iter().filter_map(|at| names.get(*at).cloned()).collect();
    let culprits =
        groups.into_iter().map(|group| Culprit { objects: objects(group.parts), failure: group.symptom });
    let found = ObjectBisection {
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

/// Returns whether a failed link is the fault of the objects that were mixed in.
fn is_their_fault(parts: &[usize], said: &str) -> bool {
    !parts.is_empty() && !said.contains("No space left")
}
