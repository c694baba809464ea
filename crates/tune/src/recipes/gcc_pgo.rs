//! Recipe `gcc-pgo`: an instrumented kernel is trained.

use super::Entry;
use crate::engine::{Directory, Step, StepName};
use crate::part::{not_of, Given, Job, Made, Training};
use crate::sound::Varied;
use crate::steps::{of_kernel, tell, Train, PROFILE};
use crate::train::train;
use crate::{Result, Session};
use kerntune_kernel::{hash_tree, BuildRequest, Kernel};
use kerntune_optimize::gcc_pgo::{
    check_compiler, instrumented_request, prepare_as_exported, prepare_profile, prove, tuned_request,
    without_counters, Exclusions, PreparedProfile, Values, NAME, REQUIREMENTS,
};
use kerntune_optimize::quality::Finding;
use kerntune_optimize::Proof;
use kerntune_work::Key;
use std::path::PathBuf;

/// Arc counters of a gcov kernel, compiled in with GCC's `-fprofile-use`.
pub const ENTRY: Entry = Entry {
    name: NAME,
    about: "trains a gcov kernel on the workload and rebuilds with the counters of its branches (GCC)",
    place: 10,
    counts_values: true,
    trained_by: Training::Counters,
    requirements: REQUIREMENTS,
    check_compiler,
    asks,
    steps: STEPS,
    elsewhere: Ok(STEPS),
    make: |job, _| make(job, false),
    ..Entry::USUAL
};

const STEPS: &[StepName] = &[INSTRUMENTED_KERNEL, TRAINING, PROFILE];
const INSTRUMENTED_KERNEL: StepName =
    StepName::new("instrumented-kernel", "build the instrumented kernel").compiling();
const TRAINING: StepName = StepName::new("training", "run the training on the instrumented kernel");

/// What is done with the counters as they came out, and how the kernel is proved.
pub(super) fn make<'a>(job: &Job<'a>, as_exported: bool) -> Result<Made<'a>> {
    let Job { engine, base, request, .. } = *job;
    let values = values(job)?;
    let instrumented = instrumented(job, values.as_ref())?;
    let counters = match job.given {
        Some(Given::Counters(directory)) => vec![Directory(directory.clone())],
        Some(given) => return Err(not_of(job.recipe, given)),
        None => trainings(job, &instrumented)?,
    };
    let profile = engine.run(&Prepare { instrumented: &instrumented, counters: &counters, as_exported })?;
    let request = tuned_request(request, base, &profile, values.as_ref())?;
    Ok(Made::to_compile(&profile.dir.clone(), request, move |tuned| -> Result<Proof> {
        Ok(Box::new(prove(base, &profile, tuned, &tuned.build_log())?))
    }))
}

/// The counters of each training, as often as it counts.
fn trainings(job: &Job, instrumented: &Kernel) -> Result<Vec<Directory>> {
    let Job { engine, workload, image, also, .. } = *job;
    let mut counters = vec![engine.run(&Train { name: TRAINING, kernel: instrumented, workload, image })?];
    for (workload, weight) in also {
        let session = job.session();
        let of = train(session, instrumented, workload, &session.image(workload)?)?;
        counters.extend((0..*weight).map(|_| Directory(of.clone())));
    }
    Ok(counters)
}

/// The kernel that counts.
fn instrumented(job: &Job, values: Option<&Values>) -> Result<Kernel> {
    let Job { base, options, .. } = *job;
    if values.is_none() && options.values {
        let of = &base.manifest;
        let text = format!(
            "no patches profile values in Linux {} for {}: arcs alone are counted",
            of.version, of.arch
        );
        job.session().progress.note(&text);
    }
    let request = |exclusions: &Exclusions| -> Result<BuildRequest> {
        let exclusions = Exclusions::maintained()?.and(exclusions);
        Ok(instrumented_request(job.request, base, &exclusions, values)?)
    };
    let plain = || -> Result<BuildRequest> {
        let none = Exclusions::default();
        Ok(without_counters(instrumented_request(job.request, base, &none, values)?))
    };
    job.sound(INSTRUMENTED_KERNEL, &Varied { request: &request, plain: &plain, tuned_only: false })
}

/// What it takes to profile values; None if that is not wanted or there are no patches for this kernel.
fn values(job: &Job) -> Result<Option<Values>> {
    if !job.options.values {
        return Ok(None);
    }
    Ok(Values::of(job.session().work, job.base)?)
}

/// Turns counters into what GCC reads.
struct Prepare<'a> {
    instrumented: &'a Kernel,
    /// As they came out of the running kernel, or were given; several are added up.
    counters: &'a [Directory],
    /// Whether they are left as gcov exports them.
    as_exported: bool,
}

impl Step for Prepare<'_> {
    type Output = PreparedProfile;

    fn name(&self) -> StepName {
        PROFILE
    }

    fn inputs(&self, key: Key, _: &Session) -> Result<Key> {
        let key = of_kernel(key, "instrumented", self.instrumented)?;
        // Given counters are no result of ours: what they are is their content.
        let mut key = key;
        for Directory(counters) in self.counters {
            key = key.field("counters", hash_tree(counters)?);
        }
        Ok(key.field("as exported", self.as_exported.to_string()))
    }

    fn make(&self, session: &Session) -> Result<PreparedProfile> {
        let Self { instrumented, counters, as_exported } = self;
        let counters: Vec<PathBuf> = counters.iter().map(|Directory(counters)| counters.clone()).collect();
        match &counters[..] {
            [alone] if *as_exported => {
                return Ok(prepare_as_exported(session.work, alone, instrumented)?);
            }
            _ => {}
        }
        let prepared = prepare_profile(session.work, &counters, instrumented)?;
        tell(session, prepared.quality()?);
        Ok(prepared)
    }
}

pub(super) fn asks(recipe: &str, _: &Kernel) -> Option<Finding> {
    let found = format!("recipe {recipe} takes counters of an instrumented kernel and no recording");
    let mend = "leave the training to it, or give counters with --gcda".to_string();
    Some(Finding::refused("recipe", found, mend))
}
