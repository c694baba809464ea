//! `kerntune report`: a file for each report that needs more than one profile's tables. Those that need no more are in
//! `crates/report/src/reports/`.

use crate::exit::{Exit, Failure};
use crate::global::{Global, Json};
use crate::output::Output;
use crate::registry::{Chosen, Folder, Registry, Run};
use crate::subject::Subject;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use kerntune_report::functions;
use kerntune_report::{of_profile, reports, summary, Report, Subcommand};

/// A report's subcommand.
type Entry = Subcommand<dyn Run<Subject>>;

include!(concat!(env!("OUT_DIR"), "/report.rs"));

pub use path::typical_path;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = false)]
pub struct Options {
    /// Beginning of an id, directory, `latest`, or `latest:workload=rr,kernel=base`
    #[arg(default_value = "latest")]
    profile: String,
    /// What to show: summary and functions if not given
    #[command(subcommand)]
    kind: Option<Chosen<Kinds>>,
    #[command(flatten)]
    table: functions::Options,
    #[command(flatten)]
    format: Json,
}

impl Options {
    pub fn run(&self, global: &Global, output: &Output) -> Result<Exit, Failure> {
        let of_table = self.table != functions::Options::default();
        if self.kind.is_some() && (of_table || self.format.json) {
            return Err(Failure::usage(
                "options of a report come after its name: kerntune report PROFILE KIND --region NAME",
            ));
        }
        if self.kind.is_none() && self.format.json && of_table {
            return Err(Failure::usage(
                "--json without a report prints the summary, which takes none of the table's options (--top, \
                 --sort, --function, --region, --thread …): use kerntune report PROFILE functions --json",
            ));
        }
        let of = Subject::open(global, &self.profile)?;
        if let Some(kind) = &self.kind {
            return kind.run(&of, output);
        }
        let narrowed = of.narrowed(Some(&self.table.who))?;
        let of = narrowed.as_ref();
        if self.format.json {
            output.print(&summary::Options.json(&of.profile)?);
        } else {
            if self.table.who.is_everybody() {
                output.print(&summary::Options.text(&of.profile, output.style())?);
            } else {
                output.print(&format!("{}\n", of_profile(&of.profile)));
            }
            output.print("\n");
            output.print(&self.table.text(&of.profile, output.style())?);
        }
        Ok(Exit::Ok)
    }
}

/// All reports.
#[derive(Debug)]
struct Kinds;

impl Registry for Kinds {
    type On = Subject;

    fn folders() -> Vec<&'static dyn Folder<Subject>> {
        vec![&OfTables, &ENTRIES]
    }
}

/// Those of the tables alone, which print text or JSON.
struct OfTables;

impl Folder<Subject> for OfTables {
    fn commands(&self) -> Vec<(u8, Command)> {
        let command = |entry: &&reports::Entry| (entry.place, Json::augment_args(entry.command()));
        reports::ENTRIES.iter().map(command).collect()
    }

    fn read(&self, name: &str, matches: &ArgMatches) -> Option<Result<Box<dyn Run<Subject>>, Error>> {
        let entry = reports::ENTRIES.iter().find(|entry| entry.name == name)?;
        let read = || Ok(Box::new(Printed(entry.read(matches)?, Json::from_arg_matches(matches)?)) as _);
        Some(read())
    }
}

#[derive(Debug)]
struct Printed(Box<dyn Report>, Json);

impl Run<Subject> for Printed {
    fn run(&self, of: &Subject, output: &Output) -> Result<Exit, Failure> {
        let Self(report, format) = self;
        let narrowed = of.narrowed(report.who())?;
        let of = narrowed.as_ref();
        let text = || report.text(&of.profile, output.style());
        match report.names_its_profile() && !format.json {
            true => output.print(&text()?),
            false => print(of, output, *format, || report.json(&of.profile), text)?,
        }
        Ok(Exit::Ok)
    }
}

/// Prints a report: JSON, or text below the line that says what it is of.
fn print<E: Into<Failure>>(
    of: &Subject,
    output: &Output,
    format: Json,
    json: impl FnOnce() -> Result<String, E>,
    text: impl FnOnce() -> Result<String, E>,
) -> Result<(), Failure> {
    let shown = match format.json {
        true => json().map_err(Into::into)?,
        false => format!("{}\n\n{}", of_profile(&of.profile), text().map_err(Into::into)?),
    };
    output.print(&shown);
    Ok(())
}

/// The most rows that are shown.
fn most(top: Option<usize>, format: Json) -> Option<usize> {
    top.or((!format.json).then_some(kerntune_report::TOP))
}
