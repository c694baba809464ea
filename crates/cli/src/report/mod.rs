//! `kerntune report`: a file for each report that needs more than the tables of one profile. The
//! others are in `crates/report/src/reports/`. Start from [`ReportOptions`].

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use kerntune_command::{
    command, ChosenSubcommand, CliOutput, CommandEntry, Exit, Failure, FormOptions, FormatOptions,
    GlobalOptions, ProfileSubject, RunSubcommand, SubcommandFolder, SubcommandRegistry,
};
use kerntune_report::{functions, profile_line, render, reports, summary, Report, Subcommand};

/// Entry of a report in the registry.
type Entry = Subcommand<dyn RunSubcommand<ProfileSubject>>;

include!(concat!(env!("OUT_DIR"), "/report.rs"));

pub const COMMAND: CommandEntry = command::<ReportOptions>("report", 65, "");

/// Print reports of a profile: functions, call graph, code path, and more
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = false)]
pub struct ReportOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// The report to print: summary and functions if not given
    #[command(subcommand)]
    kind: Option<ChosenSubcommand<ReportKinds>>,
    #[command(flatten)]
    table: functions::FunctionsOptions,
    #[command(flatten)]
    format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for ReportOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let of_table = self.table != functions::FunctionsOptions::default();
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
        let of = ProfileSubject::open(global, &self.profile)?;
        if let Some(kind) = &self.kind {
            return kind.run(&of, output);
        }
        let narrowed = of.narrowed(Some(&self.table.threads))?;
        let of = narrowed.as_ref();
        if self.format.json {
            output.print(&summary::SummaryOptions.json(&of.profile)?);
        } else {
            if self.table.threads.is_everybody() {
                output.print(&summary::SummaryOptions.text(&of.profile, output.style())?);
            } else {
                output.print(&format!("{}\n", profile_line(&of.profile)));
            }
            output.print("\n");
            output.print(&self.table.text(&of.profile, output.style())?);
        }
        Ok(Exit::Ok)
    }

    fn is_read(&self) -> bool {
        true
    }
}

/// Registry of all reports.
#[derive(Debug)]
struct ReportKinds;

impl SubcommandRegistry for ReportKinds {
    type Context = ProfileSubject;

    fn folders() -> Vec<&'static dyn SubcommandFolder<ProfileSubject>> {
        vec![&TableReports, &ENTRIES]
    }
}

/// Reports of `kerntune_report`, which need only the profile's tables and print text or JSON.
struct TableReports;

impl SubcommandFolder<ProfileSubject> for TableReports {
    fn commands(&self) -> Vec<(u8, Command)> {
        let command = |entry: &&reports::Entry| (entry.place, FormOptions::augment_args(entry.command()));
        reports::ENTRIES.iter().map(command).collect()
    }

    fn read(
        &self,
        name: &str,
        matches: &ArgMatches,
    ) -> Option<Result<Box<dyn RunSubcommand<ProfileSubject>>, Error>> {
        let entry = reports::ENTRIES.iter().find(|entry| entry.name == name)?;
        let read =
            || Ok(Box::new(TableReport(entry.read(matches)?, FormOptions::from_arg_matches(matches)?)) as _);
        Some(read())
    }
}

#[derive(Debug)]
struct TableReport(Box<dyn Report>, FormOptions);

impl RunSubcommand<ProfileSubject> for TableReport {
    fn run(&self, of: &ProfileSubject, output: &CliOutput) -> Result<Exit, Failure> {
        let Self(report, format) = self;
        let narrowed = of.narrowed(report.thread_filter())?;
        print_report(&**report, narrowed.as_ref(), output, *format)
    }
}

/// Prints a report of `crates/report`.
fn print_report(
    report: &dyn Report,
    of: &ProfileSubject,
    output: &CliOutput,
    format: FormOptions,
) -> Result<Exit, Failure> {
    let document = report.document(&of.profile)?;
    output.print(&render(&document, format.form(), &profile_line(&of.profile), output.style()));
    Ok(Exit::Ok)
}

/// Prints a report: JSON, or text below a heading that names the profile.
fn print<E: Into<Failure>>(
    of: &ProfileSubject,
    output: &CliOutput,
    format: FormatOptions,
    json: impl FnOnce() -> Result<String, E>,
    text: impl FnOnce() -> Result<String, E>,
) -> Result<(), Failure> {
    let shown = match format.json {
        true => json().map_err(Into::into)?,
        false => format!("{}\n\n{}", profile_line(&of.profile), text().map_err(Into::into)?),
    };
    output.print(&shown);
    Ok(())
}
