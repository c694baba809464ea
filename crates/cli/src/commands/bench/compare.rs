//! The command `kerntune bench compare`.

use crate::args::{BenchCompareOptions, RowCorrection};
use crate::exit::{Exit, Failure};
use crate::output::CliOutput;
use kerntune_guest::read_text;
use kerntune_report::bench;
use kerntune_stats::{BenchResults, ComparisonOptions, JoinedResults, PValueCorrection, TimedComparison};
use std::path::PathBuf;

pub fn run(asked: &BenchCompareOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let options = ComparisonOptions {
        confidence: asked.confidence,
        min_effect: asked.min_effect,
        correction: match asked.correction {
            RowCorrection::Holm => PValueCorrection::Holm,
            RowCorrection::BenjaminiHochberg => PValueCorrection::BenjaminiHochberg,
            RowCorrection::None => PValueCorrection::None,
        },
        method: asked.interval.method(),
        ..ComparisonOptions::default()
    };
    let base = joined(std::iter::once(&asked.base).chain(&asked.more_base))?;
    let tuned = joined(std::iter::once(&asked.tuned).chain(&asked.more_tuned))?;
    let again = if asked.aa.is_empty() { None } else { Some(joined(&asked.aa)?) };
    let comparison = TimedComparison::new(&base, &tuned, again.as_ref(), &options)?;
    if asked.format.json {
        output.print(&comparison.to_json());
        return Ok(Exit::Ok);
    }
    let mut text = bench::table(&comparison, output.style());
    if asked.paper {
        text += &format!("\n{}", bench::paper(&comparison, output.style()));
    }
    output.print(&text);
    Ok(Exit::Ok)
}

/// Reads and joins the files of one kernel.
fn joined<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<JoinedResults, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let text = read_text("read", path)?;
        let origin = path.display().to_string();
        let results = BenchResults::parse(&origin, &text)?;
        files.push((origin, results));
    }
    Ok(JoinedResults::join(&files)?)
}
