//! Kernels linked from objects of two others, without compiling.

use crate::link::borrowed::{no_objects, BorrowedObjects};
use crate::make::aside::{link, remove, restore, touch, ASIDE};
use crate::vmlinux::objects;
use crate::{Error, FunctionOrder, Kernel, Result};
use kerntune_work::{IoContext, Progress, WorkDir};
use std::fs;
use std::path::{Path, PathBuf};

/// Directory beside the build directory with the other kernel's objects.
const OTHER: &str = "other";

/// Linker of kernels that take each object from one of two others. The two must have the same
/// source, configuration and compiler, and kept objects. Everything else in the build directory
/// comes from the first kernel.
///
/// The first kernel's objects are borrowed while this value lives and put back when it is dropped.
/// After a kill, the next user of the objects restores them.
pub struct ObjectMixer<'a> {
    kernel: &'a Kernel,
    objects: BorrowedObjects,
    names: Vec<String>,
    /// For each of `names`: the first kernel's object is in place.
    own: Vec<bool>,
}

impl<'a> ObjectMixer<'a> {
    /// Borrows the objects of `kernel`, and links those of `other` that differ.
    ///
    /// # Errors
    /// [`Error::CannotMix`], with the reason.
    pub fn open(work: &WorkDir, kernel: &'a Kernel, other: &Kernel) -> Result<Self> {
        compatible(kernel, other)?;
        // A killed borrower may have left the objects elsewhere, and mixed. The locks are taken one
        // after the other, because two processes that hold both could wait for each other.
        drop(BorrowedObjects::borrow(work, other)?);
        let mut mixer = Self {
            kernel,
            objects: BorrowedObjects::borrow(work, kernel)?,
            names: Vec::new(),
            own: Vec::new(),
        };
        let from = other.build_dir().ok_or_else(|| no_objects(other))?;
        let names = objects::members(mixer.objects.build())?;
        if names != objects::members(&from)? {
            return Err(cannot(kernel, other, "they are not linked from the same objects".into()));
        }
        let to = mixer.other();
        remove(&to)?;
        for name in names {
            let (own, others) = (mixer.objects.build().join(&name), from.join(&name));
            if fs::read(&own).at("read", &own)? != fs::read(&others).at("read", &others)? {
                link(&others, &to.join(&name))?;
                mixer.names.push(name);
            }
        }
        mixer.own = vec![true; mixer.names.len()];
        Ok(mixer)
    }

    /// Returns the objects that differ, as paths from the top of the build directory, in link
    /// order.
    pub fn objects(&self) -> &[String] {
        &self.names
    }

    /// Links a kernel with the objects `others` (indices of [`objects`](Self::objects), ascending)
    /// of the second kernel and everything else of the first. The result goes into the directory
    /// `to`, with `build.log`.
    ///
    /// # Errors
    /// A failed link, with the first error of the log.
    pub fn link(
        &mut self,
        others: &[usize],
        to: &Path,
        label: &str,
        progress: &dyn Progress,
    ) -> Result<Kernel> {
        for at in 0..self.names.len() {
            self.put(at, others.binary_search(&at).is_err())?;
        }
        let order = self.kernel.manifest.movable.then(FunctionOrder::default);
        self.objects.link(self.kernel, order.as_ref(), label, &to.join("build.log"), progress)?;
        self.objects.copy_outputs(self.kernel, to)?;
        Ok(Kernel { dir: to.to_owned(), manifest: self.kernel.manifest.clone() })
    }

    fn other(&self) -> PathBuf {
        self.objects.partial().join(OTHER)
    }

    /// Puts an object in place with a new modification time, so that make accepts it and links
    /// again.
    fn put(&mut self, at: usize, own: bool) -> Result<()> {
        let (Some(name), Some(is_own)) = (self.names.get(at), self.own.get_mut(at)) else { return Ok(()) };
        if *is_own == own {
            return Ok(());
        }
        let place = self.objects.build().join(name);
        let aside = self.objects.build().join(ASIDE).join(name);
        if !aside.is_file() {
            link(&place, &aside)?;
        }
        let from = if own { aside } else { self.objects.partial().join(OTHER).join(name) };
        let fresh = place.with_extension("o.kerntune");
        fs::copy(&from, &fresh).at("copy", &from)?;
        fs::rename(&fresh, &place).at("rename", &fresh)?;
        touch(&place)?;
        *is_own = own;
        Ok(())
    }
}

impl Drop for ObjectMixer<'_> {
    fn drop(&mut self) {
        // If this fails, the next borrower restores them.
        let _ = restore(self.objects.build());
        let _ = remove(&self.other());
    }
}

fn compatible(kernel: &Kernel, other: &Kernel) -> Result<()> {
    let (a, b) = (&kernel.manifest, &other.manifest);
    let reason = if a.source.hash != b.source.hash {
        "they are built from different sources"
    } else if a.config_hash != b.config_hash {
        "their configurations are different, and with them what their objects agree on"
    } else if a.compiler != b.compiler {
        "they are built by different compilers"
    } else if b.movable && !a.movable {
        "one has each function in a section of its own (--movable), and the other no place for these"
    } else if a.order_id.is_some() || b.order_id.is_some() {
        "one has its functions in another order; what it was linked from can be mixed"
    } else if a.rewrite_id.is_some() || b.rewrite_id.is_some() {
        "one was rewritten after it was linked; its base kernel can be mixed"
    } else if a.id == b.id {
        "they are the same kernel"
    } else {
        return Ok(());
    };
    Err(cannot(kernel, other, reason.into()))
}

fn cannot(kernel: &Kernel, other: &Kernel, reason: String) -> Error {
    Error::CannotMix { kernel: kernel.manifest.label.clone(), other: other.manifest.label.clone(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::store::tests::manifest;

    fn kernel(id: &str) -> Kernel {
        Kernel { dir: id.into(), manifest: manifest(id, id, "2026-01-01T00:00:00Z") }
    }

    #[test]
    fn what_does_not_fit_together_is_not_mixed() {
        let bad = kernel("bad");
        compatible(&bad, &kernel("good")).unwrap();
        let refused = |change: &dyn Fn(&mut Kernel), word: &str| {
            let mut good = kernel("good");
            change(&mut good);
            let error = compatible(&bad, &good).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        };
        refused(&|k| k.manifest.source.hash = "9".into(), "sources");
        refused(&|k| k.manifest.config_hash = "9".into(), "configurations");
        refused(&|k| k.manifest.compiler.version = "gcc 13".into(), "compilers");
        refused(&|k| k.manifest.movable = true, "--movable");
        refused(&|k| k.manifest.order_id = Some("o".into()), "order");
        refused(&|k| k.manifest.rewrite_id = Some("r".into()), "rewritten");
        refused(&|k| k.manifest.id = "bad".into(), "same kernel");
    }
}
