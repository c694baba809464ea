//! Names of processes that stay unique when the kernel reuses process numbers.

use std::path::Path;

/// Names this process: `PID@START`.
pub(crate) fn process() -> String {
    let number = std::process::id().to_string();
    let began = began_at(&number).unwrap_or_default();
    format!("{number}@{began}")
}

/// Returns the start time of a process, in clock ticks since boot; `None` if it is gone.
pub(crate) fn began_at(number: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new("/proc").join(number).join("stat")).ok()?;
    // The command in parentheses may contain blanks and parentheses.
    let (_, after) = text.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    // Field 22, the 19th after the state.
    fields.nth(18).filter(|_| !is_dead).map(str::to_owned)
}
