//! Debian packages of a kernel.

use crate::import::files::{regular_files, ShippedFiles};
use crate::{tools, Error, Result};
use kerntune_work::IoContext;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Patterns of the files to unpack: the kernel, and neither documentation nor debug information of
/// modules.
const WANTED: [&str; 5] = [
    "./boot/*",
    "./lib/modules/*",
    "./usr/lib/modules/*",
    "./usr/lib/debug/boot/vmlinux*",
    "./usr/lib/debug/lib/modules/*/vmlinux",
];

/// Unpacks the packages of one kernel into `to`, and finds its files.
///
/// # Errors
/// Files that are no packages; packages of no kernel, of a part of one, or of several.
pub(crate) fn unpack(packages: &[PathBuf], to: &Path) -> Result<ShippedFiles> {
    tools::require(&[("dpkg-deb", "dpkg"), ("tar", "tar")])?;
    packages.iter().try_for_each(|package| unpack_one(package, to))?;
    let refuse =
        |reason: String| Error::CannotImport { path: packages.first().cloned().unwrap_or_default(), reason };
    let releases = releases(to)?;
    match &releases.iter().collect::<Vec<_>>()[..] {
        [release] => ShippedFiles::below(to, release).map_err(|error| match error {
            Error::CannotImport { reason, .. } => refuse(format!("{reason}; give all packages of the kernel")),
            other => other,
        }),
        [] => Err(refuse(
            "there is no kernel in it; give the packages that it depends on as well (linux-binary-…, linux-base-…, \
             linux-modules-…)"
                .into(),
        )),
        several => Err(refuse(format!("there are several kernels: {several:?}"))),
    }
}

fn unpack_one(package: &Path, to: &Path) -> Result<()> {
    let spawn = |program: &str| {
        let program = program.to_owned();
        move |source| kerntune_work::Error::Spawn { program, source }
    };
    let package = package.canonicalize().at("open", package)?;
    let mut archive = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&package)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(spawn("dpkg-deb"))?;
    let mut tar = Command::new("tar");
    tar.args(["-x", "--no-same-owner", "--no-same-permissions", "--wildcards", "-C"]).arg(to).args(WANTED);
    if let Some(out) = archive.stdout.take() {
        tar.stdin(out);
    }
    // It fails where the package lacks one of the names.
    tar.stderr(Stdio::null()).status().map_err(spawn("tar"))?;
    let end = archive.wait().at("wait for dpkg-deb with", &package)?;
    match end.success() {
        true => Ok(()),
        false => Err(Error::CannotImport { path: package, reason: "it is no whole Debian package".into() }),
    }
}

/// Returns the packages of the kernel of this release in a directory.
pub(crate) fn downloaded(directory: &Path, release: &str) -> Vec<PathBuf> {
    const PARTS: [&str; 4] = ["image", "binary", "base", "modules"];
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            PARTS.iter().any(|part| name.starts_with(&format!("linux-{part}-{release}_")))
                && name.ends_with(".deb")
        })
        .collect();
    found.sort();
    found
}

/// Returns the releases of all kernels below `root`.
fn releases(root: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for path in regular_files(root)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(release) = name.strip_prefix("vmlinuz-") {
            found.insert(release.to_owned());
        } else if name == "vmlinuz" {
            let parent = path.parent().and_then(Path::file_name).unwrap_or_default();
            found.insert(parent.to_string_lossy().into_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_package_and_what_is_no_kernel_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (package, to) = (dir.path().join("x.deb"), dir.path().join("to"));
        fs::create_dir(&to).unwrap();
        fs::write(&package, "no package").unwrap();
        let error = unpack(&[package], &to).unwrap_err().to_string();
        assert!(error.contains("no whole Debian package"), "{error}");
        assert!(releases(&to).unwrap().is_empty());
        fs::create_dir_all(to.join("boot")).unwrap();
        fs::write(to.join("boot/vmlinuz-6.1"), "x").unwrap();
        assert_eq!(releases(&to).unwrap().into_iter().collect::<Vec<_>>(), ["6.1"]);
    }
}
