//! Output to paths that are no regular files: devices, pipes, and descriptors that the shell
//! opened.

use kerntune_work::{file_kind, interrupt};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::{fcntl_getfd, Errno};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set if the process started with standard output closed (`>&-`).
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before `main`, because the standard library opens `/dev/null` for closed standard
/// descriptors before `main`.
#[expect(unsafe_code, reason = "the linker calls this before the standard library begins")]
#[used]
#[link_section = ".init_array"]
static CHECK_STDOUT: extern "C" fn() = record_closed_stdout;

extern "C" fn record_closed_stdout() {
    if fcntl_getfd(rustix::stdio::stdout()) == Err(Errno::BADF) {
        IS_CLOSED.store(true, Ordering::Relaxed);
    }
}

/// Fails if standard output was closed at the start: results would be lost silently.
pub fn check_standard_output() -> io::Result<()> {
    match IS_CLOSED.load(Ordering::Relaxed) {
        true => Err(Errno::BADF.into()),
        false => Ok(()),
    }
}

/// Opens a path that must be written directly. Returns `None` for a regular file, which can be
/// replaced, and for a missing path.
///
/// # Errors
/// A directory or a socket; a pipe without a reader; standard output that was closed.
pub fn open(path: &Path) -> io::Result<Option<File>> {
    let number = number(path);
    if number == Some(1) {
        check_standard_output()?;
    }
    let Ok(found) = fs::metadata(path) else { return Ok(None) };
    match (file_kind(found.file_type()), number) {
        (None, None) => Ok(None),
        // The shell's descriptor keeps its file offset, so that `>>` appends.
        (None, Some(1)) => Ok(Some(io::stdout().as_fd().try_clone_to_owned()?.into())),
        (None, Some(2)) => Ok(Some(io::stderr().as_fd().try_clone_to_owned()?.into())),
        (None, Some(_)) => OpenOptions::new().append(true).open(path).map(Some),
        (Some(kind @ ("a directory" | "a socket")), _) => Err(io::Error::other(format!("it is {kind}"))),
        (Some(_), _) => {
            // Without O_NONBLOCK, opening a pipe waits for a reader.
            let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
            let opened = OpenOptions::new().write(true).custom_flags(flags.bits() as i32).open(path);
            opened.map(Some).map_err(|error| match Errno::from_io_error(&error) {
                Some(Errno::NXIO) => io::Error::other("nobody reads from this pipe"),
                _ => error,
            })
        }
    }
}

/// Returns the descriptor number of `/dev/stdout`, `/dev/stderr`, `/dev/fd/N` or `/proc/self/fd/N`.
fn number(path: &Path) -> Option<u32> {
    let path = path.to_str()?;
    let number = ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|directory| path.strip_prefix(directory));
    match path {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        _ => number?.parse().ok(),
    }
}

/// Writer for a file or pipe that may be non-blocking. An interrupt ends the wait for a reader.
#[derive(Debug)]
pub struct OutputStream<'a>(pub &'a File);

impl Write for OutputStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        loop {
            let mut file = self.0;
            match file.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if interrupt::is_set() {
                        return Err(io::Error::other("interrupted"));
                    }
                    let _ = poll(&mut [PollFd::new(self.0, PollFlags::OUT)], Some(&POLL_INTERVAL));
                }
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_known_by_their_names() {
        for (path, expected) in [
            ("/dev/stdout", Some(1)),
            ("/dev/fd/63", Some(63)),
            ("/proc/self/fd/2", Some(2)),
            ("/dev/null", None),
            ("/dev/fd/x", None),
        ] {
            assert_eq!(number(Path::new(path)), expected, "{path}");
        }
    }
}
