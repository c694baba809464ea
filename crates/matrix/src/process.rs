//! Processes by names that are not used again.

use std::path::Path;

/// `PID@START`: numbers of processes are used again.
pub(crate) fn process() -> String {
    let number = std::process::id().to_string();
    let began = began_at(&number).unwrap_or_default();
    format!("{number}@{began}")
}

/// When a process began, in ticks after the boot; none if it is gone.
pub(crate) fn began_at(number: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new("/proc").join(number).join("stat")).ok()?;
    // The name is in brackets, and may have blanks and brackets in it.
    let (_, after) = text.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    // Field 22, the 19th after the state.
    fields.nth(18).filter(|_| !is_dead).map(str::to_owned)
}
