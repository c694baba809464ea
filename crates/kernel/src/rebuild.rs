//! A kernel built again from what its manifest says, to see that the same comes out.

use crate::borrowed::Objects;
use crate::build::{Attempt, Inputs};
use crate::build_tree::{BuildTree, CWD};
use crate::configure::FinalConfig;
use crate::kbuild::{make_args, Kbuild};
use crate::object_cache::ObjectCache;
use crate::object_flags::make_flags;
use crate::relink::ORDER;
use crate::store::KIND;
use crate::{find, foreign, kept, Arch, BuildRequest, Error, FunctionOrder, Kernel, Result};
use kerntune_work::{write_atomic, IoContext, Job, Progress, Staged, WorkDir};
use serde::Serialize;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// In a partial directory: what is there is of a rebuild, which may be gone on with. It holds what the rebuild began with.
const MARK: &str = "rebuild";
/// Nothing: every object is compiled.
const NOTHING: &str = "";
/// A copy of the objects that the kernel was linked from.
const KEPT_OBJECTS: &str = "kept objects";
/// In a partial directory: the objects while they are copied.
const COPY: &str = "objects";
/// In a partial directory: the outputs of a rebuild that came out differently.
const KEPT: &str = "rebuilt";

/// What to build again.
#[derive(Debug)]
pub struct RebuildRequest<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The tree of its profile, if one was compiled in; see [`BuildRequest::profile_dir`].
    pub profile_dir: Option<PathBuf>,
    /// Build its modules too and install them below this directory, if it comes out the same.
    pub modules_to: Option<PathBuf>,
    /// Link the objects that it was linked from, if they were kept and are as they were, in place of compiling them again.
    pub from_kept: bool,
    /// Jobs of make; None for one per processor.
    pub jobs: Option<NonZeroUsize>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rebuilt {
    /// The files that make a kernel, compared byte by byte.
    pub files: Vec<FileAgain>,
    /// Wall time.
    pub seconds: f64,
    /// Where the files that differ are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<PathBuf>,
}

/// One file of a kernel, and the same built again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileAgain {
    /// Its name in the kernel's directory.
    pub name: String,
    /// Its size in bytes, and that of the one built again.
    pub bytes: [u64; 2],
    /// Where the first byte is that differs, if one does; the shorter length if the one begins with the other.
    pub first_difference: Option<u64>,
}

impl Rebuilt {
    /// Whether every file came out the same.
    pub fn is_same(&self) -> bool {
        self.files.iter().all(|file| file.first_difference.is_none())
    }
}

/// Builds `request.kernel` again from its source and compares every file.
///
/// A kernel that was [relinked](crate::relink) is compiled and linked again: all of what it came from.
///
/// # Errors
/// [`Error::OtherInputs`] if the source, the compiler or the profile is not there as it was, with what is
/// different; failed builds. That it came out differently is no error: see [`Rebuilt::is_same`].
pub fn rebuild(work: &WorkDir, request: &RebuildRequest, progress: &dyn Progress) -> Result<Rebuilt> {
    let kernel = request.kernel;
    let (compiled, order) = compiled(work, kernel)?;
    let asked = build_request(work, &compiled, request)?;
    let config = FinalConfig::of_kernel(&compiled)?;
    let inputs = Inputs::of(work, &asked, Some(config), progress)?;
    if inputs.key.id() != compiled.manifest.id {
        return Err(other_inputs(&compiled, &inputs));
    }
    let started = Instant::now();
    let staged = work.stage(KIND, &inputs.key)?;
    let source = inputs.source.dir().to_owned();
    let (tree, is_of_kept) = begin(work, &staged, &compiled, request.from_kept)?;
    let build = tree.build();
    let attempt = Attempt::new(work, &asked, staged, inputs);
    let partial = attempt.partial().to_owned();
    let log = partial.join("rebuild.log");
    // Every object from its source: what a cache hands out proves nothing. Objects that are there need the tools that made them.
    let cache = if is_of_kept { ObjectCache::of_host_tools(work) } else { None };
    if is_of_kept {
        tree.link(work, &source)?;
    } else {
        attempt.compile(&tree, log.clone(), None, progress)?;
    }
    let staged = attempt.into_staged()?;
    let objects = Objects::compiled_in(tree.clone(), staged, cache.clone());
    // What was linked last from kept objects may have been in another order, or a mix.
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
    let mut rebuilt = Rebuilt { files, seconds: 0.0, kept: None };
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
            install_modules(&kbuild, &asked, to, progress)?;
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

/// The kernel that has to be compiled, and the order in which it is then linked.
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

/// The request that the kernel was built by.
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

/// Says which of what goes into the id is another.
fn other_inputs(kernel: &Kernel, inputs: &Inputs) -> Error {
    let of = &kernel.manifest;
    let mut differences = Vec::new();
    let mut hold = |what: &str, was: &str, is: &str| {
        if was != is {
            differences.push(format!("{what} was {was} and is {is}"));
        }
    };
    hold("the source", &of.source.hash, inputs.source.hash());
    hold("the configuration", &of.config_hash, &inputs.config.hash);
    hold("the compiler", &of.compiler.program, &inputs.compiler.program);
    hold("its version", &of.compiler.version, &inputs.compiler.version);
    hold("the build directory", &of.build_path.display().to_string(), CWD);
    if differences.is_empty() {
        differences.push(format!("its inputs are named {} where they were {}", inputs.key.id(), of.id));
    }
    Error::OtherInputs { kernel: of.label.clone(), differences }
}

/// Where to build, and whether a copy of the kept objects is there. Else nothing is, or what an interrupted rebuild of this kind
/// made.
fn begin(work: &WorkDir, staged: &Staged, kernel: &Kernel, from_kept: bool) -> Result<(BuildTree, bool)> {
    let (partial, home) = (staged.path(), kernel.dir.join("build"));
    let tree = BuildTree::of(partial);
    if !partial.join(MARK).is_file() && tree.build().is_dir() && !home.is_dir() {
        // Whoever borrowed the kernel's objects was killed, and has left them there.
        tree.release(&home)?;
    }
    // Beside objects lie the tools of their build, which make runs: those of somebody else's are not touched.
    if from_kept && home.is_dir() && foreign::check_objects(work, kernel).is_ok() {
        go_on_or_clear(staged, KEPT_OBJECTS)?;
        if !tree.build().is_dir() {
            // The links of a relink write into them, and Kbuild writes modules between them.
            let copied = partial.join(COPY);
            copy_tree(&home, &copied)?;
            tree.take(&copied)?;
        }
        match kept::check(&kernel.dir, &tree.build()) {
            Ok(()) => return Ok((tree, true)),
            Err(error) => work.note(&format!("{error}: all objects are compiled again")),
        }
    }
    go_on_or_clear(staged, NOTHING)?;
    Ok((tree, false))
}

/// Leaves what an interrupted rebuild that began with the same made, and removes anything else.
fn go_on_or_clear(staged: &Staged, began_with: &str) -> Result<()> {
    let mark = staged.path().join(MARK);
    if !fs::read_to_string(&mark).is_ok_and(|text| text == began_with) {
        staged.clear()?;
        write_atomic(&mark, began_with.as_bytes())?;
    }
    Ok(())
}

/// Copies a directory with its times, by which make goes. A copy that an interruption left is made anew.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    if to.is_dir() {
        fs::remove_dir_all(to).at("remove", to)?;
    }
    let mut command = Command::new("cp");
    command.args(["--archive", "--reflink=auto", "--"]).args([from, to]);
    let (end, said) = Job::new(command).output()?;
    if end.success() {
        return Ok(());
    }
    Err(std::io::Error::other(said.trim().to_string())).at("copy", from)?
}

