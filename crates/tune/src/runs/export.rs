//! Export of traces to other programs.

use crate::runs::run_files::RunFiles;
use crate::runs::watch;
use crate::{Error, Result};
use kerntune_analyze::TraceFile;
use kerntune_convert::uftrace::{self, ExportError};
use kerntune_profile::Profile;
use kerntune_work::{interrupt, write_atomic, IoContext, Progress};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes the trace of the profile in `directory` to `output`, a new uftrace data directory.
/// Returns the number of records.
pub fn uftrace(profile: &Profile, directory: &Path, output: &Path, progress: &dyn Progress) -> Result<u64> {
    if output.exists() {
        return Err(Error::Exists { path: output.to_owned() });
    }
    let run = RunFiles::open(directory)?;
    let partial = aside(output)?;
    let written = write_aside(profile, &run, &partial, progress);
    let count = written.inspect_err(|_| drop(fs::remove_dir_all(&partial)))?;
    fs::rename(&partial, output).at("create", output)?;
    Ok(count)
}

/// Creates a new directory beside `output`.
fn aside(output: &Path) -> Result<PathBuf> {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    if let Some(parent) = output.parent() {
        fs::create_dir_all(parent).at("create", parent)?;
    }
    for number in 0.. {
        let path = output.with_file_name(format!(".{name}.{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return Ok(made.map(|()| path.clone()).at("create", &path)?),
        }
    }
    Err(Error::Exists { path: output.to_owned() })
}

fn write_aside(profile: &Profile, run: &RunFiles, partial: &Path, progress: &dyn Progress) -> Result<u64> {
    let tasks = uftrace::tasks(&run.recording.threads);
    let names = profile.tables.symbols.iter().map(|symbol| symbol.name.as_str());
    for (name, bytes) in uftrace::files(&tasks, names) {
        write_atomic(&partial.join(name), &bytes)?;
    }
    let paths: Vec<PathBuf> = tasks.iter().map(|task| partial.join(format!("{}.dat", task.tid))).collect();
    for path in &paths {
        // uftrace needs a file for every thread, also for an idle one.
        fs::write(path, []).at("write", path)?;
    }
    let trace = TraceFile::open(&run.trace, &run.recording)?;
    progress.begin("writing uftrace's records", Some(trace.chunks() as u64));
    let mut append = |thread: usize, bytes: &[u8]| {
        // Opened each time: a trace has more threads than a process may have open files.
        OpenOptions::new().append(true).open(&paths[thread])?.write_all(bytes)
    };
    let done = uftrace::records(&trace, &mut append, &mut |done| watch::report(progress, done));
    progress.end();
    interrupt::check()?;
    done.map_err(|error| match error {
        ExportError::Trace(error) => Error::Analyze(error),
        ExportError::Write(source) => {
            kerntune_work::Error::Io { action: "write", path: partial.to_owned(), source }.into()
        }
        ExportError::Stopped => kerntune_work::Error::Interrupted.into(),
    })
}
