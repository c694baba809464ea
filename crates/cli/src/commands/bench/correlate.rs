//! The command `kerntune bench correlate`.

use crate::percent::fraction;
use clap::{ArgGroup, Args};
use kerntune_command::{
    read_results, timed_pairs, work_to_read, workload, CliOutput, Exit, Failure, FormatOptions,
    GlobalOptions, OutputFile, TimedFiles,
};
use kerntune_compare::{Metric, ModelChanges};
use kerntune_guest::Suite;
use kerntune_kernel::Kernel;
use kerntune_report::html::clock;
use kerntune_report::prediction;
use kerntune_stats::{BenchResults, ComparisonOptions, Prediction, RecipeResults};
use kerntune_tune::bench::{self, emulator, SelectedRows};
use kerntune_tune::compare::{across_models, MODELS};
use kerntune_tune::model::{self, Model};
use kerntune_tune::Session;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Options of `kerntune bench correlate`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("model").required(true).args(["exact", "kernels"]))]
pub struct BenchCorrelateOptions {
    /// Timed results of a base kernel and of a tuned kernel, written by `kerntune time`, `kerntune
    /// prove` or `kerntune bench run --machine uml`. Separate several files of one kernel (more
    /// boots) by commas. May be repeated, once for each recipe
    #[arg(long, required = true, num_args = 2, value_names = ["BASE.json", "TUNED.json"])]
    pub timed: Vec<String>,
    /// Exact results of the same recipe, written by `kerntune bench run --machine emulator`: one
    /// pair for each --timed, in the same order. Repeat all pairs for each further front-end model;
    /// gains are then ranges
    #[arg(long, num_args = 2, value_names = ["BASE.json", "TUNED.json"])]
    pub exact: Vec<PathBuf>,
    /// Instead of --exact: run the rows on these kernels of the same recipe in the emulator; one
    /// pair for each --timed, in the same order
    #[arg(long, num_args = 2, value_names = ["BASE", "TUNED"])]
    pub kernels: Vec<String>,
    /// With --kernels: the front-end models of the range [default: models of several CPUs, each
    /// with a front end that waits and with one that runs ahead (docs/models.md)]
    #[arg(long, value_name = "MODEL,…", value_delimiter = ',')]
    pub models: Vec<String>,
    /// Leave out this row (ROW or SUITE/ROW), for example if the machines run different code for it
    /// (docs/models.md); may be repeated
    #[arg(long, value_name = "ROW")]
    pub skip: Vec<String>,
    /// Confidence level of each interval
    #[arg(long, default_value = "95%", value_parser = fraction, value_name = "PERCENT")]
    pub confidence: f64,
    /// Also draw all rows into this SVG file; needs several models
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatOptions,
}

pub fn run(
    global: &GlobalOptions,
    asked: &BenchCorrelateOptions,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    let picture = asked.picture.as_deref().map(|path| OutputFile::new("--picture", path)).transpose()?;
    let timed = timed_pairs(&asked.timed)?;
    let options = ComparisonOptions { confidence: asked.confidence, ..ComparisonOptions::default() };
    if asked.kernels.is_empty() && !asked.models.is_empty() {
        return Err(Failure::usage("--models is for --kernels; with --exact the files name their models"));
    }
    let prediction = match asked.kernels.is_empty() {
        true => of_files(&timed, &asked.exact, &asked.skip, &options)?,
        false => of_kernels(global, &timed, asked, &options, output)?,
    };
    if let Some(file) = &picture {
        let drawn = clock::picture(&prediction).ok_or_else(|| {
            Failure::usage(
                "--picture: there is no range to draw; give --kernels, or --exact for several models",
            )
        })?;
        file.write(drawn.as_bytes())?;
    }
    match asked.format.json {
        true => output.print(&prediction.to_json()),
        false => output.print(&prediction::table(&prediction, output.style())),
    }
    Ok(Exit::Ok)
}

