//! The front-end model: what an instruction stream costs in L1I and iTLB misses, and in L2 misses, branch targets
//! not known in time and wrong guesses of directions if the model has these parts; function order:
//! where functions should lie so that it costs less ([`order`], which has an introduction of its own); and where the
//! blocks of a function should lie ([`blocks`]).
//!
//! For the model start from [`FrontEndConfig`] (the sizes, read from a `machines/*.toml`) and [`FrontEnd`]
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

pub use config::{
    BranchConfig, BtbConfig, CacheConfig, CycleCosts, DataConfig, FrontEndConfig, L2Config, LargeTlbConfig,
    PrefetchConfig, TlbConfig, LARGE_PAGE_BYTES, SMALL_PAGE_BYTES,
};
pub use data::{DataCaches, DataCounts};
pub use direction::DirectionConfig;
pub use front_end::{Counts, FrontEnd, ModeCounts};
pub use mode::Mode;
pub use second_level::{BranchKind, SecondLevelCounts, SecondLevelEvent, SecondLevelModeCounts, TakenBranch};

/// What can be wrong with a front-end model file, a call graph or an order.
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
    /// A cost that is no number of cycles.
    #[error("front-end model \"{model}\": {key} = {cost}: an event costs 0 to {most} cycles")]
    Cost {
        /// The model's `name`.
        model: String,
        /// The key with its table, `cycles.l1i_miss`.
        key: &'static str,
        /// The value found.
        cost: f64,
        /// The most that it may be.
        most: f64,
    },
    /// A part whose events have no cost.
    #[error(
        "front-end model \"{model}\": there is a {part} table, but not what its events cost: {key}; add it, or leave \
         the table out"
    )]
    NoCost {
        /// The model's `name`.
        model: String,
        /// The table of the part, `[l2]`.
        part: &'static str,
        /// The key that is missing, `cycles.l2_miss`.
        key: &'static str,
    },
    /// A cost of events that are not counted.
    #[error(
        "front-end model \"{model}\": {key} is the cost of what a {part} table would count, but there is none; add \
         the table, or leave the cost out"
    )]
    NoPart {
        /// The model's `name`.
        model: String,
        /// The table of the part, `[l2]`.
        part: &'static str,
        /// The key that is too many, `cycles.l2_miss`.
        key: &'static str,
    },
    /// Lines are fetched ahead in two ways, or in none.
    #[error("front-end model \"{model}\": a [prefetch] table has either next_lines or run_ahead_lines")]
    FetchedAhead {
        /// The model's `name`.
        model: String,
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
    /// No part of that name is built in.
    #[error("no part \"{name}\" of front-end models is built in (there are: {known}); models and parts are named as in zen4+tage")]
    UnknownPart {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// An arc has an end that is not in the graph.
    #[error("call graph: arc {arc} names function {function}, but there are {functions} functions")]
    NoSuchFunction {
        /// Index of the arc.
        arc: usize,
        /// The index that it names.
        function: usize,
        /// How many there are.
        functions: usize,
    },
    /// A call site or target outside of its function.
    #[error("call graph: arc {arc} touches function {function} at byte {offset}, but it has {size} bytes")]
    Offset {
        /// Index of the arc.
        arc: usize,
        /// Index of the function.
        function: usize,
        /// Bytes from its beginning.
        offset: u64,
        /// Its size, bytes.
        size: u64,
    },
    /// An alignment that is not a power of two.
    #[error(
        "call graph: function {function} is to be aligned to {alignment} bytes, which is no power of two"
    )]
    Alignment {
        /// Index of the function.
        function: usize,
        /// Bytes.
        alignment: u64,
    },
    /// Sums that would not be exact.
    #[error("call graph: {what}: more than this version can add up; divide all weights by the same number")]
    TooMuch {
        /// What it is that is too much.
        what: &'static str,
    },
    /// Not each function once.
    #[error("order of {functions} functions: function {function} is in it twice, or is none of them")]
    NoOrder {
        /// The index that is wrong.
        function: usize,
        /// How many functions the order is of.
        functions: usize,
    },
    /// A jump has an end that is no block of the function.
    #[error("flow of a function: a jump names block {block}, but there are {blocks} blocks")]
    NoSuchBlock {
        /// The index that it names.
        block: usize,
        /// How many there are.
        blocks: usize,
    },
    /// Not each block once.
    #[error("order of blocks: {ordered} are in it, and it does not have each of {blocks} once")]
    NoBlockOrder {
        /// Blocks of the order.
        ordered: usize,
        /// Blocks of the function.
        blocks: usize,
    },
    /// An order and a graph that do not belong together.
    #[error("an order of {ordered} function(s) cannot place a graph of {functions} functions")]
    OtherGraph {
        /// Functions of the order.
        ordered: usize,
        /// Functions of the graph.
        functions: usize,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
