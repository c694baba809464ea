//! Rebuild of a kernel from its manifest, to check that it is reproducible.

use crate::build::attempt::{BuildAttempt, BuildInputs};
use crate::build::configure::FinalConfig;
use crate::build::copied_objects::COPY;
use crate::kernels::store::KIND;
use crate::kernels::{kept, untrusted};
use crate::link::borrowed::BorrowedObjects;
use crate::link::install::{install_modules, ModuleBuild};
use crate::link::relink::ORDER;
use crate::make::build_tree::{BuildTree, CWD};
use crate::make::copy::copy_tree;
use crate::make::kbuild::Kbuild;
use crate::make::object_cache::ObjectCache;
use crate::make::object_flags::make_flags;
use crate::{find, Arch, BuildRequest, Error, FunctionOrder, Kernel, Result};
use kerntune_work::{write_atomic, IoContext, Progress, StagedResult, WorkDir};
use serde::Serialize;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// File in a partial directory that marks a rebuild, which may be resumed. It holds what the
/// rebuild began with.
const MARK: &str = "rebuild";
/// Mark of a rebuild that compiles every object.
const NOTHING: &str = "";
/// Mark of a rebuild that began with a copy of the kept objects.
const KEPT_OBJECTS: &str = "kept objects";
/// Name in a partial directory of the outputs of a rebuild that differ.
const KEPT: &str = "rebuilt";

/// Request to build a kernel again.
#[derive(Debug)]
pub struct RebuildRequest<'a> {
    /// Kernel to rebuild.
    pub kernel: &'a Kernel,
    /// Tree of its profile, if one was compiled in; see [`BuildRequest::profile_dir`].
    pub profile_dir: Option<PathBuf>,
    /// Directory to install the modules below, if the kernel comes out the same.
    pub modules_to: Option<PathBuf>,
    /// Link the kept objects instead of compiling, if they are complete and unchanged.
    pub from_kept: bool,
    /// Make's jobs; `None` for one per processor.
    pub jobs: Option<NonZeroUsize>,
}

/// Result of a rebuild.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RebuildReport {
    /// Files of the kernel, compared byte by byte.
    pub files: Vec<RebuiltFile>,
    /// Wall time in seconds.
    pub seconds: f64,
    /// Directory with the new files, if any differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
}

/// File of a kernel, compared with the rebuilt one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RebuiltFile {
    /// File name in the kernel's directory.
    pub name: String,
    /// Sizes in bytes of the original and of the rebuilt file.
    pub bytes: [u64; 2],
    /// Offset of the first byte that differs, or the shorter length if one file is a prefix of the
    /// other; `None` if they are equal.
    pub first_difference: Option<u64>,
}

impl RebuildReport {
    /// Checks whether all files are the same.
    pub fn is_same(&self) -> bool {
        self.files.iter().all(|file| file.first_difference.is_none())
    }
}

