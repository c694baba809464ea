//! Search for the running kernel's image on disk.

use kerntune_debuginfo::{by_build_id, ROOT};
use kerntune_kernel::build_id_of;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the paths at which distributions install a kernel's image with symbols, debug packages
/// included.
pub fn places(root: &Path, release: &str, build_id: Option<&str>) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = [
        format!("usr/lib/debug/boot/vmlinux-{release}"),
        format!("usr/lib/debug/lib/modules/{release}/vmlinux"),
        format!("usr/lib/debug/usr/lib/modules/{release}/vmlinux"),
        format!("boot/vmlinux-{release}"),
        format!("lib/modules/{release}/build/vmlinux"),
        format!("lib/modules/{release}/vmlinux"),
    ]
    .iter()
    .map(|place| root.join(place))
    .collect();
    let debug = root.join(ROOT.trim_start_matches('/'));
    if let Some(place) = build_id.and_then(|id| by_build_id(&debug, id)) {
        places.insert(0, place);
    }
    places
}

/// Returns the first image with the running kernel's build id, and notes about images of other
/// kernels.
pub(crate) fn find(places: &[PathBuf], build_id: Option<&str>) -> (Option<PathBuf>, Vec<String>) {
    let mut notes = Vec::new();
    for place in places.iter().filter(|place| fs::metadata(place).is_ok_and(|what| what.is_file())) {
        let shown = place.display();
        match (build_id_of(place), build_id) {
            (Ok(Some(found)), Some(running)) if found == running => return (Some(place.clone()), notes),
            (Ok(Some(_)), Some(_)) => {
                notes.push(format!("{shown} is of another build of this kernel, and not used"))
            }
            (Ok(_), _) => notes
                .push(format!("{shown} cannot be told to be this kernel's (no build id), and is not used")),
            (Err(error), _) => notes.push(format!("{shown} is not used: {error}")),
        }
    }
    (None, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_packages_come_first() {
        let places = places(Path::new("/"), "6.12.1", Some("abcdef"));
        assert_eq!(places[0], Path::new("/usr/lib/debug/.build-id/ab/cdef.debug"));
        assert!(places.contains(&PathBuf::from("/boot/vmlinux-6.12.1")));
    }

    #[test]
    fn an_image_of_another_kernel_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vmlinux");
        fs::write(&path, b"no ELF").unwrap();
        let (found, notes) = find(&[path, dir.path().join("none")], Some("ab"));
        assert_eq!((found, notes.len()), (None, 1));
    }
}
