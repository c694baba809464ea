//! A kernel's package with its profile and comparisons, and reproducing a kernel.

use crate::engine::tunings_of;
use crate::Result;
use kerntune_kernel::{
    Kernel, KernelPackage, PackageExtra, PackageRequest, ProfileFiles, RebuildReport, RebuildRequest,
};
use kerntune_optimize::clang_autofdo::AutofdoProfile;
use kerntune_optimize::gcc_pgo::GccPgoProfile;
use kerntune_optimize::propeller::PreparedBlocks;
use kerntune_optimize::PreparedResult;
use kerntune_work::{Progress, WorkDir};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Packs `kernel` with its profile, and with the comparison and the proof of every tuning that made
/// it.
pub fn package(work: &WorkDir, kernel: &Kernel, progress: &dyn Progress) -> Result<KernelPackage> {
    let request = PackageRequest {
        kernel,
        profile: profile_of(work, kernel)?,
        extras: extras(work, kernel, progress)?,
    };
    Ok(kerntune_kernel::package(work, &request, progress)?)
}

/// Builds `kernel` again, with the same profile, and compares the images.
pub fn verify(
    work: &WorkDir,
    kernel: &Kernel,
    jobs: Option<NonZeroUsize>,
    progress: &dyn Progress,
) -> Result<RebuildReport> {
    let profile_dir = profile_of(work, kernel)?.map(|profile| profile.tree);
    let request = RebuildRequest { kernel, profile_dir, modules_to: None, from_kept: false, jobs };
    Ok(kerntune_kernel::rebuild(work, &request, progress)?)
}

/// Returns the profile that was compiled into `kernel`, with every file checked; `None` if it is no
/// longer there.
pub fn profile_of(work: &WorkDir, kernel: &Kernel) -> Result<Option<ProfileFiles>> {
    let Some(id) = &kernel.manifest.profile_id else {
        return Ok(None);
    };
    if let Some(profile) = GccPgoProfile::find(work, id)? {
        return Ok(Some(ProfileFiles { tree: profile.tree(), dir: profile.dir }));
    }
    if let Some(profile) = AutofdoProfile::find(work, id)? {
        return Ok(Some(ProfileFiles { tree: profile.tree(), dir: profile.dir }));
    }
    let blocks = PreparedBlocks::find(work, id)?;
    Ok(blocks.map(|blocks| ProfileFiles { tree: blocks.tree(), dir: blocks.dir }))
}

/// Returns the comparisons and proofs of the tunings that made the kernel.
fn extras(work: &WorkDir, kernel: &Kernel, progress: &dyn Progress) -> Result<Vec<PackageExtra>> {
    let mut extras: Vec<PackageExtra> = Vec::new();
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
            // Further tunings with another model, or against another base kernel.
            let free = (1..).map(name).find(|name| extras.iter().all(|extra| extra.name != *name));
            extras.extend(free.map(|name| PackageExtra { name, path }));
        }
    }
    Ok(extras)
}

/// Returns the workload of the tuning in `dir`, if it made the kernel `id`.
fn workload_of(dir: &Path, id: &str) -> Option<String> {
    let text = fs::read(dir.join("comparison.json")).ok()?;
    let comparison: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let tuned = comparison.get("tuned")?.get("id")?.as_str()?;
    let workload = comparison.get("workload")?.as_str()?;
    // It becomes part of a file name; a workload of the user is named by its path.
    let stem = PathBuf::from(workload).file_stem()?.to_string_lossy().into_owned();
    let plain = stem.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_', "-");
    (tuned == id).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_kernel::KernelManifest;
    use kerntune_work::Key;

    #[test]
    fn a_list_of_blocks_is_a_profile_too() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let key = Key::new("test/1", "");
        let staged = work.stage("blocks", &key).unwrap();
        let summary = r#"{"ran":1,"listed":1,"left_out":[],"blocks":[2,1],"bytes":[9,4],"taken":[3,1]}"#;
        let text = format!(
            r#"{{"schema":"kerntune-blocks/1","id":"b","kernel":"k","recording":"r","profile":"p","summary":{summary}}}"#
        );
        fs::write(staged.path().join("blocks.json"), text).unwrap();
        let stored = staged.publish().unwrap();
        let manifest = include_str!("../../../cli/tests/schemas/kernel-2.json");
        let mut manifest: KernelManifest = serde_json::from_str(manifest).unwrap();
        manifest.profile_id = Some(key.id());
        let kernel = Kernel { dir: "/nowhere".into(), manifest };
        assert_eq!(profile_of(&work, &kernel).unwrap().unwrap().tree, stored.join("tree"));
    }

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
