//! The regions that init marks for readings of /proc (`guest/init/proc.c`), which are none of the workload's.

use crate::Result;
use kerntune_profile::{Profile, Scope};

/// The region that init marks around a step and its readings.
pub(crate) const AROUND: &str = "[proc]";
/// The region of a reading; those outside of the other one are of no step.
pub(crate) const READING: &str = "[proc reading]";

/// All of the profile, or the regions of a name; what was done for readings of /proc is in neither.
///
/// # Errors
/// There is no such region.
pub(crate) fn measured(profile: &Profile, region: Option<&str>) -> Result<Scope> {
    match region {
        None if has_readings(profile) => Ok(Scope::without(&profile.tables, &[AROUND, READING])),
        _ => crate::view::scope(profile, region),
    }
}

/// Whether there are readings in a profile.
pub(crate) fn has_readings(profile: &Profile) -> bool {
    profile.tables.regions.iter().any(|row| row.name == AROUND)
}
