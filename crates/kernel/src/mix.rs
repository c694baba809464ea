//! Kernels linked from objects of two others: nothing is compiled.

use crate::aside::{link, remove, restore, touch, ASIDE};
use crate::borrowed::{no_objects, Objects};
use crate::{objects, Error, FunctionOrder, Kernel, Result};
use kerntune_work::{IoContext, Progress, WorkDir};
use std::fs;
use std::path::{Path, PathBuf};

/// Beside it: the other kernel's objects.
const OTHER: &str = "other";

/// Two kernels of one source, configuration and compiler whose objects were kept. Each object can be taken from one or
/// the other; whatever else there is in a build directory is the first one's.
///
/// The first one's objects are lent while this lives, and in their places again afterwards, or, if this was killed,
/// before anybody uses them the next time.
pub struct Mixer<'a> {
    kernel: &'a Kernel,
    objects: Objects,
    names: Vec<String>,
    /// For each of `names`: whether the first one's object is in its place.
    own: Vec<bool>,
}

impl<'a> Mixer<'a> {
    /// Takes the objects of `kernel`, and those of `other` that are different.
    ///
    /// # Errors
    /// [`Error::CannotMix`], with why.
    pub fn open(work: &WorkDir, kernel: &'a Kernel, other: &Kernel) -> Result<Self> {
        compatible(kernel, other)?;
        // Whoever was killed with its objects in hand left them elsewhere, and maybe mixed. One lock after the
        // other: who holds two may wait for one who waits for him.
        drop(Objects::borrow(work, other)?);
        let mut mixer =
            Self { kernel, objects: Objects::borrow(work, kernel)?, names: Vec::new(), own: Vec::new() };
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

    /// The objects in which the two differ, from the top of the build directory, in the order in which they are
    /// linked.
    pub fn objects(&self) -> &[String] {
        &self.names
    }

    /// Links a kernel with the objects `others` (indices of [`objects`](Self::objects), ascending) of the second kernel
    /// and everything else of the first, and puts it into the directory `to`, with `build.log`.
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
        self.objects.take_outputs(self.kernel, to)?;
        Ok(Kernel { dir: to.to_owned(), manifest: self.kernel.manifest.clone() })
    }

    fn other(&self) -> PathBuf {
        self.objects.partial().join(OTHER)
    }

    /// Puts an object in its place, as one that was made now, so that make takes it for what it needs and links
    /// anew.
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

impl Drop for Mixer<'_> {
    fn drop(&mut self) {
        // If this fails they stay aside, and are put back by whoever borrows them next.
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
    use crate::store::tests::manifest;

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
