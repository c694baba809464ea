//! The guest's result stream: a tar archive that may have been cut off.

use crate::{Error, Result};
use kerntune_work::IoContext;
use std::fs::{self, File};
use std::path::{Component, Path};

/// Unpacks the regular files of `archive` into `directory`, never outside it. Returns their number.
pub fn unpack(archive: &Path, directory: &Path) -> Result<usize> {
    fs::create_dir_all(directory).at("create", directory)?;
    let damaged =
        |error: std::io::Error| Error::Results { path: archive.to_owned(), message: error.to_string() };
    let mut tar = tar::Archive::new(File::open(archive).at("open", archive)?);
    let mut files = 0;
    for entry in tar.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        let plain = name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !entry.header().entry_type().is_file() || !plain {
            continue;
        }
        let target = directory.join(&name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        let mut file = File::create(&target).at("create", &target)?;
        std::io::copy(&mut entry, &mut file).map_err(damaged)?;
        files += 1;
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(path: &Path) {
        let mut builder = tar::Builder::new(File::create(path).unwrap());
        for (name, text) in [("gcov/work/kernel/fork.gcda", "counters"), ("status", "done")] {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        builder.finish().unwrap();
    }

    #[test]
    fn files_arrive_and_a_cut_stream_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let tar = dir.path().join("out.tar");
        archive(&tar);
        assert_eq!(unpack(&tar, &dir.path().join("out")).unwrap(), 2);
        assert_eq!(fs::read_to_string(dir.path().join("out/status")).unwrap(), "done");
        let bytes = fs::read(&tar).unwrap();
        fs::write(&tar, &bytes[..515]).unwrap();
        let error = unpack(&tar, &dir.path().join("cut")).unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
}
