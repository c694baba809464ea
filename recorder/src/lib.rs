//! The recorder: a QEMU TCG plugin that sees every kernel function entry and exit, every taken
//! branch and every interrupt of an unmodified kernel, without the guest noticing.
//!
//! QEMU loads this as `-plugin libkerntune_recorder.so,spec=FILE`, where FILE is a
//! [`kerntune_trace::RecorderSpec`]. What it writes is described in [`kerntune_trace`].
//!
//! - `ffi`: everything that is `unsafe`: the plugin API, found at run time, and the callbacks.
//! - `translate`: which instructions of a block are worth watching (pure).
//! - [`Recorder`]: what the watched instructions mean (pure, but for the trace's writer thread).
//!
//! Needs `-icount` (so that instructions are time), one virtual CPU, and plugin API 4 (QEMU 9.2+).

mod blocks;
mod clock;
mod edges;
mod ffi;
mod functions;
mod recorder;
mod regions;
mod threads;
mod translate;
mod writer;

pub use recorder::{Board, Cpu, Recorder, Register};

/// Why the recorder cannot start or go on.
#[derive(Debug)]
pub struct Failure(pub String);

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
