//! Packs kernels for the store: all sealed files of a kernel in one object, with the same bytes on
//! every machine.

use crate::dirs::MATRIX_DIR;
use crate::task_result::damaged;
use crate::{Error, Result, Store};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_work::{checked, is_out_of_memory, Id, IoContext, Seal, WorkDir, RESULT_FILE, SUMS_FILE};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Kind of result in the work directory.
const KERNELS: &str = "kernels";
/// Largest size of an unpacked kernel; a larger pack is rejected.
const MAX_UNPACKED_BYTES: u64 = 8 << 30;

/// Name of the object that holds a packed kernel.
fn object(id: &str) -> String {
    format!("packs/{id}.tar.zst")
}

/// Puts a kernel into the store unless it is there.
pub(crate) fn send(store: &dyn Store, kernel: &Kernel) -> Result<()> {
    let name = object(&kernel.manifest.id);
    if !store.list(&name)?.is_empty() {
        return Ok(());
    }
    let bytes = pack(&kernel.dir).at("pack", &kernel.dir)?;
    store.put_new(&name, &bytes).map(drop)
}

/// Directory of kernels that other machines built. They stay apart from the work directory's own,
/// so that nothing here is built or looked up according to their manifests.
const RECEIVED: &str = "kernels";

fn received_dir(work: &WorkDir) -> PathBuf {
    work.root().join(MATRIX_DIR).join(RECEIVED)
}

/// Finds the work directory's own kernel with this id and these images.
pub(crate) fn find_own(work: &WorkDir, id: &Id, content: &str) -> Option<Kernel> {
    let kernel = Kernel::peek(&work.find_verified(KERNELS, id)?).ok()?;
    kernel.content().is_ok_and(|found| found == content).then_some(kernel)
}

/// Checks whether a kernel came from a store.
pub(crate) fn is_received(work: &WorkDir, kernel: &Kernel) -> bool {
    kernel.dir.parent() == Some(&received_dir(work))
}

/// Fetches a kernel from the store and checks its images.
///
/// # Errors
/// [`Error::Object`] for a pack that is missing, damaged, or of another kernel.
pub(crate) fn receive(store: &dyn Store, work: &WorkDir, id: &Id, content: &str) -> Result<Kernel> {
    let received = received_dir(work);
    let whole = received.join(id);
    let known = |dir: &Path| Kernel::load(dir).ok().filter(|kernel| is_kernel(kernel, id, content));
    if let Some(kernel) = known(&whole) {
        return Ok(kernel);
    }
    let name = object(id);
    let bytes = store.get(&name)?.ok_or_else(|| damaged(store, &name, "it is missing"))?;
    fs::create_dir_all(&received).at("create", &received)?;
    // A directory of this call's own, so that two can receive the same kernel at once.
    let aside = received.join(format!(".{id}.{}", crate::process::unique_name()));
    fs::create_dir(&aside).at("create", &aside)?;
    let unpacked = unpack(&bytes, &aside).and_then(|()| {
        let kernel = Kernel::load(&aside).map_err(io::Error::other)?;
        is_kernel(&kernel, id, content).then_some(()).ok_or_else(|| io::Error::other("it is another kernel"))
    });
    let published = unpacked.map_err(|error| not_unpacked(store, &name, error)).and_then(|()| {
        match fs::rename(&aside, &whole) {
            // Another process was faster, or the kernel that is there is damaged.
            Err(_) if known(&whole).is_none() => {
                fs::remove_dir_all(&whole).at("remove", &whole)?;
                Ok(fs::rename(&aside, &whole).at("publish", &whole)?)
            }
            _ => Ok(()),
        }
    });
    let _ = fs::remove_dir_all(&aside);
    published?;
    known(&whole).ok_or_else(|| damaged(store, &name, "it is another kernel"))
}

/// Unpacks the pack of a kernel and hashes every file in it.
///
/// # Errors
/// [`Error::Object`] for one that is damaged, or of another kernel.
pub(crate) fn check(store: &dyn Store, work: &WorkDir, id: &Id) -> Result<()> {
    let name = object(id);
    let bytes = store.get(&name)?.ok_or_else(|| damaged(store, &name, "it is missing"))?;
    let received = received_dir(work);
    fs::create_dir_all(&received).at("create", &received)?;
    let aside = received.join(format!(".{id}.{}", crate::process::unique_name()));
    fs::create_dir(&aside).at("create", &aside)?;
    let loaded = unpack(&bytes, &aside).and_then(|()| Kernel::load(&aside).map_err(io::Error::other));
    let _ = fs::remove_dir_all(&aside);
    match loaded {
        Ok(kernel) if kernel.manifest.id == **id => Ok(()),
        Ok(_) => Err(damaged(store, &name, "it is another kernel")),
        Err(error) => Err(not_unpacked(store, &name, error)),
    }
}

/// Turns an I/O error of unpacking into this crate's error.
fn not_unpacked(store: &dyn Store, name: &str, source: io::Error) -> Error {
    match is_out_of_memory(&source) {
        true => kerntune_work::Error::Io { action: "unpack", path: name.into(), source }.into(),
        false => damaged(store, name, source),
    }
}

fn is_kernel(kernel: &Kernel, id: &Id, content: &str) -> bool {
    kernel.manifest.id == **id && kernel.content().is_ok_and(|found| found == content)
}

/// Moves a received kernel among those of the work directory, so that commands can name it by its
/// label.
///
/// # Errors
/// A kernel whose manifest names a program that kerntune does not know; [`Error::Plan`] if the work
/// directory has another kernel of this id.
pub(crate) fn adopt(work: &WorkDir, kernel: &Kernel) -> Result<Kernel> {
    BuildRequest::of(work, kernel)?;
    let (id, content) = (kernel.manifest.id.parse::<Id>()?, kernel.content()?);
    let whole = work.kind_dir(KERNELS)?.join(&id);
    if work.find(KERNELS, &id).is_none() && whole.symlink_metadata().is_ok() {
        // A leftover that is not a valid result.
        work.remove(KERNELS, &id)?;
    }
    let renamed = fs::rename(&kernel.dir, &whole);
    match find_own(work, &id, &content) {
        Some(kernel) => Ok(kernel),
        None => {
            renamed.at("publish", &whole)?;
            Err(Error::Plan(format!(
                "the kernel {id} of the work directory has other images than the plan says: remove it \
                 (`kerntune kernel remove {id}`), and it is taken out of the store"
            )))
        }
    }
}

/// Archives the sealed files of a result and the seal, sorted by name.
fn pack(dir: &Path) -> io::Result<Vec<u8>> {
    let other = |error: kerntune_work::Error| io::Error::other(error.to_string());
    let seal = checked(dir, &[]).map_err(other)?;
    let mut names: Vec<String> = seal.sums(dir).map_err(other)?.into_keys().map(String::from).collect();
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

/// Unpacks a kernel into `to`, and writes nothing outside it.
pub(crate) fn unpack(bytes: &[u8], to: &Path) -> io::Result<()> {
    let reader = zstd::Decoder::new(bytes)?.take(MAX_UNPACKED_BYTES);
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            return Err(io::Error::other("it contains more than regular files"));
        }
        if !entry.unpack_in(to)? {
            return Err(io::Error::other("it has a file with a path outside the directory"));
        }
    }
    Ok(())
}

/// Checks whether a kernel can be packed: kernels with symbolic links cannot.
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
        assert!(unpack(&bytes, dir.path()).unwrap_err().to_string().contains("more than regular files"));
    }
}
