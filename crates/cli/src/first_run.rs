//! The first run of a command on this machine, which tells what files its guest needs.

use crate::standard_input::reopened_input;
use crate::workload_options::WorkloadOptions;
use kerntune_command::{CliOutput, Failure};
use kerntune_guest::{compile_contain, AdHocWorkload, CommandSystem, DiscoveredFiles, SourceRoot, Workload};
use kerntune_machine::{discover, DiscoveryRequest, Error as MachineError};
use kerntune_tune::Error;
use kerntune_work::WorkDir;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// Limit of wall time; the emulator would take hours for what takes longer here.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Makes the workload of a command: with the files that its first run in the system used. If it cannot
/// be run on this machine, and is to see this machine's files, with what its arguments name. `files`
/// are packed, and seen in the first run, in any case; the other options are applied later.
pub fn workload_of(
    command: &[String],
    mut system: CommandSystem,
    files: &[PathBuf],
    options: &WorkloadOptions,
    work: &WorkDir,
    output: &CliOutput,
) -> Result<Workload, Failure> {
    system.environment.extend(options.variables().iter().cloned());
    let is_of_this_machine = system.root.is_of_this_machine();
    let request = DiscoveryRequest {
        program: &compile_contain(work)?,
        command,
        root: &system.root,
        user: &system.process.user,
        directory: &system.directory,
        hidden: work.root(),
        shown: files,
        environment: &system.environment,
        input: options.input().map_or_else(reopened_input, |file| File::open(file).ok()),
        time_limit: TIME_LIMIT,
    };
    let guessed =
        || Workload::of_command_with(command, &system.directory, files, options.directory().is_some());
    let seconds = TIME_LIMIT.as_secs();
    let what = format!("first run of the command on this machine, at most {seconds} s");
    output.progress().begin(&what, None);
    let found = discover(request);
    output.progress().end();
    let ad_hoc = match found {
        // Its program is kerntune's own, or not here.
        Ok(found) if !found.started() && is_of_this_machine => guessed()?,
        Ok(found) if !found.started() => {
            return Err(Failure::usage(format!(
                "{} is no program of the root {}",
                command[0],
                system.root.directory().display()
            )))
        }
        Ok(found) => {
            let mut found = DiscoveredFiles { excluded: changed_by_us(work, &system.root), ..found };
            if !is_of_this_machine {
                found.read_all(files)?;
            }
            let mut ad_hoc = Workload::of_discovered(command, system, found)?;
            if is_of_this_machine {
                ad_hoc.workload.files.extend_from_slice(files);
            }
            ad_hoc
        }
        Err(MachineError::NotContained { message }) if is_of_this_machine => {
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

/// The work directory, and files that the output of this process goes to; those that are in the root.
fn changed_by_us(work: &WorkDir, root: &SourceRoot) -> Vec<PathBuf> {
    let outputs = [1, 2].map(|descriptor| std::fs::read_link(format!("/proc/self/fd/{descriptor}")));
    let files = outputs.into_iter().flatten().filter(|path| path.is_file());
    let all = work.root().canonicalize().into_iter().chain(files);
    all.filter_map(|path| root.inside(&path)).collect()
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
