//! Objects that lie aside in a build directory while those of another kernel are in their places.

use crate::Result;
use kerntune_work::IoContext;
use std::fs::{self, File};
use std::path::Path;
use std::time::SystemTime;

/// In a build directory that is being mixed: its own objects that are not in their places.
pub(crate) const ASIDE: &str = ".kerntune-aside";

/// Puts objects that a mix left aside back into their places.
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

/// Made now, for make.
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

/// A second name, or a copy where links are not to be had.
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
        // Killed right after the second name was made: both are the same file.
        link(&place, &dir.path().join(ASIDE).join("net/ipv4/tcp.o")).unwrap();
        restore(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "own");
        assert!(!dir.path().join(ASIDE).exists());
        // Killed with the other's object in its place.
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
