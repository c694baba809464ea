//! Regions that init marks for readings of /proc (`embedded/guest/init/proc.c`); they are excluded from the
//! workload.

use crate::Result;
use kerntune_profile::{Profile, RegionScope};

/// Region around a step and its readings.
pub(crate) const AROUND: &str = "[proc]";
/// Region of a reading. One outside of [`AROUND`] belongs to no step.
pub(crate) const READING: &str = "[proc reading]";

/// Returns the scope of the whole profile, or of the regions of a name, without the readings of
/// /proc.
///
/// # Errors
/// An unknown region.
pub(crate) fn measured(profile: &Profile, region: Option<&str>) -> Result<RegionScope> {
    match region {
        None if has_readings(profile) => Ok(RegionScope::without(&profile.tables, &[AROUND, READING])),
        _ => crate::view::scope(profile, region),
    }
}

/// Checks whether the profile contains readings of /proc.
pub(crate) fn has_readings(profile: &Profile) -> bool {
    profile.tables.regions.iter().any(|row| row.name == AROUND)
}
