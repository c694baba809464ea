//! Directory of this crate in a work directory.

/// Holds texts, exported commits, kernels from stores, directories of commands, and the ledger.
pub(crate) const MATRIX_DIR: &str = ".matrix";
