//! Follows the guest's console while it grows.

use crate::error::ConsoleTail;
use kerntune_guest::ConsoleMessage;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Lines kept for error messages.
const TAIL: usize = 12;

/// Largest part of a line to keep, in bytes.
const LINE_MAX: usize = 1 << 16;

/// State of the console, as read so far.
#[derive(Debug, Default)]
pub struct ConsoleReader {
    path: PathBuf,
    file: Option<File>,
    partial: Vec<u8>,
    tail: VecDeque<String>,
    /// Phase that init announced last; empty before the first.
    pub phase: String,
    /// The kernel's line `Kernel panic - not syncing: …`.
    pub panic: Option<String>,
    /// The kernel's line `Out of memory: …`.
    pub out_of_memory: Option<String>,
    /// True once the kernel has printed `reboot: Power down`.
    pub powered_down: bool,
    /// Init's final message: success or failure.
    pub end: Option<ConsoleMessage>,
}

impl ConsoleReader {
    /// Follows the file at `path`, which may not exist yet.
    pub fn follow(path: &Path) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }

    /// Reads new output; returns the phases that began.
    pub fn read(&mut self) -> Vec<String> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let mut fresh = Vec::new();
        if let Some(file) = &mut self.file {
            // If reading fails, the end of the run is noticed elsewhere.
            let _ = file.read_to_end(&mut fresh);
        }
        self.take(&fresh)
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut phases = Vec::new();
        for piece in bytes.split_inclusive(|&b| b == b'\n') {
            // Limits the memory for a line without an end; relevant lines are shorter.
            let room = LINE_MAX.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            if !piece.ends_with(b"\n") {
                break;
            }
            let line = printable(&std::mem::take(&mut self.partial));
            if let Some(phase) = self.line(line) {
                phases.push(phase);
            }
        }
        phases
    }

    fn line(&mut self, line: String) -> Option<String> {
        let mut began = None;
        match ConsoleMessage::parse(&line) {
            Some(ConsoleMessage::Phase(phase)) => {
                self.phase.clone_from(&phase);
                began = Some(phase);
            }
            Some(end) => self.end = Some(end),
            None => {
                self.powered_down |= line.contains("reboot: Power down");
                let after =
                    |marker: &str| line.find(marker).map(|at| line[at + marker.len()..].trim().to_string());
                if self.panic.is_none() {
                    self.panic = after("Kernel panic - not syncing:");
                }
                if self.out_of_memory.is_none() {
                    self.out_of_memory = after("Out of memory:");
                }
            }
        }
        if !line.is_empty() {
            self.tail.push_back(line);
            if self.tail.len() > TAIL {
                self.tail.pop_front();
            }
        }
        began
    }

    /// Returns the phase for messages.
    pub fn phase(&self) -> String {
        if self.phase.is_empty() {
            "kernel boot".into()
        } else {
            self.phase.clone()
        }
    }

    /// Returns the last lines, including an unfinished one.
    pub fn tail(&self) -> ConsoleTail {
        let mut lines: Vec<String> = self.tail.iter().cloned().collect();
        let rest = printable(&self.partial);
        if !rest.is_empty() {
            lines.push(rest);
        }
        ConsoleTail { log: self.path.clone(), lines, of_program: false }
    }
}

/// Removes control characters, so that a guest cannot control the user's terminal.
fn printable(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_boot_is_understood() {
        let mut console = ConsoleReader::follow(Path::new("/nonexistent"));
        let phases = console.take(
            b"[    0.1] Linux version 6.12\r\nkt: phase boot\r\nkt: phase measured step 1 rr\r\n\x1b[2Jhello\r\nkt: fai",
        );
        assert_eq!(phases, ["boot", "measured step 1 rr"]);
        console.take(b"led: service redis not ready after 10 s\r\n[    1.0] reboot: Power down\r\n");
        assert_eq!(console.end, Some(ConsoleMessage::Failed("service redis not ready after 10 s".into())));
        let lines = console.tail().lines;
        assert_eq!((lines.len(), lines[3].as_str()), (6, "[2Jhello"));
    }

    #[test]
    fn panics_and_memory() {
        let mut console = ConsoleReader::follow(Path::new("/nonexistent"));
        console.take(b"[ 1.2] Kernel panic - not syncing: VFS: Unable to mount root fs\n");
        console.take(b"[ 1.3] Out of memory: Killed process 70 (redis-server)\n");
        assert_eq!(console.panic.as_deref(), Some("VFS: Unable to mount root fs"));
        assert_eq!(console.out_of_memory.as_deref(), Some("Killed process 70 (redis-server)"));
    }
}
