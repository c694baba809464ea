//! Training run of an instrumented kernel.

use crate::runs::outputs;
use crate::runs::record::RecordedProfile;
use crate::{Result, Session};
use kerntune_guest::{CollectOptions, GuestImage, Workload};
use kerntune_kernel::Kernel;
use kerntune_machine::RunRequest;
use kerntune_optimize::gcc_pgo::write_counters;
use kerntune_profile::Profile;
use kerntune_work::{IoContext, Key, WorkDir};
use std::fs;
use std::path::PathBuf;

/// Kind of training runs in the work directory.
pub const KIND: &str = "trainings";

/// Runs the training and returns the counters as the kernel exported them: a directory `gcov/` with
/// a tree of `.gcda` files. An earlier result is used again.
pub fn train(session: &Session, kernel: &Kernel, workload: &Workload, image: &GuestImage) -> Result<PathBuf> {
    workload.require_run("training")?;
    let request = RunRequest {
        collect: CollectOptions { gcov: true, ..CollectOptions::default() },
        ..RunRequest::of_workload(kernel, &image.initramfs, workload, "training")
    };
    let key = Key::new("training/3", kerntune_machine::CODE)
        .field("machine", &session.machine_id)
        .field("image", &image.manifest.id);
    let key = request.add_to_key(key)?;
    let staged = session.work.stage(KIND, &key)?;
    if let Some(done) = staged.already() {
        return Ok(done.join("gcov"));
    }
    staged.clear()?;
    let run = staged.path().join("run");
    fs::create_dir(&run).at("create", &run)?;
    let outcome = session.machine.run(&request, &run, session.progress)?;
    outputs::judge(workload, "training", &outcome.guest_files)?;
    let (from, to) = (outcome.guest_files.join("gcov"), staged.path().join("gcov"));
    // A kernel that exported nothing leaves no directory; the reader of the profile reports the
    // reason.
    if from.is_dir() {
        fs::rename(&from, &to).at("keep", &to)?;
    } else {
        fs::create_dir(&to).at("create", &to)?;
    }
    Ok(staged.publish()?.join("gcov"))
}

/// Returns the counters of a recording of an instrumented kernel, in a directory like that of
/// [`train`]. An earlier result is used again.
pub fn counters_of_recording(
    work: &WorkDir,
    kernel: &Kernel,
    recording: &RecordedProfile,
) -> Result<PathBuf> {
    let key = Key::new("counted-training/1", kerntune_optimize::CODE)
        .field("recording", &recording.manifest.id)
        .field("kernel", kernel.content()?);
    let staged = work.stage(KIND, &key)?;
    if let Some(done) = staged.already() {
        return Ok(done.join("gcov"));
    }
    staged.clear()?;
    let to = staged.path().join("gcov");
    write_counters(&Profile::load(&recording.path)?, kernel, &to)?;
    Ok(staged.publish()?.join("gcov"))
}
