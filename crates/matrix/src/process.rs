//! Names of processes that stay unique when the kernel reuses process numbers.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names this process: `PID@START`.
pub(crate) fn process() -> String {
    let number = std::process::id().to_string();
    let began = began_at(&number).unwrap_or_default();
    format!("{number}@{began}")
}

/// Names one temporary file or directory: `PID@START-N`, different for every call in a process, so
/// that threads of a pool that need the same object do not write into one directory.
pub(crate) fn unique_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", process(), NUMBER.fetch_add(1, Ordering::Relaxed))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_the_same() {
        let threads: Vec<_> =
            (0..4).map(|_| std::thread::spawn(|| [(); 100].map(|()| unique_name()))).collect();
        let mut names: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 400);
    }
}
