//! Turns what a task names into files and values on this machine.

use crate::dirs::MATRIX_DIR;
use crate::figures::{bytes, BuiltKernel};
use crate::{pack, task_result, Error, KernelRef, MatrixPlan, Result, SourceRef, Store, TaskKind};
use kerntune_kernel::{BaseConfig, BuildRequest, Kernel, KernelSource};
use kerntune_tune::base::with_needs;
use kerntune_work::{
    find_program, write_atomic, CommitHash, Hash, Id, IoContext, Job, Progress, RelativePath, WorkDir,
};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Writes a text of the plan to a file.
fn text(plan: &MatrixPlan, work: &WorkDir, hash: &Hash) -> Result<PathBuf> {
    let text = plan.texts.get(hash).ok_or_else(|| Error::Plan(format!("the plan lacks the text {hash}")))?;
    let directory = work.root().join(MATRIX_DIR).join("texts");
    let path = directory.join(hash);
    if fs::read(&path).map_or(true, |there| there != text.as_bytes()) {
        fs::create_dir_all(&directory).at("create", &directory)?;
        write_atomic(&path, text.as_bytes())?;
    }
    Ok(path)
}

/// Returns a source on this machine; a commit is exported once.
pub(crate) fn source(work: &WorkDir, of: &SourceRef) -> Result<KernelSource> {
    match of {
        SourceRef::Named(name) => Ok(name.parse()?),
        SourceRef::Commit { tree, commit } => {
            Ok(KernelSource::Tarball(export(work, Path::new(tree), commit)?))
        }
    }
}

/// Returns the build request of a build task; `None` for other tasks.
pub(crate) fn request(plan: &MatrixPlan, work: &WorkDir, kind: &TaskKind) -> Result<Option<BuildRequest>> {
    let TaskKind::Build { source: of, patches, config, fragments, set, compiler, kcflags, label } = kind
    else {
        return Ok(None);
    };
    let files =
        |hashes: &[Hash]| hashes.iter().map(|hash| text(plan, work, hash)).collect::<Result<Vec<_>>>();
    let mut request = BuildRequest::new(source(work, of)?, label.as_str());
    request.patches = files(patches)?;
    request.fragments = files(fragments)?;
    request.extra.clone_from(set);
    request.kcflags.clone_from(kcflags);
    request.compiler = compiler.parse()?;
    if let Some(config) = config {
        request.base = BaseConfig::File(text(plan, work, config)?);
    }
    // The kernel must run every workload of the plan.
    let names: Vec<String> = plan.workloads.keys().cloned().collect();
    let workloads = names.iter().map(|name| plan.workload(name)).collect::<Result<Vec<_>>>()?;
    Ok(Some(with_needs(request, &workloads)))
}

/// Returns a kernel to run in a guest, from the work directory or else from the store.
pub(crate) fn kernel(store: &dyn Store, work: &WorkDir, of: &KernelRef) -> Result<Kernel> {
    let (id, content) = identity(store, of)?;
    match pack::find_own(work, &id, &content) {
        Some(kernel) => Ok(kernel),
        None => pack::receive(store, work, &id, &content),
    }
}

/// Returns a kernel whose build this machine repeats or continues. Since that runs commands from
/// the kernel's directory, the kernel must have been built here: one that another machine built is
/// built again and must come out the same.
///
/// # Errors
/// [`Error::Differs`] if it does not; errors of the build.
pub(crate) fn own_kernel(
    (work, progress): (&WorkDir, &dyn Progress),
    plan: &MatrixPlan,
    store: &dyn Store,
    of: &KernelRef,
) -> Result<Kernel> {
    let (id, content) = identity(store, of)?;
    if let Some(kernel) = pack::find_own(work, &id, &content) {
        return Ok(kernel);
    }
    let Some(task) = of.task() else { return pack::receive(store, work, &id, &content) };
    let kind = plan.task(task).map(|task| &task.kind);
    let request = kind.map(|kind| request(plan, work, kind)).transpose()?.flatten();
    let Some(request) = request else {
        return Err(Error::NotReady { task: "this task".into(), need: task.to_string() });
    };
    let kernel = kerntune_kernel::build(work, &request, progress)?;
    let ours = BuiltKernel::new(task, kernel.manifest.id.parse()?, kernel.content()?);
    match ours.content == content {
        true => Ok(kernel),
        false => Err(task_result::conflict(store, task, &bytes(&ours))?),
    }
}

