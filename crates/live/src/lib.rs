//! A profile of the running kernel, taken by sampling while it works.
//!
//! Start from [`Collector::start`] with [`Options`], call [`Collector::run_until`] for as long as one likes, and
//! [`Collector::snapshot`] for what was seen until then. [`daemon`] is a collector that outlives the terminal. Where samples
//! come from is a [`Source`], a file each in `sources/`; what they come to is an [`Aggregate`] of bounded size; what is counted
//! beside them is in `counts/`. `docs/live.md` says what each figure means.
//!
//! Nothing of the kernel is changed: when the collector ends, in whatever way, the kernel closes its events.

/// Names the code of this crate and of those below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod aggregate;
mod collector;
mod command;
mod counted_calls;
mod counts;
pub mod daemon;
mod error;
mod options;
mod profile;
mod random;
mod source;
mod sources;
mod top;
mod tracefs;

pub use aggregate::{
    parse_mapping, Aggregate, Bounds, CallKey, Calls, Key, Node, Role, Sample, Switch, SwitchSample, Thread,
    Tree, UserCode, USER_FUNCTIONS,
};
pub use collector::Collector;
pub use command::Waiting;
pub use counts::{parse_interrupts, parse_softirqs, parse_stat};
pub use error::{Error, Result};
pub use options::{cpu_list, CallCounts, Filter, Options};
pub use profile::Labels;
pub use source::{Description, Observed, Source};
pub use sources::function_profiler::parse_hits;
pub use sources::perf::record::{parse as parse_record, Chain, Layout, Record};
pub use top::{TopFunction, TopPath, TopView};
