//! The front-end model: what an instruction stream costs in L1I and iTLB misses.
//!
//! Start from [`FrontEndConfig`] (the sizes, read from a `machines/*.toml`) and [`FrontEnd`]
//! (caches that are fed the executed address ranges and count). Everything here is pure: text
//! and addresses in, numbers out; nothing is opened or spawned.
//!
//! ```
//! use kerntune_layout::{FrontEnd, FrontEndConfig, Mode};
//! let config = FrontEndConfig::named("generic")?;
//! let mut front_end = FrontEnd::new(&config)?;
//! // A 100-byte basic block that begins 4 bytes before a line ends: three lines, one page.
//! front_end.fetch(0xffff_ffff_8100_003c, 0xffff_ffff_8100_009f, Mode::Kernel, 0);
//! let before = front_end.counts();
//! assert_eq!((before.kernel.lines, before.kernel.l1i_misses, before.kernel.itlb_misses), (3, 3, 1));
//! // The second time it is all there.
//! front_end.fetch(0xffff_ffff_8100_003c, 0xffff_ffff_8100_009f, Mode::Kernel, 0);
//! let region = front_end.counts() - before;
//! assert_eq!((region.kernel.lines, region.kernel.l1i_misses), (3, 0));
//! # Ok::<(), kerntune_layout::Error>(())
//! ```

mod config;
mod front_end;

pub use config::{
    CacheConfig, FrontEndConfig, LargeTlbConfig, TlbConfig, LARGE_PAGE_BYTES, SMALL_PAGE_BYTES,
};
pub use front_end::{Counts, FrontEnd, Mode, ModeCounts};

/// What can be wrong with a front-end model file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not TOML, or a key is missing, unknown or of the wrong type. The text names line and key.
    #[error("front-end model: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A key has a value that no such cache can have.
    #[error("front-end model \"{model}\": {key} = {value}: {rule}")]
    Value {
        /// The model's `name`.
        model: String,
        /// The key with its table, `l1i.ways`.
        key: &'static str,
        /// The value found.
        value: u64,
        /// What the value has to be.
        rule: String,
    },
    /// Large kernel pages without a TLB to hold them.
    #[error(
        "front-end model \"{model}\": kernel_text_page_bytes = {LARGE_PAGE_BYTES} needs an [itlb_large] table with \
         the number of entries for large pages, for example `entries = 8`"
    )]
    NoLargeTlb {
        /// The model's `name`.
        model: String,
    },
    /// No model of that name is built in.
    #[error(
        "no front-end model \"{name}\" is built in (there are: {known}); give the path of a .toml file for another"
    )]
    UnknownModel {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
