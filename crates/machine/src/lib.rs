//! Starts a kernel on a machine, feeds it a workload, and brings back what was captured.
//!
//! A [`Machine`] is one of these: the [`Emulator`], QEMU's TCG with `-icount` and everything pinned that makes runs
//! differ, so that two runs are the same to the instruction; [`Kvm`], the same guest on the host's own CPU; [`Uml`], on which
//! the kernel is a process; [`Host`], which boots nothing and runs the same image under the kernel that is there. Of the
//! last three the time is real. [`Keeping`] keeps the runs of any of them, and [`Replay`] brings them back. Start from
//! [`Emulator::find`], [`RunRequest`] and [`Machine::run`]; what comes back is an [`Outcome`].
//! [`Selection`], [`resolve_points`] and [`load_user_binary`] make what a [`CaptureRequest`] asks for
//! out of what users say.
//!
//! ```no_run
//! use kerntune_machine::{Emulator, Machine, RunRequest};
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

mod calibration;
mod choose;
mod code;
mod console;
mod cpu;
mod cpu_times;
mod data_types;
mod debug_file;
mod dwarf_lines;
mod emulator;
mod error;
#[doc(hidden)]
pub mod foreign;
mod function_kinds;
mod host;
mod io_types;
mod kvm;
mod last_words;
mod machine;
mod outcome;
mod pattern;
mod points;
mod probes;
mod process;
mod qemu;
mod recorder;
mod replay;
mod request;
mod results;
mod selection;
#[cfg(test)]
mod test_program;
mod uml;
mod user_binary;
mod users;
mod watch;

pub use choose::{machine_of, machine_that_times};
pub use cpu::last_cpu;
pub use cpu_times::{CpuTimes, Spent};
pub use data_types::{data_names, debug_structures, DataName};
pub use dwarf_lines::LineError;
pub use emulator::Emulator;
pub use error::{Error, Result, Tail};
pub use host::{can_contain, Host};
pub use io_types::has_io;
pub use kvm::Kvm;
pub use last_words::LastWords;
pub use machine::Machine;
pub use outcome::Outcome;
pub use points::{resolve as resolve_points, Point, PointError};
pub use recorder::{find_recorder, recorder_spec};
pub use replay::{Keeping, Replay};
pub use request::{CaptureRequest, Demands, RunRequest, BOOT_SECONDS};
pub use selection::{near as suggestions, Selection, SelectionError};
pub use uml::Uml;
pub use user_binary::{load as load_user_binary, UserBinary, UserBinaryError};
