//! Daemon process.

use super::connections::ClientConnections;
use super::protocol::{DaemonRequest, DaemonResponse, DaemonStatus};
use super::DaemonDir;
use crate::{Collector, Error, ProfileLabels, Result};
use kerntune_work::{interrupt, Lock};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// Longest time to finish answers when the daemon ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Function that saves a snapshot and returns its path.
pub type SaveProfile<'a> = dyn FnMut(&mut Collector, ProfileLabels) -> Result<PathBuf> + 'a;

/// Collects until a stop request or a signal. `start` starts the collector, `ready` is called when
/// clients may connect, and `dump` saves a profile.
///
/// # Errors
/// [`Error::Filter`] if another daemon runs; errors of `start` and of the sources.
pub fn serve(
    place: &DaemonDir,
    start: impl FnOnce() -> Result<Collector>,
    ready: impl FnOnce(&Collector),
    dump: &mut SaveProfile<'_>,
) -> Result<()> {
    place.make()?;
    let Some(_lock) = lock(place)? else {
        let who = place.process()?.map_or(String::new(), |process| format!(" (process {process})"));
        return Err(Error::Filter(format!("a collector runs already{who}: `kerntune live stop` stops it")));
    };
    let mut collector = start()?;
    // Before anybody can connect, since a client reads this process id.
    place.set_process(Some(std::process::id()))?;
    let started = SystemTime::now();
    let collected = listen(place).and_then(|listener| {
        ready(&collector);
        collector_loop(&mut collector, &listener, started, dump)
    });
    // The kernel must close the events before clients see the end.
    drop(collector);
    let _ = fs::remove_file(place.socket());
    place.set_process(None)?;
    collected
}

/// Takes the lock if no daemon holds it. A client that asks for the state holds it for a moment.
fn lock(place: &DaemonDir) -> Result<Option<Lock>> {
    for _ in 0..20 {
        if let Some(lock) = place.lock()? {
            return Ok(Some(lock));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(None)
}

fn listen(place: &DaemonDir) -> Result<UnixListener> {
    let socket = place.socket();
    // We hold the lock, so the owner of this socket has ended.
    match fs::remove_file(&socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::io("replace", &socket)(error))
        }
        _ => {}
    }
    let (_directory, path) = place.short()?;
    let listener = UnixListener::bind(path).map_err(Error::io("listen at", &socket))?;
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).map_err(Error::io("protect", &socket))?;
    listener.set_nonblocking(true).map_err(Error::io("listen at", &socket))?;
    Ok(listener)
}

fn collector_loop(
    collector: &mut Collector,
    listener: &UnixListener,
    started: SystemTime,
    dump: &mut SaveProfile<'_>,
) -> Result<()> {
    let mut stopped = false;
    let mut connections = ClientConnections::default();
    while !stopped && !interrupt::is_set() {
        collector.poll()?;
        while let Ok((stream, _)) = listener.accept() {
            connections.add(stream);
        }
        connections.advance(|line| line_of(&answer(line, collector, started, dump, &mut stopped)));
    }
    let ends = Instant::now();
    while !connections.is_quiet() && ends.elapsed() < SHUTDOWN_TIMEOUT {
        std::thread::sleep(Duration::from_millis(10));
        connections.advance(|_| {
            line_of(&DaemonResponse::Failed { message: "the collector ends".into(), nothing: false })
        });
    }
    Ok(())
}

fn line_of(answer: &DaemonResponse) -> Vec<u8> {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    line
}

fn answer(
    line: &[u8],
    collector: &mut Collector,
    started: SystemTime,
    dump: &mut SaveProfile<'_>,
    stopped: &mut bool,
) -> DaemonResponse {
    let failed = |error: Error| DaemonResponse::Failed {
        nothing: matches!(error, Error::Nothing(_)),
        message: error.to_string(),
    };
    match serde_json::from_slice(line) {
        Err(error) => {
            DaemonResponse::Failed { message: format!("the request cannot be read: {error}"), nothing: false }
        }
        Ok(DaemonRequest::Status) => DaemonResponse::Status(Box::new(status(collector, started))),
        Ok(DaemonRequest::Top { max }) => {
            collector.top(max).map_or_else(failed, |view| DaemonResponse::Top(Box::new(view)))
        }
        Ok(DaemonRequest::Reset) => collector.reset().map_or_else(failed, |()| DaemonResponse::Done),
        Ok(DaemonRequest::Stop) => {
            *stopped = true;
            DaemonResponse::Done
        }
        Ok(DaemonRequest::Dump { workload }) => {
            let labels = ProfileLabels { workload, region: "live".into(), ..ProfileLabels::default() };
            dump(collector, labels).map_or_else(failed, |path| DaemonResponse::Dumped { path })
        }
    }
}

fn status(collector: &mut Collector, started: SystemTime) -> DaemonStatus {
    let lost = collector.lost();
    let (all, running) = (collector.aggregate(), collector.running());
    let descriptions = collector.descriptions();
    let mut notes = running.notes.clone();
    notes.extend(descriptions.iter().flat_map(|description| description.lacks.clone()));
    let mut health: Vec<(String, u64)> =
        all.health.iter().map(|(anomaly, count)| (anomaly.name().to_owned(), *count)).collect();
    health.sort_unstable();
    DaemonStatus {
        process: std::process::id(),
        started: kerntune_profile::rfc3339(started),
        wall_ns: u64::try_from(collector.elapsed().as_nanos()).unwrap_or(u64::MAX),
        sources: descriptions.iter().map(|description| description.name.clone()).collect(),
        filter: (!collector.options().filter.is_all()).then(|| collector.options().filter.to_string()),
        samples: all.samples,
        lost,
        paths: [all.tree.nodes().len() as u64, collector.options().bounds.paths as u64],
        bound_bytes: collector.bound(),
        resident_bytes: resident().unwrap_or(0),
        health,
        notes,
    }
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
