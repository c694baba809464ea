//! The objects of a kernel, borrowed to be linked again: in another order, or mixed with those of another kernel.

use crate::aside::restore;
use crate::build_tree::BuildTree;
use crate::kbuild::{make_args, Kbuild};
use crate::object_cache::ObjectCache;
use crate::object_flags::make_flags;
use crate::store::KIND;
use crate::{foreign, kept, link_script, Arch, Compiler, Error, FunctionOrder, Kernel, Result};
use kerntune_work::{write_atomic, IoContext, Key, Progress, Staged, WorkDir};
use std::fs;
use std::path::{Path, PathBuf};

/// Puts the order into the linker script of a build directory, which is to be there.
pub(crate) fn place(build: &Path, arch: Arch, order: &FunctionOrder) -> Result<()> {
    let path = build.join(arch.link_script());
    let script = read(&path)?;
    let placed = link_script::place(&script, order)
        .map_err(|reason| Error::LinkScript { path: path.clone(), reason })?;
    // Not touched where nothing changes: make would link again.
    if placed != script {
        write_atomic(&path, placed.as_bytes())?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    Ok(fs::read_to_string(path).at("read", path)?)
}

/// A kernel's build directory, at the path at which it was built: Kbuild would make its own tools anew at
/// another one, and then everything that depends on them, which is every object. Goes back when dropped.
pub(crate) struct Objects {
    home: PathBuf,
    tree: BuildTree,
    build: PathBuf,
    /// The directory of the kernel's build, and its lock.
    staged: Staged,
    /// What its tools were compiled through.
    cache: Option<ObjectCache>,
}

impl Objects {
    pub(crate) fn borrow(work: &WorkDir, kernel: &Kernel) -> Result<Self> {
        foreign::check_objects(work, kernel)?;
        let of = &kernel.manifest;
        let staged = work.stage_as(KIND, &of.id, &Key::new("objects/1", ""))?;
        let home = kernel.dir.join("build");
        let tree = BuildTree::of(staged.path());
        if home.is_dir() {
            // Else one who borrowed them was killed, and they are where they are needed.
            tree.take(&home)?;
        }
        let build = tree.build();
        let cache = ObjectCache::of_host_tools(work);
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

    /// What was compiled in a partial directory, its tools through `cache`; it stays there.
    pub(crate) fn compiled_in(tree: BuildTree, staged: Staged, cache: Option<ObjectCache>) -> Self {
        let build = tree.build();
        Self { home: build.clone(), tree, build, staged, cache }
    }

    /// The build directory.
    pub(crate) fn build(&self) -> &Path {
        &self.build
    }

    /// The directory that the build directory is in while it is borrowed.
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
        for (output, _) in of.arch.outputs().iter().filter(|(_, to)| *to != "config") {
            // The published kernels have these files too, under other names: no linker may write into them.
            discard(&self.build.join(output))?;
        }
        discard(&self.build.join(UNSTRIPPED))?;
        // What the compilers said stands there, and a proof may read it.
        fs::copy(kernel.build_log(), log).at("copy", kernel.build_log())?;
        let compiler: Compiler = of.cc.parse()?;
        let kbuild = Kbuild {
            tree: &self.tree,
            arch: of.arch,
            compiler: &compiler,
            make_vars: &of.make_vars,
            log: log.to_owned(),
            cache: self.cache.as_ref(),
        };
        let args = make_args(None, &make_flags(&of.flags(), &of.object_flags), of.arch.targets());
        kbuild.make(&format!("link {label} {}", of.version), &args, None, progress)?;
        let path = self.build.join(of.arch.link_script());
        if order.is_some() && !link_script::is_placed(&read(&path)?) {
            return Err(Error::LinkScript { path, reason: "make wrote it anew".into() });
        }
        Ok(())
    }

    pub(crate) fn take_outputs(&self, kernel: &Kernel, to: &Path) -> Result<()> {
        for (from, name) in kernel.manifest.arch.outputs() {
            let from = self.build.join(from);
            fs::copy(&from, to.join(name)).at("copy", &from)?;
        }
        Ok(())
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // If it fails they stay where the next relink finds them.
        if self.build != self.home && self.tree.release(&self.home).is_ok() {
            let _ = self.tree.remove();
        }
        let _ = fs::remove_dir(self.staged.path());
    }
}

/// What Linux 6.16 and later link, with System.map beside it, and copy to vmlinux: while it is there nothing is linked again.
const UNSTRIPPED: &str = "vmlinux.unstripped";

fn discard(path: &Path) -> Result<()> {
    if path.is_file() {
        fs::remove_file(path).at("remove", path)?;
    }
    Ok(())
}

pub(crate) fn no_objects(kernel: &Kernel) -> Error {
    Error::NoObjects { kernel: kernel.manifest.label.clone(), id: kernel.manifest.id.clone() }
}
