//! One run of an instrumented kernel on the workload: its counters.

use crate::{outputs, Result, Session};
use kerntune_guest::{Collect, GuestImage, Workload};
use kerntune_kernel::Kernel;
use kerntune_machine::RunRequest;
use kerntune_work::{IoContext, Key};
use std::fs;
use std::path::PathBuf;

/// Where training runs are in the work directory.
pub const ROOM: &str = "trainings";

/// The training run's counters as they came out of the running kernel: a directory with a tree
/// of `.gcda` files below `gcov/`. Found again if it was run before.
pub fn train(session: &Session, kernel: &Kernel, workload: &Workload, image: &GuestImage) -> Result<PathBuf> {
    workload.require_run("training")?;
    let request = RunRequest {
        collect: Collect { gcov: true, ..Collect::default() },
        ..RunRequest::of_workload(kernel, &image.initramfs, workload, "training")
    };
    let key = Key::new("training/3", kerntune_machine::CODE)
        .field("machine", &session.machine_id)
        .field("image", &image.manifest.id);
    let key = request.named(key)?;
    let staged = session.work.stage(ROOM, &key)?;
    if let Some(done) = staged.already() {
        return Ok(done.join("gcov"));
    }
    staged.clear()?;
    let run = staged.path().join("run");
    fs::create_dir(&run).at("create", &run)?;
    let outcome = session.machine.run(&request, &run, session.progress)?;
    outputs::judge(workload, "training", &outcome.guest_files)?;
    let (from, to) = (outcome.guest_files.join("gcov"), staged.path().join("gcov"));
    // A kernel that exported nothing leaves no directory; whoever reads the profile says why.
    if from.is_dir() {
        fs::rename(&from, &to).at("keep", &to)?;
    } else {
        fs::create_dir(&to).at("create", &to)?;
    }
    Ok(staged.publish()?.join("gcov"))
}
