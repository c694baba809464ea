//! Inputs that decide a task's result. They are determined when the plan is made and again on each
//! machine that is to compute the task; if they differ, the machine refuses the task and reports
//! the difference.

use crate::{KernelRef, MatrixPlan, Result, SourceRef, TaskKind};
use kerntune_kernel::{Compiler, ImportedSource, KernelSource};
use kerntune_tune::Session;
use kerntune_work::{find_program, hash_file, Hash};
use std::process::Command;

/// Programs of LLVM that recipes run besides the compiler.
const LLVM_TOOLS: [&str; 4] = ["ld.lld", "llvm-profgen", "llvm-profdata", "llvm-bolt"];

/// Determines all inputs of a task on this machine.
pub(crate) fn determine(
    plan: &MatrixPlan,
    session: &Session,
    kind: &TaskKind,
) -> Result<Vec<(String, String)>> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| all.push((name.to_owned(), value));
    match kind {
        TaskKind::Build { source, patches, config, fragments, set, compiler, kcflags, label: _ } => {
            add("does", "build".into());
            add("source", of_source(session, source)?);
            add("patches", joined(patches));
            add("config", config.as_deref().unwrap_or_default().to_owned());
            add("fragments", joined(fragments));
            add("set", set.join("\n"));
            add("kcflags", kcflags.join("\n"));
            add("compiler", of_compiler(compiler)?);
            // The kernel gets the options that these workloads' disks need.
            let needs = plan.workloads.keys().map(|name| {
                let disk = plan.workload(name)?.disk;
                Ok(disk.map_or_else(|| "none".to_owned(), |disk| disk.content_hash()))
            });
            add("disks", needs.collect::<Result<Vec<_>>>()?.join("\n"));
        }
        TaskKind::Tune { kernel, recipe, compiler, workload } => {
            add("does", "tune".into());
            add("kernel", of_kernel(kernel));
            add("recipe", recipe.clone());
            add("tools", of_tools(compiler)?);
            of_guest(plan, session, workload, &mut add)?;
        }
        TaskKind::Measure { kernel, workload, run } => {
            add("does", "measure".into());
            add("kernel", of_kernel(kernel));
            add("run", run.clone());
            of_guest(plan, session, workload, &mut add)?;
        }
        TaskKind::Command { arguments, kernels, files, cores: _ } => {
            add("does", "command".into());
            add("arguments", arguments.join("\u{0}"));
            add("kernels", kernels.iter().map(of_kernel).collect::<Vec<_>>().join(" "));
            add("files", files.iter().map(|(name, hash)| format!("{hash} {name}\n")).collect());
            add("machine", session.machine_id.clone());
        }
    }
    Ok(all)
}

fn joined(hashes: &[Hash]) -> String {
    hashes.iter().map(Hash::as_str).collect::<Vec<_>>().join(" ")
}

/// Adds the inputs of a guest: workload, image, model and machine.
fn of_guest(
    plan: &MatrixPlan,
    session: &Session,
    workload: &str,
    add: &mut impl FnMut(&str, String),
) -> Result<()> {
    let workload = plan.workload(workload)?;
    add("workload", workload.content_hash()?);
    let image = session.image(&workload);
    // A dry run packs none, and takes it that no store has results of one that is to be packed.
    let is_missing = session.work.take_missing();
    add("image", if is_missing { "to be packed".into() } else { image?.manifest.id });
    add("model", plan.model_text.clone());
    add("machine", session.machine_id.clone());
    Ok(())
}

/// Names a kernel by its content: label and work directory do not matter.
fn of_kernel(kernel: &KernelRef) -> String {
    match kernel {
        KernelRef::Given { id: _, content } => format!("images {content}"),
        KernelRef::Of(task) => format!("task {task}"),
    }
}

fn of_source(session: &Session, source: &SourceRef) -> Result<String> {
    let source: KernelSource = match source {
        SourceRef::Commit { tree: _, commit } => return Ok(format!("commit {commit}")),
        SourceRef::Named(name) => name.parse()?,
    };
    match source.tarball() {
        Some(path) if path.is_file() => Ok(format!("tarball {}", hash_file(&path)?)),
        // The import reports a missing source.
        _ => Ok(format!("tree {}", ImportedSource::import(session.work, &source, session.progress)?.hash())),
    }
}

fn of_compiler(name: &str) -> Result<String> {
    let compiler: Compiler = name.parse()?;
    Ok(compiler.identify()?.version)
}

/// Versions of the programs that recipes may run on kernels of a compiler.
fn of_tools(compiler: &str) -> Result<String> {
    let compiler: Compiler = compiler.parse()?;
    let mut versions = vec![compiler.identify()?.version];
    let tools = LLVM_TOOLS.map(|tool| compiler.llvm_program(tool));
    for tool in tools.iter().map(String::as_str).chain(["ld"]) {
        let path = find_program(tool, &[]);
        let said = path.and_then(|path| Command::new(path).arg("--version").env("LC_ALL", "C").output().ok());
        let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        let version = text.lines().find(|line| line.contains(|c: char| c.is_ascii_digit()));
        versions.push(format!("{tool}: {}", version.unwrap_or("none").trim()));
    }
    Ok(versions.join("\n"))
}

/// Names of the inputs that differ.
pub(crate) fn differences(planned: &[(String, String)], here: &[(String, String)]) -> Vec<String> {
    let changed = planned.iter().filter(|input| !here.contains(input)).map(|(name, _)| name.clone());
    let mut names: Vec<String> = changed.collect();
    names.extend(
        here.iter()
            .filter(|(name, _)| !planned.iter().any(|(known, _)| known == name))
            .map(|(name, _)| name.clone()),
    );
    names
}
