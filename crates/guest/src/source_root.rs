//! The directory that a command's files are copied from: the root of this machine, or of another
//! system, such as a container's.

use crate::{Error, Result};
use rustix::io::Errno;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Largest number of symbolic links to follow, as in the kernel.
const LINKS_MAX: usize = 40;

/// A root. Paths inside begin with `/`, and links in them lead to places inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRoot {
    directory: PathBuf,
}

impl Default for SourceRoot {
    /// The root of this machine.
    fn default() -> Self {
        Self { directory: "/".into() }
    }
}

impl SourceRoot {
    /// Takes a directory of this machine as a root.
    ///
    /// # Errors
    /// A path that leads to no directory, or has bytes that are not UTF-8.
    pub fn of(directory: &Path) -> Result<Self> {
        let unusable = |what: String| Error::OtherRoot { root: directory.to_owned(), what };
        let found = directory.canonicalize().map_err(|error| unusable(error.to_string()))?;
        match found.is_dir() && found.to_str().is_some() {
            true => Ok(Self { directory: found }),
            false => Err(unusable("a root is a directory, and its path UTF-8".into())),
        }
    }

    /// Returns true for the root of this machine.
    pub fn is_of_this_machine(&self) -> bool {
        self.directory.parent().is_none()
    }

    /// Returns the directory on this machine, without links in its path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the path inside of a path of this machine that has no links in it.
    pub fn inside(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.directory).ok().map(|path| Path::new("/").join(path))
    }

    /// Returns where a path inside is on this machine, with the links above it followed, and not that
    /// which it may be itself.
    ///
    /// # Errors
    /// Links in a circle.
    pub fn locate(&self, path: &Path) -> io::Result<PathBuf> {
        if self.is_of_this_machine() {
            return Ok(path.to_owned());
        }
        let mut left: Vec<PathBuf> = parts(path).rev().collect();
        let (mut found, mut depth, mut links) = (self.directory.clone(), 0, 0);
        while let Some(part) = left.pop() {
            if part == Path::new("..") {
                if depth > 0 {
                    found.pop();
                    depth -= 1;
                }
                continue;
            }
            let here = found.join(&part);
            if left.is_empty() {
                return Ok(here);
            }
            match fs::read_link(&here) {
                Ok(target) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::LOOP.into());
                    }
                    if target.is_absolute() {
                        (found, depth) = (self.directory.clone(), 0);
                    }
                    left.extend(parts(&target).rev());
                }
                Err(_) => {
                    found = here;
                    depth += 1;
                }
            }
        }
        Ok(found)
    }

    /// Looks at what a path inside is, without following the link that it may be.
    ///
    /// # Errors
    /// As the system says.
    pub fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.locate(path)?.symlink_metadata()
    }

    /// Returns true if there is an entry at a path inside.
    pub fn has(&self, path: &Path) -> bool {
        self.symlink_metadata(path).is_ok()
    }

    /// Follows a path inside to its end.
    ///
    /// # Errors
    /// An entry that is missing, links in a circle.
    pub fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let found = self.locate(&path)?;
            if !found.symlink_metadata()?.is_symlink() {
                return Ok(self.inside(&found).unwrap_or(path));
            }
            let above = found.parent().and_then(|above| self.inside(above)).unwrap_or("/".into());
            path = above.join(fs::read_link(&found)?);
        }
        Err(Errno::LOOP.into())
    }
}

/// Names of a path, `..` among them.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> + '_ {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| Path::new(part.as_os_str()).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_lead_to_places_inside_and_never_out() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().canonicalize().unwrap();
        fs::create_dir_all(at.join("root/usr/lib")).unwrap();
        fs::write(at.join("root/usr/lib/libc.so"), "inside").unwrap();
        fs::write(at.join("secret"), "outside").unwrap();
        for (target, link) in [
            ("/usr/lib", "lib"),
            ("../../../../..", "up"),
            ("loop", "loop"),
            ("/secret", "absolute"),
            ("/lib/libc.so", "libc"),
        ] {
            symlink(target, at.join("root").join(link)).unwrap();
        }
        let root = SourceRoot::of(&at.join("root")).unwrap();
        let located = |path: &str| root.locate(Path::new(path)).unwrap();
        assert_eq!(located("/lib/libc.so"), at.join("root/usr/lib/libc.so"));
        assert_eq!(located("/up/secret"), at.join("root/secret"));
        assert_eq!(located("/../../secret"), at.join("root/secret"));
        assert_eq!(located("/usr/lib/../../../secret"), at.join("root/secret"));
        assert_eq!(located("/"), at.join("root"));
        assert!(root.locate(Path::new("/loop/x")).is_err() && root.resolve(Path::new("/loop")).is_err());
        assert!(!root.has(Path::new("/up/secret")) && root.resolve(Path::new("/absolute")).is_err());
        assert_eq!(root.resolve(Path::new("/libc")).unwrap(), Path::new("/usr/lib/libc.so"));
        assert_eq!(root.inside(&at.join("root/usr")), Some("/usr".into()));
        assert_eq!(root.inside(&at.join("secret")), None);
        assert!(SourceRoot::of(&at.join("secret")).is_err() && SourceRoot::of(&at.join("none")).is_err());
    }

    #[test]
    fn paths_of_this_machine_are_what_they_are() {
        let root = SourceRoot::default();
        assert!(root.is_of_this_machine());
        assert_eq!(root.locate(Path::new("/bin/../x")).unwrap(), Path::new("/bin/../x"));
        assert_eq!(root.inside(Path::new("/a/b")), Some("/a/b".into()));
    }
}
