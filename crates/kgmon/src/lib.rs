//! The kernel module kgmon (`kernel/kgmon`): built, loaded, given commands, and its dumps read.
//!
//! Start from [`Dump::read`], which is pure: bytes in, counts out. On the kernel that runs: [`obstacle`] says why the
//! module could not work there, [`build`] makes it, [`load`] puts it into the kernel and [`unload`] takes it out, and a
//! [`Device`] gives it commands. [`build_for`] makes it for a kernel that was built here. What a count means, and what it
//! costs, is in `docs/kgmon.md`.
//!
//! ```no_run
//! use kerntune_kgmon::{build, load, unload, Device, Start};
//! use kerntune_work::{NoProgress, WorkDir};
//!
//! let work = WorkDir::open(".kerntune").map_err(kerntune_kernel::Error::from)?;
//! load(&build(&work, &NoProgress)?)?;
//! let device = Device::open()?;
//! device.start(&Start { filter: vec!["tcp_*".into()], ..Start::default() })?;
//! let dump = device.take()?;
//! println!("{} arcs, {} calls lost", dump.arcs.len(), dump.lost_calls);
//! device.stop()?;
//! drop(device);
//! unload()?;
//! # Ok::<(), kerntune_kgmon::Error>(())
//! ```

mod device;
mod dump;
mod error;
mod module;

pub use device::{Device, Entry, Start, Status, Timer, DEVICE, MACRO};
#[doc(hidden)]
pub use dump::seal;
pub use dump::{Arc, Dump, DumpError, Module, Sample};
pub use error::{Error, Result};
pub use module::{build, build_for, find_or_build, installed, is_loaded, load, obstacle, unload, SOURCE};
