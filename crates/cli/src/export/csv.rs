//! The format `csv` of `kerntune export`.

use super::Entry;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_convert::csv::{self, CsvTable};
use kerntune_convert::stacks::CallStacks;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportCsvOptions>("csv", 25);

/// A table as comma-separated values, with units in the column names
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  kerntune export csv latest --table paths -o paths.csv")]
pub struct ExportCsvOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file
    #[arg(long, short, default_value = "profile.csv", value_name = "FILE")]
    output: PathBuf,
    /// Export only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// The table to export
    #[arg(long, value_name = "TABLE", default_value = "functions", value_parser = tables())]
    table: CsvTable,
}

impl RunSubcommand<GlobalOptions> for ExportCsvOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let subject = ProfileSubject::open(global, &self.profile)?;
        let scope = kerntune_report::scope(&subject.profile, self.region.as_deref())?;
        if self.table == CsvTable::Paths {
            CallStacks::of(&subject.profile, &scope).map_err(Failure::usage)?;
        }
        let rows = file.write_with(|out| csv::write(&subject.profile, &scope, self.table, out))?;
        output.note(&format!("wrote {}: {rows} rows", self.output.display()));
        Ok(Exit::Ok)
    }
}

/// Returns a parser for the names of the tables.
fn tables() -> impl TypedValueParser<Value = CsvTable> {
    let words = PossibleValuesParser::new(CsvTable::ALL.map(|(word, _)| word));
    words.try_map(|word| CsvTable::from_name(&word).ok_or("no such table"))
}
