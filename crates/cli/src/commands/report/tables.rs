//! `kerntune report PROFILE histogram|subsystems|threads|interrupts|switches|idle|diff`.

use crate::args::{Diff, Histogram, Part, Subsystems, Table, Threads};
use crate::exit::Failure;
use crate::output::Output;
use kerntune_guest::read_text;
use kerntune_profile::{find, Profile};
use kerntune_report::{diff, histogram, idle, interrupts, subsystems, switches, threads};
use kerntune_report::{Grouping, Groups};
use kerntune_work::WorkDir;

/// Rows shown in text where no number is asked for.
const TOP: usize = 40;
/// Callers with a histogram of their own, likewise.
const CALLERS: usize = 10;

impl Table {
    fn top(&self) -> Option<usize> {
        self.top.or((!self.part.format.json).then_some(TOP))
    }
}

pub fn histogram(profile: &Profile, options: &Histogram, output: &Output) -> Result<(), Failure> {
    let Histogram { function, by_caller, top, part } = options.clone();
    let top = top.or((!part.format.json).then_some(CALLERS));
    let wanted = histogram::Options { function, by_caller, top, region: part.region };
    output.print(&match part.format.json {
        true => histogram::json(profile, &wanted)?,
        false => histogram::text(profile, &wanted, output.style())?,
    });
    Ok(())
}

pub fn subsystems(profile: &Profile, options: &Subsystems, output: &Output) -> Result<(), Failure> {
    let grouping = match &options.groups {
        None => Grouping::Directory(options.depth.map(usize::from)),
        Some(file) => {
            let text = read_text("read", file)?;
            Grouping::File(Groups::parse(&text, &file.display().to_string())?)
        }
    };
    let Part { region, format } = options.table.part.clone();
    let wanted = subsystems::Options { grouping, matrix: options.matrix, top: options.table.top(), region };
    output.print(&match format.json {
        true => subsystems::json(profile, &wanted)?,
        false => subsystems::text(profile, &wanted, output.style())?,
    });
    Ok(())
}

pub fn threads(profile: &Profile, options: &Threads, output: &Output) -> Result<(), Failure> {
    let Part { region, format } = options.table.part.clone();
    let wanted = threads::Options { by_comm: options.by_comm, top: options.table.top(), region };
    output.print(&match format.json {
        true => threads::json(profile, &wanted)?,
        false => threads::text(profile, &wanted, output.style())?,
    });
    Ok(())
}

pub fn interrupts(profile: &Profile, options: &Part, output: &Output) -> Result<(), Failure> {
    let wanted = interrupts::Options { region: options.region.clone() };
    output.print(&match options.format.json {
        true => interrupts::json(profile, &wanted)?,
        false => interrupts::text(profile, &wanted, output.style())?,
    });
    Ok(())
}

pub fn switches(profile: &Profile, options: &Table, output: &Output) -> Result<(), Failure> {
    let wanted = switches::Options { top: options.top(), region: options.part.region.clone() };
    output.print(&match options.part.format.json {
        true => switches::json(profile, &wanted)?,
        false => switches::text(profile, &wanted, output.style())?,
    });
    Ok(())
}

pub fn idle(profile: &Profile, options: &Part, output: &Output) -> Result<(), Failure> {
    let wanted = idle::Options { region: options.region.clone() };
    output.print(&match options.format.json {
        true => idle::json(profile, &wanted)?,
        false => idle::text(profile, &wanted, output.style())?,
    });
    Ok(())
}

pub fn diff(work: &WorkDir, base: &Profile, options: &Diff, output: &Output) -> Result<(), Failure> {
    let other = Profile::load(&find(work, &options.other)?.path)?;
    let Part { region, format } = options.table.part.clone();
    let wanted = diff::Options {
        paths: options.paths,
        per_operation: options.per_operation,
        top: options.table.top(),
        region,
    };
    output.print(&match format.json {
        true => diff::json(base, &other, &wanted)?,
        false => diff::text(base, &other, &wanted, output.style())?,
    });
    Ok(())
}
