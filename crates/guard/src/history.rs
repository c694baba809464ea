//! Every row over versions or commits, with the points at which it changed.

use crate::cell::CellFigures;
use crate::file::Tolerance;
use crate::judge::{is_beyond, percent};
use crate::project::GuardProject;
use crate::tree::Commit;
use serde::Serialize;

/// Schema of the JSON form.
pub const SCHEMA: &str = "kerntune-guard-history/1";

/// A kernel or commit of the history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// Label in tables.
    pub label: String,
    /// One line about it: a commit's subject, a kernel's version.
    pub about: String,
    /// The commit; `None` for a kernel.
    pub commit: Option<Commit>,
    /// Reason why the point has no figures; `None` if it has.
    pub failure: Option<String>,
}

/// A change of a row by more than its tolerance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryStep {
    /// Index of the point at which the row changed.
    pub at: usize,
    /// Index of the last point before it that has figures.
    pub from: usize,
    /// Path length before and after.
    pub path: [f64; 2],
    /// Change of the path length in percent.
    pub change_percent: Option<f64>,
}

/// A row at all points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowSeries {
    /// Name of the configuration; empty if the user named the kernels.
    pub configuration: String,
    /// Compiler as in `guard.toml`; empty if the user named the kernels.
    pub compiler: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the row.
    pub row: String,
    /// Path length at each point, in instructions per operation; `None` without figures.
    pub path: Vec<Option<f64>>,
    /// Deferred work at each point, in instructions per operation; `None` without figures.
    #[serde(rename = "put_off")]
    pub deferred: Vec<Option<f64>>,
    /// Changes beyond the tolerance, in order.
    pub steps: Vec<HistoryStep>,
    /// Largest spread between two changes, in percent: the noise.
    pub spread_percent: f64,
}

/// History of all rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowHistory {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Points, in order.
    pub points: Vec<HistoryPoint>,
    /// All rows that any of the points has.
    pub series: Vec<RowSeries>,
}

impl RowHistory {
    /// Builds the history of points and their cells.
    pub fn of(project: &GuardProject, points: Vec<(HistoryPoint, Vec<CellFigures>)>) -> Self {
        let (points, cells): (Vec<HistoryPoint>, Vec<Vec<CellFigures>>) = points.into_iter().unzip();
        let mut series: Vec<RowSeries> = Vec::new();
        for (at, cell) in
            cells.iter().enumerate().flat_map(|(at, cells)| cells.iter().map(move |cell| (at, cell)))
        {
            for row in &cell.rows {
                let is = |of: &&mut RowSeries| {
                    (&of.configuration, &of.compiler, &of.workload, &of.row)
                        == (&cell.configuration, &cell.compiler, &cell.workload, &row.row)
                };
                let known = series.iter_mut().find(is);
                let of = match known {
                    Some(of) => of,
                    None => {
                        series.push(RowSeries {
                            configuration: cell.configuration.clone(),
                            compiler: cell.compiler.clone(),
                            workload: cell.workload.clone(),
                            row: row.row.clone(),
                            path: vec![None; points.len()],
                            deferred: vec![None; points.len()],
                            steps: Vec::new(),
                            spread_percent: 0.0,
                        });
                        let last = series.len() - 1;
                        &mut series[last]
                    }
                };
                of.path[at] = Some(row.path());
                let deferred: u64 = row.deferred.values().sum();
                of.deferred[at] = Some(deferred as f64 / row.operations.max(1) as f64);
            }
        }
        for of in &mut series {
            let tolerance = project.file.tolerance(&of.workload, &of.row);
            (of.steps, of.spread_percent) = steps(&of.path, &tolerance);
        }
        Self { schema: SCHEMA, points, series }
    }
}

/// Finds the steps in a row of values, and the largest spread between two steps in percent.
fn steps(values: &[Option<f64>], tolerance: &Tolerance) -> (Vec<HistoryStep>, f64) {
    let mut steps = Vec::new();
    let mut last: Option<(usize, f64)> = None;
    // Smallest and largest value since the last step.
    let (mut stretch, mut spread) = (None::<[f64; 2]>, 0.0_f64);
    for (at, value) in values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))) {
        match last {
            Some((from, before)) if is_beyond(before, value, tolerance) => {
                steps.push(HistoryStep {
                    at,
                    from,
                    path: [before, value],
                    change_percent: percent(before, value),
                });
                stretch = Some([value, value]);
            }
            _ => {
                let [min, max] = stretch.unwrap_or([value, value]);
                let [min, max] = [min.min(value), max.max(value)];
                stretch = Some([min, max]);
                spread = spread.max(percent(min, max).unwrap_or(0.0));
            }
        }
        last = Some((at, value));
    }
    (steps, spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_from_what_stays_within_its_tolerance() {
        let tolerance = Tolerance { path: 0.1, compensated: 1.0, ..Tolerance::default() };
        let values = [Some(1000.0), Some(1000.2), None, Some(1002.0), Some(1002.1), Some(990.0)];
        let (found, spread) = steps(&values, &tolerance);
        let places: Vec<(usize, usize)> = found.iter().map(|step| (step.from, step.at)).collect();
        assert_eq!(places, [(1, 3), (4, 5)]);
        assert!((spread - 0.02).abs() < 1e-9, "{spread}");
        assert_eq!(found[0].path, [1000.2, 1002.0]);
        assert_eq!(steps(&[None, None], &tolerance), (Vec::new(), 0.0));
    }
}
