//! Structure offsets of an existing kernel: from its manifest, or computed by its compiler.

use crate::make::build_tree::BuildTree;
use crate::make::kbuild::{make_args, Kbuild};
use crate::make::object_cache::ObjectCache;
use crate::make::object_flags::make_flags;
use crate::vmlinux::offsets::{in_build, OFFSETS_SOURCE};
use crate::{BuildRequest, Error, ImportedSource, Kernel, Result, StructureOffsets};
use kerntune_work::{write_json, IoContext, Key, Progress, WorkDir};
use std::fs;

/// Kind of result in the work directory.
const KIND: &str = "structures";
const FILE: &str = "structures.json";
const TREE: &str = "linux";
/// Target of Kbuild that leaves `asm-offsets.s` and its command.
const PREPARED: &str = "prepare0";

/// Returns the offsets of a kernel from its manifest. An older kernel has none there; they are
/// computed by its compiler in a few seconds, once for each kernel.
///
/// # Errors
/// A source or compiler that is missing or differs from the kernel's; a compiler that fails.
pub fn structure_offsets(
    work: &WorkDir,
    kernel: &Kernel,
    progress: &dyn Progress,
) -> Result<StructureOffsets> {
    let of = &kernel.manifest;
    // A shipped kernel has those that its type information has.
    if !of.structures.is_empty() || of.source.is_shipped() {
        return Ok(of.structures.clone());
    }
    let key = Key::new("structures/1", "").field("kernel", &of.id).field("question", OFFSETS_SOURCE);
    let staged = work.stage(KIND, &key)?;
    if let Some(dir) = staged.already() {
        let path = dir.join(FILE);
        let bytes = fs::read(&path).at("read", &path)?;
        return Ok(
            serde_json::from_slice(&bytes).map_err(|source| kerntune_work::Error::Json { path, source })?
        );
    }
    staged.clear()?;
    let asked = BuildRequest::of(work, kernel)?;
    let source =
        ImportedSource::import(work, &asked.source, progress)?.patched(work, &asked.patches, progress)?;
    let same = |what: &str, was: &str, is: &str| match was == is {
        true => Ok(()),
        false => Err(Error::OtherInputs {
            kernel: of.label.clone(),
            differences: vec![format!("{what} was {was} and is {is}")],
        }),
    };
    same("the source", &of.source.hash, source.hash())?;
    same("the compiler", &of.compiler.version, &asked.compiler.identify()?.version)?;
    let tree = BuildTree::at(staged.path().join(TREE));
    tree.link(work, source.dir())?;
    let build = tree.build();
    fs::copy(kernel.config(), build.join(".config")).at("copy", kernel.config())?;
    let cache = ObjectCache::of(work);
    let kbuild = Kbuild {
        tree: &tree,
        arch: of.arch,
        compiler: &asked.compiler,
        make_vars: &of.make_vars,
        log: staged.path().join("build.log"),
        cache: cache.as_ref(),
    };
    let flags = make_flags(&of.flags(), &of.object_flags, &of.object_groups);
    let what = format!("find structures of {} {}", of.label, of.version);
    kbuild.make(&what, &make_args(None, &flags, &[PREPARED]), None, progress)?;
    let found = in_build(of.arch, &build, staged.path())?;
    tree.remove()?;
    write_json(&staged.path().join(FILE), &found)?;
    staged.publish()?;
    Ok(found)
}
