//! Kernel source to kernel: Kbuild, config fragments, provenance, symbols.
//!
//! Start from [`BuildRequest`] and [`build`], which give a [`Kernel`]: a directory in the work
//! directory with `vmlinux`, `bzImage` (not for [`Arch::Um`]), `config`, `build.log` and a [`KernelManifest`] that says
//! what it was made from. [`list`], [`find`] and [`remove`] manage those that are there, and
//! [`Symbols`] is the table of a kernel's functions.
//!
//! [`rebuild`] builds a kernel again from its manifest and compares, [`package`] makes a Debian package of one.
//!
//! In the work directory: `sources/<hash>` (unpacked tarballs), `configs/<hash>` (final
//! configurations, what did not take, and what they begin with), `kernels/<id>` (results), `kernels/<id>.partial` (builds
//! under way or interrupted) and `kernels/.objects/<config hash>` (how many objects a configuration
//! makes: the total that progress, counted in objects, is told against).
//!
//! Builds are out of tree, pinned so that the same inputs give the same bytes, named by their
//! inputs, and taken up again after an interruption. This crate runs compilers and writes only
//! below the work directory; it boots nothing.
//!
//! ```no_run
//! use kerntune_kernel::{build, BuildRequest, Symbols};
//! use kerntune_work::{NoProgress, WorkDir};
//!
//! let work = WorkDir::open(".kerntune")?;
//! let mut request = BuildRequest::new("debian:6.12".parse()?, "base");
//! request.extra = vec!["CONFIG_HZ_1000=y".into()];
//! let kernel = build(&work, &request, &NoProgress)?;
//! let symbols = kernel.symbols()?;
//! println!("{} has {} functions", kernel.manifest.id, symbols.functions().len());
//! # Ok::<(), kerntune_kernel::Error>(())
//! ```

mod arch;
mod aside;
mod borrowed;
mod build;
mod build_id;
mod build_tree;
mod code_calls;
mod compiler;
mod config;
mod configure;
mod diagnose;
mod error;
mod foreign;
mod foreign_request;
pub mod fragment;
mod image;
mod kbuild;
mod kept;
mod link_script;
mod locate;
mod manifest;
mod mix;
mod module;
mod moved_sources;
mod object_cache;
mod object_flags;
mod objects;
mod offsets;
mod options;
mod order;
mod package;
mod packed;
#[doc(hidden)]
pub mod parsers;
mod patch;
mod patch_set;
mod pool;
mod preview;
mod profile_tree;
mod raw_symbols;
mod rebuild;
mod release;
mod relink;
mod repack;
mod request;
mod source;
mod sources;
mod spent;
mod store;
mod structures;
mod stubs;
mod symbol_groups;
mod symbols;
mod task;
mod tools;
mod triggers;
mod variables;

pub use arch::Arch;
pub use build::build;
pub use build_id::{build_id_of, running, running_build_id};
pub use code_calls::{CodeCall, CodeCalls, Unknown};
pub use compiler::{Compiler, CompilerIdentity};
pub use config::{check_config, config_line};
pub use error::{Error, Result};
pub use foreign_request::foreign_code;
pub use link_script::{ORDER_END, ORDER_START};
pub use manifest::{KernelManifest, SourceRecord, SCHEMA};
pub use mix::Mixer;
pub use module::{module, module_for, Headers, ModuleSource};
pub use object_flags::ObjectFlags;
pub use offsets::Structures;
pub use options::{configured, Configured, Gates, Kconfig};
pub use order::FunctionOrder;
pub use package::{package, Extra, Package, PackageManifest, PackageRequest, ProfileFiles, PACKAGE_SCHEMA};
pub use patch_set::PatchSet;
pub use preview::{preview, Estimate};
pub use profile_tree::hash_tree;
pub use rebuild::{rebuild, FileAgain, RebuildRequest, Rebuilt};
pub use relink::relink;
pub use repack::{repack, Rewritten};
pub use request::{BaseConfig, BuildRequest};
pub use source::{ImportedSource, Source};
pub use store::{damaged, find, find_recorded, list, remove, Kernel};
pub use structures::structures;
pub use symbols::{Function, Symbols};
pub use task::TaskLayout;
pub use triggers::{Trigger, TriggerKind, Triggers};
