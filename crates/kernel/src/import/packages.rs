//! Packages of a kernel: Debian's, and pacman's.

use crate::import::files::ShippedFiles;
use crate::inputs::regular_files::regular_files;
use crate::{tools, Error, Result};
use kerntune_work::{interrupt, IoContext};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Patterns of the files to unpack, which begin with `./` in Debian's packages: the kernel, and
/// neither documentation nor debug information of modules.
const WANTED: [&str; 5] = [
    "boot/*",
    "lib/modules/*",
    "usr/lib/modules/*",
    "usr/lib/debug/boot/vmlinux*",
    "usr/lib/debug/lib/modules/*/vmlinux",
];
/// Directory of headers beside modules.
const UNWANTED: &str = "*lib/modules/*/build/*";
/// End of the names of pacman's packages; any compression may follow.
const PACMAN: &str = ".pkg.tar";

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
        [release] => ShippedFiles::below(to, release),
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
    let mut tar = Command::new("tar");
    tar.args(["-x", "--no-same-owner", "--no-same-permissions", "--wildcards", "--exclude", UNWANTED, "-C"]);
    tar.arg(to).args(WANTED.iter().flat_map(|name| [(*name).to_owned(), format!("./{name}")]));
    tar.stderr(Stdio::null());
    let is_whole = if package.file_name().is_some_and(|name| name.to_string_lossy().contains(PACMAN)) {
        let mut list = Command::new("tar");
        list.arg("-tf").arg(&package).stdout(Stdio::null()).stderr(Stdio::null());
        tar.arg("-f").arg(&package).status().map_err(spawn("tar"))?;
        list.status().map_err(spawn("tar"))?.success()
    } else {
        let mut archive = Command::new("dpkg-deb")
            .arg("--fsys-tarfile")
            .arg(&package)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(spawn("dpkg-deb"))?;
        if let Some(out) = archive.stdout.take() {
            tar.stdin(out);
        }
        // It fails where the package lacks one of the names.
        tar.status().map_err(spawn("tar"))?;
        archive.wait().at("wait for dpkg-deb with", &package)?.success()
    };
    // A signal of the terminal ends the programs as well.
    interrupt::check()?;
    match is_whole {
        true => Ok(()),
        false => Err(Error::CannotImport {
            path: package,
            reason: "it is no whole package of Debian's or pacman's".into(),
        }),
    }
}

/// Returns all packages in a directory.
pub(crate) fn prepared(directory: &Path) -> Vec<PathBuf> {
    found_in(directory, |_| true)
}

/// Returns the packages of the kernel of this release in a directory.
pub(crate) fn downloaded(directory: &Path, release: &str) -> Vec<PathBuf> {
    const PARTS: [&str; 4] = ["image", "binary", "base", "modules"];
    found_in(directory, |name| PARTS.iter().any(|part| name.starts_with(&format!("linux-{part}-{release}_"))))
}

fn found_in(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".deb") && is_wanted(&name)
    });
    let mut found: Vec<PathBuf> = names.collect();
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
        assert!(error.contains("no whole package of Debian's"), "{error}");
        assert!(releases(&to).unwrap().is_empty());
        fs::create_dir_all(to.join("boot")).unwrap();
        fs::write(to.join("boot/vmlinuz-6.1"), "x").unwrap();
        assert_eq!(releases(&to).unwrap().into_iter().collect::<Vec<_>>(), ["6.1"]);
    }

    #[test]
    fn a_package_of_pacman_is_unpacked_without_headers() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, to) = (dir.path().join("tree"), dir.path().join("to"));
        let modules = "usr/lib/modules/7.3-arch1";
        for name in ["vmlinuz", "kernel/fs/x.ko.zst", "build/Makefile"] {
            let path = tree.join(modules).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        fs::create_dir(&to).unwrap();
        let package = dir.path().join("linux-7.3-1-x86_64.pkg.tar.gz");
        let mut tar = Command::new("tar");
        assert!(tar.arg("-C").arg(&tree).arg("-czf").arg(&package).arg("usr").status().unwrap().success());
        let files = unpack(&[package], &to).unwrap();
        assert_eq!((files.image, files.config), (to.join(modules).join("vmlinuz"), None));
        assert_eq!(files.modules, Some(to.join(modules)));
        assert!(!to.join(modules).join("build/Makefile").exists());
    }
}
