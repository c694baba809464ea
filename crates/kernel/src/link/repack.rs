//! Bootable image of a kernel whose code was rewritten after linking (BOLT). Only the boot code is
//! compiled.
//!
//! Kbuild makes `bzImage` from `vmlinux` alone, so no object of the kernel is needed. In a fresh
//! build directory with the kernel's configuration, `make -o` keeps `vmlinux`. An
//! unchanged `vmlinux` gives the same `bzImage` as the build, byte for byte.

use crate::kernels::store::{add_label, KIND, MANIFEST, TRASH};
use crate::link::moved_sources;
use crate::make::build_tree::BuildTree;
use crate::make::copy::copy_tree;
use crate::make::kbuild::{make_args, Kbuild};
use crate::make::object_cache::ObjectCache;
use crate::make::object_flags::make_flags;
use crate::vmlinux::image::checked_bytes;
use crate::{BuildRequest, Error, ImportedSource, Kernel, KernelManifest, Result, Symbols};
use kerntune_isa::{GuestIsa, Isa, KbuildNames};
use kerntune_work::{write_json, IoContext, Key, Progress, WorkDir};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Name of `vmlinux` as a target of make.
const VMLINUX: &str = "vmlinux";
const KBUILD: KbuildNames = GuestIsa::KBUILD;
/// Files of the kernel that are copied unchanged.
const KEPT: [&str; 2] = ["config", "System.map"];

/// Code of a kernel, rewritten after linking. Every function keeps its address.
#[derive(Debug, Clone, Copy)]
pub struct RewrittenImage<'a> {
    /// Rewritten ELF image, with the sections and symbols of the original.
    pub vmlinux: &'a Path,
    /// Id of the rewrite, a hash over what made it.
    pub id: &'a str,
}

/// Makes a kernel from `kernel` with rewritten code. The result gets the label, and the recipe as
/// its maker.
///
/// Its id is a hash over kernel and code; an existing result is returned.
///
/// # Errors
/// [`Error::OtherInputs`] if source or compiler are no longer those of the kernel; a failed make,
/// with the first error of the log.
pub fn repack(
    work: &WorkDir,
    kernel: &Kernel,
    rewritten: RewrittenImage,
    (label, recipe): (&str, &str),
    progress: &dyn Progress,
) -> Result<Kernel> {
    let of = &kernel.manifest;
    let key = Key::new("repack/3", "")
        .field("kernel", &of.id)
        .field("images", kernel.content()?)
        .file("vmlinux", rewritten.vmlinux)?;
    let id = key.id();
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        return add_label(work, Kernel::load(&dir)?, label);
    }
    staged.clear()?;
    let started = Instant::now();
    let partial = staged.path();
    let tree = BuildTree::at(partial.join(TRASH));
    pack(work, kernel, rewritten.vmlinux, &tree, label, progress)?;

    let copy = |from: &Path, name: &str| fs::copy(from, partial.join(name)).at("copy", from);
    copy(rewritten.vmlinux, VMLINUX)?;
    copy(&tree.build().join(KBUILD.image_path), KBUILD.image)?;
    moved_sources::transfer(kernel, &Symbols::load(rewritten.vmlinux)?, partial)?;
    for name in KEPT {
        let from = kernel.dir.join(name);
        if from.is_file() {
            copy(&from, name)?;
        }
    }
    if kernel.has_modules() {
        copy_tree(&kernel.dir.join("lib"), &partial.join("lib"))?;
    }
    let manifest = KernelManifest {
        rewrite_id: Some(rewritten.id.into()),
        image_bytes: checked_bytes(of.arch, partial)?,
        ..of.derived(id, label, recipe, started)
    };
    tree.remove()?;
    write_json(&partial.join(MANIFEST), &manifest)?;
    Kernel::load(&staged.publish()?)
}

/// Makes the bootable image in `tree`, with a log beside it.
fn pack(
    work: &WorkDir,
    kernel: &Kernel,
    vmlinux: &Path,
    tree: &BuildTree,
    label: &str,
    progress: &dyn Progress,
) -> Result<()> {
    let of = &kernel.manifest;
    let asked = BuildRequest::of(work, kernel)?;
    let source =
        ImportedSource::import(work, &asked.source, progress)?.patched(work, &asked.patches, progress)?;
    same("the source", kernel, &of.source.hash, source.hash())?;
    same("the compiler", kernel, &of.compiler.version, &asked.compiler.identify()?.version)?;
    tree.link(work, source.dir())?;
    let build = tree.build();
    fs::copy(kernel.config(), build.join(".config")).at("copy", kernel.config())?;
    let cache = ObjectCache::of(work);
    let kbuild = Kbuild {
        tree,
        arch: of.arch,
        compiler: &asked.compiler,
        make_vars: &of.make_vars,
        log: tree.top().with_file_name("build.log"),
        cache: cache.as_ref(),
    };
    let flags = make_flags(&of.flags(), &of.object_flags, &of.object_groups);
    kbuild.make("prepare the boot code", &make_args(None, &flags, &KBUILD.prepared), None, progress)?;
    fs::copy(vmlinux, build.join(VMLINUX)).at("copy", vmlinux)?;
    let mut args = make_args(None, &flags, &[KBUILD.image]);
    // Kbuild's makes call each other by this variable. Without it, `-o` would not reach the make
    // that links.
    args.push(format!("MAKE=make -o {VMLINUX}"));
    kbuild.make(&format!("pack {label} {}", of.version), &args, None, progress)?;
    Ok(())
}

fn same(what: &str, kernel: &Kernel, was: &str, is: &str) -> Result<()> {
    if was == is {
        return Ok(());
    }
    let differences = vec![format!("{what} was {was} and is {is}")];
    Err(Error::OtherInputs { kernel: kernel.manifest.label.clone(), differences })
}
