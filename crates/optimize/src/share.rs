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

/// Returns the share of the pairs of an address of each list in which the first list's is lower, 0 to
/// 1; 0 without pairs.
pub(crate) fn share_in_front(front: &[u64], mut behind: Vec<u64>) -> f64 {
    behind.sort_unstable();
    let follow = |address: &u64| (behind.len() - behind.partition_point(|other| other < address)) as f64;
    match (front.len() * behind.len()) as f64 {
        0.0 => 0.0,
        pairs => front.iter().map(follow).sum::<f64>() / pairs,
    }
}
