//! `kerntune guard`: a file per subcommand.

mod bisect;
mod check;
mod history;
mod text;
mod watch;

use super::work;
use crate::args::{Global, Guard, GuardOf, GuardRecord, GuardSubject};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::output::Output;
use kerntune_compare::number::{figure, grouped};
use kerntune_guard::cell::Measured;
use kerntune_guard::{cell, measured, subject, Baseline, Project, Subject, Tree};
use kerntune_kernel::Source;
use kerntune_tune::Session;
use std::path::PathBuf;

pub fn run(global: &Global, command: &Guard, output: &Output) -> Result<Exit, Failure> {
    match command {
        Guard::Record(options) => record(global, options, output),
        Guard::Check(options) => check::run(global, options, output),
        Guard::Bisect(options) => bisect::run(global, options, output),
        Guard::History(options) => history::run(global, options, output),
        Guard::Watch(options) => watch::run(global, options, output),
        Guard::Validate { of, format } => validate(of, format.json, output),
    }
}

/// The file with all that it names.
fn project(of: &GuardOf) -> Result<Project, Failure> {
    Ok(Project::load(&of.file, &[PathBuf::from("workloads")])?)
}

fn validate(of: &GuardOf, json: bool, output: &Output) -> Result<Exit, Failure> {
    let problems = match Project::load(&of.file, &[PathBuf::from("workloads")]) {
        Ok(_) => Vec::new(),
        Err(kerntune_guard::Error::File { problems, .. }) => problems,
        Err(other) => return Err(other.into()),
    };
    match (json, &problems[..]) {
        (true, _) => output.json(&problems),
        (false, []) => output.print(&format!("{}: good", of.file.display())),
        (false, _) => {
            problems.iter().for_each(|problem| output.print(&format!("{}:{problem}", of.file.display())))
        }
    }
    Ok(if problems.is_empty() { Exit::Ok } else { Exit::Findings })
}

/// What was asked for under every workload of the file, and under every variant where kernels are built for it.
fn measure(
    session: &Session,
    project: &Project,
    asked: &GuardSubject,
    output: &Output,
) -> Result<(Subject, Vec<Measured>), Failure> {
    let GuardSubject { kernel, commit, source } = asked;
    if let Some(name) = kernel {
        return of_kernel(session, project, name);
    }
    if let Some(name) = commit {
        let tree = Tree::open(session.work, &project.tree()?)?;
        let commit = tree.commit(name)?;
        output.note(&format!("commit {} ({})", commit.short(), commit.subject));
        let found = measured(session, project, &tree, &commit)?;
        let all = found.map_err(|why| Failure {
            exit: Exit::Guest,
            message: format!("commit {} has no figures: {why}", commit.short()),
        })?;
        return Ok((subject(&commit), all));
    }
    let named = source.as_ref().map_or_else(|| project.file.source.clone(), ToString::to_string);
    let source: Source = match (source, project.dir.join(&named)) {
        (Some(source), _) => source.clone(),
        (None, beside) if beside.exists() && !named.starts_with("debian:") => {
            beside.display().to_string().parse().map_err(Failure::usage)?
        }
        (None, _) => named.parse().map_err(Failure::usage)?,
    };
    let mut all = Vec::new();
    for variant in project.variants() {
        let label = format!("guard-{}-{}", variant.configuration.name, variant.compiler);
        let kernel = cell::kernel_of(session, project, (source.clone(), &label), &variant, None)?;
        all.extend(cell::of_works(session, project, &kernel, Some(&variant))?);
    }
    Ok((Subject { what: format!("source {named}"), commit: None }, all))
}

fn of_kernel(session: &Session, project: &Project, name: &str) -> Result<(Subject, Vec<Measured>), Failure> {
    let kernel = kerntune_kernel::find(session.work, name)?;
    let cells = cell::of_works(session, project, &kernel, None)?;
    let what = format!(
        "kernel {} ({}, Linux {})",
        kernel.manifest.label, kernel.manifest.id, kernel.manifest.version
    );
    Ok((Subject { what, commit: None }, cells))
}

fn record(global: &Global, options: &GuardRecord, output: &Output) -> Result<Exit, Failure> {
    let project = project(&options.of)?.with_tree(options.git.as_deref())?;
    let path = project.baseline(options.output.as_deref());
    let file = OutputFile::new("--output", &path)?;
    let work = work(global)?;
    let session = Session::new(&work, output.progress())?;
    let (subject, all) = measure(&session, &project, &options.subject, output)?;
    let baseline = Baseline::of(subject, &all);
    file.write_json(&baseline)?;
    if options.format.json {
        output.json(&baseline);
        return Ok(Exit::Ok);
    }
    output.print(&format!("{}\n", baseline.subject.what));
    output.table(
        &["WORKLOAD", "ROW", "#OPERATIONS", "#PATH", "#PUT OFF"],
        baseline.cells.iter().flat_map(|cell| {
            cell.rows.iter().map(|row| {
                let put_off: u64 = row.put_off.values().sum();
                let each = put_off as f64 / row.operations.max(1) as f64;
                vec![cell.named(), row.row.clone(), grouped(row.operations), figure(row.path()), figure(each)]
            })
        }),
    );
    output.print(&format!("\npath: an operation's own kernel instructions; put off: kernel work per operation that is not the operation's,\nsuch as timers and kernel threads (docs/guard.md). Both are exact.\n\nwritten to {}", path.display()));
    Ok(Exit::Ok)
}
