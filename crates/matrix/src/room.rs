//! The place in a work directory for what plans need beside results.

/// The directory: texts, commits, kernels out of stores, directories of commands, the ledger.
pub(crate) const ROOM: &str = ".matrix";
