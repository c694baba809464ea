//! `kerntune report PROFILE flat` and `graph`.

use super::TOP;
use crate::args::{GraphTable, Propagate, TableUnit};
use crate::exit::Failure;
use crate::output::Output;
use kerntune_profile::Profile;
use kerntune_report::{flat, graph, GraphOptions, Propagation, Unit};

pub fn flat(profile: &Profile, table: &GraphTable, output: &Output) -> Result<(), Failure> {
    let wanted = wanted(table);
    output.print(&match table.format.json {
        true => flat::json(profile, &wanted)?,
        false => flat::table(profile, &wanted, output.style())?,
    });
    Ok(())
}

pub fn graph(profile: &Profile, table: &GraphTable, output: &Output) -> Result<(), Failure> {
    let wanted = wanted(table);
    output.print(&match table.format.json {
        true => graph::json(profile, &wanted)?,
        false => graph::table(profile, &wanted, output.style())?,
    });
    Ok(())
}

fn wanted(table: &GraphTable) -> GraphOptions {
    // Who names functions or a limit has chosen.
    let all = table.format.json || !table.function.is_empty() || table.min_percent > 0.0;
    GraphOptions {
        top: table.top.or((!all).then_some(TOP)),
        region: table.region.clone(),
        functions: table.function.clone(),
        min_percent: table.min_percent,
        propagation: table.propagate.map(|how| match how {
            Propagate::Exact => Propagation::Exact,
            Propagate::Counts => Propagation::Counts,
        }),
        never_called: table.never_called.clone(),
        unit: match table.unit {
            None => Unit::Auto,
            Some(TableUnit::S) => Unit::Seconds,
            Some(TableUnit::Ms) => Unit::Milliseconds,
            Some(TableUnit::Us) => Unit::Microseconds,
            Some(TableUnit::Ns) => Unit::Nanoseconds,
        },
    }
}
