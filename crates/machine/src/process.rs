//! Runs a guest that is a process of the host: console on its standard output, results on its
//! descriptor 0, one end of a socket.

use crate::watch::{watch, RunLimits, WatchedRun};
use crate::{results, CpuTimes, Error, PhaseCpuTimes, Result, RunOutcome};
use kerntune_guest::ConsoleMessage;
use kerntune_work::{IoContext, Job, JobEnd, Progress};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Instant;

/// Runs the process to its end. All files go into `directory`, an absolute path; results may be as
/// large as the guest's memory. `cpu_times` is called at the beginning of each phase; `died` turns
/// an abnormal end of the process into an error.
pub(crate) fn run(
    command: Command,
    limits: &RunLimits,
    directory: &Path,
    memory_mb: u32,
    progress: &dyn Progress,
    cpu_times: &dyn Fn() -> Option<CpuTimes>,
    died: impl FnOnce(&JobEnd, &WatchedRun) -> Option<Error>,
) -> Result<RunOutcome> {
    let archive = directory.join("out.tar");
    let console_path = directory.join("console.log");
    let mut log = File::create(&console_path).at("create", &console_path)?;
    let (ours, theirs) = UnixStream::pair().at("make a socket for the results in", directory)?;
    let shared = ours.try_clone().at("share the socket of", directory)?;
    let collector = collect(shared, &archive, u64::from(memory_mb) << 20)?;

    let (mut unwritten, mut spent, began) = (None, Vec::new(), Instant::now());
    let job = Job::new(command).stdin(OwnedFd::from(theirs).into());
    let watched = watch(job, limits, &console_path, progress, |line| {
        if let Some(ConsoleMessage::Phase(phase)) = ConsoleMessage::parse(line) {
            let seconds = began.elapsed().as_secs_f64();
            spent.extend(cpu_times().map(|cpu| PhaseCpuTimes { phase, seconds, cpu }));
        }
        unwritten = log.write_all(format!("{line}\n").as_bytes()).err();
        unwritten.is_none()
    });
    // Reads what was sent without waiting for more, even if a process of the guest lives on.
    let _ = ours.shutdown(Shutdown::Read);
    if let Some(error) = unwritten {
        return Err(error).at("write", &console_path).map_err(Error::from);
    }
    let watched = watched?;
    let guest_files = directory.join("guest");
    let collected = collector.join().unwrap_or_else(|_| Err(io::Error::other("the reader panicked")));
    let judged = watched.judge(limits, |end| died(end, &watched));
    judged.map_err(|error| error.with_guest_logs(&archive, &guest_files))?;
    if !collected.at("write", &archive)? {
        let message = format!("they are more than the {memory_mb} MB of its memory (files with holes?)");
        return Err(Error::Results { path: archive, message });
    }
    results::unpack(&archive, &guest_files)?;
    fs::remove_file(&archive).at("remove", &archive)?;
    let WatchedRun { started, phases, .. } = watched;
    let wall_seconds = started.elapsed().as_secs_f64();
    Ok(RunOutcome {
        directory: directory.to_owned(),
        guest_files,
        recording: None,
        wall_seconds,
        phases,
        spent,
    })
}

/// Reads the result stream into a file until the guest is gone; the thread returns whether it was
/// below the limit.
fn collect(mut from: UnixStream, to: &Path, limit: u64) -> Result<JoinHandle<io::Result<bool>>> {
    let mut file = File::create(to).at("create", to)?;
    Ok(std::thread::spawn(move || {
        let copied = io::copy(&mut (&mut from).take(limit), &mut file);
        // Otherwise a guest that sends more would block.
        let _ = from.shutdown(Shutdown::Read);
        Ok(copied? < limit)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_cannot_fill_the_disk_with_results() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.tar");
        let sent = |bytes: usize| {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let collector = collect(ours, &path, 1 << 20).unwrap();
            let sent = theirs.write_all(&vec![7; bytes]);
            drop(theirs);
            let whole = collector.join().unwrap().unwrap();
            (sent.is_ok(), whole, fs::metadata(&path).unwrap().len())
        };
        assert_eq!(sent(1000), (true, true, 1000));
        assert_eq!(sent(32 << 20), (false, false, 1 << 20));
    }
}
