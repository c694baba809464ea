//! The kernel module kgmon (`embedded/kernel/kgmon`), which counts calls and takes samples: builds and loads
//! it, controls it, and reads its dumps.
//!
//! Start from [`KgmonDump::read`], which parses a dump and does no I/O. For the running kernel,
//! [`obstacle`] returns a reason that the module cannot work, [`build`] makes it, [`load`] and
//! [`unload`] insert and remove it, and a [`KgmonDevice`] controls it. [`build_for`] makes it for a
//! kernel in the work directory. `docs/kgmon.md` describes the meaning and the cost of counts.
//!
//! ```no_run
//! use kerntune_kgmon::{build, load, unload, KgmonDevice, StartCommand};
//! use kerntune_work::{NoProgress, WorkDir};
//!
//! let work = WorkDir::open(".kerntune").map_err(kerntune_kernel::Error::from)?;
//! load(&build(&work, &NoProgress)?)?;
//! let device = KgmonDevice::open()?;
//! device.start(&StartCommand { filter: vec!["tcp_*".into()], ..StartCommand::default() })?;
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

pub use device::{EntryMode, KgmonDevice, KgmonStatus, StartCommand, TimerMode, DEVICE, MACRO};
#[doc(hidden)]
pub use dump::seal;
pub use dump::{CallSiteCount, DumpFormatError, KgmonDump, ModuleRange, SampleCount};
pub use error::{Error, Result};
pub use module::{build, build_for, find_or_build, installed, is_loaded, load, obstacle, unload, SOURCE};
