//! Progress of long work, told to whoever shows it.

/// Receives progress. Implementations show a bar, print lines, or drop it.
pub trait Progress: Send + Sync {
    /// A piece of work begins; `total` in units of the caller's choice, if known.
    fn begin(&self, what: &str, total: Option<u64>);
    /// So many units of the current piece are done.
    fn at(&self, done: u64);
    /// A line worth reading that is not a result.
    fn note(&self, line: &str);
    /// The current piece is over.
    fn end(&self);
}

/// Shows nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn at(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn end(&self) {}
}
