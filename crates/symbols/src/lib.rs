//! Names for the code of the running kernel, whichever it is: its image, modules, BPF programs.
//!
//! Start from [`Running::find`], which gives a [`Table`] to look addresses up in, and says where names and source files
//! come from and what it could not find ([`Running::notes`]). [`Kallsyms`] reads the kernel's own list, [`inlined()`] what an
//! image's debug information says of functions that are no longer there by themselves, [`MachineCode`] an image's instructions
//! and the source lines that they were made from.
//!
//! Libraries for this (`blazesym`, `wholesym`) answer for one address at a time and need a newer Rust than this
//! workspace; a profile needs the list of all functions, with modules and what is loaded later, and to know when the
//! kernel hides its addresses.
//!
//! ```
//! use kerntune_symbols::{Kallsyms, Table};
//! let list = Kallsyms::parse(b"ffffffff81000000 T schedule\nffffffff81000100 T _etext\n", "System.map")?;
//! let table = Table::new(list.symbols);
//! let at = table.lookup(0xffff_ffff_8100_0042).unwrap();
//! assert_eq!(table.functions()[at as usize].name, "schedule");
//! # Ok::<(), kerntune_symbols::Error>(())
//! ```

mod error;
mod image;
mod inlined;
mod kallsyms;
mod machine_code;
mod order;
mod program;
mod running;
mod slide;
mod table;

pub use error::{Error, Result};
pub use image::places;
pub use inlined::{inlined, inlined_in};
pub use kallsyms::{Kallsyms, KernelSymbol};
pub use machine_code::{Instruction, LineOfCode, MachineCode};
pub use order::{infer, Inferred};
pub use program::{Program, ProgramFunction};
pub use running::Running;
pub use slide::{slide_in_vmcoreinfo, vmcoreinfo};
pub use table::{KernelFunction, Table};
