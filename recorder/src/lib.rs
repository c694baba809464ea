//! The recorder: a QEMU TCG plugin that sees every kernel function entry and exit, every taken
//! branch and every interrupt of an unmodified kernel, without the guest noticing.
//!
//! QEMU loads this as `-plugin libkerntune_recorder.so,spec=FILE`, where FILE is a
//! [`kerntune_trace::RecorderSpec`]. What it writes is described in [`kerntune_trace`].
//!
//! - `ffi`: everything that is `unsafe`: the plugin API, found at run time, and the callbacks.
//! - `plan`: which instructions of a block are worth watching, and how (pure); what they do says [`kerntune_isa`].
//! - [`Recorder`]: what the watched instructions mean (pure, but for the trace's writer thread).
//! - [`Driver`]: stands for QEMU where other machines run (tests).
//!
//! Needs `-icount` (so that instructions are time, and several virtual CPUs take turns), and plugin API 4 (QEMU 9.2+).

/// Names the code of the recorder and of the crates below it, for the keys of recordings; read from the file of the
/// plugin by `kerntune_machine`.
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
mod board;
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
mod io;
#[cfg(test)]
mod io_tests;
mod marks;
mod plan;
mod probes;
mod recorder;
mod regions;
#[cfg(test)]
mod simulation;
mod stream;
mod streaming;
mod tags;
mod threads;
mod turns;
mod user;
mod writer;

pub use board::Board;
pub use data::Access;
pub use drive::{Block, Driver};
pub use plan::{Action, Callback, Hook};
pub use recorder::Recorder;

/// Why the recorder cannot start or go on.
#[derive(Debug)]
pub struct Failure(pub String);

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
