//! Objects set aside in a build directory while another kernel's objects take their place.

use crate::Result;
use kerntune_work::IoContext;
use std::fs::{self, File};
use std::path::Path;
use std::time::SystemTime;

/// Directory in a build directory that is being mixed; it holds the kernel's own objects that were
/// replaced.
pub(crate) const ASIDE: &str = ".kerntune-aside";

/// Moves objects that an interrupted mix set aside back to their original paths.
pub(crate) fn restore(build: &Path) -> Result<()> {
    let aside = build.join(ASIDE);
    let mut directories = vec![aside.clone()];
    while let Some(directory) = directories.pop() {
        if !directory.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&directory).at("list", &directory)? {
            let path = entry.at("list", &directory)?.path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let Ok(name) = path.strip_prefix(&aside) else { continue };
            let place = build.join(name);
            fs::rename(&path, &place).at("put back", &place)?;
            touch(&place)?;
        }
    }
    remove(&aside)
}

/// Sets the modification time to now, so that make treats the file as new.
pub(crate) fn touch(path: &Path) -> Result<()> {
    let file = File::options().append(true).open(path).at("open", path)?;
    Ok(file.set_modified(SystemTime::now()).at("touch", path)?)
}

pub(crate) fn remove(directory: &Path) -> Result<()> {
    match directory.is_dir() {
        true => Ok(fs::remove_dir_all(directory).at("remove", directory)?),
        false => Ok(()),
    }
}

/// Creates a hard link, or a copy if the file system refuses links.
pub(crate) fn link(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).at("create", parent)?;
    }
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).at("copy", from)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_a_killed_mix_left_aside_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("net/ipv4/tcp.o");
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "own").unwrap();
        // Killed right after the hard link was made: both names are the same file.
        link(&place, &dir.path().join(ASIDE).join("net/ipv4/tcp.o")).unwrap();
        restore(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "own");
        assert!(!dir.path().join(ASIDE).exists());
        // Killed while the other kernel's object was in place.
        link(&place, &dir.path().join(ASIDE).join("net/ipv4/tcp.o")).unwrap();
        fs::write(dir.path().join("fresh"), "other's").unwrap();
        fs::rename(dir.path().join("fresh"), &place).unwrap();
        let before = SystemTime::now();
        restore(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "own");
        assert!(place.metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(1) > before);
        assert!(!dir.path().join(ASIDE).exists());
        restore(dir.path()).unwrap();
    }
}
