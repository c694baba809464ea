//! `kerntune report`.

mod call_graph;
mod html;
mod path;
mod tables;

use super::work;
use crate::args::{FunctionTable, Global, Report, ReportKind};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_profile::{find, Profile};
use kerntune_report::{footprint, functions, summary};

/// Functions shown in text where no number is asked for.
const TOP: usize = 40;

pub fn run(global: &Global, options: &Report, output: &Output) -> Result<Exit, Failure> {
    let outer = &options.table;
    let given = outer.top.is_some() || outer.region.is_some() || outer.format.json || outer.sort != "net";
    if options.kind.is_some() && given {
        return Err(Failure::usage(
            "options of a report come after its name: kerntune report PROFILE KIND --region NAME",
        ));
    }
    let of_table = outer.top.is_some() || outer.region.is_some() || outer.sort != "net";
    if options.kind.is_none() && outer.format.json && of_table {
        return Err(Failure::usage(
            "--json shows the summary, for which --top, --sort and --region mean nothing: kerntune report PROFILE functions --json",
        ));
    }
    let sorted = match &options.kind {
        None => Some(outer),
        Some(ReportKind::Functions(table)) => Some(table),
        Some(_) => None,
    };
    sorted.map(|table| table.sort.parse::<functions::Sort>()).transpose()?;
    let work = work(global)?;
    let entry = find(&work, &options.profile)?;
    let profile = Profile::load(&entry.path)?;
    match &options.kind {
        None if options.table.format.json => output.print(&summary::json(&profile)?),
        None => {
            output.print(&summary::text(&profile, output.style())?);
            output.print("\n");
            functions(&profile, &options.table, output)?;
        }
        Some(ReportKind::Summary { format }) => output.print(&match format.json {
            true => summary::json(&profile)?,
            false => summary::text(&profile, output.style())?,
        }),
        Some(ReportKind::Functions(table)) => functions(&profile, table, output)?,
        Some(ReportKind::Flat(table)) => call_graph::flat(&profile, table, output)?,
        Some(ReportKind::Graph(table)) => call_graph::graph(&profile, table, output)?,
        Some(ReportKind::Html(options)) => return html::run(&entry.path, &profile, options, output),
        Some(ReportKind::Histogram(options)) => tables::histogram(&profile, options, output)?,
        Some(ReportKind::Subsystems(options)) => tables::subsystems(&profile, options, output)?,
        Some(ReportKind::Threads(options)) => tables::threads(&profile, options, output)?,
        Some(ReportKind::Interrupts(options)) => tables::interrupts(&profile, options, output)?,
        Some(ReportKind::Switches(options)) => tables::switches(&profile, options, output)?,
        Some(ReportKind::Idle(options)) => tables::idle(&profile, options, output)?,
        Some(ReportKind::Footprint { format }) => output.print(&match format.json {
            true => footprint::json(&profile)?,
            false => footprint::text(&profile, output.style())?,
        }),
        Some(ReportKind::Diff(options)) => tables::diff(&work, &profile, options, output)?,
        Some(ReportKind::Path(options)) => path::run(&profile, &entry.path, options, output)?,
    }
    Ok(Exit::Ok)
}

fn functions(profile: &Profile, table: &FunctionTable, output: &Output) -> Result<(), Failure> {
    let wanted = functions::Options {
        top: table.top.or((!table.format.json).then_some(TOP)),
        sort: table.sort.parse()?,
        region: table.region.clone(),
    };
    output.print(&match table.format.json {
        true => functions::json(profile, &wanted)?,
        false => functions::table(profile, &wanted, output.style())?,
    });
    Ok(())
}
