//! `kerntune paper`.

use super::{build_request, command_line, work};
use crate::args::{Global, Paper as Options};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use kerntune_paper::{names, Paper, Study};
use kerntune_profile::rfc3339;
use kerntune_report::{html, markdown, paper as report, study as study_report};
use kerntune_tune::paper::{paper, PaperRequest};
use kerntune_tune::study::{study, StudyRequest};
use kerntune_tune::{Recipe, Session};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

pub fn run(global: &Global, options: &Options, output: &Output) -> Result<Exit, Failure> {
    let Some(name) = &options.name else { return list(options, output) };
    let of = Paper::named(name).map_err(Failure::usage)?;
    if let Some(study) = &of.study {
        return run_study(global, options, &of, study, output);
    }
    for workload in &options.only {
        if !of.experiments.iter().any(|experiment| experiment.workload == *workload) {
            let known: Vec<&str> = workloads(&of);
            return Err(Failure::usage(format!(
                "--only {workload}: the paper {name} has the workloads {}",
                known.join(", ")
            )));
        }
    }
    let recipe: Recipe = match options.recipe {
        Some(recipe) => recipe,
        None => of.recipe.parse().map_err(Failure::usage)?,
    };
    let build = build_request(&options.build, "base", recipe.default_compiler())?;
    let model = options.model.find(false)?;
    let page = options.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
    let work = work(global)?;
    let session = Session::new(&work, output.progress())?;
    let exclusions = super::exclusions(&options.exclude)?;
    recipe.check_options(options.of_recipe.options(), &[], &exclusions)?;
    let request = PaperRequest {
        paper: &of,
        only: &options.only,
        workloads: &[PathBuf::from("workloads")],
        build: &build,
        recipe,
        options: options.of_recipe.options(),
        model: &model,
        budget: options.budget.map(|minutes| Duration::from_secs(minutes * 60)),
        exclusions: &exclusions,
    };
    let names = recipe.steps();
    let outcome = paper(&session, &request, &|workload, name, found| {
        let number = 1 + names.iter().position(|step| *step == name).unwrap_or_default();
        let found = found.map(|path| format!(": found {}", path.display())).unwrap_or_default();
        output.note(&format!("{workload} [{number}/{}] {name}{found}", names.len()));
    })?;
    if let Some(file) = &page {
        let commands = [command_line()];
        let written = format!("kerntune {}, {}", env!("CARGO_PKG_VERSION"), rfc3339(SystemTime::now()));
        let page = match file.path().extension() {
            Some(extension) if extension == "md" => markdown::paper(&outcome, &commands, &written),
            _ => html::paper::page(&outcome, &commands, &written),
        };
        file.write(page.as_bytes())?;
    }
    match options.format.json {
        true => output.json(&outcome),
        false => output.print(&report::table(&outcome, output.style())),
    }
    Ok(Exit::Ok)
}

/// A paper whose kernels differ by patches and not by a recipe.
fn run_study(
    global: &Global,
    options: &Options,
    of: &Paper,
    wanted: &Study,
    output: &Output,
) -> Result<Exit, Failure> {
    let of_recipes = [
        ("--recipe", options.recipe.is_some()),
        ("--only", !options.only.is_empty()),
        ("--budget", options.budget.is_some()),
        ("--model", options.model.is_asked()),
        ("--exclude", !options.exclude.exclude.is_empty()),
        ("--values", options.of_recipe.values),
    ];
    if let Some((option, _)) = of_recipes.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{option} is for papers that tune kernels by a recipe; {} changes its kernels by patches",
            of.name
        )));
    }
    let build = build_request(&options.build, "base", Default::default())?;
    let page = options.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
    let work = work(global)?;
    let session = Session::new(&work, output.progress())?;
    let request =
        StudyRequest { paper: of, study: wanted, workloads: &[PathBuf::from("workloads")], build: &build };
    let outcome = study(&session, &request, &|kernel, what| output.note(&format!("{kernel}: {what}")))?;
    if let Some(file) = &page {
        let commands = [command_line()];
        let written = format!("kerntune {}, {}", env!("CARGO_PKG_VERSION"), rfc3339(SystemTime::now()));
        let page = match file.path().extension() {
            Some(extension) if extension == "md" => study_report::markdown(&outcome, &commands, &written),
            _ => study_report::page(&outcome, &commands, &written),
        };
        file.write(page.as_bytes())?;
    }
    match options.format.json {
        true => output.json(&outcome),
        false => output.print(&study_report::table(&outcome, output.style())),
    }
    Ok(Exit::Ok)
}

/// Each workload of the paper's tables once.
fn workloads(paper: &Paper) -> Vec<&str> {
    let study = paper.study.iter().map(|study| study.workload.as_str());
    let mut names: Vec<&str> =
        paper.experiments.iter().map(|experiment| experiment.workload.as_str()).chain(study).collect();
    names.dedup();
    names
}

#[derive(serde::Serialize)]
struct Listed {
    name: String,
    title: String,
    authors: String,
    published: String,
    recipe: String,
    workloads: Vec<String>,
}

fn list(options: &Options, output: &Output) -> Result<Exit, Failure> {
    let mut papers = Vec::new();
    for name in names() {
        let paper = Paper::named(name).map_err(Failure::usage)?;
        let workloads = workloads(&paper).into_iter().map(String::from).collect();
        let Paper { name, title, authors, published, recipe, .. } = paper;
        papers.push(Listed { name, title, authors, published, recipe, workloads });
    }
    match options.format.json {
        true => output.json(&serde_json::json!({ "schema": "kerntune-papers/1", "papers": papers })),
        false => output.table(
            &["PAPER", "RECIPE", "WORKLOADS", "TITLE", "PUBLISHED"],
            papers
                .into_iter()
                .map(|of| Listed { recipe: if of.recipe.is_empty() { "-".into() } else { of.recipe }, ..of })
                .map(|of| vec![of.name, of.recipe, of.workloads.join(", "), of.title, of.published]),
        ),
    }
    Ok(Exit::Ok)
}
