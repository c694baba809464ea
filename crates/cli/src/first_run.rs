//! The first run of a command on this machine, which tells what files its guest needs.

use crate::standard_input::reopened_input;
use crate::workload_options::WorkloadOptions;
use kerntune_command::{CliOutput, Failure};
use kerntune_guest::{command_environment, compile_contain, AdHocWorkload, Discovered, Workload};
use kerntune_machine::{discover, DiscoveryRequest, Error as MachineError};
use kerntune_tune::Error;
use kerntune_work::WorkDir;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Limit of wall time; the emulator would take hours for what takes longer here.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Makes the workload of a command: with the files that its first run in `directory` used, or with
/// what its arguments name if it cannot be run here. `files` are packed
/// in any case; the other options are applied later.
pub fn workload_of(
    command: &[String],
    directory: &Path,
    files: &[PathBuf],
    options: &WorkloadOptions,
    work: &WorkDir,
    output: &CliOutput,
) -> Result<Workload, Failure> {
    let mut environment = command_environment(std::env::vars_os(), directory);
    environment.extend(options.variables().iter().cloned());
    let request = DiscoveryRequest {
        program: &compile_contain(work)?,
        command,
        directory,
        hidden: work.root(),
        environment: &environment,
        input: options.input().map_or_else(reopened_input, |file| File::open(file).ok()),
        time_limit: TIME_LIMIT,
    };
    let guessed =
        || Workload::of_command_with(command, directory, files, options.directory(directory).is_some());
    output.progress().begin("first run of the command on this machine", None);
    let found = discover(request);
    output.progress().end();
    let ad_hoc = match found {
        // Its program is kerntune's own, or not here.
        Ok(found) if !found.started() => guessed()?,
        Ok(found) => {
            let found = Discovered { excluded: changed_by_us(work), ..found };
            let mut ad_hoc = Workload::of_discovered(command, directory, environment, found)?;
            ad_hoc.workload.files.extend_from_slice(files);
            ad_hoc
        }
        Err(MachineError::NotContained { message }) => {
            output.note(&format!(
                "warning: the guest has only the files that the command names, because a first run of it on this \
                 machine cannot be contained: {message}"
            ));
            guessed()?
        }
        Err(error) => return Err(error.into()),
    };
    let AdHocWorkload { workload, notes } = ad_hoc;
    notes.iter().for_each(|note| output.note(&format!("warning: {note}")));
    Ok(workload)
}

/// The work directory, and files that the output of this process goes to.
fn changed_by_us(work: &WorkDir) -> Vec<PathBuf> {
    let outputs = [1, 2].map(|descriptor| std::fs::read_link(format!("/proc/self/fd/{descriptor}")));
    let files = outputs.into_iter().flatten().filter(|path| path.is_file());
    work.root().canonicalize().into_iter().chain(files).collect()
}

/// Checks whether the guest failed because the command read a file that its first run only looked at.
/// If so, gives the workload the contents of all such files.
pub fn completes(error: &Error, workload: &mut Workload, output: &CliOutput) -> Result<bool, Failure> {
    let Error::Machine(MachineError::Guest { reason, .. }) = error else { return Ok(false) };
    let Some(path) = reason.strip_prefix("without contents: ") else { return Ok(false) };
    if !workload.take_all_contents()? {
        return Ok(false);
    }
    output.note(&format!(
        "the command read {path} in the guest, and on this machine it did not: recorded again with the contents of all \
         files that it looks at"
    ));
    Ok(true)
}
