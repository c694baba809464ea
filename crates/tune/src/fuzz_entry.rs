//! Entry points for fuzzing: parsers of this crate that are otherwise private.

use crate::bench::lines;

/// Parses the output of a suite's program.
pub fn suite_lines(text: &str) {
    let Ok(lines) = lines::parse(text) else { return };
    for line in lines {
        assert!(line.counted().values().all(|value| value.is_finite()));
    }
}
