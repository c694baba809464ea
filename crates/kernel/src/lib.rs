//! Kernels: built from source by Kbuild, stored with their provenance, and read for their symbols.
//!
//! Start from [`BuildRequest`] and [`build`], which give a [`Kernel`]: a directory in the work
//! directory with `vmlinux`, `bzImage` (not for [`Arch::Um`]), `config`, `build.log` and a
//! [`KernelManifest`] with its provenance. [`list`], [`find`] and [`remove`] manage the existing
//! kernels. [`Symbols`] is the function table of a kernel, [`KernelModules`] are its modules.
//!
//! [`rebuild`] builds a kernel again from its manifest and compares the two; [`package`] makes a
//! Debian package of a kernel.
//!
//! Files in the work directory: `sources/<hash>` (unpacked tarballs), `configs/<hash>` (final
//! configurations with their warnings, and what they begin with), `kernels/<id>` (results),
//! `kernels/<id>.partial` (running or interrupted builds) and `kernels/.objects/<config hash>`
//! (number of objects of a configuration, for progress).
//!
//! Builds are out of tree. They are pinned so that the same inputs give the same bytes, named by a
//! hash of their inputs, and resumed after an interruption. This crate runs compilers and writes
//! only below the work directory; it boots nothing.
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

mod apt;
mod arch;
mod build;
mod error;
#[doc(hidden)]
pub mod fuzz_entry;
mod import;
mod inputs;
mod kernels;
mod link;
mod make;
mod options;
mod package;
mod request;
mod tools;
mod vmlinux;

pub use apt::install_advice;
pub use arch::Arch;
pub use build::attempt::build;
pub use build::module::{build_module, build_module_for, KernelHeaders, ModuleSource};
pub use build::preview::{preview, BuildEstimate};
pub use build::rebuild::{rebuild, RebuildReport, RebuildRequest, RebuiltFile};
pub use build::structures::structure_offsets;
pub use build::untrusted_request::untrusted_code;
pub use error::{Error, Result};
pub use import::files::ShippedFiles;
pub use import::payload::embedded_config;
pub use import::shipped::{import, ShippedKernel};
pub use inputs::config::{check_config, config_line};
pub use inputs::fragment;
pub use inputs::patch_set::PatchSet;
pub use inputs::source::{ImportedSource, KernelSource};
pub use kernels::build_id::{build_id_in_notes, build_id_of, find_running, running_build_id};
pub use kernels::manifest::{KernelManifest, SourceRecord, SCHEMA};
pub use kernels::modules::{module_name, KernelModule, KernelModules};
pub use kernels::profile_tree::hash_tree;
pub use kernels::store::{find, find_recorded, list, list_damaged, remove, Kernel};
pub use kernels::untrusted::is_compiler as is_known_compiler;
pub use link::link_script::{ORDER_END, ORDER_START};
pub use link::mix::ObjectMixer;
pub use link::order::FunctionOrder;
pub use link::relink::relink;
pub use link::repack::{repack, RewrittenImage};
pub use make::compiler::{Compiler, CompilerIdentity};
pub use make::llvm::{installed, InstalledProgram, LlvmTools};
pub use make::object_flags::{ObjectFlags, ObjectGroup};
pub use options::{resolve_config, BuildConditions, Kconfig, ResolvedConfig};
pub use package::{
    package, KernelPackage, PackageExtra, PackageManifest, PackageRequest, ProfileFiles, PACKAGE_SCHEMA,
};
pub use request::{BaseConfig, BuildRequest};
pub use vmlinux::code_calls::{CodeCall, CodeCalls, UnresolvedCalls};
pub use vmlinux::hints::HintOutcome;
pub use vmlinux::known_sources;
pub use vmlinux::offsets::StructureOffsets;
pub use vmlinux::symbols::{KernelFunction, Symbols};
pub use vmlinux::task::TaskLayout;
pub use vmlinux::triggers::{Trigger, TriggerKind, Triggers};
