//! `kerntune kernel build|list|show|remove`.

use super::{build_request, bytes, work};
use crate::args::{Global, Kernel as Command};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_kernel::{Compiler, Kernel};
use kerntune_work::WorkDir;
use serde::Serialize;
use std::path::Path;

/// A kernel as `--json` shows it.
#[derive(Serialize)]
struct Shown<'a> {
    path: &'a Path,
    #[serde(flatten)]
    manifest: &'a kerntune_kernel::KernelManifest,
}

pub fn run(global: &Global, command: &Command, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    match command {
        Command::Build { build, label, format } => {
            let request = build_request(build, label, Compiler::default())?;
            let kernel = kerntune_kernel::build(&work, &request, output.progress())?;
            show(&kernel, format.json, output);
        }
        Command::List { format } => list(&work, format.json, output)?,
        Command::Show { kernel, format } => {
            show(&kerntune_kernel::find(&work, kernel)?, format.json, output);
        }
        Command::Remove { kernel } => {
            let kernel = kerntune_kernel::find(&work, kernel)?;
            kerntune_kernel::remove(&work, &kernel)?;
            output.note(&format!("removed {}", kernel.dir.display()));
        }
    }
    Ok(Exit::Ok)
}

fn list(work: &WorkDir, json: bool, output: &Output) -> Result<(), Failure> {
    let kernels = kerntune_kernel::list(work)?;
    if json {
        let shown: Vec<Shown> =
            kernels.iter().map(|k| Shown { path: &k.dir, manifest: &k.manifest }).collect();
        output.json(&shown);
    } else if kernels.is_empty() {
        output.note("no kernels yet: `kerntune kernel build` makes one");
    } else {
        output.table(
            &["ID", "LABEL", "VERSION", "RECIPE", "COMPILER", "#TEXT", "#IMAGE", "BUILT"],
            kernels.iter().map(|k| {
                let m = &k.manifest;
                vec![
                    m.id.clone(),
                    m.label.clone(),
                    m.version.clone(),
                    m.recipe.clone().unwrap_or_else(|| "-".into()),
                    m.compiler.version.clone(),
                    bytes(m.text_bytes),
                    bytes(m.image_bytes),
                    m.built.clone(),
                ]
            }),
        );
    }
    Ok(())
}

fn show(kernel: &Kernel, json: bool, output: &Output) {
    let m = &kernel.manifest;
    if json {
        output.json(&Shown { path: &kernel.dir, manifest: m });
        return;
    }
    let mut lines = vec![
        ("kernel", format!("{} ({})", m.label, m.id)),
        ("version", m.version.clone()),
        ("image", format!("{} ({})", kernel.bzimage().display(), bytes(m.image_bytes))),
        ("vmlinux", format!("{} ({} of code)", kernel.vmlinux().display(), bytes(m.text_bytes))),
        ("source", format!("{} ({})", m.source.origin, m.source.hash)),
        ("config", format!("{} ({})", kernel.config().display(), m.config_hash)),
        ("compiler", format!("{} ({})", m.compiler.version, m.compiler.program)),
        ("flags", if m.kcflags.is_empty() { "-".into() } else { m.kcflags.join(" ") }),
        ("recipe", m.recipe.clone().unwrap_or_else(|| "-".into())),
        ("profile", m.profile_id.clone().unwrap_or_else(|| "-".into())),
        ("built", format!("{} in {:.0} s, {} objects", m.built, m.build_seconds, m.objects)),
    ];
    lines.extend(m.warnings.iter().map(|warning| ("warning", warning.clone())));
    let text: Vec<String> = lines.iter().map(|(what, value)| format!("{what:9} {value}")).collect();
    output.print(&text.join("\n"));
}
