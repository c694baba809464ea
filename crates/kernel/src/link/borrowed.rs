//! Objects of a kernel, borrowed to be linked again: in another order, or mixed with those of
//! another kernel.

use crate::kernels::store::KIND;
use crate::kernels::{kept, untrusted};
use crate::link::install::{install_modules, ModuleBuild};
use crate::link::link_script;
use crate::make::aside::restore;
use crate::make::build_tree::BuildTree;
use crate::make::kbuild::{make_args, Kbuild};
use crate::make::object_cache::ObjectCache;
use crate::make::object_flags::make_flags;
use crate::{Arch, Compiler, Error, FunctionOrder, Kernel, Result};
use kerntune_work::{write_atomic, IoContext, Key, Progress, StagedResult, WorkDir};
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the order into the linker script of a build directory. The script must exist.
pub(crate) fn place(build: &Path, arch: Arch, order: &FunctionOrder) -> Result<()> {
    let path = build.join(arch.link_script());
    let script = read(&path)?;
    let placed = link_script::place(&script, order)
        .map_err(|reason| Error::LinkScript { path: path.clone(), reason })?;
    // An unchanged script is not rewritten, because make would link again.
    if placed != script {
        write_atomic(&path, placed.as_bytes())?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    Ok(fs::read_to_string(path).at("read", path)?)
}

/// A kernel's build directory, moved to the path at which it was built, and moved back when
/// dropped. At another path Kbuild would rebuild its own tools and then every object.
pub(crate) struct BorrowedObjects {
    home: PathBuf,
    tree: BuildTree,
    build: PathBuf,
    /// Partial directory of the kernel's build, with its lock.
    staged: StagedResult,
    /// Cache that its tools were compiled through.
    cache: Option<ObjectCache>,
}

impl BorrowedObjects {
    pub(crate) fn borrow(work: &WorkDir, kernel: &Kernel) -> Result<Self> {
        untrusted::check_objects(work, kernel)?;
        let of = &kernel.manifest;
        let staged = work.stage_as(KIND, &of.id, &Key::new("objects/1", ""))?;
        let home = kernel.dir.join("build");
        let tree = BuildTree::of(staged.path());
        if home.is_dir() {
            // Without it, a killed borrower left the objects where they are needed.
            tree.take(&home)?;
        }
        let build = tree.build();
        let cache = ObjectCache::of(work);
        let objects = Self { home, tree, build, staged, cache };
        if !objects.build.is_dir() {
            return Err(no_objects(kernel));
        }
        let source = BuildTree::source_of(work, &objects.build)?.ok_or_else(|| no_objects(kernel))?;
        objects.tree.link(work, &source)?;
        restore(&objects.build)?;
        kept::check(&kernel.dir, &objects.build)?;
        Ok(objects)
    }

    /// Wraps a build that was just compiled in a partial directory, its tools through `cache`. It
    /// is not moved back.
    pub(crate) fn compiled_in(tree: BuildTree, staged: StagedResult, cache: Option<ObjectCache>) -> Self {
        let build = tree.build();
        Self { home: build.clone(), tree, build, staged, cache }
    }

    /// Returns the build directory.
    pub(crate) fn build(&self) -> &Path {
        &self.build
    }

    /// Returns the tree that the build directory is in while it is borrowed.
    pub(crate) fn tree(&self) -> &BuildTree {
        &self.tree
    }

    /// Returns the directory that holds the build directory while it is borrowed.
    pub(crate) fn partial(&self) -> &Path {
        self.staged.path()
    }

    /// Links the objects as they are. Those of a movable kernel need an order.
    pub(crate) fn link(
        &self,
        kernel: &Kernel,
        order: Option<&FunctionOrder>,
        label: &str,
        log: &Path,
        progress: &dyn Progress,
    ) -> Result<()> {
        let of = &kernel.manifest;
        if let Some(order) = order {
            place(&self.build, of.arch, order)?;
        }
        discard_outputs(&self.build, of.arch)?;
        // A proof may read the compilers' messages from this log.
        fs::copy(kernel.build_log(), log).at("copy", kernel.build_log())?;
        let compiler: Compiler = of.cc.parse()?;
        let args = make_args(None, &flags(kernel), of.arch.targets());
        let kbuild = self.kbuild(kernel, &compiler, log);
        kbuild.make(&format!("link {label} {}", of.version), &args, None, progress)?;
        let path = self.build.join(of.arch.link_script());
        if order.is_some() && !link_script::is_placed(&read(&path)?) {
            return Err(Error::LinkScript { path, reason: "make wrote it anew".into() });
        }
        Ok(())
    }

    /// Links the modules of a movable kernel with their functions in an order, and installs them
    /// below `to`.
    pub(crate) fn install_modules(
        &self,
        kernel: &Kernel,
        (order, label): (&FunctionOrder, &str),
        (to, log): (&Path, &Path),
        progress: &dyn Progress,
    ) -> Result<()> {
        let compiler: Compiler = kernel.manifest.cc.parse()?;
        let flags = flags(kernel);
        let of = ModuleBuild { label, flags: &flags, order: Some(order), keep_debug_info: false, jobs: None };
        install_modules(&self.kbuild(kernel, &compiler, log), &of, to, progress)
    }

    fn kbuild<'a>(&'a self, kernel: &'a Kernel, compiler: &'a Compiler, log: &Path) -> Kbuild<'a> {
        Kbuild {
            tree: &self.tree,
            arch: kernel.manifest.arch,
            compiler,
            make_vars: &kernel.manifest.make_vars,
            log: log.to_owned(),
            cache: self.cache.as_ref(),
        }
    }

    pub(crate) fn copy_outputs(&self, kernel: &Kernel, to: &Path) -> Result<()> {
        for (from, name) in kernel.manifest.arch.outputs() {
            let from = self.build.join(from);
            fs::copy(&from, to.join(name)).at("copy", &from)?;
        }
        Ok(())
    }
}

/// Returns make's arguments for the flags that the kernel was compiled with.
fn flags(kernel: &Kernel) -> Vec<String> {
    let of = &kernel.manifest;
    make_flags(&of.flags(), &of.object_flags, &of.object_groups)
}

impl Drop for BorrowedObjects {
    fn drop(&mut self) {
        // If it fails, the next relink finds them in the partial directory.
        if self.build != self.home && self.tree.release(&self.home).is_ok() {
            let _ = self.tree.remove();
        }
        let _ = fs::remove_dir(self.staged.path());
    }
}

/// Linux 6.16 and later link this file, with System.map beside it, and copy it to vmlinux. Make
/// does not link while it exists.
const UNSTRIPPED: &str = "vmlinux.unstripped";

/// Removes what was linked in a build directory. Published kernels share these files by hard links,
/// so no linker may write into them.
pub(crate) fn discard_outputs(build: &Path, arch: Arch) -> Result<()> {
    for (output, _) in arch.outputs().iter().filter(|(_, to)| *to != "config") {
        discard(&build.join(output))?;
    }
    discard(&build.join(UNSTRIPPED))
}

fn discard(path: &Path) -> Result<()> {
    if path.is_file() {
        fs::remove_file(path).at("remove", path)?;
    }
    Ok(())
}

pub(crate) fn no_objects(kernel: &Kernel) -> Error {
    Error::NoObjects { kernel: kernel.manifest.label.clone(), id: kernel.manifest.id.clone() }
}
