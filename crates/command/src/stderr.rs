//! Messages on standard error.

use kerntune_report::printable_text;
use std::io::{self, Write};

/// Prints a line on standard error. Errors are ignored, because nothing is left to report them.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable_text(text, false));
}
