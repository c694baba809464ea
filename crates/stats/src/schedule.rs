//! Order of measurements in which drift does not favor one kernel.
//!
//! Blocks run forwards and back: base, tuned, tuned, base; the next block begins with the other
//! kernel: tuned, base, base, tuned. Within a block the positions of each kernel have the same
//! mean, so that linear drift cancels. Alternating the first kernel spreads the effects of the
//! first position (a cold host, a waking clock) over both.

/// Returns the kernel of each measurement, as an index into `arms`, for `blocks` whole blocks. Each
/// block has every kernel twice. Two arms: ABBA BAAB ABBA …; three, for an A/A pair beside the A/B
/// pair: ABCCBA BCAACB CABBAC …
///
/// ```
/// use kerntune_stats::schedule::mirrored;
/// let order: String = mirrored(2, 2).map(|arm| ["A", "B"][arm]).collect();
/// assert_eq!(order, "ABBABAAB");
/// ```
pub fn mirrored(arms: usize, blocks: usize) -> impl Iterator<Item = usize> {
    (0..blocks).flat_map(move |block| {
        let forward = move |place: usize| (block + place) % arms;
        (0..arms).map(forward).chain((0..arms).rev().map(forward))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(arms: usize, blocks: usize) -> String {
        mirrored(arms, blocks).map(|arm| (b'A' + arm as u8) as char).collect()
    }

    #[test]
    fn blocks_are_mirrored_and_begin_in_turn() {
        assert_eq!(letters(2, 3), "ABBABAABABBA");
        assert_eq!(letters(3, 2), "ABCCBABCAACB");
        assert_eq!(letters(2, 0), "");
    }

    #[test]
    fn a_linear_drift_cancels_in_every_block() {
        for arms in 2..5 {
            let order: Vec<usize> = mirrored(arms, 6).collect();
            for block in order.chunks(2 * arms) {
                for arm in 0..arms {
                    let places = (0..block.len()).filter(|&place| block[place] == arm);
                    assert_eq!(places.sum::<usize>(), 2 * arms - 1);
                }
            }
        }
    }
}
