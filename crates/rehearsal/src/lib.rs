//! The whole loop in seconds: a stand-in kernel, and a stand-in machine that runs it. For tests only.
//!
//! [`source`] is a kernel of a dozen C files that builds as Linux does, with GCC, gcov and a linker script. [`Rehearsal`] is a
//! [`Machine`](kerntune_machine::Machine) that interprets the code of its image, instruction by instruction, under the real
//! recorder; its guest has an init and programs of its own (`user/`). So everything between source and comparison is real: what
//! the compiler does with a profile, proofs, recordings, objects that are mixed. What cannot be learned here is what
//! depends on Linux itself: its size, its devices, its interrupts.
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

use kerntune_kernel::Source;
use std::path::Path;

/// The stand-in kernel's source.
pub fn source() -> Source {
    Source::Directory(Path::new(env!("CARGO_MANIFEST_DIR")).join("kernel"))
}
