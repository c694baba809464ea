//! `kerntune report`.

mod call_graph;

mod html;
mod path;

use super::work;
use crate::args::{FunctionTable, Global, Report, ReportKind};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_profile::{find, Profile};
use kerntune_report::{functions, summary};

/// Functions shown in text where no number is asked for.
const TOP: usize = 40;

pub fn run(global: &Global, options: &Report, output: &Output) -> Result<Exit, Failure> {
    let entry = find(&work(global)?, &options.profile)?;
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
        Some(ReportKind::Html(options)) => return html::run(&entry.path, &profile, options, output),
        Some(ReportKind::Functions(table)) => functions(&profile, table, output)?,
        Some(ReportKind::Path(options)) => path::run(&profile, &entry.path, options, output)?,
        Some(ReportKind::Flat(table)) => call_graph::flat(&profile, table, output)?,
        Some(ReportKind::Graph(table)) => call_graph::graph(&profile, table, output)?,
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
