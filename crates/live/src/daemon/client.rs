//! Asking a collector.

use super::{Answer, Place, Request};
use crate::{Error, Result};
use kerntune_work::interrupt;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes of the longest answer.
const ANSWER_MAX: u64 = 64 << 20;
/// How long an answer may take: a dump writes files.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a process that has the lock may not be there for anybody: it begins, or it ends.
const CHANGE: Duration = Duration::from_secs(20);

/// Errors of a connection that the other end closed.
const CUT: [ErrorKind; 3] = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];

/// What there is of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// One runs: its process.
    Runs(u32),
    /// One was killed: its process. What it had seen is gone.
    Died(u32),
    /// None.
    None,
}

/// Whether a collector runs.
///
/// A process that was killed has the lock for a while after its socket is gone: the kernel closes what was opened last
/// first, and perf events take their time. So who has the lock and does not listen is waited for.
///
/// # Errors
/// The lock cannot be looked at; an interrupt.
pub fn state(place: &Place) -> Result<State> {
    wait_while(place, || connect(place).is_err())
}

/// The state after a collector closed a connection without an answer, as one that ends does.
///
/// A killed process may listen for a moment after it closed its connections, so this waits for the lock alone.
///
/// # Errors
/// As [`state`].
pub fn state_after(place: &Place, error: &Error) -> Result<State> {
    let was_cut = matches!(error, Error::Io { source, .. } if CUT.contains(&source.kind()));
    wait_while(place, || was_cut || connect(place).is_err())
}

/// The state as soon as nobody has the lock, or `is_changing` says no.
fn wait_while(place: &Place, is_changing: impl Fn() -> bool) -> Result<State> {
    let began = Instant::now();
    loop {
        let Some(process) = place.process()? else { return Ok(State::None) };
        // Whoever runs has the lock; taken here it is given back at once.
        if let Some(_lock) = place.lock()? {
            // It may have ended properly since its number was read.
            return Ok(place.process()?.map_or(State::None, State::Died));
        }
        if !is_changing() || began.elapsed() > CHANGE {
            return Ok(State::Runs(process));
        }
        interrupt::check()?;
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn connect(place: &Place) -> Result<UnixStream> {
    let (_directory, path) = place.short()?;
    UnixStream::connect(path).map_err(Error::io("reach the collector at", place.socket()))
}

/// Asks the collector that runs.
///
/// # Errors
/// It does not answer.
pub fn ask(place: &Place, request: &Request) -> Result<Answer> {
    let stream = connect(place)?;
    let talk = |mut stream: &UnixStream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        if BufReader::new(stream.take(ANSWER_MAX)).read_line(&mut answer)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    };
    talk(&stream).map_err(Error::io("get an answer from the collector at", place.socket()))
}
