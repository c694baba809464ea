//! `kerntune export csv`.

use super::Entry;
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::Global;
use crate::output::Output;
use crate::registry::{entry, Run};
use crate::subject::Subject;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::Args;
use kerntune_convert::csv::{self, Table};
use kerntune_convert::stacks::Stacks;
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, Options>("csv", 25);

/// A table as comma-separated values, with the unit in the names of columns
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  kerntune export csv latest --table paths -o paths.csv")]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// The file to write
    #[arg(long, short, default_value = "profile.csv", value_name = "FILE")]
    output: PathBuf,
    /// Only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Which table
    #[arg(long, value_name = "TABLE", default_value = "functions", value_parser = tables())]
    table: Table,
}

impl Run<Global> for Options {
    fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let file = OutputFile::new("--output", &self.output)?;
        let subject = Subject::open(global, &self.profile)?;
        let scope = kerntune_report::scope(&subject.profile, self.region.as_deref())?;
        if self.table == Table::Paths {
            Stacks::of(&subject.profile, &scope).map_err(Failure::usage)?;
        }
        let rows = file.write_with(|out| csv::write(&subject.profile, &scope, self.table, out))?;
        output.note(&format!("wrote {}: {rows} rows", self.output.display()));
        Ok(Exit::Ok)
    }
}

/// The tables by their words.
fn tables() -> impl TypedValueParser<Value = Table> {
    let words = PossibleValuesParser::new(Table::ALL.map(|(word, _)| word));
    words.try_map(|word| Table::from_word(&word).ok_or("no such table"))
}
