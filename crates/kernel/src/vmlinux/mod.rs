//! Contents of a linked kernel: functions, calls, source files and structure offsets.
//!
//! Start from [`symbols`].

pub(crate) mod code_calls;
pub(crate) mod hints;
pub(crate) mod image;
pub mod known_sources;
mod locate;
pub(crate) mod objects;
pub(crate) mod offsets;
mod raw_symbols;
pub(crate) mod source_map;
mod stubs;
mod symbol_groups;
pub(crate) mod symbols;
pub(crate) mod task;
pub(crate) mod triggers;
