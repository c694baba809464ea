//! Profiles of the CPU's last branches: `record --live --branches` and `live start --branches`.

use kerntune_command::Failure;
use kerntune_compare::number::grouped;
use kerntune_convert::perf::BranchStacks;
use kerntune_live::{Collector, Error, ProfileLabels};
use kerntune_profile::Profile;
use kerntune_symbols::RunningKernel;
use kerntune_tune::import_perf::{keep_live, LiveBranches};
use kerntune_work::{Key, WorkDir};
use std::path::{Path, PathBuf};

/// Refuses a running kernel whose code is not in the work directory.
pub fn no_kernel(running: &RunningKernel) -> Failure {
    Failure::usage(no_kernel_text(&running.release))
}

fn no_kernel_text(release: &str) -> String {
    format!(
        "the running kernel (Linux {release}) is not in the work directory, and branch records are counts of one image: boot a \
         kernel that kerntune built (`kerntune deploy`), or import this one (`kerntune kernel import`)"
    )
}

/// Returns true if a profile has branches and no times.
pub fn is_of_branches(profile: &Profile) -> bool {
    profile.manifest.capture.edges && !profile.manifest.capture.functions
}

/// Returns the text about a profile that was kept.
pub fn summary(path: &Path, profile: &Profile) -> String {
    let runs = profile.tables.blocks.iter().fold(0_u64, |sum, block| sum.saturating_add(block.count));
    let id = &profile.manifest.id;
    format!(
        "{} samples, {} lost, {} runs between branches in the code of kernel {}\n\nprofile {}\n`kerntune profile check {id}` says \
         how fit it is",
        grouped(profile.manifest.events),
        grouped(profile.manifest.lost_events),
        grouped(runs),
        profile.manifest.kernel.label,
        path.display()
    )
}

/// Writes the branches into the work directory as a profile named by `key`.
pub fn keep(
    work: &WorkDir,
    collector: &mut Collector,
    stacks: &BranchStacks,
    labels: &ProfileLabels,
    key: &Key,
) -> Result<(PathBuf, Profile), Error> {
    let refused = |error: kerntune_tune::Error| Error::Branches(error.to_string());
    let id = labels.kernel.as_ref().map(|kernel| kernel.id.as_str());
    let id = id.ok_or_else(|| Error::Branches(no_kernel_text(&collector.running().release)))?;
    let kernel = kerntune_kernel::find(work, id)?;
    let sources = collector.descriptions().into_iter().map(|description| description.name).collect();
    let live =
        LiveBranches { stacks, kernel: &kernel, workload: &labels.workload, sources, lost: collector.lost() };
    let kept = keep_live(work, &live, key).map_err(refused)?.recorded;
    let profile = Profile::load(&kept.path)?;
    Ok((kept.path, profile))
}