/// Builds `request.kernel` again from its source and compares every file.
///
/// A [relinked](crate::relink) kernel is compiled and linked again, with everything that it came
/// from.
///
/// # Errors
/// [`Error::OtherInputs`] if source, compiler or profile are missing or differ; failed builds. A
/// difference in the result is no error: see [`RebuildReport::is_same`].
pub fn rebuild(work: &WorkDir, request: &RebuildRequest, progress: &dyn Progress) -> Result<RebuildReport> {
    let kernel = request.kernel;
    let (compiled, order) = compiled(work, kernel)?;
    let asked = build_request(work, &compiled, request)?;
    let config = FinalConfig::of_kernel(&compiled)?;
    let inputs = BuildInputs::of(work, &asked, Some(config), progress)?;
    if inputs.key.id() != compiled.manifest.id {
        return Err(other_inputs(&compiled, &inputs));
    }
    let started = Instant::now();
    let staged = work.stage(KIND, &inputs.key)?;
    let source = inputs.source.dir().to_owned();
    let (tree, is_of_kept) = begin(work, &staged, &compiled, request.from_kept)?;
    let build = tree.build();
    let attempt = BuildAttempt::new(work, &asked, staged, inputs);
    let partial = attempt.partial().to_owned();
    let log = partial.join("rebuild.log");
    // Objects from a cache would prove nothing, so every object is compiled. Kept objects need the
    // tools that made them.
    let cache = if is_of_kept { ObjectCache::of(work) } else { None };
    if is_of_kept {
        tree.link(work, &source)?;
    } else {
        attempt.compile(&tree, log.clone(), None, progress)?;
    }
    let staged = attempt.into_staged()?;
    let objects = BorrowedObjects::compiled_in(tree.clone(), staged, cache.clone());
    // The last link of kept objects may have been in another order, or a mix.
    let order = order.or_else(|| (is_of_kept && asked.movable).then(FunctionOrder::default));
    if is_of_kept || order.is_some() {
        objects.link(&compiled, order.as_ref(), &asked.label, &partial.join("link.log"), progress)?;
    }
    let mut files = Vec::new();
    for (from, name) in kernel.manifest.arch.outputs() {
        let (ours, again) = (kernel.dir.join(name), build.join(from));
        if ours.is_file() {
            files.push(compare(name, &ours, &again)?);
        }
    }
    let mut rebuilt = RebuildReport { files, seconds: 0.0, kept: None };
    if rebuilt.is_same() {
        if let Some(to) = &request.modules_to {
            let kbuild = Kbuild {
                tree: &tree,
                arch: asked.arch,
                compiler: &asked.compiler,
                make_vars: &asked.make_vars,
                log,
                cache: cache.as_ref(),
            };
            let flags = make_flags(&asked.flags(), &asked.object_flags, &asked.object_groups);
            let order = order.or_else(|| asked.movable.then(FunctionOrder::default));
            let of = ModuleBuild {
                label: &asked.label,
                flags: &flags,
                order: order.as_ref(),
                keep_debug_info: false,
                jobs: asked.jobs,
            };
            install_modules(&kbuild, &of, to, progress)?;
        }
    } else {
        rebuilt.kept = Some(keep(kernel.manifest.arch, &partial, &build)?);
    }
    tree.remove()?;
    if rebuilt.kept.is_none() {
        fs::remove_dir_all(&partial).at("remove", &partial)?;
    }
    rebuilt.seconds = (started.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    Ok(rebuilt)
}

/// Returns the kernel that has to be compiled, and the order in which it is then linked.
fn compiled(work: &WorkDir, kernel: &Kernel) -> Result<(Kernel, Option<FunctionOrder>)> {
    let of = &kernel.manifest;
    if of.rewrite_id.is_some() {
        let (kernel, base) = (of.label.clone(), of.base_id.clone().unwrap_or_default());
        return Err(Error::RewrittenKernel { kernel, base });
    }
    match (&of.order_id, &of.base_id) {
        (Some(_), Some(base)) => {
            let path = kernel.dir.join(ORDER);
            let text = fs::read_to_string(&path).at("read", &path)?;
            Ok((find(work, base)?, Some(FunctionOrder::parse(&text)?)))
        }
        _ => Ok((kernel.clone(), None)),
    }
}

/// Returns the request that the kernel was built by.
fn build_request(work: &WorkDir, kernel: &Kernel, request: &RebuildRequest) -> Result<BuildRequest> {
    let asked = BuildRequest::of(work, kernel)?;
    let of = &kernel.manifest;
    if let (Some(profile), None) = (&of.profile_id, &request.profile_dir) {
        let missing = format!("its profile {profile} is no longer in the work directory");
        return Err(Error::OtherInputs { kernel: of.label.clone(), differences: vec![missing] });
    }
    let label = format!("{} again", request.kernel.manifest.label);
    let mut asked = BuildRequest { label, ..asked };
    if of.profile_id.is_some() {
        asked.profile_dir.clone_from(&request.profile_dir);
        asked.profile_id.clone_from(&of.profile_id);
    }
    asked.jobs = request.jobs;
    Ok(asked)
}

/// Returns an error that lists the inputs that differ.
fn other_inputs(kernel: &Kernel, inputs: &BuildInputs) -> Error {
    let of = &kernel.manifest;
    let mut differences = Vec::new();
    let mut compare_input = |what: &str, was: &str, is: &str| {
        if was != is {
            differences.push(format!("{what} was {was} and is {is}"));
        }
    };
    compare_input("the source", &of.source.hash, inputs.source.hash());
    compare_input("the configuration", &of.config_hash, &inputs.config.hash);
    compare_input("the compiler", &of.compiler.program, &inputs.compiler.program);
    compare_input("its version", &of.compiler.version, &inputs.compiler.version);
    compare_input("the build directory", &of.build_path.display().to_string(), CWD);
    if differences.is_empty() {
        differences.push(format!("its inputs are named {} where they were {}", inputs.key.id(), of.id));
    }
    Error::OtherInputs { kernel: of.label.clone(), differences }
}

/// Returns the build tree, and whether it has a copy of the kept objects. Otherwise it is empty, or
/// has the results of an interrupted rebuild of the same kind.
fn begin(
    work: &WorkDir,
    staged: &StagedResult,
    kernel: &Kernel,
    from_kept: bool,
) -> Result<(BuildTree, bool)> {
    let (partial, home) = (staged.path(), kernel.dir.join("build"));
    let tree = BuildTree::of(partial);
    if !partial.join(MARK).is_file() && tree.build().is_dir() && !home.is_dir() {
        // A killed borrower left the kernel's objects there.
        tree.release(&home)?;
    }
    // Make runs tools that lie beside the objects, so objects of unknown origin are not used.
    if from_kept && home.is_dir() && untrusted::check_objects(work, kernel).is_ok() {
        resume_or_clear(staged, KEPT_OBJECTS)?;
        if !tree.build().is_dir() {
            // Relinks write into the objects' directory, and Kbuild writes modules there.
            let copied = partial.join(COPY);
            copy_tree(&home, &copied)?;
            tree.take(&copied)?;
        }
        match kept::check(&kernel.dir, &tree.build()) {
            Ok(()) => return Ok((tree, true)),
            Err(error) => work.note(&format!("{error}: all objects are compiled again")),
        }
    }
    resume_or_clear(staged, NOTHING)?;
    Ok((tree, false))
}

/// Keeps the results of an interrupted rebuild that began with the same, and removes anything else.
fn resume_or_clear(staged: &StagedResult, began_with: &str) -> Result<()> {
    let mark = staged.path().join(MARK);
    if !fs::read_to_string(&mark).is_ok_and(|text| text == began_with) {
        staged.clear()?;
        write_atomic(&mark, began_with.as_bytes())?;
    }
    Ok(())
}

fn compare(name: &str, ours: &Path, again: &Path) -> Result<RebuiltFile> {
    let (a, b) = (fs::read(ours).at("read", ours)?, fs::read(again).at("read", again)?);
    let shorter = a.len().min(b.len());
    let differs = a.iter().zip(&b).position(|(a, b)| a != b).or((a.len() != b.len()).then_some(shorter));
    let bytes = [a.len() as u64, b.len() as u64];
    Ok(RebuiltFile { name: name.into(), bytes, first_difference: differs.map(|at| at as u64) })
}

/// Keeps the outputs, so that the difference can be examined.
fn keep(arch: Arch, partial: &Path, build: &Path) -> Result<PathBuf> {
    let kept = partial.join(KEPT);
    fs::create_dir_all(&kept).at("create", &kept)?;
    for (from, name) in arch.outputs() {
        let from = build.join(from);
        fs::rename(&from, kept.join(name)).at("rename", &from)?;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_work::Key;

    #[test]
    fn the_first_byte_that_differs_is_found_and_a_missing_tail_too() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (a, b, c) = (put("a", "vmlinux"), put("b", "vmlimux"), put("c", "vm"));
        assert_eq!(compare("x", &a, &a).unwrap().first_difference, None);
        assert_eq!(compare("x", &a, &b).unwrap().first_difference, Some(4));
        let shorter = compare("x", &a, &c).unwrap();
        assert_eq!((shorter.first_difference, shorter.bytes), (Some(2), [7, 2]));
        let rebuilt = RebuildReport { files: vec![shorter], seconds: 0.0, kept: None };
        assert!(!rebuilt.is_same());
    }

    #[test]
    fn kept_objects_are_copied_unless_they_came_with_somebody_elses_tools() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        for (home, is_ours) in [(work.root().join("kernels/aa11"), true), (dir.path().join("theirs"), false)]
        {
            let manifest = crate::kernels::store::tests::manifest("aa11", "base", "2025-01-01T00:00:00Z");
            let kernel = Kernel { dir: home, manifest };
            let build = kernel.dir.join("build");
            fs::create_dir_all(build.join("kernel")).unwrap();
            fs::write(build.join("kernel/fork.o"), "object").unwrap();
            kept::write(&kernel.dir, &build).unwrap();
            let staged = work.stage_as(KIND, "aa11", &Key::new("test/1", "")).unwrap();
            let (tree, is_of_kept) = begin(&work, &staged, &kernel, true).unwrap();
            assert_eq!((is_of_kept, tree.build().join("kernel/fork.o").is_file()), (is_ours, is_ours));
        }
    }

    #[test]
    fn objects_that_a_killed_relink_left_are_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path()).unwrap();
        let mut manifest = crate::kernels::store::tests::manifest("aa11", "base", "2025-01-01T00:00:00Z");
        manifest.movable = true;
        let kernel = Kernel { dir: dir.path().join("kernels/aa11"), manifest };
        fs::create_dir_all(&kernel.dir).unwrap();
        let staged = work.stage_as(KIND, "aa11", &Key::new("test/1", "")).unwrap();
        let build = BuildTree::of(staged.path()).build();
        fs::create_dir_all(&build).unwrap();
        fs::write(build.join("fork.o"), "x").unwrap();
        assert_eq!(begin(&work, &staged, &kernel, false).unwrap().0.build(), build);
        assert!(!build.exists() && kernel.dir.join("build/fork.o").is_file());
        // An interrupted rebuild is resumed.
        fs::create_dir_all(&build).unwrap();
        assert!(begin(&work, &staged, &kernel, false).unwrap().0.build().is_dir());
    }
}
