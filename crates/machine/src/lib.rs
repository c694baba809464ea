//! Starts a kernel on a machine, feeds it a workload, and brings back what was captured.
//!
//! Three machines: the [`Emulator`], QEMU's TCG with `-icount` and everything pinned that
//! makes runs differ, so that two runs are the same to the instruction; [`Kvm`], the same guest on the host's own CPU; and
//! [`Uml`], on which the kernel is a process. Of the last two the time is real. [`Machine`] is any of them. [`run_contained`]
//! boots nothing: the same image under the kernel that runs. Start from
//! [`Emulator::find`], [`RunRequest`] and [`Emulator::run`]; what comes back is an [`Outcome`].
//! [`Selection`], [`resolve_points`] and [`load_user_binary`] make what a [`CaptureRequest`] asks for
//! out of what users say.
//!
//! ```no_run
//! use kerntune_machine::{Emulator, RunRequest};
//! use kerntune_work::NoProgress;
//! # fn example(kernel: &kerntune_kernel::Kernel, image: &std::path::Path) -> Result<(), kerntune_machine::Error> {
//! let machine = Emulator::find()?;
//! let request = RunRequest::new(kernel, image, "measured");
//! let outcome = machine.run(&request, "/tmp/run".as_ref(), &NoProgress)?;
//! println!("{} s", outcome.wall_seconds);
//! # Ok(())
//! # }
//! ```

/// Names the code of this crate and of those below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod code;
mod console;
mod contained;
mod cpu;
mod debug_file;
mod dwarf_lines;
mod emulator;
mod error;
#[doc(hidden)]
pub mod foreign;
mod function_kinds;
mod kvm;
mod last_words;
mod machine;
mod pattern;
mod points;
mod process;
mod qemu;
mod recorder;
mod request;
mod results;
mod selection;
#[cfg(test)]
mod test_program;
mod uml;
mod user_binary;
mod users;
mod watch;

pub use contained::{can_contain, run_contained, ContainedRequest};
pub use cpu::last_cpu;
pub use dwarf_lines::LineError;
pub use emulator::{Emulator, Outcome};
pub use error::{Error, Result};
pub use kvm::Kvm;
pub use last_words::LastWords;
pub use machine::Machine;
pub use points::{resolve as resolve_points, Point, PointError};
pub use recorder::{find_recorder, recorder_spec};
pub use request::{CaptureRequest, RunRequest, BOOT_SECONDS};
pub use selection::{near as suggestions, Selection, SelectionError};
pub use uml::Uml;
pub use user_binary::{load as load_user_binary, UserBinary, UserBinaryError};
