//! From a workload file to a guest image, and the words that the guest's init and we share.
//!
//! Start from [`Workload`] (what `workloads/NAME.toml` says), [`check`] (everything that is wrong
//! with such a file) and [`GuestImage::build`] (an initramfs with our init, the plan, and the host's
//! programs by file closure). Whoever boots the image puts [`boot_options`] on the kernel command
//! line, reads [`ConsoleMessage`] from the console and a tar stream from the port [`PORT_NAME`]; the stream's
//! members are described in `guest/README.md`.
//!
//! A [`Suite`] is a workload whose rows are known before it runs; [`compile`] makes a program of ours for
//! the machine that we are on.
//!
//! The host must be of the guest's architecture. Images are deterministic: the same files give the
//! same bytes and the same id.
//!
//! ```
//! use kerntune_guest::{Plan, Workload};
//! let rr = Workload::find("rr", &[]).unwrap();
//! assert_eq!(rr.measured.steps[0].command[0], "rr");
//! assert!(Plan::of(&rr).text().contains("run\tmeasured\n"));
//! ```

/// Names the code of this crate and of those below it, for keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod ad_hoc;
mod check;
mod closure;
mod console_message;
mod disk;
mod elf;
mod error;
mod fields;
#[doc(hidden)]
pub mod foreign;
mod glob;
mod host;
mod image;
mod input;
mod libraries;
mod load;
mod locate;
mod named_programs;
mod output;
mod plan;
mod problem;
mod programs;
mod reader;
mod shell;
mod suite;
mod tree;
mod workload;

pub use ad_hoc::{name_of, AdHoc};
pub use check::check;
pub use console_message::{boot_options, Collect, ConsoleMessage, PORT_NAME};
pub use disk::{Disk, DiskKind, Filesystem, DEVICE};
pub use error::{Error, Result};
pub use image::{GuestImage, Manifest, PackedFile, ROOM, SCHEMA};
pub use input::{read_input, read_text, TEXT_MAX};
pub use load::SHIPPED;
pub use locate::{locate, similar};
pub use output::{last_lines, Complaint, Figure};
pub use plan::{step_log, Plan};
pub use problem::Problem;
pub use programs::{compile, compile_contain};
pub use suite::{Suite, SuiteRow, Unit, AGGREGATE};
pub use workload::{
    vulnerable, Better, Command, CommandContext, Metric, Probe, Ready, Run, Service, StandardInput, Step,
    Workload, LIMIT_SECONDS, MAX_CPUS, RUNS, SEED,
};
