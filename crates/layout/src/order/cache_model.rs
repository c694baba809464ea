//! Models used by [`cdsort`](super::cdsort) and by the scores.

/// Distance in bytes that stands for a distance of 0, as in LLVM.
const MIN_DISTANCE: f64 = 0.1;

/// Returns the worth of a call over `distance` bytes: the distance to the power `-distance_power`.
pub(super) fn worth_of_call(distance: u64, distance_power: f64) -> f64 {
    let distance = if distance == 0 { MIN_DISTANCE } else { distance as f64 };
    distance.powf(-distance_power)
}

/// Returns the probability that an access to a cache line misses: that none of the last
/// `cache_entries` accesses, which hit lines at random by their weight, went to it.
///
/// `line_weight` is the weight of the line, `total` the weight of all lines.
pub(super) fn miss_probability(line_weight: f64, total: u64, cache_entries: u64) -> f64 {
    let total = total as f64;
    match line_weight < total {
        true => (1.0 - line_weight / total).powf(cache_entries as f64),
        false => 0.0,
    }
}
