//! Names for the code of the running kernel: its image, modules, BPF programs.
//!
//! Start from [`RunningKernel::find`]. It returns a [`FunctionTable`] for lookups by address, with
//! the origin of names and source files and a list of what it could not find
//! ([`RunningKernel::notes`]). [`Kallsyms`] parses the kernel's own list, [`inlined()`] lists
//! inlined functions from an image's debug information, [`MachineCode`] disassembles an image and
//! maps its code to source lines.
//!
//! Libraries for this (`blazesym`, `wholesym`) look up one address at a time and need a newer Rust
//! than this workspace. A profile needs the list of all functions, with modules and code that is
//! loaded later, and must detect hidden addresses.
//!
//! ```
//! use kerntune_symbols::{FunctionTable, Kallsyms};
//! let list = Kallsyms::parse(b"ffffffff81000000 T schedule\nffffffff81000100 T _etext\n", "System.map")?;
//! let table = FunctionTable::new(list.symbols);
//! let at = table.lookup(0xffff_ffff_8100_0042).unwrap();
//! assert_eq!(table.functions()[at as usize].name, "schedule");
//! # Ok::<(), kerntune_symbols::Error>(())
//! ```

mod error;
mod hidden;
mod image;
mod inlined;
mod kallsyms;
mod machine_code;
mod program;
mod recorded;
mod running;
mod slide;
mod table;

pub use error::{Error, Result};
pub use hidden::symbols_in_vmcoreinfo;
pub use image::places;
pub use inlined::{inlined, inlined_in};
pub use kallsyms::{Kallsyms, KernelSymbol};
pub use kerntune_debuginfo::SourceLine;
pub use machine_code::MachineCode;
pub use program::{program_build_id, ProgramFunction, ProgramSymbols};
pub use recorded::ImagePlace;
pub use running::RunningKernel;
pub use slide::{slide_in_vmcoreinfo, vmcoreinfo};
pub use table::{FunctionTable, KernelFunction};
