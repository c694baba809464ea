//! `kerntune workload list|check`.

use crate::args::Workload as Command;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_guest::{read_text, Workload, SHIPPED};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A workload as `list --json` shows it.
#[derive(Serialize)]
struct Listed {
    name: String,
    file: Option<PathBuf>,
    description: String,
}

pub fn run(command: &Command, output: &Output) -> Result<Exit, Failure> {
    match command {
        Command::List { format } => list(format.json, output),
        Command::Check { file, format } => check(file, format.json, output),
    }
}

/// Every workload that can be named, with its file: those of the directory `workloads/` here, then those built in.
/// Files that cannot be used are told of.
pub(super) fn known(output: &Output) -> Result<Vec<(Workload, Option<PathBuf>)>, Failure> {
    let mut found: Vec<(Workload, Option<PathBuf>)> = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir("workloads")
        .map(|entries| entries.filter_map(|e| Some(e.ok()?.path())).collect())
        .unwrap_or_default();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    for file in files {
        match Workload::load(&file) {
            Ok(workload) => found.push((workload, Some(file))),
            Err(error) => output.note(&format!("kerntune: {error}")),
        }
    }
    for (name, text) in SHIPPED {
        if found.iter().all(|(workload, _)| workload.name != *name) {
            found.push((Workload::parse(text, Path::new(name))?, None));
        }
    }
    Ok(found)
}

fn list(json: bool, output: &Output) -> Result<Exit, Failure> {
    let found: Vec<Listed> = known(output)?
        .into_iter()
        .map(|(workload, file)| Listed { name: workload.name, file, description: workload.description })
        .collect();
    if json {
        output.json(&found);
    } else {
        output.table(
            &["NAME", "FILE", "DESCRIPTION"],
            found.into_iter().map(|w| {
                let file = w.file.map_or("(built in)".into(), |path| path.display().to_string());
                vec![w.name, file, w.description]
            }),
        );
    }
    Ok(Exit::Ok)
}

fn check(file: &Path, json: bool, output: &Output) -> Result<Exit, Failure> {
    let text = read_text("read workload", file)?;
    let problems = kerntune_guest::check(&text, file);
    if json {
        output.json(&problems);
    } else if problems.is_empty() {
        output.print(&format!("{}: good", file.display()));
    } else {
        for problem in &problems {
            output.print(&format!("{}:{problem}", file.display()));
        }
    }
    // A warning is no finding: the image is built all the same.
    Ok(if problems.iter().all(|problem| problem.warning) { Exit::Ok } else { Exit::Findings })
}
