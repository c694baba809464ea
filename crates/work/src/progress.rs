//! Progress of long work.

/// Receiver of progress. Implementations show a bar, print lines, or ignore it.
pub trait Progress: Send + Sync {
    /// Begins a piece of work; `total` is in units of the caller's choice, `None` if unknown.
    fn begin(&self, what: &str, total: Option<u64>);
    /// Reports that `done` units of the current piece are done.
    fn at(&self, done: u64);
    /// Shows the state of the current piece, in place of the one before.
    fn status(&self, _: &str) {}
    /// Shows a message.
    fn note(&self, line: &str);
    /// Ends the current piece.
    fn end(&self);
}

/// Ignores all progress.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn at(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn end(&self) {}
}
