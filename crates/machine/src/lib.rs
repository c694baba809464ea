//! Runs a kernel with a workload on a machine, and returns what was captured.
//!
//! A [`Machine`] is one of these:
//!
//! - [`Emulator`]: QEMU's TCG with `-icount` and fixed options, so that two runs are the same to
//!   the instruction.
//! - [`Kvm`]: the same guest on the host's own CPU, in real time.
//! - [`Uml`]: the kernel as a process of the host, in real time.
//! - [`Host`]: the same image under the running kernel, in real time.
//! - [`RemoteHost`]: the same on another machine, under a kernel that was booted there.
//!
//! [`ArchivingMachine`] keeps the runs of any machine, and [`ReplayMachine`] brings them back.
//!
//! Start from [`Emulator::find`], [`RunRequest`] and [`Machine::run`], which returns a
//! [`RunOutcome`]. [`FunctionSelection`], [`resolve_points`] and [`load_user_binary`] turn what
//! users name into a [`CaptureRequest`].
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

/// Hash of the code of this crate and of those below it; part of the keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod boot;
mod choose;
mod code;
mod console;
mod cpu;
mod cpu_times;
mod data_types;
mod discover;
mod drivers;
mod dwarf_lines;
mod emulator;
mod error;
mod function_kinds;
#[doc(hidden)]
pub mod fuzz_entry;
mod gdb;
mod host;
mod io_types;
mod kvm;
mod loads;
mod machine;
mod outcome;
mod points;
mod probes;
mod process;
mod qemu;
mod recorder;
mod remote;
mod replay;
mod request;
mod results;
mod run_meter;
mod selection;
mod service_log_tail;
#[cfg(test)]
mod test_program;
mod uml;
mod user_binary;
mod users;
mod watch;

pub use choose::{machine_of, timing_machine};
pub use cpu::last_cpu;
pub use cpu_times::{CpuTimes, PhaseCpuTimes};
pub use data_types::{data_names, debug_structures, DataName};
pub use discover::{discover, DiscoveryRequest};
pub use drivers::guest_modules;
pub use dwarf_lines::LineError;
pub use emulator::Emulator;
pub use error::{reports_missing_file, ConsoleTail, Error, Result};
pub use host::{can_contain, Host};
pub use io_types::has_io;
pub use kvm::{examine_kvm, speed_image, Kvm, KvmSpeed, KvmVerdict, SpeedAttempt, SPEED_LIMIT};
pub use loads::loads_code;
pub use machine::Machine;
pub use outcome::{read_recording, RunOutcome};
pub use points::{resolve as resolve_points, InlinePoint, PointError};
pub use recorder::{find_recorder, recorder_spec};
pub use remote::{RemoteHost, RemoteSystem};
pub use replay::{ArchivingMachine, ReplayMachine};
pub use request::{CaptureRequest, MachineDemands, RunRequest, BOOT_SECONDS};
pub use selection::{suggestions, FunctionSelection, SelectionError};
pub use service_log_tail::ServiceLogTail;
pub use uml::Uml;
pub use user_binary::{load as load_user_binary, UserBinary, UserBinaryError};
