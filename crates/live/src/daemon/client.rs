//! Client of a collector daemon.

use super::{DaemonDir, DaemonRequest, DaemonResponse};
use crate::{Error, Result};
use kerntune_work::interrupt;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// Timeout of an answer; a dump writes files.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest time in which a daemon may hold the lock without listening, while it starts or ends.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Errors of a connection closed by the other end.
const CLOSED_BY_PEER: [ErrorKind; 3] =
    [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];

/// State of a collector daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DaemonState {
    /// The daemon with this process id is running.
    Runs(u32),
    /// The daemon with this process id was killed, and its data is lost.
    Died(u32),
    /// No daemon exists.
    None,
}

/// Returns the state of the daemon.
///
/// A killed process holds the lock for a while after its socket is closed: the kernel closes the
/// most recent files first, and perf events take time. This function therefore waits while a
/// process holds the lock without listening.
///
/// # Errors
/// The lock cannot be checked, or the wait was interrupted.
pub fn state(place: &DaemonDir) -> Result<DaemonState> {
    wait_while(place, || connect(place).is_err())
}

/// Returns the state of a daemon that closed a connection without an answer, as one that ends does.
///
/// A killed process may still listen for a moment after closing its connections, so this waits for
/// the lock alone.
///
/// # Errors
/// Those of [`state`].
pub fn state_after(place: &DaemonDir, error: &Error) -> Result<DaemonState> {
    let was_cut = matches!(error, Error::Io { source, .. } if CLOSED_BY_PEER.contains(&source.kind()));
    wait_while(place, || was_cut || connect(place).is_err())
}

/// Returns the state once the lock is free or `is_changing` returns false.
fn wait_while(place: &DaemonDir, is_changing: impl Fn() -> bool) -> Result<DaemonState> {
    let began = Instant::now();
    loop {
        let Some(process) = place.process()? else { return Ok(DaemonState::None) };
        // A running daemon holds the lock. If we get it, it is released at once.
        if let Some(_lock) = place.lock()? {
            // It may have ended regularly since its process id was read.
            return Ok(place.process()?.map_or(DaemonState::None, DaemonState::Died));
        }
        if !is_changing() || began.elapsed() > CHANGE_TIMEOUT {
            return Ok(DaemonState::Runs(process));
        }
        interrupt::check()?;
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn connect(place: &DaemonDir) -> Result<UnixStream> {
    let (_directory, path) = place.short()?;
    UnixStream::connect(path).map_err(Error::io("reach the collector at", place.socket()))
}

/// Sends a request to the running daemon and returns its answer.
///
/// # Errors
/// The daemon does not answer.
pub fn ask(place: &DaemonDir, request: &DaemonRequest) -> Result<DaemonResponse> {
    let stream = connect(place)?;
    let talk = |mut stream: &UnixStream| {
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        if BufReader::new(stream.take(MAX_ANSWER_BYTES)).read_line(&mut answer)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    };
    talk(&stream).map_err(Error::io("get an answer from the collector at", place.socket()))
}
