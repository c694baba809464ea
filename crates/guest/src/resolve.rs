//! Resolves a workload: finds everything that its image has on this machine, before any of it is
//! laid out.

mod closure;
pub(crate) mod elf;
mod host_tree;
pub(crate) mod libraries;
mod mirror;
mod named_programs;

pub(crate) use named_programs::{script, unknown_in_shell};

use crate::disk::{Disk, Filesystem};
use crate::plan::{self, InitPlan};
use crate::programs::compile;
use crate::tree::{FileTree, TreeNode};
use crate::workload::interpreters;
use crate::{host, init, skeleton, Error, GuestModules, Result, Workload};
pub(crate) use closure::leads_nowhere;
use closure::FileClosure;
use kerntune_work::{Progress, WorkDir};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Contents of an image, by their places on this machine.
pub(crate) struct ResolvedImage {
    /// Files of this machine with the directories and links above them, and what stands in front of
    /// them: the workload's texts, its input, links to programs.
    pub files: FileTree,
    /// kerntune's own programs: name and compiled file.
    pub programs: Vec<(&'static str, PathBuf)>,
    pub init: TreeNode,
    pub plan: InitPlan,
}

impl ResolvedImage {
    /// Resolves a workload, with notes about what its image has only in part or not at all.
    pub fn of(
        work: &WorkDir,
        workload: &Workload,
        modules: Option<&GuestModules>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut closure = FileClosure::of_host();
        let names = look_up(&mut closure, workload);
        closure.all_notes().iter().for_each(|note| progress.note(note));
        let mut programs = Vec::new();
        for name in names? {
            programs.extend(compile(work, name)?.map(|file| (name, file)));
        }
        let dirs: Vec<String> = closure.library_dirs.iter().map(|dir| dir.display().to_string()).collect();
        let env = (!dirs.is_empty()).then(|| ("LD_LIBRARY_PATH".to_owned(), dirs.join(":")));
        let mut files = closure.files.tree;
        let plan = InitPlan::of_image(workload, &BTreeMap::from_iter(env), files.day_after());
        modules.map_or(Ok(()), |modules| modules.put_into(&mut files))?;
        let init = init::compile(work, workload, &plan, &files, modules.is_some())?;
        Ok(Self { files, programs, init, plan })
    }
}

/// Looks up host files in the order of precedence: an entry is never replaced by a later one.
/// Returns the names of kerntune's own programs that the workload needs.
fn look_up(closure: &mut FileClosure, workload: &Workload) -> Result<BTreeSet<&'static str>> {
    for (path, text) in &workload.texts {
        let mode = if interpreters(text).is_empty() { 0o644 } else { 0o755 };
        closure.files.put(path, TreeNode::Own { bytes: text.as_bytes().to_vec(), mode })?;
    }
    for (place, file) in &workload.copies {
        closure.copy(place, file, &workload.copies)?;
    }
    for file in &workload.files {
        match &workload.context {
            Some(context) if context.lists_files => closure.entry(file, "the command")?,
            _ => existing(closure, file, "`files` of the workload")?,
        }
    }
    if let Some(context) = &workload.context {
        if let Some(directory) = &context.directory {
            closure.files.take(directory, "the command's directory")?;
        }
        if let Some(input) = &context.input {
            let node = TreeNode::Own { bytes: input.bytes.clone(), mode: 0o644 };
            closure.files.put(Path::new(plan::INPUT), node)?;
            closure.files.tree.is_private |= input.is_private;
        }
    }
    for package in &workload.packages {
        if !host::is_installed(package)? {
            return Err(Error::Package { package: package.clone(), workload: workload.name.clone() });
        }
        closure.package(package)?;
    }
    if let Some(disk) = &workload.disk {
        of_disk(closure, disk)?;
    }
    let found = workload.context.as_ref().and_then(|context| context.discovered.as_ref());
    let programs = match found {
        Some(found) => {
            closure.files.root = found.root.clone();
            mirror::mirror(&mut closure.files, found)?;
            found.own_programs().collect()
        }
        None => named_programs::find(closure, workload)?,
    };
    // The guest's own files are below the links of this machine, too.
    for (path, _) in skeleton::nodes() {
        closure.files.above(path, "the guest")?;
    }
    Ok(programs)
}

/// Adds a host file or directory that must exist, with all that it needs.
fn existing(closure: &mut FileClosure, file: &Path, needed_by: &str) -> Result<()> {
    if file.symlink_metadata().is_err() {
        return Err(Error::Program {
            program: file.display().to_string(),
            needed_by: needed_by.into(),
            help: host::missing_file_help(file).into(),
        });
    }
    closure.file(file, needed_by)
}

/// Adds the program that creates the disk's file system, and the files that go on it.
fn of_disk(closure: &mut FileClosure, disk: &Disk) -> Result<()> {
    let needed_by = "`disk` of the workload";
    if let Some(maker) = disk.filesystem.maker() {
        let path = host::find_program(maker).ok_or_else(|| Error::Program {
            program: maker.into(),
            needed_by: needed_by.into(),
            help: format!("install it: apt-get install {}", disk.filesystem.package()),
        })?;
        closure.program(&path, needed_by)?;
        let settings = Path::new("/etc/mke2fs.conf");
        if disk.filesystem == Filesystem::Ext4 && settings.exists() {
            closure.file(settings, needed_by)?;
        }
    }
    for file in &disk.files {
        existing(closure, file, "`disk.files` of the workload")?;
    }
    Ok(())
}
