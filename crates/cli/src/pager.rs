//! A pager between long results and a terminal.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a shell ends with if there is no such program, or it cannot be run.
const NOT_RUN: [i32; 2] = [126, 127];

/// The pager that is wanted: `PAGER`, else `less`; none if it is `cat` or nothing, or `less` is not here.
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

/// Shows a text in it, and waits until its reader has seen enough. `false` if it cannot be run: nobody has seen the text then.
///
/// # Errors
/// The pager could not be given the text. That it wanted no more of it is no error.
pub fn show(pager: &OsString, text: &str) -> io::Result<bool> {
    let mut command = Command::new("sh");
    // As git has it: less ends if all of it fits, shows colours, and leaves what it showed on the screen.
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
