//! Files of a profile for kernels that users build themselves, and the check of such a kernel.
//!
//! Start from a form: [`afdo`], [`propeller`], [`counters`], [`order`]. Each takes a recording of the
//! store and returns bytes; [`MakeLine`] is the command that reads them. [`make_files`] makes all that
//! fit a compiler, with a README. [`check()`] examines the image
//! that came of it.

mod check;
mod files;
mod lines;
mod make;
mod readme;

pub use check::check;
pub use files::{afdo, counters, order, propeller, write_counters, OwnBuildCounters, PropellerFiles};
pub use lines::{linker_script_command, MakeLine, OrderLinker};
pub use make::{make_files, FilesRequest, MadeFiles};
