//! A kernel on its way through a store: its sealed files in one, the same bytes whoever packs them.

use crate::made::damaged;
use crate::room::ROOM;
use crate::{Error, Result, Store};
use kerntune_kernel::{BuildRequest, Kernel};
use kerntune_work::{checked, is_out_of_memory, Id, IoContext, Seal, WorkDir, RESULT_FILE, SUMS_FILE};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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

/// Where a work directory has kernels that other machines built. They are not among its own, so that nothing is built or looked up by
/// what they say.
const RECEIVED: &str = "kernels";

fn room(work: &WorkDir) -> PathBuf {
    work.root().join(ROOM).join(RECEIVED)
}

/// The work directory's own kernel of this id, if its images are these.
pub(crate) fn own(work: &WorkDir, id: &Id, content: &str) -> Option<Kernel> {
    let kernel = Kernel::peek(&work.sound(KERNELS, id)?).ok()?;
    kernel.content().is_ok_and(|found| found == content).then_some(kernel)
}

/// Whether a kernel was taken out of a store.
pub(crate) fn is_received(work: &WorkDir, kernel: &Kernel) -> bool {
    kernel.dir.parent() == Some(&room(work))
}

/// A kernel out of the store; its images have to be these.
///
/// # Errors
/// [`Error::Object`] for a pack that is missing, damaged, or of another kernel.
pub(crate) fn receive(store: &dyn Store, work: &WorkDir, id: &Id, content: &str) -> Result<Kernel> {
    let room = room(work);
    let whole = room.join(id);
    let known = |dir: &Path| Kernel::load(dir).ok().filter(|kernel| is_the(kernel, id, content));
    if let Some(kernel) = known(&whole) {
        return Ok(kernel);
    }
    let name = object(id);
    let bytes = store.get(&name)?.ok_or_else(|| damaged(store, &name, "it is missing"))?;
    fs::create_dir_all(&room).at("create", &room)?;
    // Ours alone: two that receive the same do not meet.
    let aside = room.join(format!(".{id}.{}", crate::process::process()));
    let _ = fs::remove_dir_all(&aside);
    fs::create_dir(&aside).at("create", &aside)?;
    let unpacked = unpack(&bytes, &aside).and_then(|()| {
        let kernel = Kernel::load(&aside).map_err(io::Error::other)?;
        is_the(&kernel, id, content).then_some(()).ok_or_else(|| io::Error::other("it is another kernel"))
    });
    let published = unpacked.map_err(|error| not_unpacked(store, &name, error)).and_then(|()| {
        match fs::rename(&aside, &whole) {
            // Another process was faster, or what is there is damaged.
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
    let room = room(work);
    fs::create_dir_all(&room).at("create", &room)?;
    let aside = room.join(format!(".{id}.{}", crate::process::process()));
    let _ = fs::remove_dir_all(&aside);
    fs::create_dir(&aside).at("create", &aside)?;
    let loaded = unpack(&bytes, &aside).and_then(|()| Kernel::load(&aside).map_err(io::Error::other));
    let _ = fs::remove_dir_all(&aside);
    match loaded {
        Ok(kernel) if kernel.manifest.id == **id => Ok(()),
        Ok(_) => Err(damaged(store, &name, "it is another kernel")),
        Err(error) => Err(not_unpacked(store, &name, error)),
    }
}

/// The error of a pack that could not be unpacked.
fn not_unpacked(store: &dyn Store, name: &str, source: io::Error) -> Error {
    match is_out_of_memory(&source) {
        true => kerntune_work::Error::Io { action: "unpack", path: name.into(), source }.into(),
        false => damaged(store, name, source),
    }
}

fn is_the(kernel: &Kernel, id: &Id, content: &str) -> bool {
    kernel.manifest.id == **id && kernel.content().is_ok_and(|found| found == content)
}

/// A received kernel among those of the work directory, for commands that name it by its label.
///
/// # Errors
/// A kernel that names something to run which kerntune does not know; [`Error::Plan`] if another kernel of this id is there.
pub(crate) fn adopt(work: &WorkDir, kernel: &Kernel) -> Result<Kernel> {
    BuildRequest::of(work, kernel)?;
    let (id, content) = (kernel.manifest.id.parse::<Id>()?, kernel.content()?);
    let whole = work.room(KERNELS)?.join(&id);
    if work.find(KERNELS, &id).is_none() && whole.symlink_metadata().is_ok() {
        // Of no result.
        work.remove(KERNELS, &id)?;
    }
    let renamed = fs::rename(&kernel.dir, &whole);
    match own(work, &id, &content) {
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

/// The sealed files of a result, and what vouches for them, in the order of their names.
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
