//! The command `kerntune bench list`.

use super::machines;
use crate::commands::workload::known;
use kerntune_command::{CliOutput, Exit, Failure};
use kerntune_guest::{MetricDirection, Suite};
use serde::Serialize;

/// Name and version of the JSON form (docs/json.md).
const SCHEMA: &str = "kerntune-bench-rows/1";

#[derive(Serialize)]
struct RowsDocument {
    schema: &'static str,
    rows: Vec<ListedRow>,
}

#[derive(Serialize)]
struct ListedRow {
    suite: String,
    row: String,
    unit: String,
    better: MetricDirection,
    machines: Vec<&'static str>,
}

pub fn run(json: bool, output: &CliOutput) -> Result<Exit, Failure> {
    let suites = known(output)?.into_iter().filter_map(|(workload, _)| Suite::of(workload));
    let rows: Vec<ListedRow> = suites.flat_map(|suite| listed(&suite)).collect();
    if json {
        output.json(&RowsDocument { schema: SCHEMA, rows });
        return Ok(Exit::Ok);
    }
    output.table(
        &["SUITE", "ROW", "UNIT", "BETTER", "MACHINES"],
        rows.into_iter().map(|row| {
            let better = if row.better == MetricDirection::Lower { "lower" } else { "higher" };
            vec![row.suite, row.row, row.unit, better.into(), row.machines.join(", ")]
        }),
    );
    Ok(Exit::Ok)
}

fn listed(suite: &Suite) -> Vec<ListedRow> {
    let machines = machines(suite);
    let listed = suite.rows.iter().map(|row| ListedRow {
        suite: suite.workload.name.clone(),
        row: row.name.clone(),
        unit: row.unit.name().into(),
        better: row.unit.better(),
        machines: machines.clone(),
    });
    listed.collect()
}
