//! The two models that [`cdsort`](super::cdsort) maximises and that scores use.

/// A call over no distance at all counts as one over this, bytes, as in LLVM.
const LEAST_DISTANCE: f64 = 0.1;

/// What a call over `distance` bytes is worth: the less, the farther, by the power `distance_power`.
pub(super) fn worth_of_call(distance: u64, distance_power: f64) -> f64 {
    let distance = if distance == 0 { LEAST_DISTANCE } else { distance as f64 };
    distance.powf(-distance_power)
}

/// The probability that a line of the cache is not there when it is wanted: that none of the last
/// `cache_entries` accesses, which fall on lines at random by their weight, was to it.
///
/// `line_weight` is the weight of the line, `total` that of everything.
pub(super) fn miss_probability(line_weight: f64, total: u64, cache_entries: u64) -> f64 {
    let total = total as f64;
    match line_weight < total {
        true => (1.0 - line_weight / total).powf(cache_entries as f64),
        false => 0.0,
    }
}
