//! Errors of reading ELF files and debug information.

/// Damage of a file; the caller knows its path.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Elf(#[from] object::Error),
    #[error("{section}: {source}")]
    Section { section: String, source: object::Error },
    #[error(transparent)]
    Dwarf(#[from] gimli::Error),
    #[error("the type information (BTF) is damaged, or of an unknown form")]
    Btf,
}

/// Result with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
