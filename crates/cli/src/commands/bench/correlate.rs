//! `kerntune bench correlate`.

use crate::args::BenchCorrelate;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_guest::read_text;
use kerntune_report::prediction;
use kerntune_stats::{Options, Prediction, Recipe, Results};
use std::path::PathBuf;

pub fn run(asked: &BenchCorrelate, output: &Output) -> Result<Exit, Failure> {
    let (timed, exact) = (pairs(&asked.timed)?, pairs(&asked.exact)?);
    if timed.len() != exact.len() {
        let text = format!(
            "{} pair(s) of --timed and {} of --exact: each recipe needs one of both",
            timed.len(),
            exact.len()
        );
        return Err(Failure::usage(text));
    }
    let recipes: Vec<Recipe> =
        timed.into_iter().zip(exact).map(|(timed, exact)| Recipe { timed, exact }).collect();
    let options = Options { confidence: asked.confidence, ..Options::default() };
    let prediction = Prediction::new(&recipes, &asked.skip, &options)?;
    match asked.format.json {
        true => output.print(&prediction.to_json()),
        false => output.print(&prediction::table(&prediction, output.style())),
    }
    Ok(Exit::Ok)
}

/// Files two by two, each with its name.
fn pairs(paths: &[PathBuf]) -> Result<Vec<[(String, Results); 2]>, Failure> {
    let read = |path: &PathBuf| -> Result<(String, Results), Failure> {
        let text = read_text("read", path)?;
        let origin = path.display().to_string();
        let results = Results::parse(&origin, &text)?;
        Ok((origin, results))
    };
    let both = |pair: &[PathBuf]| Ok([read(&pair[0])?, read(&pair[1])?]);
    paths.chunks_exact(2).map(both).collect()
}
