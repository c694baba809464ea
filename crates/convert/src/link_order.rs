//! Orders of functions for linkers (out).
//!
//! [`symbol_order`] is the file of lld's `--symbol-ordering-file`: one symbol a line, of which lld
//! moves the sections to the front of their place in the linker script. [`script_fragment`] is a
//! part of a linker script for GNU ld and lld: each function's section by name, in order. Both need
//! objects compiled with `-ffunction-sections`.
//!
//! ```
//! use kerntune_convert::link_order::{script_fragment, symbol_order};
//! let names = ["tcp_ack", "kfree.part.0"];
//! assert_eq!(symbol_order(names), "tcp_ack\nkfree.part.0\n");
//! assert!(script_fragment(names).ends_with("*(.text.kfree.part.0 .text.hot.kfree.part.0)\n"));
//! ```

/// Formats the file of `--symbol-ordering-file`.
pub fn symbol_order<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().flat_map(|name| [name, "\n"]).collect()
}

/// Formats a part of a linker script, to be included before all other code of an output section.
///
/// Cold sections (`.text.unlikely.NAME`) stay where they are: they have the name of the function
/// whose cold part they are.
pub fn script_fragment<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let head = "/* Functions in order of use, by kerntune (docs/own-builds.md). */\n".to_string();
    let lines = names.into_iter().map(|name| format!("*(.text.{name} .text.hot.{name})\n"));
    std::iter::once(head).chain(lines).collect()
}
