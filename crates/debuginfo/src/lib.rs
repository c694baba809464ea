//! ELF files: symbols, code, and what their debug information says.
//!
//! Start from [`MappedFile::open`] and [`Elf::parse`]. [`Elf::symbols`] and [`Elf::code_sections`]
//! read the file itself, [`Elf::debug_info`] its DWARF: [`DebugInfo::inlined`],
//! [`DebugInfo::find_line`], [`LineTables`] for source lines by address, and [`DwarfTypes`] for
//! structures and their members. The trait [`TypeSource`] has the questions about types, which
//! [`BtfTypes`] answers from the type information that a kernel carries.
//!
//! ```
//! use kerntune_debuginfo::{Elf, MappedFile};
//! let program = MappedFile::open(std::env::current_exe()?)?;
//! let elf = Elf::parse(&program).unwrap();
//! assert!(elf.code_sections().unwrap().iter().any(|section| section.name == ".text"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod btf_types;
mod debug_file;
mod dwarf;
mod dwarf_types;
mod elf;
mod error;
mod inlined;
mod lines;
mod mapped_file;
mod types;

pub use btf_types::BtfTypes;
pub use debug_file::{by_build_id, debug_file, ROOT};
pub use dwarf::{CodeUnit, DebugInfo};
pub use dwarf_types::DwarfTypes;
pub use elf::{CodeSegment, Elf, ElfSymbol, Section, SymbolBinding, SymbolKind};
pub use error::{Error, Result};
pub use lines::{LineMatches, LineTables, SourceLine};
pub use mapped_file::MappedFile;
pub use types::{DataType, Member, TypeId, TypeKind, TypeSource};
