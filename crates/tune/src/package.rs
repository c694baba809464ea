//! A kernel's package with all that the work directory knows of it, and a kernel built again.

use crate::engine::tunings_of;
use crate::Result;
use kerntune_kernel::{Extra, Kernel, Package, PackageRequest, ProfileFiles, RebuildRequest, Rebuilt};
use kerntune_optimize::{clang_autofdo, gcc_pgo};
use kerntune_work::{checked, Progress, WorkDir};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Packs `kernel` with its profile, and with the comparison and the proof of every tuning that it came of.
pub fn package(work: &WorkDir, kernel: &Kernel, progress: &dyn Progress) -> Result<Package> {
    let request = PackageRequest {
        kernel,
        profile: profile_of(work, kernel)?,
        extras: extras(work, kernel, progress)?,
    };
    Ok(kerntune_kernel::package(work, &request, progress)?)
}

/// Builds `kernel` again, with the profile that was compiled in, and compares.
pub fn verify(
    work: &WorkDir,
    kernel: &Kernel,
    jobs: Option<NonZeroUsize>,
    progress: &dyn Progress,
) -> Result<Rebuilt> {
    let profile_dir = profile_of(work, kernel)?.map(|profile| profile.tree);
    let request = RebuildRequest { kernel, profile_dir, modules_to: None, from_kept: false, jobs };
    Ok(kerntune_kernel::rebuild(work, &request, progress)?)
}

/// The profile that was compiled into `kernel`, where it is still there: every file of it as it was written.
pub fn profile_of(work: &WorkDir, kernel: &Kernel) -> Result<Option<ProfileFiles>> {
    let Some(id) = &kernel.manifest.profile_id else {
        return Ok(None);
    };
    if let Some(dir) = work.find(gcc_pgo::NAME, id) {
        checked(&dir, &[])?;
        let profile = gcc_pgo::PreparedProfile::load(&dir)?;
        return Ok(Some(ProfileFiles { tree: profile.tree(), dir: profile.dir }));
    }
    if let Some(dir) = work.find(clang_autofdo::NAME, id) {
        checked(&dir, &[])?;
        let profile = clang_autofdo::PreparedProfile::load(&dir)?;
        return Ok(Some(ProfileFiles { tree: profile.tree(), dir: profile.dir }));
    }
    Ok(None)
}

/// What tunings say of the kernel that they made.
fn extras(work: &WorkDir, kernel: &Kernel, progress: &dyn Progress) -> Result<Vec<Extra>> {
    let mut extras: Vec<Extra> = Vec::new();
    for tuning in tunings_of(work, &kernel.manifest.id)? {
        let dir = &tuning.directory;
        let (Some(_), Some(_)) = (tuning.file("comparison.json")?, tuning.file("proof.json")?) else {
            progress.note(&format!(
                "{}: nothing vouches for its comparison and proof, they are left out; the same `kerntune tune` writes them anew",
                dir.display()
            ));
            continue;
        };
        let Some(workload) = workload_of(dir, &kernel.manifest.id) else {
            continue;
        };
        for what in ["comparison", "proof"] {
            let path = dir.join(format!("{what}.json"));
            let name = |number: usize| match number {
                1 => format!("{what}-{workload}.json"),
                _ => format!("{what}-{workload}-{number}.json"),
            };
            // With another model, or against another base kernel.
            let free = (1..).map(name).find(|name| extras.iter().all(|extra| extra.name != *name));
            extras.extend(free.map(|name| Extra { name, path }));
        }
    }
    Ok(extras)
}

/// The workload of the tuning in `dir`, if it made the kernel `id`.
fn workload_of(dir: &Path, id: &str) -> Option<String> {
    let text = fs::read(dir.join("comparison.json")).ok()?;
    let comparison: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let tuned = comparison.get("tuned")?.get("id")?.as_str()?;
    let workload = comparison.get("workload")?.as_str()?;
    // Part of a file's name from now on; a workload of the user's is called by its file.
    let stem = PathBuf::from(workload).file_stem()?.to_string_lossy().into_owned();
    let plain = stem.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_', "-");
    (tuned == id).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunings_of_another_kernel_have_nothing_to_say() {
        let dir = tempfile::tempdir().unwrap();
        let text = r#"{"workload": "../my load.toml", "tuned": {"id": "aa11"}}"#;
        fs::write(dir.path().join("comparison.json"), text).unwrap();
        assert_eq!(workload_of(dir.path(), "aa11").as_deref(), Some("my-load"));
        assert_eq!(workload_of(dir.path(), "bb22"), None);
        fs::write(dir.path().join("comparison.json"), "{").unwrap();
        assert_eq!(workload_of(dir.path(), "aa11"), None);
    }
}
