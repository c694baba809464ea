//! Finds the host file that a program in the guest was packed from.

use crate::{programs, ImageManifest, Result, Workload};
use kerntune_work::WorkDir;
use std::path::{Path, PathBuf};

/// Finds the file that `word` means: one of kerntune's own programs (`rr`), a file that the workload
/// copies, by name or path in the guest, a path of this machine, or the name of a file in the image
/// (`redis-server`, `libc.so.6`), which was packed from the same path here. `None` if it is none of
/// these; [`similar`] then offers names.
///
/// # Errors
/// A program of kerntune's that does not compile.
pub fn locate(
    work: &WorkDir,
    workload: &Workload,
    image: &ImageManifest,
    word: &str,
) -> Result<Option<PathBuf>> {
    if let Some(program) = programs::named(word) {
        return program.compile(work).map(Some);
    }
    let is_meant = |place: &Path| place == Path::new(word) || place.file_name().is_some_and(|of| of == word);
    if let Some((_, file)) = workload.copies.iter().find(|(place, _)| is_meant(place)) {
        return Ok(Some(file.clone()));
    }
    if word.contains('/') {
        let path = Path::new(word);
        return Ok(path.is_file().then(|| path.to_owned()));
    }
    let packed = image.files.iter().map(|file| Path::new(&file.path));
    let named = |path: &&Path| path.file_name().is_some_and(|name| name == word);
    // Programs such as Debian's `redis-server` may be links to the packed file.
    let in_path = || crate::host::find_program(word).and_then(|path| path.canonicalize().ok());
    Ok(packed.filter(named).find(|path| path.is_file()).map(Path::to_owned).or_else(in_path))
}

/// Names of the programs and libraries in an image.
pub fn similar(image: &ImageManifest) -> impl Iterator<Item = &str> {
    let code = |path: &&str| {
        path.contains("/bin/") || path.contains("/sbin/") || path.contains("/lib/") || path.contains(".so")
    };
    let paths = image.files.iter().map(|file| file.path.as_str()).filter(code);
    paths.filter_map(|path| path.rsplit('/').next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PackedFile;

    #[test]
    fn own_programs_paths_and_packed_files() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let files = ["/kt/bin/rr", "/bin/sh", "/etc/passwd"];
        let image = ImageManifest {
            schema: String::new(),
            id: String::new(),
            workload: String::new(),
            files: files.iter().map(|path| PackedFile { path: path.to_string(), size: 1 }).collect(),
            bytes: 0,
        };
        let text = "[copies]\n\"/opt/mine\" = \"build/own\"\n[[measured.step]]\ncommand = [\"/opt/mine\"]\n";
        let workload = Workload::parse(text, Path::new("/src/x.toml")).unwrap();
        let find = |word: &str| locate(&work, &workload, &image, word).unwrap();
        assert_eq!(find("mine"), Some("/src/build/own".into()));
        assert_eq!(find("/opt/mine"), Some("/src/build/own".into()));
        assert!(find("rr").unwrap().ends_with("rr"));
        assert_eq!(find("sh"), Some("/bin/sh".into()));
        assert_eq!(find("/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(find("/bin/nothing-here"), None);
        assert_eq!(find("nothing-here"), None);
        assert_eq!(similar(&image).collect::<Vec<_>>(), ["rr", "sh"]);
    }
}
