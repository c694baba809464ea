//! Asking a collector.

use super::{Answer, Place, Request};
use crate::{Error, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Bytes of the longest answer.
const ANSWER_MAX: u64 = 64 << 20;
/// How long an answer may take: a dump writes files.
const PATIENCE: Duration = Duration::from_secs(120);

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
/// # Errors
/// The lock cannot be looked at.
pub fn state(place: &Place) -> Result<State> {
    let Some(process) = place.process() else { return Ok(State::None) };
    // Whoever runs has the lock; taken here it is given back at once.
    Ok(match place.lock()? {
        None => State::Runs(process),
        Some(_) => State::Died(process),
    })
}

/// Asks the collector that runs.
///
/// # Errors
/// It does not answer.
pub fn ask(place: &Place, request: &Request) -> Result<Answer> {
    let socket = place.socket();
    let (_directory, path) = place.short()?;
    let stream = UnixStream::connect(path).map_err(Error::io("reach the collector at", &socket))?;
    let talk = |mut stream: &UnixStream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut answer = String::new();
        BufReader::new(stream.take(ANSWER_MAX)).read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    };
    talk(&stream).map_err(Error::io("get an answer of the collector at", socket))
}
