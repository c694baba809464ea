//! The kerntune program, started again for tasks.

use crate::Error;
use kerntune_work::{IoContext, Job, JobEnd};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs kerntune with these arguments in a directory. The process gets the work directory through
/// the environment.
pub(super) fn own_command(arguments: &[String], directory: &Path) -> crate::Result<String> {
    let program = own_program()?;
    // A task's directory is WORK/.matrix/commands/TASK.
    let work = directory.ancestors().nth(3).unwrap_or(directory);
    let said = directory.join(".stderr");
    let mut command = Command::new("sh");
    // A job's standard output and error are captured together, so error output goes to a file.
    command.args(["-c", "exec \"$0\" \"$@\" 2>.stderr"]).arg(&program).args(arguments);
    command.current_dir(directory).env("KERNTUNE_DIR", work);
    let (end, output) = Job::new(command).output()?;
    if end.success() {
        return Ok(output);
    }
    let status = match end {
        JobEnd::Exited(status) => status.code().unwrap_or(-1),
        _ => -1,
    };
    let text = std::fs::read_to_string(&said).unwrap_or_default();
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
    Err(Error::Command { command: arguments.join(" "), status, last })
}

pub(super) fn own_program() -> crate::Result<PathBuf> {
    Ok(std::env::current_exe().at("find", "kerntune")?)
}