/// Returns a kernel's id and the hash of its images.
fn identity(store: &dyn Store, of: &KernelRef) -> Result<(Id, String)> {
    match of {
        KernelRef::Given { id, content } => Ok((id.clone(), content.clone())),
        KernelRef::Of(task) => task_result::built(store, task).map(|built| (built.kernel, built.content)),
    }
}

/// Returns a kernel that a command names by its label, after adding it to the work directory's
/// kernels.
///
/// # Errors
/// A kernel whose manifest names a program that kerntune does not know.
pub(crate) fn named_kernel(store: &dyn Store, work: &WorkDir, of: &KernelRef) -> Result<Kernel> {
    let kernel = kernel(store, work, of)?;
    match pack::is_received(work, &kernel) {
        true => pack::adopt(work, &kernel),
        false => Ok(kernel),
    }
}

/// Returns the source of a kernel that a task of the plan built from a commit.
pub(crate) fn commit_of(plan: &MatrixPlan, work: &WorkDir, of: &KernelRef) -> Result<Option<KernelSource>> {
    let KernelRef::Of(task) = of else { return Ok(None) };
    match plan.task(task).map(|task| &task.kind) {
        Some(TaskKind::Build { source: of @ SourceRef::Commit { .. }, .. }) => source(work, of).map(Some),
        _ => Ok(None),
    }
}

/// Creates an empty directory for a command, with the files that it reads.
pub(crate) fn scratch(
    plan: &MatrixPlan,
    work: &WorkDir,
    task: &Id,
    files: &[(RelativePath, Hash)],
) -> Result<PathBuf> {
    let directory = work.root().join(MATRIX_DIR).join("commands").join(task);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).at("create", &directory)?;
    for (name, hash) in files {
        let from = text(plan, work, hash)?;
        let to = directory.join(name);
        let above = to.parent().unwrap_or(&directory);
        fs::create_dir_all(above).at("create", above)?;
        fs::copy(&from, &to).at("write", &to)?;
    }
    Ok(directory)
}

/// Runs git in a tree and returns its output.
pub(crate) fn git(tree: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = kerntune_work::git(tree)?;
    command.args(arguments);
    let (end, said) = Job::new(command).time_limit(Duration::from_secs(600)).output()?;
    match end.success() {
        true => Ok(said),
        false => {
            let message = said.lines().last().unwrap_or("it failed").to_owned();
            Err(Error::Git { tree: tree.to_owned(), message })
        }
    }
}

/// Exports a commit's files as a tarball.
fn export(work: &WorkDir, tree: &Path, commit: &CommitHash) -> Result<PathBuf> {
    let directory = work.root().join(MATRIX_DIR).join("commits");
    let path = directory.join(format!("{commit}.tar.gz"));
    if path.is_file() {
        return Ok(path);
    }
    fs::create_dir_all(&directory).at("create", &directory)?;
    let aside = directory.join(format!(".{commit}.{}", crate::process::unique_name()));
    let gzip = find_program("gzip", &[]).unwrap_or_else(|| PathBuf::from("gzip"));
    let spawn = |program: &str| {
        let program = program.to_owned();
        move |source| kerntune_work::Error::Spawn { program, source }
    };
    let mut command = kerntune_work::git(tree)?;
    if kerntune_work::programs_of_fetch(tree)?.is_empty() {
        // Lets a partial clone fetch what it lacks.
        command.env_remove("GIT_NO_LAZY_FETCH");
    }
    let mut archive = command
        .args(["archive", "--format=tar", "--prefix=linux/", commit.as_str()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(spawn("git"))?;
    let to = File::create(&aside).at("create", &aside)?;
    let from = archive.stdout.take().map_or_else(Stdio::null, Stdio::from);
    // Without name and time, so that the bytes are always the same.
    let packed = Command::new(gzip).args(["-n", "-1"]).stdin(from).stdout(to).status();
    let archived = archive.wait().at("wait for git in", tree)?;
    let packed = packed.map_err(spawn("gzip"))?;
    if !archived.success() || !packed.success() {
        let _ = fs::remove_file(&aside);
        let message = format!("it has no commit {commit}, or it cannot be read");
        return Err(Error::Git { tree: tree.to_owned(), message });
    }
    fs::rename(&aside, &path).at("create", &path)?;
    Ok(path)
}