/// Correlates with existing exact results, of one model or of several models one after the other.
fn of_files(
    timed: &[[TimedFiles; 2]],
    exact: &[PathBuf],
    skip: &[String],
    options: &ComparisonOptions,
) -> Result<Prediction, Failure> {
    let exact: Vec<[(String, BenchResults); 2]> = exact
        .chunks_exact(2)
        .map(|pair| Ok([read_results(&pair[0])?, read_results(&pair[1])?]))
        .collect::<Result<_, Failure>>()?;
    if exact.is_empty() || exact.len() % timed.len() != 0 {
        let text = format!(
            "{} pair(s) of --timed and {} of --exact: each recipe needs one of both",
            timed.len(),
            exact.len()
        );
        return Err(Failure::usage(text));
    }
    let mut all = Vec::new();
    for of_model in exact.chunks_exact(timed.len()) {
        let pairs = timed.iter().cloned().zip(of_model.iter().cloned());
        let recipes: Vec<RecipeResults> =
            pairs.map(|(timed, exact)| RecipeResults { timed, exact }).collect();
        all.push(Prediction::new(&recipes, skip, options)?);
    }
    match all.len() {
        1 => Ok(all.remove(0)),
        _ => Ok(Prediction::combine_models(all)?),
    }
}

/// Correlates with exact results of kernels, which run the timed rows in the emulator under all
/// models.
fn of_kernels(
    global: &GlobalOptions,
    timed: &[[TimedFiles; 2]],
    asked: &BenchCorrelateOptions,
    options: &ComparisonOptions,
    output: &CliOutput,
) -> Result<Prediction, Failure> {
    if asked.kernels.len() != 2 * timed.len() {
        let (files, kernels) = (timed.len(), asked.kernels.len() / 2);
        let text =
            format!("{files} pair(s) of --timed and {kernels} of --kernels: each recipe needs one of both");
        return Err(Failure::usage(text));
    }
    let names =
        if asked.models.is_empty() { MODELS.map(String::from).to_vec() } else { asked.models.clone() };
    let models: Vec<Model> = names.iter().map(|name| model::find(name)).collect::<Result<_, _>>()?;
    let free = models.iter().find(|model| model.costs.is_none());
    if let Some(model) = free {
        return Err(Failure::usage(format!(
            "--models {}: the model has no costs of events, so there are no model cycles",
            model.name
        )));
    }
    let work = work_to_read(global)?;
    let session = Session::new(&work, output.progress())?;
    let (mut recipes, mut changes) = (Vec::new(), BTreeMap::new());
    for (timed, names) in timed.iter().zip(asked.kernels.chunks_exact(2)) {
        let base = kerntune_kernel::find(&work, &names[0])?;
        let tuned = kerntune_kernel::find(&work, &names[1])?;
        let selection = selection(&timed[0], &asked.skip)?;
        for SelectedRows { suite, rows } in &selection {
            let workload = suite.restricted(&rows.iter().collect::<Vec<_>>(), 1.0);
            let under = across_models(&session, [&base, &tuned], &workload, &models)?;
            changes.insert((timed[1][0].0.clone(), workload.name.clone()), under);
        }
        let exact = |kernel: &Kernel| -> Result<(String, BenchResults), Failure> {
            let checked = emulator::check(kernel, selection.clone())?;
            let request = emulator::ExactRequest { kernel, model: &models[0], boots: 1, runs: 1, scale: 1.0 };
            Ok((kernel.manifest.label.clone(), emulator::run(&session, checked, &request)?))
        };
        recipes.push(RecipeResults { timed: timed.clone(), exact: [exact(&base)?, exact(&tuned)?] });
    }
    let prediction = Prediction::new(&recipes, &asked.skip, options)?;
    Ok(prediction.add_models(models.into_iter().map(|model| model.name).collect(), |row| {
        let of: Option<&ModelChanges> = changes.get(&(row.recipe.clone(), row.suite.clone()));
        let found = of.and_then(|models| models.row(&row.row, Metric::ModelCycles));
        found.map(|row| row.changes_percent.clone()).unwrap_or_default()
    }))
}

/// Selects the timed rows, except those that are skipped.
fn selection(files: &TimedFiles, skip: &[String]) -> Result<Vec<SelectedRows>, Failure> {
    let mut by_suite: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in files.iter().flat_map(|(_, results)| &results.rows) {
        let name = row.name();
        let of_suite = by_suite.entry(&row.suite).or_default();
        if !skip.contains(&name) && !skip.contains(&row.row) && !of_suite.contains(&name) {
            of_suite.push(name);
        }
    }
    let mut selected = Vec::new();
    for (name, rows) in by_suite {
        if rows.is_empty() {
            continue;
        }
        let workload = workload(name, &Default::default())?;
        let suite =
            Suite::of(workload).ok_or_else(|| Failure::usage(format!("workload {name} has no rows")))?;
        selected.extend(bench::select(vec![suite], &rows).map_err(kerntune_tune::Error::from)?);
    }
    Ok(selected)
}
