//! The process that collects.

use super::conversations::Conversations;
use super::protocol::{Answer, Request, Status};
use super::Place;
use crate::{Collector, Error, Labels, Result};
use kerntune_work::{interrupt, Lock};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// How long the answers of a collector that ends may still take.
const PARTING: Duration = Duration::from_secs(2);

/// Keeps a snapshot; where it is then.
pub type Dump<'a> = dyn FnMut(&mut Collector, Labels) -> Result<PathBuf> + 'a;

/// Collects until it is told to stop, or gets a signal. `start` begins to watch, `ready` is called once somebody may ask,
/// `dump` keeps what was seen.
///
/// # Errors
/// [`Error::Filter`] if another collector runs; what `start` says; a source that fails.
pub fn serve(
    place: &Place,
    start: impl FnOnce() -> Result<Collector>,
    ready: impl FnOnce(&Collector),
    dump: &mut Dump<'_>,
) -> Result<()> {
    place.make()?;
    let Some(_lock) = lock(place)? else {
        let who = place.process()?.map_or(String::new(), |process| format!(" (process {process})"));
        return Err(Error::Filter(format!("a collector runs already{who}: `kerntune live stop` stops it")));
    };
    let mut collector = start()?;
    // Before anybody can connect: who does is told this number.
    place.set_process(Some(std::process::id()))?;
    let started = SystemTime::now();
    let collected = listen(place).and_then(|listener| {
        ready(&collector);
        collector_loop(&mut collector, &listener, started, dump)
    });
    // Nobody is told that it has ended before the kernel has closed its events.
    drop(collector);
    let _ = fs::remove_file(place.socket());
    place.set_process(None)?;
    collected
}

/// The lock, if no collector has it. Who asks how one does takes it for a moment.
fn lock(place: &Place) -> Result<Option<Lock>> {
    for _ in 0..20 {
        if let Some(lock) = place.lock()? {
            return Ok(Some(lock));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(None)
}

fn listen(place: &Place) -> Result<UnixListener> {
    let socket = place.socket();
    // We have the lock: whose socket this was is gone.
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
    dump: &mut Dump<'_>,
) -> Result<()> {
    let mut stopped = false;
    let mut conversations = Conversations::default();
    while !stopped && !interrupt::is_set() {
        collector.take()?;
        while let Ok((stream, _)) = listener.accept() {
            conversations.add(stream);
        }
        conversations.go_on(|line| line_of(&answer(line, collector, started, dump, &mut stopped)));
    }
    let ends = Instant::now();
    while !conversations.is_quiet() && ends.elapsed() < PARTING {
        std::thread::sleep(Duration::from_millis(10));
        conversations
            .go_on(|_| line_of(&Answer::Failed { message: "the collector ends".into(), nothing: false }));
    }
    Ok(())
}

fn line_of(answer: &Answer) -> Vec<u8> {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    line
}

fn answer(
    line: &[u8],
    collector: &mut Collector,
    started: SystemTime,
    dump: &mut Dump<'_>,
    stopped: &mut bool,
) -> Answer {
    let failed = |error: Error| Answer::Failed {
        nothing: matches!(error, Error::Nothing(_)),
        message: error.to_string(),
    };
    match serde_json::from_slice(line) {
        Err(error) => {
            Answer::Failed { message: format!("the request cannot be read: {error}"), nothing: false }
        }
        Ok(Request::Status) => Answer::Status(Box::new(status(collector, started))),
        Ok(Request::Top { most }) => {
            collector.top(most).map_or_else(failed, |view| Answer::Top(Box::new(view)))
        }
        Ok(Request::Reset) => collector.reset().map_or_else(failed, |()| Answer::Done),
        Ok(Request::Stop) => {
            *stopped = true;
            Answer::Done
        }
        Ok(Request::Dump { workload }) => {
            let labels = Labels { workload, region: "live".into(), ..Labels::default() };
            dump(collector, labels).map_or_else(failed, |path| Answer::Dumped { path })
        }
    }
}

fn status(collector: &mut Collector, started: SystemTime) -> Status {
    let lost = collector.lost();
    let (all, running) = (collector.seen(), collector.running());
    let descriptions = collector.descriptions();
    let mut notes = running.notes.clone();
    notes.extend(descriptions.iter().flat_map(|description| description.lacks.clone()));
    Status {
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
        health: all.health.iter().map(|(name, count)| ((*name).to_string(), *count)).collect(),
        notes,
    }
}

/// Bytes of memory that this process has.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
