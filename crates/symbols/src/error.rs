//! What can go wrong.

use std::path::PathBuf;

/// Why code of the running kernel cannot be named.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Addresses are hidden from who asks.
    #[error(
        "{origin} shows no addresses (kernel.kptr_restrict): functions cannot be named; run as root, and where root \
         sees none either, sysctl kernel.kptr_restrict=1"
    )]
    Hidden {
        /// The list.
        origin: String,
    },
    /// A list without code.
    #[error("{origin} lists no symbols of code: it is no list of a kernel's symbols")]
    NoSymbols {
        /// The list.
        origin: String,
    },
    /// A kernel without a list, or a file that cannot be read.
    #[error("cannot read {path}: {source}; functions of this kernel cannot be named (CONFIG_KALLSYMS)")]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// An image that is not there.
    #[error("cannot read {path}: {source}")]
    Image {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// An image whose debug information cannot be read.
    #[error("{origin}: its debug information cannot be read: {why}")]
    DebugInfo {
        /// The file.
        origin: String,
        /// What is wrong with it.
        why: String,
    },
    /// An image of a kernel that cannot be read.
    #[error(transparent)]
    Kernel(#[from] kerntune_kernel::Error),
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
