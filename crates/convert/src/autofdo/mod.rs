//! Formats of LLVM's AutoFDO: exact counts as `llvm-profgen`'s unsymbolized profile or as branch
//! records (out), and sample profiles in text form (in).
//!
//! ```
//! use kerntune_convert::autofdo::{SampleProfile, UnsymbolizedProfile};
//! use kerntune_profile::{Address, Block, FunctionIndex, Instructions, Symbol, Tables};
//! let symbol = Symbol {
//!     function: FunctionIndex(0),
//!     name: "leaf".into(),
//!     address: Address(0x1000),
//!     size: 8,
//!     file: None,
//!     module: None,
//! };
//! let (start, last, instructions) = (Address(0x1000), Address(0x1007), Instructions(3));
//! let block = Block { start, last, count: 9, instructions, bytes: 8 };
//! let tables = Tables { symbols: vec![symbol], blocks: vec![block], ..Tables::default() };
//! let mut text = Vec::new();
//! UnsymbolizedProfile::of(&tables)?.write(&mut text)?;
//! assert_eq!(text, b"1\n1000-1007:9\n0\n");
//! // llvm-profgen makes a sample profile of it, llvm-profdata its text form:
//! assert_eq!(SampleProfile::parse("leaf:72:0\n 1: 9\n")?.functions[0].total, 72);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod branches;
mod flow;
mod import;
mod sample;
mod unsymbolized;

pub use branches::{BranchRecordTotals, BranchRecords};
pub use flow::BranchRecord;
pub use import::{import, is_function_line, SampleImport};
pub use sample::{SampleError, SampleFunction, SampleProfile};
pub use unsymbolized::{NoCounts, UnsymbolizedProfile};
