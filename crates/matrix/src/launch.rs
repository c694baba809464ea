//! A task in a process of its own: whatever happens to it happens to nothing else, and what it says goes into a log.

use crate::{turn, Error, Result, Store, Task, Turn};
use kerntune_work::{IoContext, Job, JobEnd};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// Runs `command`, a worker for this task alone, to its end. What it says goes to `log` line by line.
///
/// # Errors
/// A process that ended without a result, for no fault of the task: the last line that it said is in the message. An interrupt.
pub fn launch(command: Command, store: &dyn Store, task: &Task, log: &Path) -> Result<Turn> {
    let was_there = turn::finished(store)?.contains(&task.id);
    let room = log.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(room).at("create", room)?;
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
    // One that was there before says nothing of this process, which may have found that it is wrong.
    if turn::finished(store)?.contains(&task.id) && (!was_there || end.success()) {
        return Ok(if was_there { Turn::Found } else { Turn::Made });
    }
    if let Some(why) = turn::why_failed(store, &task.id)? {
        return Ok(Turn::Failed(why));
    }
    match refused {
        Some(what) => Ok(Turn::Refused(what)),
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

/// How a worker says that its machine would compute something else; what differs comes behind.
pub const REFUSED: &str = "this machine differs in: ";
