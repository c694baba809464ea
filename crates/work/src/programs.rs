//! Search for programs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Finds a program: `name` itself if it is a path, else the first match in the directories of PATH
/// and `more`. Relative directories are skipped.
pub fn find_program(name: &str, more: &[&str]) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&dirs).chain(more.iter().map(PathBuf::from));
    dirs.filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_this_machine() {
        assert!(find_program("sh", &[]).unwrap().is_absolute());
        assert_eq!(find_program("/bin/sh", &[]), Some("/bin/sh".into()));
        assert_eq!(find_program("/etc/passwd", &[]), None);
        assert_eq!(find_program("passwd.", &["/etc"]), None);
        assert_eq!(find_program("", &["/usr/bin"]), None);
    }
}
