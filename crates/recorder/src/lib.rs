//! The recorder: a QEMU TCG plugin that sees every entry and exit of kernel functions, every taken
//! branch and every interrupt of an unmodified kernel, unnoticed by the guest.
//!
//! QEMU loads it with `-plugin libkerntune_recorder.so,spec=FILE`, where FILE is a
//! [`kerntune_trace::RecorderSpec`]. [`kerntune_trace`] describes its output.
//!
//! - `ffi`: all `unsafe` code: the plugin API, looked up at run time, and the callbacks.
//! - `plan`: selects the instructions to watch in a block (pure). [`kerntune_isa`] decodes them.
//! - [`Recorder`]: interprets the watched instructions (pure, except for the trace's writer
//!   thread).
//! - [`HookRunner`]: replaces QEMU on other machines (tests).
//!
//! Requires `-icount`, so that time is instructions and virtual CPUs take turns, and plugin API 4 or
//! newer (QEMU 9.2+; tried up to API 7, QEMU 11.1).

/// Hash of the code of the recorder and of the crates below it, part of the keys of recordings.
/// `kerntune_machine` reads it from the plugin's file.
#[used]
#[expect(unsafe_code, reason = "a section of its own, which nothing else is put into")]
#[link_section = ".kerntune.code"]
pub static CODE: [u8; 16] = code();

const fn code() -> [u8; 16] {
    match env!("KERNTUNE_CODE").as_bytes().first_chunk() {
        Some(code) => *code,
        None => panic!("a hash has 16 digits"),
    }
}

mod accesses;
mod blocks;
mod calls;
mod clock;
mod counters;
mod cpus;
mod data;
mod drive;
mod edges;
#[expect(unsafe_code, reason = "the border to QEMU, which is C")]
mod ffi;
mod finish;
mod follow;
#[cfg(test)]
mod follow_tests;
mod footprint;
mod functions;
#[doc(hidden)]
pub mod fuzz_entry;
mod inline_counters;
mod io;
#[cfg(test)]
mod io_tests;
mod known_pages;
mod loaded_code;
mod loads;
mod locations;
mod marks;
mod plan;
mod probes;
mod progress;
mod recorder;
mod regions;
mod shared_lines;
#[cfg(test)]
mod simulation;
mod stream;
mod streaming;
mod tags;
mod tally;
mod threads;
mod turns;
mod user;
mod writer;

pub use data::DataAccess;
pub use drive::{HookRunner, HookedBlock};
pub use inline_counters::InlineCounters;
pub use plan::{Callback, Hook, HookAction};
pub use recorder::Recorder;

/// Failure of the recorder, as a message.
#[derive(Debug)]
pub struct Failure(pub String);

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
