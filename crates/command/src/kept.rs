//! Progress that is both displayed and recorded as text.

use kerntune_work::Progress;
use std::sync::{Mutex, PoisonError};

/// Forwards progress to `shown`, and records tasks and notes.
pub struct RecordedProgress<'a> {
    shown: &'a dyn Progress,
    text: Mutex<String>,
}

impl<'a> RecordedProgress<'a> {
    /// Makes a recorder that forwards to `shown`.
    pub fn new(shown: &'a dyn Progress) -> Self {
        Self { shown, text: Mutex::default() }
    }

    /// Returns the recorded text, one line for each task and each note.
    pub fn text(&self) -> Vec<u8> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone().into_bytes()
    }

    fn keep(&self, line: &str) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(line);
        text.push('\n');
    }
}

impl Progress for RecordedProgress<'_> {
    fn begin(&self, what: &str, total: Option<u64>) {
        self.keep(what);
        self.shown.begin(what, total);
    }

    fn at(&self, done: u64) {
        self.shown.at(done);
    }

    fn status(&self, line: &str) {
        self.shown.status(line);
    }

    fn note(&self, line: &str) {
        self.keep(&format!("  {line}"));
        self.shown.note(line);
    }

    fn end(&self) {
        self.shown.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_work::NoProgress;

    #[test]
    fn what_is_said_is_kept() {
        let kept = RecordedProgress::new(&NoProgress);
        kept.begin("booting", None);
        kept.note("a remark");
        assert_eq!(kept.text(), b"booting\n  a remark\n");
    }
}
