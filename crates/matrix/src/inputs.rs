//! What decides a task's result, by name: told when a plan is made, and again on each machine that is to compute it. What is not
//! the same is told, and nothing is computed.

use crate::{KernelRef, Plan, Result, SourceRef, What};
use kerntune_kernel::{Compiler, ImportedSource, Source};
use kerntune_tune::{Recipe, Session};
use kerntune_work::{find_program, hash_file, Hash};
use std::process::Command;

/// Programs that recipes run beside the compiler, with the versions that kerntune knows.
const TOOLS: &[&str] = &["ld.lld-19", "llvm-profgen-19", "llvm-profdata-19", "llvm-bolt-19", "ld"];

/// All inputs of a task, as they are on this machine.
pub(crate) fn of(plan: &Plan, session: &Session, what: &What) -> Result<Vec<(String, String)>> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| all.push((name.to_owned(), value));
    match what {
        What::Build { source, patches, config, fragments, set, compiler, kcflags, label: _ } => {
            add("does", "build".into());
            add("source", of_source(session, source)?);
            add("patches", joined(patches));
            add("config", config.as_deref().unwrap_or_default().to_owned());
            add("fragments", joined(fragments));
            add("set", set.join("\n"));
            add("kcflags", kcflags.join("\n"));
            add("compiler", of_compiler(compiler)?);
            // Of which workloads it can run decides what is switched on.
            let needs = plan.workloads.keys().map(|name| Ok(format!("{:?}", plan.workload(name)?.disk)));
            add("disks", needs.collect::<Result<Vec<_>>>()?.join("\n"));
        }
        What::Tune { kernel, recipe, workload } => {
            add("does", "tune".into());
            add("kernel", of_kernel(kernel));
            add("recipe", recipe.clone());
            add("tools", of_recipe(recipe)?);
            of_guest(plan, session, workload, &mut add)?;
        }
        What::Measure { kernel, workload, run } => {
            add("does", "measure".into());
            add("kernel", of_kernel(kernel));
            add("run", run.clone());
            of_guest(plan, session, workload, &mut add)?;
        }
        What::Command { arguments, kernels, files, cores: _ } => {
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

/// What runs in the guest, and what runs the guest.
fn of_guest(
    plan: &Plan,
    session: &Session,
    workload: &str,
    add: &mut impl FnMut(&str, String),
) -> Result<()> {
    let workload = plan.workload(workload)?;
    add("workload", format!("{workload:?}"));
    add("image", session.image(&workload)?.manifest.id);
    add("model", plan.model_text.clone());
    add("machine", session.machine_id.clone());
    Ok(())
}

/// The content: what a kernel is called, and in which work directory it is, is no input.
fn of_kernel(kernel: &KernelRef) -> String {
    match kernel {
        KernelRef::Given { id: _, content } => format!("images {content}"),
        KernelRef::Of(task) => format!("task {task}"),
    }
}

fn of_source(session: &Session, source: &SourceRef) -> Result<String> {
    let source: Source = match source {
        SourceRef::Commit { tree: _, commit } => return Ok(format!("commit {commit}")),
        SourceRef::Named(name) => name.parse()?,
    };
    match source.tarball() {
        Some(path) if path.is_file() => Ok(format!("tarball {}", hash_file(&path)?)),
        // It says what is missing.
        _ => Ok(format!("tree {}", ImportedSource::import(session.work, &source, session.progress)?.hash())),
    }
}

fn of_compiler(name: &str) -> Result<String> {
    let compiler: Compiler = name.parse()?;
    Ok(compiler.identify()?.version)
}

/// Versions of what a recipe may run.
fn of_recipe(name: &str) -> Result<String> {
    let recipe: Recipe = name.parse()?;
    let mut versions = vec![recipe.default_compiler().identify()?.version];
    for tool in TOOLS {
        let path = find_program(tool, &["/usr/lib/llvm-19/bin"]);
        let said = path.and_then(|path| Command::new(path).arg("--version").env("LC_ALL", "C").output().ok());
        let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        let version = text.lines().find(|line| line.contains(|c: char| c.is_ascii_digit()));
        versions.push(format!("{tool}: {}", version.unwrap_or("none").trim()));
    }
    Ok(versions.join("\n"))
}

/// Names of those that differ.
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
