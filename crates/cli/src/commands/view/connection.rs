//! An HTTP connection with limits on time and memory.

use super::request::{HttpRefusal, HttpRequest, HEAD_MAX, LATE, LONG};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Largest time until a request is complete.
const ASKING: Duration = Duration::from_secs(10);
/// Largest time without progress while an answer is written.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest time and size of input that is discarded before closing: a client that is still writing
/// would lose the answer otherwise.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
const DRAIN_BYTES: usize = 8 << 20;
/// Interval of the checks for a stop.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A connection to one client.
pub struct HttpConnection<'a> {
    stream: TcpStream,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> HttpConnection<'a> {
    pub fn new(stream: TcpStream, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { stream, stop }
    }

    /// Reads the request.
    ///
    /// # Errors
    /// The client closed the connection, or the server stops.
    pub fn request(&mut self) -> io::Result<Result<HttpRequest, HttpRefusal>> {
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
            if let Some(request) = HttpRequest::parse(&head) {
                return Ok(request);
            }
            if head.len() > HEAD_MAX {
                return Ok(Err(LONG));
            }
        }
    }

    /// Closes the connection after the client had time to read the answer.
    ///
    /// # Errors
    /// The client closed the connection, or the server stops.
    pub fn end(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        let (began, mut read, mut part) = (Instant::now(), 0, vec![0; 64 << 10]);
        while began.elapsed() < DRAIN_TIMEOUT && read < DRAIN_BYTES {
            match self.stream.read(&mut part) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) => self.wait(&error, PollFlags::IN)?,
            }
        }
        Ok(())
    }

    /// Waits briefly if `error` says that the operation would block; returns other errors.
    fn wait(&self, error: &io::Error, what: PollFlags) -> io::Result<()> {
        if (self.stop)() || ![ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) {
            return Err(error.kind().into());
        }
        let _ = poll(&mut [PollFd::new(&self.stream, what)], Some(&POLL_INTERVAL));
        Ok(())
    }
}

impl Write for HttpConnection<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            match self.stream.write(bytes) {
                Err(error) if began.elapsed() < READ_TIMEOUT => self.wait(&error, PollFlags::OUT)?,
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns HTTP's reason phrase for a status.
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
