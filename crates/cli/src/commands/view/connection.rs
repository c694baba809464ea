//! A connection that takes neither more time nor more memory than it may.

use super::request::{Refusal, Request, HEAD_MAX, LATE, LONG};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long a request may take to come.
const ASKING: Duration = Duration::from_secs(10);
/// How long an answer may go on without that a byte of it is taken.
const TAKING: Duration = Duration::from_secs(30);
/// How long, and how much, is read of a request that was refused: an answer is lost if its reader still writes when we close.
const PARTING: Duration = Duration::from_secs(2);
const PARTING_BYTES: usize = 8 << 20;
/// How often it is looked whether to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A client.
pub struct Connection<'a> {
    stream: TcpStream,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Connection<'a> {
    pub fn new(stream: TcpStream, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { stream, stop }
    }

    /// The request.
    ///
    /// # Errors
    /// The client went away, or the server ends.
    pub fn request(&mut self) -> io::Result<Result<Request, Refusal>> {
        self.stream.set_nonblocking(true)?;
        let began = Instant::now();
        let (mut head, mut part) = (Vec::new(), [0; 4096]);
        loop {
            if began.elapsed() > ASKING {
                return Ok(Err(LATE));
            }
            match self.stream.read(&mut part) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => head.extend_from_slice(&part[..count]),
                Err(error) => self.wait(&error, PollFlags::IN)?,
            }
            if let Some(request) = Request::parse(&head) {
                return Ok(request);
            }
            if head.len() > HEAD_MAX {
                return Ok(Err(LONG));
            }
        }
    }

    /// Says that this was all, and waits a little until the client has seen it.
    ///
    /// # Errors
    /// The client went away, or the server ends.
    pub fn end(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        let (began, mut read, mut part) = (Instant::now(), 0, vec![0; 64 << 10]);
        while began.elapsed() < PARTING && read < PARTING_BYTES {
            match self.stream.read(&mut part) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) => self.wait(&error, PollFlags::IN)?,
            }
        }
        Ok(())
    }

    /// Waits a moment, if `error` says that nothing can be read or written yet.
    fn wait(&self, error: &io::Error, what: PollFlags) -> io::Result<()> {
        if (self.stop)() || ![ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) {
            return Err(error.kind().into());
        }
        let _ = poll(&mut [PollFd::new(&self.stream, what)], Some(&LOOK));
        Ok(())
    }
}

impl Write for Connection<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            match self.stream.write(bytes) {
                Err(error) if began.elapsed() < TAKING => self.wait(&error, PollFlags::OUT)?,
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// HTTP's words for a status.
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        _ => "Internal Server Error",
    }
}
