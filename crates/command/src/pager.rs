//! The pager that shows long results on a terminal.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit statuses of a shell that could not run the program.
const NOT_RUN: [i32; 2] = [126, 127];

/// Returns the pager: `$PAGER`, or `less`. `None` if `$PAGER` is empty or `cat`, or if `less` is
/// missing.
pub fn wanted() -> Option<OsString> {
    match std::env::var_os("PAGER") {
        Some(pager) if pager.is_empty() || pager == "cat" => None,
        Some(pager) => Some(pager),
        None => has("less").then(|| "less".into()),
    }
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| Path::new(&directory).join(program).is_file())
}

/// Shows a text in the pager, and waits until the user closes it. Returns false if the pager cannot
/// be run; the text was not shown then.
///
/// # Errors
/// The text could not be written to the pager. A pager that is closed early is no error.
pub fn show(pager: &OsString, text: &str) -> io::Result<bool> {
    let mut command = Command::new("sh");
    // git's defaults: less exits if the text fits on the screen, shows colors, and leaves the text
    // on the screen.
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    if std::env::var_os("LV").is_none() {
        command.env("LV", "-c");
    }
    let Ok(mut child) = command.arg("-c").arg(pager).stdin(Stdio::piped()).spawn() else { return Ok(false) };
    let written = match child.stdin.take() {
        Some(mut input) => input.write_all(text.as_bytes()),
        None => Ok(()),
    };
    let status = child.wait()?;
    if status.code().is_some_and(|code| NOT_RUN.contains(&code)) {
        return Ok(false);
    }
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(true),
    }
}