fn compare(name: &str, ours: &Path, again: &Path) -> Result<FileAgain> {
    let (a, b) = (fs::read(ours).at("read", ours)?, fs::read(again).at("read", again)?);
    let shorter = a.len().min(b.len());
    let differs = a.iter().zip(&b).position(|(a, b)| a != b).or((a.len() != b.len()).then_some(shorter));
    let bytes = [a.len() as u64, b.len() as u64];
    Ok(FileAgain { name: name.into(), bytes, first_difference: differs.map(|at| at as u64) })
}

/// Puts the outputs aside, for those who want to know what the difference is.
fn keep(arch: Arch, partial: &Path, build: &Path) -> Result<PathBuf> {
    let kept = partial.join(KEPT);
    fs::create_dir_all(&kept).at("create", &kept)?;
    for (from, name) in arch.outputs() {
        let from = build.join(from);
        fs::rename(&from, kept.join(name)).at("rename", &from)?;
    }
    Ok(kept)
}

/// A line of a configuration that has no key to sign modules with.
const NO_KEY: &str = "CONFIG_MODULE_SIG_KEY=\"\"";
/// Kbuild then fails to sign them, unless it is told not to.
const UNSIGNED: &str = "CONFIG_MODULE_SIG_ALL=";

/// Makes the modules by the same flags and the same profile, and lays them out as Kbuild does.
fn install_modules(kbuild: &Kbuild, asked: &BuildRequest, to: &Path, progress: &dyn Progress) -> Result<()> {
    let flags = make_flags(&asked.flags(), &asked.object_flags);
    let step = format!("build the modules of {}", asked.label.trim_end_matches(" again"));
    kbuild.make(&step, &make_args(asked.jobs, &flags, &["modules"]), None, progress)?;
    let path = format!("INSTALL_MOD_PATH={}", to.display());
    let mut args = vec![path.as_str(), "INSTALL_MOD_STRIP=1", "modules_install"];
    let config = kbuild.tree.build().join(".config");
    if fs::read_to_string(&config).at("read", &config)?.lines().any(|line| line == NO_KEY) {
        args.push(UNSIGNED);
    }
    kbuild.make("install the modules", &make_args(asked.jobs, &flags, &args), None, progress)?;
    Ok(())
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
        let rebuilt = Rebuilt { files: vec![shorter], seconds: 0.0, kept: None };
        assert!(!rebuilt.is_same());
    }

    #[test]
    fn kept_objects_are_copied_unless_they_came_with_somebody_elses_tools() {
        let dir = tempfile::tempdir().unwrap();
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        for (home, is_ours) in [(work.root().join("kernels/aa11"), true), (dir.path().join("theirs"), false)]
        {
            let manifest = crate::store::tests::manifest("aa11", "base", "2025-01-01T00:00:00Z");
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
        let mut manifest = crate::store::tests::manifest("aa11", "base", "2025-01-01T00:00:00Z");
        manifest.movable = true;
        let kernel = Kernel { dir: dir.path().join("kernels/aa11"), manifest };
        fs::create_dir_all(&kernel.dir).unwrap();
        let staged = work.stage_as(KIND, "aa11", &Key::new("test/1", "")).unwrap();
        let build = BuildTree::of(staged.path()).build();
        fs::create_dir_all(&build).unwrap();
        fs::write(build.join("fork.o"), "x").unwrap();
        assert_eq!(begin(&work, &staged, &kernel, false).unwrap().0.build(), build);
        assert!(!build.exists() && kernel.dir.join("build/fork.o").is_file());
        // And an interrupted rebuild is gone on with.
        fs::create_dir_all(&build).unwrap();
        assert!(begin(&work, &staged, &kernel, false).unwrap().0.build().is_dir());
    }
}
