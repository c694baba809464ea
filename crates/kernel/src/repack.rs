//! A kernel whose code was rewritten after it was linked: the image to boot is made of it, and nothing is compiled
//! but what unpacks it.
//!
//! Kbuild makes `bzImage` of `vmlinux` alone. So no object of the kernel is needed: in a fresh build directory with
//! the kernel's configuration, `vmlinux` is what make is told not to make (`-o`). Of an image that nobody has touched
//! comes the `bzImage` that the build made, byte for byte.

use crate::build_tree::BuildTree;
use crate::image::checked_bytes;
use crate::kbuild::{make_args, Kbuild};
use crate::object_cache::ObjectCache;
use crate::object_flags::make_flags;
use crate::store::{known_as, DOOMED, KIND, MANIFEST};
use crate::{moved_sources, BuildRequest, Error, ImportedSource, Kernel, KernelManifest, Result, Symbols};
use kerntune_isa::{Guest, Isa, KbuildNames};
use kerntune_work::{write_json, IoContext, Key, Progress, WorkDir};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// What `vmlinux` is called by make, and what Kbuild makes of it.
const VMLINUX: &str = "vmlinux";
const KBUILD: KbuildNames = Guest::KBUILD;
/// What names the kernel's parts that stay as they were.
const KEPT: [&str; 2] = ["config", "System.map"];

/// The code of a kernel as something else than its linker left it: every function where it was.
#[derive(Debug, Clone, Copy)]
pub struct Rewritten<'a> {
    /// The ELF image, with the sections and symbols of the kernel's own.
    pub vmlinux: &'a Path,
    /// What names how it was made.
    pub id: &'a str,
}

/// Makes the kernel that `kernel` is with its code rewritten, listed under a label and as made by a recipe.
///
/// The result is named by the kernel and the code; what is there already is not made again.
///
/// # Errors
/// [`Error::OtherInputs`] if source or compiler are no longer those of the kernel; a failed make, with the first
/// error of the log.
pub fn repack(
    work: &WorkDir,
    kernel: &Kernel,
    rewritten: Rewritten,
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
        return known_as(work, Kernel::load(&dir)?, label);
    }
    staged.clear()?;
    let started = Instant::now();
    let partial = staged.path();
    let tree = BuildTree::at(partial.join(DOOMED));
    pack(work, kernel, rewritten.vmlinux, &tree, label, progress)?;

    let copy = |from: &Path, name: &str| fs::copy(from, partial.join(name)).at("copy", from);
    copy(rewritten.vmlinux, VMLINUX)?;
    copy(&tree.build().join(KBUILD.image_path), KBUILD.image)?;
    moved_sources::carry(kernel, &Symbols::load(rewritten.vmlinux)?, partial)?;
    for name in KEPT {
        let from = kernel.dir.join(name);
        if from.is_file() {
            copy(&from, name)?;
        }
    }
    let manifest = KernelManifest {
        rewrite_id: Some(rewritten.id.into()),
        image_bytes: checked_bytes(of.arch, partial)?,
        ..of.remade(id, label, recipe, started)
    };
    tree.remove()?;
    write_json(&partial.join(MANIFEST), &manifest)?;
    Kernel::load(&staged.publish()?)
}

/// Makes the image to boot in `tree`, with a log beside it.
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
    let cache = ObjectCache::of_host_tools(work);
    let kbuild = Kbuild {
        tree,
        arch: of.arch,
        compiler: &asked.compiler,
        make_vars: &of.make_vars,
        log: tree.top().with_file_name("build.log"),
        cache: cache.as_ref(),
    };
    let flags = make_flags(&of.flags(), &of.object_flags);
    kbuild.make("prepare the boot code", &make_args(None, &flags, &KBUILD.prepared), None, progress)?;
    fs::copy(vmlinux, build.join(VMLINUX)).at("copy", vmlinux)?;
    let mut args = make_args(None, &flags, &[KBUILD.image]);
    // Kbuild's makes call each other by this variable. Only so does `-o` reach the one that would link.
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
