//! Adding up a stream of profiles with few of them in memory.

use crate::Result;
use kerntune_profile::{merge, Profile};

/// So many are added up at once. Every level holds fewer than that.
const FAN: usize = 8;

/// Sums of what came so far: level `n` holds sums of `FAN`ⁿ profiles each, older ones on higher levels. For N profiles that is
/// fewer than `FAN` · log_FAN(N) of them.
///
/// Numbers of functions, regions and paths are given in the order of first appearance, and all else is summed, so that the
/// sum does not depend on how the stream was divided.
#[derive(Default)]
pub(crate) struct Tree {
    levels: Vec<Vec<(Profile, u64)>>,
}

impl Tree {
    /// Adds the next one of the stream.
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

    /// The sum; none of nothing.
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

/// The sum of a few.
fn sum(parts: &[(Profile, u64)]) -> Result<Profile> {
    let borrowed: Vec<(&Profile, u64)> = parts.iter().map(|(profile, weight)| (profile, *weight)).collect();
    Ok(merge(&borrowed)?)
}
