//! Tables and documents that are declared once and rendered in many forms.
//!
//! A report builds a [`Document`] of fields, lines of text, and tables. [`Columns`] declare a
//! key, a heading, a unit and a help text each, and how to get the value from a row. The functions of
//! [`render`] make text, JSON, CSV, Markdown, HTML and the documentation of all of it.
//!
//! ```
//! use kerntune_table::{render, Columns, Document, Style, Table};
//! let rows = vec![("tcp_ack", 300_u64), ("ip_rcv", 20)];
//! let mut columns = Columns::<(&str, u64)>::new();
//! columns.add("calls", "Calls made.", |row| row.1).head("calls");
//! columns.add("name", "Name in the symbol table.", |row| row.0).head("function");
//! let mut document = Document::new("kerntune-functions/3", "Calls by function.");
//! document.table(Table::new("functions", rows, columns));
//! assert_eq!(render::text(&document, Style::PLAIN), "calls  function\n  300  tcp_ack\n   20  ip_rcv\n");
//! assert!(render::json(&document).contains("\"calls\": 300"));
//! ```

mod column;
pub mod columns;
mod document;
pub mod number;
pub mod render;
mod style;
mod table;
pub mod unit;
mod value;

pub use column::{Column, ColumnSpec, Columns};
pub use document::{Document, TextDetail};
pub use style::{printable, printable_text, Style, TextRole};
pub use table::{Table, TableRows};
pub use unit::DisplayUnit;
pub use value::{ToValue, TypeName, Value};

/// Default number of rows of a table in text and Markdown; JSON, CSV and HTML have all.
pub const DEFAULT_ROWS: usize = 40;

/// Returns a share in per cent; 0 if `whole` is 0.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}
