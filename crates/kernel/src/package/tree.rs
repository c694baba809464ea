//! Files of a package before they are packed.

use crate::Result;
use kerntune_work::{IoContext, RelativePath};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Directory that becomes the root of the package.
pub(super) struct PackageTree(PathBuf);

impl PackageTree {
    pub fn new(top: PathBuf) -> Self {
        Self(top)
    }

    pub fn top(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file, and creates its directory.
    ///
    /// # Errors
    /// A name that leads out of the tree: some names come from an untrusted kernel.
    pub fn path(&self, name: &str) -> Result<PathBuf> {
        let path = self.0.join(name.parse::<RelativePath>()?);
        let parent = path.parent().unwrap_or(&self.0);
        fs::create_dir_all(parent).at("create", parent)?;
        Ok(path)
    }

    pub fn copy(&self, from: &Path, name: &str) -> Result<()> {
        let to = self.path(name)?;
        fs::copy(from, &to).at("copy", from)?;
        Ok(())
    }

    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let to = self.path(name)?;
        Ok(fs::write(&to, text).at("write", &to)?)
    }

    pub fn write_script(&self, name: &str, text: &str) -> Result<()> {
        self.write(name, text)?;
        set_mode(&self.0.join(name), 0o755)
    }

    /// Returns the names of all files, sorted.
    pub fn files(&self) -> Result<Vec<String>> {
        let mut files = Vec::new();
        self.walk(&mut |path, is_dir| {
            if !is_dir {
                let name = path.strip_prefix(&self.0).unwrap_or(path);
                files.push(name.to_string_lossy().into_owned());
            }
            Ok(())
        })?;
        files.sort();
        Ok(files)
    }

    /// Returns the total size of the files in bytes.
    pub fn bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        self.walk(&mut |path, _| {
            bytes += path.symlink_metadata().at("look at", path)?.len();
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Sets modes that do not depend on the user's umask. System.map is readable for root only,
    /// because it has addresses.
    pub fn normalize(&self) -> Result<()> {
        self.walk(&mut |path, is_dir| {
            let map = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("System.map"));
            set_mode(
                path,
                if is_dir {
                    0o755
                } else if map {
                    0o600
                } else {
                    0o644
                },
            )
        })?;
        set_mode(&self.0, 0o755)
    }

    fn walk(&self, visit: &mut dyn FnMut(&Path, bool) -> Result<()>) -> Result<()> {
        let mut directories = vec![self.0.clone()];
        while let Some(dir) = directories.pop().filter(|dir| dir.is_dir()) {
            for entry in fs::read_dir(&dir).at("list", &dir)? {
                let entry = entry.at("list", &dir)?;
                let is_dir = entry.file_type().at("look at", entry.path())?.is_dir();
                visit(&entry.path(), is_dir)?;
                if is_dir {
                    directories.push(entry.path());
                }
            }
        }
        Ok(())
    }
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    match path.is_symlink() {
        true => Ok(()),
        false => Ok(fs::set_permissions(path, Permissions::from_mode(mode)).at("set the mode of", path)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_the_same_whoever_packs() {
        let dir = tempfile::tempdir().unwrap();
        let tree = PackageTree::new(dir.path().join("tree"));
        assert!(tree.files().unwrap().is_empty());
        tree.write("boot/System.map-6.1", "0 t x\n").unwrap();
        tree.write("usr/lib/kerntune/6.1/kernel.json", "{}\n").unwrap();
        fs::set_permissions(tree.top().join("boot"), Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink("/nowhere", tree.path("lib/modules/6.1/build").unwrap()).unwrap();
        tree.normalize().unwrap();
        fs::remove_file(tree.top().join("lib/modules/6.1/build")).unwrap();
        let mode = |name: &str| tree.top().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("boot"), mode("boot/System.map-6.1")), (0o755, 0o600));
        assert_eq!(mode("usr/lib/kerntune/6.1/kernel.json"), 0o644);
        assert_eq!(tree.files().unwrap(), ["boot/System.map-6.1", "usr/lib/kerntune/6.1/kernel.json"]);
    }
}
