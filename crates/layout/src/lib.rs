//! Front-end model, function order and block order.
//!
//! - The front-end model counts the L1I and iTLB misses of an instruction stream. If the model has
//!   these parts, it also counts L2 misses, late branch targets and mispredicted directions. Start
//!   from [`FrontEndConfig`] (sizes, read from `data/cpu-models/*.toml`) and [`FrontEnd`] (takes the
//!   executed address ranges and counts).
//! - [`order`] computes where functions should lie to reduce these costs; it has its own
//!   introduction.
//! - [`blocks`] orders the blocks inside a function.
//!
//! Everything here is pure: it takes text and addresses, returns numbers, and does no I/O.
//!
//! ```
//! use kerntune_layout::{CpuMode, FrontEnd, FrontEndConfig};
//! let config = FrontEndConfig::named("generic")?;
//! let mut front_end = FrontEnd::new(&config)?;
//! // A 100-byte basic block that begins 4 bytes before a line ends: three lines, one page.
//! front_end.fetch(0xffff_ffff_8100_003c, 0xffff_ffff_8100_009f, CpuMode::Kernel, 0);
//! let before = front_end.counts();
//! assert_eq!((before.kernel.lines, before.kernel.l1i_misses, before.kernel.itlb_misses), (3, 3, 1));
//! // The second time all of it hits.
//! front_end.fetch(0xffff_ffff_8100_003c, 0xffff_ffff_8100_009f, CpuMode::Kernel, 0);
//! let region = front_end.counts() - before;
//! assert_eq!((region.kernel.lines, region.kernel.l1i_misses), (3, 0));
//! # Ok::<(), kerntune_layout::Error>(())
//! ```

pub mod blocks;
mod config;
mod data;
mod direction;
mod front_end;
mod lru;
mod mode;
pub mod order;
mod parts;
mod second_level;
mod timestamps;
mod xorshift;

pub use config::{
    BranchConfig, BtbConfig, CacheConfig, CycleCosts, DataConfig, FrontEndConfig, L2Config, LargeTlbConfig,
    PrefetchConfig, TlbConfig, LARGE_PAGE_BYTES, SMALL_PAGE_BYTES,
};
pub use data::{CacheWays, DataCaches, DataCounts};
pub use direction::DirectionConfig;
pub use front_end::{FrontEnd, FrontEndCounts, ModeCounts};
pub use mode::CpuMode;
pub use second_level::{SecondLevelCounts, SecondLevelEvent, SecondLevelModeCounts, TakenBranch};

/// Errors in a front-end model file, a call graph or an order.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error("front-end model: {0}")]
    Syntax(#[from] toml::de::Error),
    #[error("front-end model \"{model}\": {key} = {value}: {rule}")]
    Value { model: String, key: &'static str, value: u64, rule: String },
    #[error("front-end model \"{model}\": {key} = {cost}: an event costs 0 to {max} cycles")]
    Cost { model: String, key: &'static str, cost: f64, max: f64 },
    #[error(
        "front-end model \"{model}\": there is a {part} table, but not what its events cost: {key}; add it, or leave \
         the table out"
    )]
    NoCost { model: String, part: &'static str, key: &'static str },
    #[error(
        "front-end model \"{model}\": {key} is the cost of what a {part} table would count, but there is none; add \
         the table, or leave the cost out"
    )]
    NoPart { model: String, part: &'static str, key: &'static str },
    #[error("front-end model \"{model}\": a [prefetch] table has either next_lines or run_ahead_lines")]
    FetchedAhead { model: String },
    #[error(
        "front-end model \"{model}\": kernel_text_page_bytes = {LARGE_PAGE_BYTES} needs an [itlb_large] table with \
         the number of entries for large pages, for example `entries = 8`"
    )]
    NoLargeTlb { model: String },
    #[error(
        "no front-end model \"{name}\" is built in (there are: {known}); give the path of a .toml file for another"
    )]
    UnknownModel { name: String, known: String },
    #[error("no part \"{name}\" of front-end models is built in (there are: {known}); models and parts are named as in zen4+tage")]
    UnknownPart { name: String, known: String },
    #[error("call graph: arc {arc} names function {function}, but there are {functions} functions")]
    NoSuchFunction { arc: usize, function: usize, functions: usize },
    #[error("call graph: arc {arc} touches function {function} at byte {offset}, but it has {size} bytes")]
    Offset { arc: usize, function: usize, offset: u64, size: u64 },
    #[error(
        "call graph: function {function} is to be aligned to {alignment} bytes, which is no power of two"
    )]
    Alignment { function: usize, alignment: u64 },
    #[error("call graph: {what}: more than this version can add up; divide all weights by the same number")]
    TooMuch { what: &'static str },
    #[error("order of {functions} functions: function {function} is in it twice, or is none of them")]
    NoOrder { function: usize, functions: usize },
    #[error("flow of a function: a jump names block {block}, but there are {blocks} blocks")]
    NoSuchBlock { block: usize, blocks: usize },
    #[error("order of blocks: {ordered} are in it, and it does not have each of {blocks} once")]
    NoBlockOrder { ordered: usize, blocks: usize },
    #[error("an order of {ordered} function(s) cannot place a graph of {functions} functions")]
    OtherGraph { ordered: usize, functions: usize },
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
