//! CPU time, user and system together, from `/proc/self/stat` (proc(5), fields 14 to 17).
#![allow(dead_code)] // each example uses its part

use std::io::{Error, ErrorKind, Result};

/// `USER_HZ`, which is 100 wherever Linux runs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the seconds of this process.
pub fn own() -> Result<f64> {
    seconds([11, 12])
}

/// Returns the seconds of its finished children and their descendants.
pub fn of_children() -> Result<f64> {
    seconds([13, 14])
}

/// Sums up fields by position after the name.
fn seconds(fields: [usize; 2]) -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let damaged = || Error::new(ErrorKind::InvalidData, "/proc/self/stat is too short");
    let (_, rest) = text.rsplit_once(')').ok_or_else(damaged)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |field: usize| words.get(field).and_then(|word| word.parse::<f64>().ok()).ok_or_else(damaged);
    Ok((ticks(fields[0])? + ticks(fields[1])?) / TICKS_PER_SECOND)
}
