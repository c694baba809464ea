//! Adding up a stream of profiles with few of them in memory.

use crate::Result;
use kerntune_profile::{merge, Profile};

/// Number of profiles that are added up at a time. Every level holds fewer.
const FAN: usize = 8;

/// Sums of the stream so far: level `n` holds sums of `FAN`ⁿ profiles each, older ones on higher
/// levels. For N profiles these are fewer than `FAN` · log_FAN(N).
///
/// Functions, regions and paths are numbered in the order of first appearance, and everything else
/// is summed, so the sum does not depend on how the stream was divided.
#[derive(Default)]
pub(crate) struct MergeTree {
    levels: Vec<Vec<(Profile, u64)>>,
}

impl MergeTree {
    /// Adds the next profile of the stream.
    pub fn push(&mut self, profile: Profile, weight: u64) -> Result<()> {
        let mut next = (profile, weight);
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::with_capacity(FAN));
            }
            let held = &mut self.levels[level];
            held.push(next);
            if held.len() < FAN {
                return Ok(());
            }
            next = (sum(&std::mem::take(held))?, 1);
        }
        Ok(())
    }

    /// Returns the sum; `None` if there were no profiles.
    pub fn finish(self) -> Result<Option<Profile>> {
        let mut newest: Option<(Profile, u64)> = None;
        for mut level in self.levels {
            level.extend(newest.take());
            if !level.is_empty() {
                newest = Some((sum(&level)?, 1));
            }
        }
        Ok(newest.map(|(profile, _)| profile))
    }
}

/// Adds up a few profiles.
fn sum(parts: &[(Profile, u64)]) -> Result<Profile> {
    let borrowed: Vec<(&Profile, u64)> = parts.iter().map(|(profile, weight)| (profile, *weight)).collect();
    Ok(merge(&borrowed)?)
}
