//! What a task names, as files and values of this machine.

use crate::{Error, KernelRef, Plan, Result, SourceRef, Store, What};
use kerntune_kernel::{BaseConfig, BuildRequest, Kernel, Source};
use kerntune_tune::base::with_needs;
use kerntune_work::{find_program, write_atomic, IoContext, Job, WorkDir};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where a work directory has what plans need beside results.
pub(crate) const ROOM: &str = ".matrix";

/// A text of the plan as a file.
fn text(plan: &Plan, work: &WorkDir, hash: &str) -> Result<PathBuf> {
    let text = plan.texts.get(hash).filter(|text| blake3::hash(text.as_bytes()).to_hex().as_str() == hash);
    let text = text.ok_or_else(|| Error::Plan(format!("the plan lacks the text {hash}")))?;
    let room = work.root().join(ROOM).join("texts");
    let path = room.join(hash);
    if fs::read(&path).map_or(true, |there| there != text.as_bytes()) {
        fs::create_dir_all(&room).at("create", &room)?;
        write_atomic(&path, text.as_bytes())?;
    }
    Ok(path)
}

/// A source on this machine: a commit is exported once.
pub(crate) fn source(work: &WorkDir, of: &SourceRef) -> Result<Source> {
    match of {
        SourceRef::Named(name) => Ok(name.parse()?),
        SourceRef::Commit { tree, commit } => Ok(Source::Tarball(export(work, Path::new(tree), commit)?)),
    }
}

/// What a build task is to build, if it is one.
pub(crate) fn request(plan: &Plan, work: &WorkDir, what: &What) -> Result<Option<BuildRequest>> {
    let What::Build { source: of, patches, config, fragments, set, compiler, kcflags, label } = what else {
        return Ok(None);
    };
    let files =
        |hashes: &[String]| hashes.iter().map(|hash| text(plan, work, hash)).collect::<Result<Vec<_>>>();
    let mut request = BuildRequest::new(source(work, of)?, label);
    request.patches = files(patches)?;
    request.fragments = files(fragments)?;
    request.extra.clone_from(set);
    request.kcflags.clone_from(kcflags);
    request.compiler = compiler.parse()?;
    if let Some(config) = config {
        request.base = BaseConfig::File(text(plan, work, config)?);
    }
    // One kernel for every workload of the plan.
    let names: Vec<String> = plan.workloads.keys().cloned().collect();
    let workloads = names.iter().map(|name| plan.workload(name)).collect::<Result<Vec<_>>>()?;
    Ok(Some(with_needs(request, &workloads)))
}

/// A kernel that a task reads, in the work directory.
pub(crate) fn kernel(store: &dyn Store, work: &WorkDir, of: &KernelRef) -> Result<Kernel> {
    match of {
        KernelRef::Given { id, content } => crate::pack::fetch(store, work, id, content),
        KernelRef::Of(task) => {
            let built = crate::made::built(store, task)?;
            crate::pack::fetch(store, work, &built.kernel, &built.content)
        }
    }
}

/// The source of a kernel that a task of the plan built of a commit.
pub(crate) fn commit_of(plan: &Plan, work: &WorkDir, of: &KernelRef) -> Result<Option<Source>> {
    let KernelRef::Of(task) = of else { return Ok(None) };
    match plan.task(task).map(|task| &task.what) {
        Some(What::Build { source: of @ SourceRef::Commit { .. }, .. }) => source(work, of).map(Some),
        _ => Ok(None),
    }
}

/// An empty directory for a command, with the files that it reads.
pub(crate) fn scratch(
    plan: &Plan,
    work: &WorkDir,
    task: &str,
    files: &[(String, String)],
) -> Result<PathBuf> {
    let directory = work.root().join(ROOM).join("commands").join(task);
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

/// git, in a tree: what it prints.
pub(crate) fn git(tree: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(tree).args(arguments).env("LC_ALL", "C");
    let (end, said) = Job::new(command).time_limit(Duration::from_secs(600)).output()?;
    match end.success() {
        true => Ok(said),
        false => {
            let message = said.lines().last().unwrap_or("it failed").to_owned();
            Err(Error::Git { tree: tree.to_owned(), message })
        }
    }
}

/// A commit's files as a tarball.
fn export(work: &WorkDir, tree: &Path, commit: &str) -> Result<PathBuf> {
    let room = work.root().join(ROOM).join("commits");
    let path = room.join(format!("{commit}.tar.gz"));
    if path.is_file() {
        return Ok(path);
    }
    fs::create_dir_all(&room).at("create", &room)?;
    let aside = room.join(format!(".{commit}.{}", crate::process::process()));
    let gzip = find_program("gzip", &[]).unwrap_or_else(|| PathBuf::from("gzip"));
    let spawn = |program: &str| {
        let program = program.to_owned();
        move |source| kerntune_work::Error::Spawn { program, source }
    };
    let mut archive = Command::new("git")
        .arg("-C")
        .arg(tree)
        .args(["archive", "--format=tar", "--prefix=linux/", commit])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(spawn("git"))?;
    let to = File::create(&aside).at("create", &aside)?;
    let from = archive.stdout.take().map_or_else(Stdio::null, Stdio::from);
    // Without name and time: the same bytes each time.
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
