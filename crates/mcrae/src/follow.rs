//! Recording of a live stream of McRae's event tags as a dump.

use crate::{DumpError, DumpRecord, Error, RecordDecoder, Result, StreamFormat};
use kerntune_trace::{TagLayout, MAX_TAG_RECORD};
use kerntune_work::{interrupt, IoContext, Progress};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{open, FileType, Mode, OFlags};
use rustix::termios::{isatty, tcgetattr, tcsetattr, OptionalActions, Termios};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

/// Maximum wait for data before interrupts are checked.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Source of a stream of tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagStreamSource {
    /// One TCP connection to this address.
    Tcp(String),
    /// A named pipe, a serial line, or a file that is read to its end.
    Path(PathBuf),
}

impl FromStr for TagStreamSource {
    type Err = String;

    /// Parses `PORT` (on localhost), `ADDRESS:PORT`, or a path.
    fn from_str(text: &str) -> Result<Self, String> {
        let port = |digits: &str| digits.parse::<u16>().is_ok_and(|port| port > 0);
        match text.rsplit_once(':') {
            _ if port(text) => Ok(Self::Tcp(format!("127.0.0.1:{text}"))),
            Some((address, digits)) if !address.contains('/') && port(digits) => Ok(Self::Tcp(text.into())),
            _ if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err("a port is a number from 1 to 65535".into())
            }
            _ if text.is_empty() => Err("give a port, a pipe or a serial line".into()),
            _ => Ok(Self::Path(text.into())),
        }
    }
}

/// Stream to record, and the dump to write.
#[derive(Debug)]
pub struct FollowRequest<'a> {
    /// Source of the tags.
    pub source: &'a TagStreamSource,
    /// Format of the stream.
    pub form: StreamFormat,
    /// Widths of tags and times, and the length of a tick.
    pub layout: TagLayout,
    /// Speed of a serial line.
    pub baud: u32,
    /// New file for the records, in bytes.
    pub dump: &'a Path,
    /// Number of records after which to stop.
    pub records: Option<usize>,
}

impl FollowRequest<'_> {
    fn max_records(&self) -> u64 {
        self.records.map_or(u64::MAX, |max| max as u64)
    }
}

/// Statistics of a recorded stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowResult {
    /// Number of records in the dump.
    pub records: u64,
    /// Bytes that belong to no complete record: a truncated stream, or noise on a line.
    pub passed_over: u64,
    /// True if a signal ended the recording.
    pub interrupted: bool,
}

/// Writes records until the stream ends, enough records have come, or a signal arrives. Memory does
/// not grow with the stream. `on_records` gets each group of records that was written, and an empty
/// one several times a second while nothing arrives.
///
/// # Errors
/// A source that cannot be opened or read; a dump that cannot be written; a line of text that is no
/// record.
pub fn follow(
    request: &FollowRequest,
    on_records: &mut dyn FnMut(&[DumpRecord]),
    progress: &dyn Progress,
) -> Result<FollowResult> {
    if request.dump.symlink_metadata().is_ok() {
        let source = io::Error::from(ErrorKind::AlreadyExists);
        return Err(
            kerntune_work::Error::Io { action: "create", path: request.dump.to_owned(), source }.into()
        );
    }
    let mut line = TagStream::open(request, progress)?;
    let dump = File::options().write(true).create_new(true).open(request.dump).at("create", request.dump)?;
    let mut out = BufWriter::new(dump);
    let mut decoder = RecordDecoder::new(request.form, request.layout);
    let max = request.max_records();
    let (mut buffer, mut records) = (vec![0; 1 << 16], Vec::new());
    let mut followed = FollowResult { records: 0, passed_over: 0, interrupted: false };
    let began = Instant::now();
    let wrong = |source| Error::Dump { dump: request.dump.to_owned(), source };
    progress.begin("receiving tags", None);
    while followed.records < max {
        if interrupt::take() {
            followed.interrupted = true;
            break;
        }
        let count = match line.read(&mut buffer).at("read", &line.name)? {
            ReadOutcome::Nothing => {
                on_records(&[]);
                continue;
            }
            ReadOutcome::End => break,
            ReadOutcome::Bytes(count) => count,
        };
        let now = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let pushed = decoder.push(buffer.get(..count).unwrap_or_default(), now, &mut records);
        write(&mut out, &mut records, request, on_records, &mut followed).at("write", request.dump)?;
        pushed.map_err(wrong)?;
        progress.at(followed.records);
    }
    progress.end();
    let rest = match decoder.finish(&mut records) {
        // An incomplete line at the end.
        Err(DumpError::Line { text, .. }) => text.len() as u64,
        rest => rest.map_err(wrong)?,
    };
    write(&mut out, &mut records, request, on_records, &mut followed).at("write", request.dump)?;
    out.flush().at("write", request.dump)?;
    followed.passed_over = rest;
    Ok(followed)
}

