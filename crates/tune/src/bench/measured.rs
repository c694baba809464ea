//! Figures that the programs of a guest printed for their rows.

use super::lines::{self, SuiteLine};
use crate::runs::outputs;
use crate::{Error, Result};
use kerntune_guest::{step_log, RowUnit, Suite, Workload};
use kerntune_stats::{CpuTime, PerfCounter};
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
    /// Time of the step that is the row, as init measured it; `None` for a row of a program's own.
    pub cpu: Option<CpuTime>,
}

/// File of the guest with init's times.
const TIMES: &str = "times";

/// Reads all figures of the measured run from the guest's files: the output of load generators,
/// parsed as the workload describes; init's times of other steps with a region; and the lines of
/// programs that mark their own rows.
///
/// # Errors
/// Output that the workload declares a failure; lines that cannot be parsed, or are of other steps.
pub(super) fn read_values(
    workload: &Workload,
    suite: Option<&Suite>,
    guest_files: &Path,
) -> Result<Vec<RowMeasurement>> {
    let figures = outputs::judge(workload, "measured", guest_files)?;
    let mut measured = Vec::new();
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    let mut times = step_times(guest_files)?.into_iter();
    for (number, step) in (1..).zip(&workload.measured.steps) {
        if let Some(region) = &step.region {
            // A repeated step counts as further iterations.
            let seen = done.entry(region).or_default();
            let mut of_step = figures.iter().filter(|figures| &figures.step == region).skip(*seen as usize);
            let (iteration, figures) = (*seen, of_step.next());
            *seen += 1;
            let Some(time) = times.next().filter(|time| time.row == *region) else {
                let message = format!("no time of measured step {number} ({region})");
                return Err(Error::NotTimes { path: guest_files.join(TIMES), message });
            };
            let printed = figures.and_then(|figures| figures.figures.first());
            if !step.metrics.is_empty() && printed.is_none() {
                continue;
            }
            let timed = of_line(time, suite);
            measured.push(match printed {
                None => RowMeasurement { iteration, ..timed },
                Some(figure) => RowMeasurement {
                    iteration,
                    unit: RowUnit::Metric { unit: figure.unit.clone(), better: figure.better },
                    value: figure.value,
                    ..timed
                },
            });
            continue;
        }
        let path = guest_files.join(step_log("measured", number, &step.command));
        let text = fs::read_to_string(&path).at("read", &path)?;
        let lines = parse(&text).map_err(|message| Error::NotTimes { path, message })?;
        measured.extend(lines.into_iter().map(|line| of_line(line, suite)));
    }
    Ok(measured)
}

/// Returns the lines that init wrote, in the order of the steps with a region.
fn step_times(guest_files: &Path) -> Result<Vec<SuiteLine>> {
    let path = guest_files.join(TIMES);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&path).at("read", &path)?;
    lines::parse_steps(&text).map_err(|message| Error::NotTimes { path, message })
}

fn of_line(line: SuiteLine, suite: Option<&Suite>) -> RowMeasurement {
    const SECOND: f64 = 1e9;
    let (user, system) = (line.user_nanoseconds as f64 / SECOND, line.system_nanoseconds as f64 / SECOND);
    let seconds = line.nanoseconds as f64 / SECOND;
    let cpu = (user + system > 0.0).then(|| CpuTime {
        seconds,
        kernel: system,
        programs: user,
        ..CpuTime::default()
    });
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
        cpu,
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
        let line = "{\"row\":\"get\",\"operations\":2,\"nanoseconds\":8,\"user_nanoseconds\":4,\"system_nanoseconds\":2}\n";
        fs::write(dir.path().join(TIMES), line.repeat(3)).unwrap();
        let all = read_values(&workload, None, dir.path()).unwrap();
        let values: Vec<_> = all.iter().map(|m| (m.row.as_str(), m.iteration, m.value)).collect();
        assert_eq!(values, [("get", 0, 10.0), ("get", 1, 30.0), ("get", 2, 20.0)]);
        let cpu = all[2].cpu.unwrap();
        assert_eq!((cpu.seconds, cpu.programs, cpu.kernel), (8e-9, 4e-9, 2e-9));
        // A workload without metrics has init's times.
        workload.measured.steps.iter_mut().for_each(|step| step.metrics.clear());
        let all = read_values(&workload, None, dir.path()).unwrap();
        let values: Vec<_> = all.iter().map(|m| (m.iteration, m.value, m.unit.clone())).collect();
        assert_eq!(values, [0, 1, 2].map(|iteration| (iteration, 4.0, RowUnit::Time)));
        for bad in [line.repeat(2), line.replace("get", "set").repeat(3), line.replace(":8", ":0").repeat(3)]
        {
            fs::write(dir.path().join(TIMES), bad).unwrap();
            assert!(matches!(read_values(&workload, None, dir.path()), Err(Error::NotTimes { .. })));
        }
    }

    #[test]
    fn what_is_no_time_is_no_number() {
        for bad in ["", "done", "{\"row\":\"a\",\"operations\":0,\"nanoseconds\":5}", "{\"row\":\"a\"}"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
