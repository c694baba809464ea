//! Figures that the programs of a guest printed for their rows.

use super::lines::{self, SuiteLine};
use crate::runs::outputs;
use crate::{Error, Result};
use kerntune_guest::{step_log, RowUnit, Suite, Workload};
use kerntune_stats::PerfCounter;
use kerntune_work::IoContext;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One figure of a run.
#[derive(Debug, Clone)]
pub(super) struct RowMeasurement {
    pub row: String,
    pub iteration: u32,
    pub unit: RowUnit,
    pub value: f64,
    pub counters: BTreeMap<PerfCounter, f64>,
    pub uncounted: BTreeMap<PerfCounter, String>,
}

/// Reads all figures of the measured run from the guest's files: the output of load generators,
/// parsed as the workload describes, and the lines of programs that mark their own rows.
///
/// # Errors
/// Output that the workload declares a failure; lines that cannot be parsed.
pub(super) fn read_values(
    workload: &Workload,
    suite: Option<&Suite>,
    guest_files: &Path,
) -> Result<Vec<RowMeasurement>> {
    let figures = outputs::judge(workload, "measured", guest_files)?;
    let mut measured = Vec::new();
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    for (number, step) in (1..).zip(&workload.measured.steps) {
        if let Some(region) = &step.region {
            // A repeated step counts as further iterations.
            let seen = done.entry(region).or_default();
            let mut of_step = figures.iter().filter(|figures| &figures.step == region).skip(*seen as usize);
            let (iteration, figures) = (*seen, of_step.next());
            *seen += 1;
            measured.extend(figures.and_then(|figures| figures.figures.first()).map(|figure| {
                RowMeasurement {
                    row: region.clone(),
                    iteration,
                    unit: RowUnit::Metric { unit: figure.unit.clone(), better: figure.better },
                    value: figure.value,
                    counters: BTreeMap::new(),
                    uncounted: BTreeMap::new(),
                }
            }));
            continue;
        }
        let path = guest_files.join(step_log("measured", number, &step.command));
        let text = fs::read_to_string(&path).at("read", &path)?;
        let lines = parse(&text).map_err(|message| Error::NotTimes { path, message })?;
        measured.extend(lines.into_iter().map(|line| of_line(line, suite)));
    }
    Ok(measured)
}

fn of_line(line: SuiteLine, suite: Option<&Suite>) -> RowMeasurement {
    let known = suite.and_then(|suite| suite.row(&line.row)).map(|row| row.unit.clone());
    let unit = known.unwrap_or(RowUnit::Time);
    let value = unit.value(line.operations, line.nanoseconds);
    let value = value.unwrap_or(line.nanoseconds as f64 / line.operations as f64);
    let counters = line.counted();
    RowMeasurement {
        row: line.row,
        iteration: line.iteration,
        unit,
        value,
        counters,
        uncounted: line.uncounted,
    }
}

/// Parses the output of a step: at least one line, and nothing but lines.
fn parse(text: &str) -> Result<Vec<SuiteLine>, String> {
    let lines = lines::parse(text)?;
    match lines.is_empty() {
        true => Err("it is empty".into()),
        false => Ok(lines),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_repeated_is_an_iteration_each_time() {
        let workload = "[[training.step]]\ncommand = [\"rr\"]\n[[measured.step]]\nregion = \"get\"\ncommand = [\"ab\"]\n\
            metrics = [{ name = \"rps\", regex = \"second: (.*)\", unit = \"1/s\", better = \"higher\" }]\n";
        let mut workload = Workload::parse(workload, Path::new("x.toml")).unwrap();
        let step = workload.measured.steps[0].clone();
        workload.measured.steps = vec![step; 3];
        let dir = tempfile::tempdir().unwrap();
        for (number, rate) in [(1, 10), (2, 30), (3, 20)] {
            fs::write(dir.path().join(format!("measured-{number}-ab.log")), format!("second: {rate}\n"))
                .unwrap();
        }
        let all = read_values(&workload, None, dir.path()).unwrap();
        let values: Vec<_> = all.iter().map(|m| (m.row.as_str(), m.iteration, m.value)).collect();
        assert_eq!(values, [("get", 0, 10.0), ("get", 1, 30.0), ("get", 2, 20.0)]);
    }

    #[test]
    fn what_is_no_time_is_no_number() {
        for bad in ["", "done", "{\"row\":\"a\",\"operations\":0,\"nanoseconds\":5}", "{\"row\":\"a\"}"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
