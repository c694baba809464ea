//! Shares and their text.

/// Returns `part / of`, 0 to 1; 0 if `of` is 0.
pub(crate) fn share(part: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        part as f64 / of as f64
    }
}

/// Formats a share, `99.1 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
