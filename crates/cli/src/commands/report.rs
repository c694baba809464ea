//! `kerntune report`.

use super::work;
use crate::args::{Global, Report, ReportKind};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kerntune_profile::{find, Profile};
use kerntune_report::{functions, summary};

/// Functions shown in text where no number is asked for.
const TOP: usize = 40;

pub fn run(global: &Global, options: &Report, output: &Output) -> Result<Exit, Failure> {
    let work = work(global)?;
    let wanted = functions::Options {
        top: options.top.or((!options.format.json).then_some(TOP)),
        sort: options.sort.parse()?,
        region: options.region.clone(),
    };
    let profile = Profile::load(&find(&work, &options.profile)?.path)?;
    match (options.kind, options.format.json) {
        (Some(ReportKind::Summary), false) => output.print(&summary::text(&profile, output.style())?),
        (Some(ReportKind::Summary) | None, true) => output.print(&summary::json(&profile)?),
        (Some(ReportKind::Functions), false) => {
            output.print(&functions::table(&profile, &wanted, output.style())?);
        }
        (None, false) => {
            output.print(&summary::text(&profile, output.style())?);
            output.print(&format!("\n{}", functions::table(&profile, &wanted, output.style())?));
        }
        (Some(ReportKind::Functions), true) => output.print(&functions::json(&profile, &wanted)?),
    }
    Ok(Exit::Ok)
}
