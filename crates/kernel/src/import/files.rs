//! Files of a shipped kernel, by the places where distributions put them.

use crate::{Error, Result};
use kerntune_isa::{GuestIsa, Isa};
use std::path::{Path, PathBuf};

/// Files of one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShippedFiles {
    /// Bootable image (`vmlinuz`).
    pub image: PathBuf,
    /// Configuration, which may be compressed. Without it the image has it (`CONFIG_IKCONFIG`).
    pub config: Option<PathBuf>,
    /// Kernel with symbols, if there is one. Otherwise the symbols are read from the image.
    pub vmlinux: Option<PathBuf>,
    /// Directory with `kernel/` and `modules.dep` (`/lib/modules/RELEASE`).
    pub modules: Option<PathBuf>,
}

impl ShippedFiles {
    /// Finds the files of a kernel that was built in its source or build directory.
    ///
    /// # Errors
    /// No image.
    pub fn of_build(tree: &Path) -> Result<Self> {
        let there = |name: &str| Some(tree.join(name)).filter(|path| path.is_file());
        let name = GuestIsa::KBUILD.image_path;
        Ok(Self {
            image: there(name).ok_or_else(|| Error::CannotImport {
                path: tree.to_owned(),
                reason: format!("no kernel was built there: it has no {name}"),
            })?,
            config: there(".config"),
            vmlinux: there("vmlinux"),
            modules: None,
        })
    }

    /// Finds the files of the kernel of this release below a root directory.
    ///
    /// # Errors
    /// No image.
    pub fn below(root: &Path, release: &str) -> Result<Self> {
        let first =
            |places: &[String]| places.iter().map(|place| root.join(place)).find(|path| path.exists());
        let in_modules = |name: &str| ["usr/lib", "lib"].map(|lib| format!("{lib}/modules/{release}{name}"));
        let images = [vec![format!("boot/vmlinuz-{release}")], in_modules("/vmlinuz").into()].concat();
        let configs = [vec![format!("boot/config-{release}")], in_modules("/config").into()].concat();
        let debug = ["boot/vmlinux-", "lib/modules/"].map(|place| format!("usr/lib/debug/{place}{release}"));
        Ok(Self {
            image: first(&images).ok_or_else(|| Error::CannotImport {
                path: root.to_owned(),
                reason: format!("the image of {release} is not there (neither {})", images.join(" nor ")),
            })?,
            config: first(&configs),
            vmlinux: first(&[debug[0].clone(), format!("{}/vmlinux", debug[1])]),
            modules: first(&in_modules("/kernel")).and_then(|path| path.parent().map(Path::to_owned)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn old_and_new_places_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        let error = ShippedFiles::below(dir.path(), "6.1.0-50").unwrap_err().to_string();
        assert!(
            error.contains("the image of 6.1.0-50") && error.contains("boot/vmlinuz-6.1.0-50"),
            "{error}"
        );
        for path in ["boot/vmlinuz-6.1.0-50", "boot/config-6.1.0-50", "lib/modules/6.1.0-50/kernel/fs/x.ko"] {
            put(path);
        }
        let old = ShippedFiles::below(dir.path(), "6.1.0-50").unwrap();
        assert!(old.image.ends_with("boot/vmlinuz-6.1.0-50") && old.vmlinux.is_none());
        assert!(old.modules.unwrap().ends_with("lib/modules/6.1.0-50"));
        for path in
            ["usr/lib/modules/7.3/vmlinuz", "usr/lib/modules/7.3/config", "usr/lib/debug/boot/vmlinux-7.3"]
        {
            put(path);
        }
        let new = ShippedFiles::below(dir.path(), "7.3").unwrap();
        assert!(new.config.unwrap().ends_with("usr/lib/modules/7.3/config") && new.vmlinux.is_some());
        assert_eq!(new.modules, None);
    }

    #[test]
    fn a_directory_of_a_build_has_image_configuration_and_symbols() {
        let dir = tempfile::tempdir().unwrap();
        let error = ShippedFiles::of_build(dir.path()).unwrap_err().to_string();
        assert!(error.contains("no kernel was built there: it has no arch/x86/boot/bzImage"), "{error}");
        fs::create_dir_all(dir.path().join("arch/x86/boot")).unwrap();
        for name in ["arch/x86/boot/bzImage", "vmlinux"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let found = ShippedFiles::of_build(dir.path()).unwrap();
        assert!(found.image.ends_with("bzImage") && found.config.is_none() && found.vmlinux.is_some());
    }
}
