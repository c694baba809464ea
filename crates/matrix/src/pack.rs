//! A kernel on its way through a store: its sealed files in one, the same bytes whoever packs them.

use crate::{Error, Result, Store};
use kerntune_kernel::Kernel;
use kerntune_work::{checked, IoContext, Seal, WorkDir, RESULT_FILE, SUMS_FILE};
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The kind of result in the work directory.
const KERNELS: &str = "kernels";
/// More than any kernel unpacked: what claims to be more is none.
const MOST: u64 = 8 << 30;

/// The object that a kernel is.
fn object(id: &str) -> String {
    format!("packs/{id}.tar.zst")
}

/// Puts a kernel into the store, unless it is there.
pub(crate) fn send(store: &dyn Store, kernel: &Kernel) -> Result<()> {
    let name = object(&kernel.manifest.id);
    if !store.list(&name)?.is_empty() {
        return Ok(());
    }
    let bytes = pack(&kernel.dir).at("pack", &kernel.dir)?;
    store.put_new(&name, &bytes).map(drop)
}

/// The kernel in the work directory, taken out of the store if need be; its images have to be these.
pub(crate) fn fetch(store: &dyn Store, work: &WorkDir, id: &str, content: &str) -> Result<Kernel> {
    if let Some(dir) = work.sound(KERNELS, id) {
        let kernel = Kernel::peek(&dir)?;
        if kernel.content()? == content {
            return Ok(kernel);
        }
    }
    let name = object(id);
    let damaged = |what: String| Error::Object { store: store.url(), name: name.clone(), what };
    let bytes = store.get(&name)?.ok_or_else(|| damaged("it is missing".into()))?;
    let room = work.room(KERNELS)?;
    // Ours alone: two that fetch the same do not meet.
    let aside = room.join(format!(".{id}.{}", crate::process::process()));
    let _ = fs::remove_dir_all(&aside);
    fs::create_dir(&aside).at("create", &aside)?;
    let unpacked = unpack(&bytes, &aside).and_then(|()| {
        let kernel = Kernel::load(&aside).map_err(|error| io::Error::other(error.to_string()))?;
        let same = kernel.content().is_ok_and(|found| found == content) && kernel.manifest.id == id;
        same.then_some(()).ok_or_else(|| io::Error::other("it is another kernel"))
    });
    let result = unpacked.map_err(|error| damaged(error.to_string())).and_then(|()| {
        let whole = room.join(id);
        if work.find(KERNELS, id).is_none() {
            // Of nothing, or of what is no result.
            let _ = fs::remove_dir_all(&whole);
        }
        match fs::rename(&aside, &whole) {
            Err(_) if work.sound(KERNELS, id).is_some() => {}
            renamed => renamed.at("publish", &whole)?,
        }
        let kernel = Kernel::load(&whole)?;
        match kernel.content()? == content {
            true => Ok(kernel),
            false => Err(Error::Plan(format!(
                "the kernel {id} of the work directory has other images than the plan says: remove it \
                 (`kerntune kernel remove {id}`), and it is taken out of the store"
            ))),
        }
    });
    let _ = fs::remove_dir_all(&aside);
    result
}

/// The sealed files of a result, and what vouches for them, in the order of their names.
fn pack(dir: &Path) -> io::Result<Vec<u8>> {
    let other = |error: kerntune_work::Error| io::Error::other(error.to_string());
    let seal = checked(dir, &[]).map_err(other)?;
    let mut names: Vec<String> = seal.sums(dir).map_err(other)?.into_keys().collect();
    names.extend([RESULT_FILE.to_owned(), SUMS_FILE.to_owned()]);
    names.sort();
    let mut archive = tar::Builder::new(zstd::Encoder::new(Vec::new(), 3)?);
    for name in names {
        let bytes = fs::read(dir.join(&name))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, &name, &bytes[..])?;
    }
    archive.into_inner()?.finish()
}

/// Nothing is written outside of `to`.
pub(crate) fn unpack(bytes: &[u8], to: &Path) -> io::Result<()> {
    let reader = zstd::Decoder::new(bytes)?.take(MOST);
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            return Err(io::Error::other("it has more than files in it"));
        }
        if !entry.unpack_in(to)? {
            return Err(io::Error::other("it has a file that is to be elsewhere"));
        }
    }
    Ok(())
}

/// Whether the kernel's result can be packed: links are not.
pub(crate) fn can_send(kernel: &Kernel) -> bool {
    Seal::read(&kernel.dir).is_ok_and(|seal| seal.links.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_work::Key;

    #[test]
    fn a_result_comes_out_as_it_went_in_and_packs_to_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let staged = work.stage(KERNELS, &Key::new("test/1", "")).unwrap();
        fs::write(staged.path().join("vmlinux"), vec![7; 100_000]).unwrap();
        fs::create_dir(staged.path().join("patches")).unwrap();
        fs::write(staged.path().join("patches/one"), "x").unwrap();
        let whole = staged.publish().unwrap();
        let bytes = pack(&whole).unwrap();
        assert_eq!(bytes, pack(&whole).unwrap());
        let to = dir.path().join("to");
        fs::create_dir(&to).unwrap();
        unpack(&bytes, &to).unwrap();
        checked(&to, &[]).unwrap();
        for damaged in [&bytes[..bytes.len() / 2], b"nonsense"] {
            let to = dir.path().join("damaged");
            fs::create_dir_all(&to).unwrap();
            assert!(unpack(damaged, &to).is_err() || checked(&to, &[]).is_err());
        }
    }

    #[test]
    fn what_would_be_written_elsewhere_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut archive = tar::Builder::new(zstd::Encoder::new(Vec::new(), 3).unwrap());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        archive.append_link(&mut header, "a", "/etc").unwrap();
        let bytes = archive.into_inner().unwrap().finish().unwrap();
        assert!(unpack(&bytes, dir.path()).unwrap_err().to_string().contains("more than files"));
    }
}