fn write(
    out: &mut impl Write,
    records: &mut Vec<DumpRecord>,
    request: &FollowRequest,
    on_records: &mut dyn FnMut(&[DumpRecord]),
    followed: &mut FollowResult,
) -> io::Result<()> {
    let room = request.max_records() - followed.records;
    records.truncate(usize::try_from(room).unwrap_or(usize::MAX));
    let mut bytes = [0; MAX_TAG_RECORD];
    for record in records.iter() {
        let count = request.layout.write(record.tag, record.time, &mut bytes);
        out.write_all(&bytes[..count])?;
    }
    followed.records += records.len() as u64;
    on_records(records);
    records.clear();
    Ok(())
}

/// Result of one read.
enum ReadOutcome {
    Bytes(usize),
    Nothing,
    End,
}

/// An open source of tags.
struct TagStream {
    name: PathBuf,
    input: StreamInput,
    /// Settings of a terminal, which are restored at the end.
    before: Option<Termios>,
}

enum StreamInput {
    File(File),
    Tcp(TcpStream),
}

impl TagStream {
    fn open(request: &FollowRequest, progress: &dyn Progress) -> Result<Self> {
        match request.source {
            TagStreamSource::Tcp(address) => {
                let name = PathBuf::from(address);
                let listener = TcpListener::bind(address).at("listen on", &name)?;
                listener.set_nonblocking(true).at("listen on", &name)?;
                let at = listener.local_addr().at("listen on", &name)?;
                progress.note(&format!("waiting for a connection to {at}"));
                let stream = loop {
                    interrupt::check()?;
                    match listener.accept() {
                        Ok((stream, _)) => break stream,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {
                            wait(&listener).at("listen on", &name)?;
                        }
                        Err(error) => return Err(error).at("listen on", &name)?,
                    }
                };
                stream.set_nonblocking(true).at("listen on", &name)?;
                Ok(Self { name, input: StreamInput::Tcp(stream), before: None })
            }
            TagStreamSource::Path(path) => {
                // With O_NONBLOCK, waiting for a pipe without a writer can be interrupted.
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let file: OwnedFd =
                    open(path, flags, Mode::empty()).map_err(io::Error::from).at("open", path)?;
                let kind = rustix::fs::fstat(&file).map_err(io::Error::from).at("open", path)?;
                if FileType::from_raw_mode(kind.st_mode) == FileType::Directory {
                    let source = io::Error::new(ErrorKind::InvalidData, "it is a directory");
                    return Err(
                        kerntune_work::Error::Io { action: "read", path: path.clone(), source }.into()
                    );
                }
                let before = match isatty(&file) {
                    true => Some(make_raw(&file, request.baud).map_err(io::Error::from).at("set up", path)?),
                    false => None,
                };
                Ok(Self { name: path.clone(), input: StreamInput::File(file.into()), before })
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<ReadOutcome> {
        let (ready, is_pipe_end) = match &self.input {
            StreamInput::File(file) => wait(file)?,
            StreamInput::Tcp(stream) => wait(stream)?,
        };
        if !ready {
            return Ok(if is_pipe_end { ReadOutcome::End } else { ReadOutcome::Nothing });
        }
        let read = match &mut self.input {
            StreamInput::File(file) => file.read(buffer),
            StreamInput::Tcp(stream) => stream.read(buffer),
        };
        match read {
            Ok(0) => Ok(ReadOutcome::End),
            Ok(count) => Ok(ReadOutcome::Bytes(count)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Ok(ReadOutcome::Nothing)
            }
            // The other side of the line is gone.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                Ok(ReadOutcome::End)
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for TagStream {
    fn drop(&mut self) {
        if let (Some(before), StreamInput::File(file)) = (&self.before, &self.input) {
            // The line is closed next, so errors do not matter.
            let _ = tcsetattr(file, OptionalActions::Now, before);
        }
    }
}

/// Returns whether data can be read, and otherwise whether the other side has gone.
fn wait(source: &impl AsFd) -> io::Result<(bool, bool)> {
    let mut look = [PollFd::new(source, PollFlags::IN)];
    match poll(&mut look, Some(&LOOK)) {
        Err(rustix::io::Errno::INTR) => return Ok((false, false)),
        polled => polled.map_err(io::Error::from)?,
    };
    let events = look[0].revents();
    Ok((events.contains(PollFlags::IN), events.intersects(PollFlags::HUP | PollFlags::ERR)))
}

/// Sets a terminal to raw mode at this speed. Returns the previous settings.
fn make_raw(line: &OwnedFd, baud: u32) -> rustix::io::Result<Termios> {
    let before = tcgetattr(line)?;
    let mut raw = before.clone();
    raw.make_raw();
    raw.set_speed(baud)?;
    tcsetattr(line, OptionalActions::Now, &raw)?;
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DumpByteOrder;
    use kerntune_work::NoProgress;
    use std::thread;

    #[test]
    fn ports_addresses_and_paths() {
        let source = |text: &str| text.parse::<TagStreamSource>();
        assert_eq!(source("7001"), Ok(TagStreamSource::Tcp("127.0.0.1:7001".into())));
        assert_eq!(source("0.0.0.0:7001"), Ok(TagStreamSource::Tcp("0.0.0.0:7001".into())));
        assert_eq!(source("/dev/ttyUSB0"), Ok(TagStreamSource::Path("/dev/ttyUSB0".into())));
        assert_eq!(source("./a:80"), Ok(TagStreamSource::Path("./a:80".into())));
        assert!(source("70000").is_err() && source("").is_err() && source("0").is_err());
    }

    fn request<'a>(source: &'a TagStreamSource, form: StreamFormat, dump: &'a Path) -> FollowRequest<'a> {
        FollowRequest { source, form, layout: TagLayout::MCRAE, baud: 230_400, dump, records: None }
    }

    #[test]
    fn a_pipe_is_followed_until_its_writers_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, dump) = (dir.path().join("pipe"), dir.path().join("dump"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let source = TagStreamSource::Path(pipe.clone());
        let writer = thread::spawn(move || {
            let mut pipe = File::options().write(true).open(pipe).unwrap();
            // In the middle of a record nothing comes for longer than one look.
            pipe.write_all(&[0x58, 0x02, 1]).unwrap();
            thread::sleep(std::time::Duration::from_millis(300));
            pipe.write_all(&[0, 0, 0x59, 0x02, 9, 0, 0, 0x58]).unwrap();
        });
        let form = StreamFormat::Records(DumpByteOrder::Little);
        let followed = follow(&request(&source, form, &dump), &mut |_| {}, &NoProgress).unwrap();
        writer.join().unwrap();
        assert_eq!(followed, FollowResult { records: 2, passed_over: 1, interrupted: false });
        assert_eq!(std::fs::read(&dump).unwrap(), [0x58, 0x02, 1, 0, 0, 0x59, 0x02, 9, 0, 0]);
        // Existing dumps are not overwritten.
        let error = follow(&request(&source, form, &dump), &mut |_| {}, &NoProgress).unwrap_err().to_string();
        assert!(error.contains("dump"), "{error}");
    }

    #[test]
    fn a_connection_is_followed_and_ends_where_it_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let dump = dir.path().join("dump");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let source: TagStreamSource = port.to_string().parse().unwrap();
        let writer = thread::spawn(move || {
            let mut stream = loop {
                match TcpStream::connect(("127.0.0.1", port)) {
                    Ok(stream) => break stream,
                    Err(_) => thread::sleep(std::time::Duration::from_millis(5)),
                }
            };
            // Whether everything can be written depends on who ends first.
            let _ = stream.write_all(b"600 1\n601 2\n600 3\n601 4\n");
        });
        let mut request = request(&source, StreamFormat::Text, &dump);
        request.records = Some(3);
        let mut seen = Vec::new();
        let followed = follow(&request, &mut |records| seen.extend_from_slice(records), &NoProgress).unwrap();
        writer.join().unwrap();
        assert_eq!(followed.records, 3);
        assert_eq!(seen.iter().map(|record| record.tag).collect::<Vec<_>>(), [600, 601, 600]);
        assert_eq!(std::fs::read(&dump).unwrap().len(), 15);
    }

    #[test]
    fn a_serial_line_is_read_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let dump = dir.path().join("dump");
        use rustix::pty::{grantpt, openpt, ptsname, unlockpt, OpenptFlags};
        let board = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&board).unwrap();
        unlockpt(&board).unwrap();
        let name = ptsname(&board, Vec::new()).unwrap();
        let source = TagStreamSource::Path(name.to_str().unwrap().into());
        let writer = thread::spawn(move || {
            // Bytes that a terminal would change: ^D, carriage returns, a break character, bit 7.
            for pair in [[0x84u8, 88], [0x84, 89], [0x80, 4], [0x80, 13], [0x80, 3]] {
                thread::sleep(std::time::Duration::from_millis(100));
                rustix::io::write(&board, &pair).unwrap();
            }
            // The line stays open until everything was read.
            thread::sleep(std::time::Duration::from_millis(600));
        });
        let followed =
            follow(&request(&source, StreamFormat::Uart, &dump), &mut |_| {}, &NoProgress).unwrap();
        writer.join().unwrap();
        // Bytes sent before the line was set up may be lost.
        assert!((4..=5).contains(&followed.records), "{followed:?}");
        let bytes = std::fs::read(&dump).unwrap();
        let tags: Vec<u16> =
            bytes.chunks(5).map(|record| u16::from_le_bytes([record[0], record[1]])).collect();
        assert!([600, 601, 4, 13, 3].ends_with(&tags), "{tags:?}");
    }
}
