//! Nonblocking connections of several clients to the daemon.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Timeout for sending a question and reading the answer.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a question, in bytes.
const MAX_QUESTION_BYTES: usize = 64 << 10;
/// Maximum number of connections. A new one displaces the oldest.
const MAX_CONNECTIONS: usize = 32;

/// All connections.
#[derive(Default)]
pub(super) struct ClientConnections(Vec<ClientConnection>);

/// Connection that reads a line or writes an answer.
struct ClientConnection {
    stream: UnixStream,
    began: Instant,
    question: Vec<u8>,
    answer: Option<Vec<u8>>,
    written: usize,
}

impl ClientConnections {
    /// Adds a new connection.
    pub fn add(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.0.len() == MAX_CONNECTIONS {
            self.0.remove(0);
        }
        self.0.push(ClientConnection {
            stream,
            began: Instant::now(),
            question: Vec::new(),
            answer: None,
            written: 0,
        });
    }

    /// Reads and writes as much as possible without waiting. `reply` answers a complete question
    /// with a line. Clients that send invalid questions or disconnect are dropped.
    pub fn advance(&mut self, mut reply: impl FnMut(&[u8]) -> Vec<u8>) {
        self.0.retain_mut(|one| {
            one.began.elapsed() < CONNECTION_TIMEOUT
                && matches!(one.advance(&mut reply), Err(error) if is_later(&error))
        });
    }

    /// Returns true if no answer is partly written.
    pub fn is_quiet(&self) -> bool {
        self.0.iter().all(|one| one.answer.is_none())
    }
}

impl ClientConnection {
    /// Returns `Ok` at the end of the connection, [`ErrorKind::WouldBlock`] before it.
    fn advance(&mut self, reply: &mut impl FnMut(&[u8]) -> Vec<u8>) -> io::Result<()> {
        let mut part = [0; 4096];
        while self.answer.is_none() {
            let read = match self.stream.read(&mut part) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            };
            let room = MAX_QUESTION_BYTES.saturating_sub(self.question.len());
            self.question.extend_from_slice(&part[..read.min(room)]);
            let end = self.question.iter().position(|byte| *byte == b'\n');
            if end.is_some() || read == 0 || read > room {
                let line = &self.question[..end.unwrap_or(self.question.len())];
                self.answer = Some(reply(line));
            }
        }
        let answer = self.answer.as_deref().unwrap_or_default();
        while self.written < answer.len() {
            match self.stream.write(&answer[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_later(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shout(line: &[u8]) -> Vec<u8> {
        [&line.to_ascii_uppercase()[..], b"\n"].concat()
    }

    #[test]
    fn nobody_waits_for_the_silent() {
        let mut all = ClientConnections::default();
        let mut silent = Vec::new();
        for _ in 0..3 * MAX_CONNECTIONS {
            let (ours, theirs) = UnixStream::pair().unwrap();
            all.add(ours);
            silent.push(theirs);
        }
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        all.add(ours);
        assert_eq!(all.0.len(), MAX_CONNECTIONS);
        theirs.write_all(b"sta").unwrap();
        all.advance(shout);
        theirs.write_all(b"tus\n").unwrap();
        all.advance(shout);
        let mut answer = String::new();
        theirs.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "STATUS\n");
        assert_eq!(all.0.len(), MAX_CONNECTIONS - 1, "the others are still listened to");
    }

    #[test]
    fn a_long_answer_is_written_as_it_is_read() {
        let mut all = ClientConnections::default();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        all.add(ours);
        theirs.write_all(b"dump\n").unwrap();
        let long = vec![b'x'; 4 << 20];
        all.advance(|_| long.clone());
        assert!(!all.is_quiet());
        theirs.set_nonblocking(true).unwrap();
        let (mut read, mut part) = (0, vec![0; 1 << 16]);
        while read < long.len() {
            match theirs.read(&mut part) {
                Ok(more) => read += more,
                Err(_) => all.advance(|_| panic!("it was answered")),
            }
        }
        all.advance(|_| panic!("it was answered"));
        assert!(all.is_quiet() && all.0.is_empty());
    }

    #[test]
    fn an_endless_question_is_cut_and_one_without_an_end_answered() {
        for (length, expected) in [(MAX_QUESTION_BYTES + 8192, MAX_QUESTION_BYTES), (9, 9)] {
            let mut all = ClientConnections::default();
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            all.add(ours);
            let seen = std::cell::Cell::new(0);
            let asked = std::thread::spawn(move || {
                let _ = theirs.write_all(&vec![b'a'; length]);
            });
            while seen.get() == 0 {
                all.advance(|line| {
                    seen.set(line.len());
                    Vec::new()
                });
                std::thread::sleep(Duration::from_millis(1));
            }
            asked.join().unwrap();
            assert_eq!(seen.get(), expected);
        }
    }
}
