//! Lines on standard error.

use kerntune_report::printable_text;
use std::io::{self, Write};

/// A line on standard error. If nobody takes it, there is nobody to tell.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable_text(text, false));
}
