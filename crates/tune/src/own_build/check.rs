//! Check of a kernel that a user built.

use super::order;
use crate::Result;
use kerntune_kernel::{find_recorded, Symbols};
use kerntune_optimize::own_build::OwnBuild;
use kerntune_profile::{find, Profile};
use kerntune_work::WorkDir;
use std::path::Path;

/// Examines whether the image `vmlinux` was built with the files of profile `name`.
///
/// # Errors
/// Unknown profiles; an image that cannot be read. The verdict is part of the result.
pub fn check(work: &WorkDir, name: &str, vmlinux: &Path) -> Result<OwnBuild> {
    let recording = Profile::load(&find(work, name)?.path)?;
    let symbols = Symbols::load(vmlinux)?;
    // A profile without calls, or whose kernel is gone, has no order.
    let recorded = find_recorded(work, &recording.manifest.kernel.id)?;
    let order = recorded.and_then(|kernel| order(work, &recording, &kernel).ok());
    let image = vmlinux.display().to_string();
    Ok(OwnBuild::examine(&recording, order.as_deref(), &image, &symbols))
}
