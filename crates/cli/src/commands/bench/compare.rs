//! The command `kerntune bench compare`.

use crate::percent::fraction;
use clap::{Args, ValueEnum};
use kerntune_command::{CliOutput, Exit, Failure, FormatOptions, IntervalOptions};
use kerntune_guest::read_text;
use kerntune_report::bench;
use kerntune_stats::{BenchResults, ComparisonOptions, JoinedResults, PValueCorrection, TimedComparison};
use std::path::PathBuf;

/// Options of `kerntune bench compare`.
#[derive(Debug, Args)]
pub struct BenchCompareOptions {
    /// Results of the base kernel, as `kerntune bench run` writes them
    #[arg(value_name = "BASE.json")]
    pub base: PathBuf,
    /// Results of the kernel to compare with it
    #[arg(value_name = "TUNED.json")]
    pub tuned: PathBuf,
    /// More results of the base kernel, from other boots or builds; may be repeated
    #[arg(long, alias = "base", value_name = "FILE")]
    pub more_base: Vec<PathBuf>,
    /// More results of the tuned kernel; may be repeated
    #[arg(long, alias = "tuned", value_name = "FILE")]
    pub more_tuned: Vec<PathBuf>,
    /// Results of a second measurement of the base kernel, for the A/A comparison; without them,
    /// kerntune compares one half of the base kernel's values with the other half; may be repeated
    #[arg(long, value_name = "FILE")]
    pub aa: Vec<PathBuf>,
    /// Smallest difference that matters: rows shown to differ by less are called equivalent
    #[arg(long, default_value = "1%", value_parser = fraction, value_name = "PERCENT")]
    pub min_effect: f64,
    /// Confidence level of each interval
    #[arg(long, default_value = "95%", value_parser = fraction, value_name = "PERCENT")]
    pub confidence: f64,
    /// Correction for many rows: holm (no false finding among all), benjamini-hochberg (few among those found), or none
    #[arg(long, value_enum, default_value_t = RowCorrection::Holm, value_name = "METHOD")]
    pub correction: RowCorrection,
    #[command(flatten)]
    pub interval: IntervalOptions,
    /// Also print the table in the papers' form: base, optimized, standard deviation, improvement
    #[arg(long, conflicts_with = "json")]
    pub paper: bool,
    #[command(flatten)]
    pub format: FormatOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RowCorrection {
    Holm,
    BenjaminiHochberg,
    None,
}

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
