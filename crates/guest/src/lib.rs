//! Turns a workload file into a guest image, and defines the protocol with the guest's init.
//!
//! Start from [`Workload`] (the content of `data/workloads/NAME.toml`), [`check`] (all problems of such
//! a file) and [`GuestImage::build`] (an initramfs with our init, its plan, and host programs with
//! all that they need). To boot an image, put [`boot_options`] on the kernel command line, parse
//! [`ConsoleMessage`] from the console, and read a tar stream from the port [`PORT_NAME`];
//! `embedded/guest/README.md` describes its members.
//!
//! A [`Suite`] is a workload whose rows are known before it runs; [`compile`] compiles a guest
//! program for this machine.
//!
//! The host must have the guest's architecture. Images are deterministic: the same files give the
//! same bytes and the same id.
//!
//! ```
//! use kerntune_guest::{InitPlan, Workload};
//! let rr = Workload::find("rr", &[]).unwrap();
//! assert_eq!(rr.measured.steps[0].command[0], "rr");
//! assert!(InitPlan::of(&rr).text().contains("run\tmeasured\n"));
//! ```

/// Hash of the code of this crate and of those below it; part of the keys of results.
pub const CODE: &str = env!("KERNTUNE_CODE");

mod accounts;
mod ad_hoc;
mod archive;
mod check;
mod command_system;
mod console_message;
mod discovered;
mod disk;
mod drivers;
mod environment;
mod error;
mod fields;
#[doc(hidden)]
pub mod fuzz_entry;
mod glob;
mod host;
mod image;
mod init;
mod input;
mod layout;
mod limits;
mod load;
mod locate;
mod modules;
mod oci;
mod output;
mod plan;
mod problem;
mod process_attributes;
mod programs;
mod reader;
mod resolve;
mod shell;
mod skeleton;
mod source_root;
mod suite;
mod tree;
mod workload;

pub use ad_hoc::{name_of, AdHocWorkload};
pub use archive::PackedFile;
pub use check::check;
pub use command_system::CommandSystem;
pub use console_message::{boot_options, CollectOptions, ConsoleMessage, PORT_NAME};
pub use discovered::{DiscoveredFiles, DiscoveryEnd, PathUses};
pub use disk::{Disk, DiskKind, Filesystem, DEVICE};
pub use error::{Error, Result};
pub use host::package_of;
pub use image::{GuestImage, ImageManifest, KIND, SCHEMA};
pub use input::{read_input, read_text, TEXT_MAX};
pub use load::SHIPPED;
pub use locate::{locate, similar};
pub use modules::{is_module_name, GuestModule, GuestModules};
pub use oci::{ImageConfig, OciImage};
pub use output::{last_lines, MetricValue, OutputFailure};
pub use plan::{step_log, InitPlan, EXIT_STATUS};
pub use problem::Problem;
pub use process_attributes::{ProcessAttributes, ProcessUser, ResourceLimit};
pub use programs::{compile, compile_contain};
pub use shell::is_shell;
pub use source_root::SourceRoot;
pub use suite::{RowUnit, Suite, SuiteRow, AGGREGATE};
pub use workload::{
    lacking_options, vulnerable, CommandContext, CommandLine, MetricDirection, ReadinessProbe, Service,
    ServiceReadiness, StandardInput, Workload, WorkloadMetric, WorkloadRun, WorkloadStep, LIMIT_SECONDS,
    MAX_CPUS, MAX_NODES, RUNS, SEED,
};
