//! Where a kernel that was built before keeps what is known of requests to block devices and of network packets.

use crate::build_tree::BuildTree;
use crate::kbuild::{make_args, Kbuild};
use crate::object_cache::ObjectCache;
use crate::object_flags::make_flags;
use crate::offsets::{in_build, QUESTION};
use crate::{BuildRequest, Error, ImportedSource, Kernel, Result, Structures};
use kerntune_work::{write_json, IoContext, Key, Progress, WorkDir};
use std::fs;

/// The kind of result, its file, and the directory in which make works meanwhile.
const KIND: &str = "structures";
const FILE: &str = "structures.json";
const TREE: &str = "linux";
/// What of Kbuild's preparations leaves `asm-offsets.s` and its command.
const PREPARED: &str = "prepare0";

/// Those of a kernel: as its manifest has them, or of the compiler, which takes some seconds, once for each kernel.
///
/// # Errors
/// A source or compiler that is not there or not the kernel's any more; one that refuses.
pub fn structures(work: &WorkDir, kernel: &Kernel, progress: &dyn Progress) -> Result<Structures> {
    let of = &kernel.manifest;
    if !of.structures.is_empty() {
        return Ok(of.structures.clone());
    }
    let key = Key::new("structures/1", "").field("kernel", &of.id).field("question", QUESTION);
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
    let cache = ObjectCache::of_host_tools(work);
    let kbuild = Kbuild {
        tree: &tree,
        arch: of.arch,
        compiler: &asked.compiler,
        make_vars: &of.make_vars,
        log: staged.path().join("build.log"),
        cache: cache.as_ref(),
    };
    let flags = make_flags(&of.flags(), &of.object_flags);
    let what = format!("find structures of {} {}", of.label, of.version);
    kbuild.make(&what, &make_args(None, &flags, &[PREPARED]), None, progress)?;
    let found = in_build(of.arch, &build, staged.path())?;
    tree.remove()?;
    write_json(&staged.path().join(FILE), &found)?;
    staged.publish()?;
    Ok(found)
}
