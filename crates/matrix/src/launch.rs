//! Runs a task in a process of its own, so that a crash affects nothing else, and logs its output.

use crate::{worker, Error, Result, Store, Task, TaskOutcome};
use kerntune_work::{IoContext, Job, JobEnd};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// Runs `command`, a worker for this task alone, to its end, and copies its output to `log` line by
/// line.
///
/// # Errors
/// A process that ended without a result, although the task did not fail: the message has the last
/// line of its output. An interrupt.
pub fn launch(command: Command, store: &dyn Store, task: &Task, log: &Path) -> Result<TaskOutcome> {
    let was_there = worker::finished(store)?.contains(&task.id);
    let directory = log.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).at("create", directory)?;
    let mut file = File::create(log).at("create", log)?;
    let (mut last, mut refused) = (String::new(), None);
    let end = Job::new(command).run(
        |line| {
            let _ = writeln!(file, "{line}");
            if let Some(what) = line.strip_prefix(REFUSED) {
                refused = Some(what.split(", ").map(str::to_owned).collect());
            }
            if !line.trim().is_empty() {
                last = line.to_owned();
            }
            true
        },
        || true,
    )?;
    // A result that was there before says nothing about this process, which may have found that
    // result wrong.
    if worker::finished(store)?.contains(&task.id) && (!was_there || end.success()) {
        return Ok(if was_there { TaskOutcome::Found } else { TaskOutcome::Made });
    }
    if let Some(why) = worker::why_failed(store, &task.id)? {
        return Ok(TaskOutcome::Failed(why));
    }
    match refused {
        Some(what) => Ok(TaskOutcome::Refused(what)),
        None => Err(without_result(&end, task.title.clone(), last)),
    }
}

fn without_result(end: &JobEnd, title: String, last: String) -> Error {
    let signal = match end {
        JobEnd::Exited(status) => status.signal(),
        JobEnd::TimedOut | JobEnd::Stopped => None,
    };
    match signal {
        Some(signal) => Error::Lost { title, signal, last },
        None => Error::Ended { title, last },
    }
}

/// Prefix of the line by which a worker refuses a task; the differing inputs follow.
pub const REFUSED: &str = "this machine differs in: ";
