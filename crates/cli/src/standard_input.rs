//! Standard input of a command that runs in a guest. A file is packed into the guest image; for
//! anything else a note says that the command does not read it.

use kerntune_command::Failure;
use kerntune_guest::StandardInput;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::fs::File;
use std::io::{stdin, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Largest standard input, in bytes.
const INPUT_MAX: u64 = 256 << 20;

/// Input for the command in the guest, and a note if kerntune's standard input is not passed on.
#[derive(Default)]
pub struct CommandInput {
    pub file: Option<StandardInput>,
    pub note: Option<String>,
}

/// Reads kerntune's own standard input. A file is read from its current position to its end, and
/// its position is restored. A pipe or socket is not read: an inherited one may never end.
pub fn command_input() -> Result<CommandInput, Failure> {
    // Standard input is closed.
    let Ok(own) = stdin().as_fd().try_clone_to_owned() else { return Ok(CommandInput::default()) };
    let mut file = File::from(own);
    let Ok(meta) = file.metadata() else { return Ok(CommandInput::default()) };
    if !meta.is_file() {
        let note = has_bytes(&file).then(|| {
            "the command reads /dev/null, not this pipe: put its input into a file, and name that or write `< FILE`".into()
        });
        return Ok(CommandInput { file: None, note });
    }
    let file = read(&mut file, meta.len(), meta.mode())?;
    Ok(CommandInput { file, note: None })
}

/// Reads a file as a command's standard input.
pub fn file_input(path: &Path) -> Result<Option<StandardInput>, Failure> {
    let refused = |error| Failure::usage(format!("--stdin: cannot read {}: {error}", path.display()));
    let mut file = File::open(path).map_err(refused)?;
    let meta = file.metadata().map_err(refused)?;
    match meta.is_file() {
        true => read(&mut file, meta.len(), meta.mode()),
        false => Err(refused(std::io::Error::other("it is no regular file"))),
    }
}

/// Reads from the file's position to its end, and restores the position; `None` without bytes.
fn read(file: &mut File, length: u64, mode: u32) -> Result<Option<StandardInput>, Failure> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot read standard input: {error}"));
    let begin = file.stream_position().map_err(unreadable)?;
    let size = length.saturating_sub(begin);
    if size > INPUT_MAX {
        return Err(Failure::usage(format!(
            "standard input has {} MiB; a command in a guest reads at most {}: name the file as an argument",
            size >> 20,
            INPUT_MAX >> 20
        )));
    }
    let mut bytes = Vec::new();
    let read = file.by_ref().take(INPUT_MAX).read_to_end(&mut bytes);
    file.seek(std::io::SeekFrom::Start(begin)).map_err(unreadable)?;
    // A write-only descriptor is no input.
    if read.is_err() || bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(StandardInput { bytes, is_private: mode & 0o004 == 0 }))
}

/// Opens a standard input that is a file once more, at its current position; `None` for anything else.
pub fn reopened_input() -> Option<File> {
    let mut own = File::from(stdin().as_fd().try_clone_to_owned().ok()?);
    own.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut again = File::open("/proc/self/fd/0").ok()?;
    again.seek(std::io::SeekFrom::Start(own.stream_position().ok()?)).ok()?;
    Some(again)
}

/// Returns true if a pipe or socket has input now. Terminals do not count: their input is meant for
/// the shell.
fn has_bytes(file: &File) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let Ok(kind) = file.metadata().map(|meta| meta.file_type()) else { return false };
    let mut look = [PollFd::new(file, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    (kind.is_fifo() || kind.is_socket())
        && poll(&mut look, Some(&at_once)).is_ok()
        && look[0].revents().contains(PollFlags::IN)
}
