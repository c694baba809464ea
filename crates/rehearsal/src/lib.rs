//! The whole tuning loop in seconds: a stand-in kernel, and a stand-in machine that runs it. For
//! tests only.
//!
//! [`source`] is a kernel of a dozen C files that builds as Linux does, with GCC, gcov and a linker
//! script. [`Rehearsal`] is a [`Machine`](kerntune_machine::Machine) that interprets the code of
//! its image, instruction by instruction, under the real recorder; its guest has its own init and
//! programs (`user/`). So everything between source and comparison is real: the compiler's use of a
//! profile, proofs, recordings, mixed objects. Only properties of Linux itself cannot be tested
//! here: its size, devices and interrupts.
//!
//! Runs are exact: the same kernel and image give the same bytes.

mod console;
mod cpu;
mod elf;
mod execute;
#[cfg(test)]
mod execute_tests;
mod machine;
mod memory;
mod operand;
mod plan;
mod run;

pub use machine::Rehearsal;

use kerntune_kernel::KernelSource;
use std::path::Path;

/// Returns the stand-in kernel's source.
pub fn source() -> KernelSource {
    KernelSource::Directory(Path::new(env!("CARGO_MANIFEST_DIR")).join("kernel"))
}
