//! Every row over versions and commits, and where it stepped. Pure, but for what is measured for it.

use crate::cell::Cell;
use crate::file::Tolerance;
use crate::judge::{is_beyond, percent};
use crate::project::Project;
use crate::tree::Commit;
use serde::Serialize;

/// Format and version in JSON.
pub const SCHEMA: &str = "kerntune-guard-history/1";

/// A kernel or a commit: a place on the way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// What tables call it.
    pub label: String,
    /// What it is, in a line: a commit's subject, a kernel's version.
    pub about: String,
    /// The commit, if it is one.
    pub commit: Option<Commit>,
    /// Why it has no figures, if it has none.
    pub failure: Option<String>,
}

/// Where a row changed by more than its tolerance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The point at which it is another: its place in the list of points.
    pub at: usize,
    /// The last point before it that has figures.
    pub from: usize,
    /// Instructions of an operation there and here.
    pub path: [f64; 2],
    /// The change, per cent.
    pub change_percent: Option<f64>,
}

/// A row over all points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The configuration; empty of kernels that were named.
    pub configuration: String,
    /// The compiler; empty of kernels that were named.
    pub compiler: String,
    /// The workload.
    pub workload: String,
    /// The row.
    pub row: String,
    /// Own instructions of an operation at each point; none where there are no figures.
    pub path: Vec<Option<f64>>,
    /// What was put off in an operation, likewise.
    pub put_off: Vec<Option<f64>>,
    /// Where it stepped, in order.
    pub steps: Vec<Step>,
    /// How far the values of stretches without a step lie apart at most, per cent: what noise there is.
    pub spread_percent: f64,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The points, in order.
    pub points: Vec<Point>,
    /// Every row that one of them has.
    pub series: Vec<Series>,
}

impl History {
    /// Of points with their cells.
    pub fn of(project: &Project, points: Vec<(Point, Vec<Cell>)>) -> Self {
        let (points, cells): (Vec<Point>, Vec<Vec<Cell>>) = points.into_iter().unzip();
        let mut series: Vec<Series> = Vec::new();
        for (at, cell) in
            cells.iter().enumerate().flat_map(|(at, cells)| cells.iter().map(move |cell| (at, cell)))
        {
            for row in &cell.rows {
                let is = |of: &&mut Series| {
                    (&of.configuration, &of.compiler, &of.workload, &of.row)
                        == (&cell.configuration, &cell.compiler, &cell.workload, &row.row)
                };
                let known = series.iter_mut().find(is);
                let of = match known {
                    Some(of) => of,
                    None => {
                        series.push(Series {
                            configuration: cell.configuration.clone(),
                            compiler: cell.compiler.clone(),
                            workload: cell.workload.clone(),
                            row: row.row.clone(),
                            path: vec![None; points.len()],
                            put_off: vec![None; points.len()],
                            steps: Vec::new(),
                            spread_percent: 0.0,
                        });
                        let last = series.len() - 1;
                        &mut series[last]
                    }
                };
                of.path[at] = Some(row.path());
                let put_off: u64 = row.put_off.values().sum();
                of.put_off[at] = Some(put_off as f64 / row.operations.max(1) as f64);
            }
        }
        for of in &mut series {
            let tolerance = project.file.tolerance(&of.workload, &of.row);
            (of.steps, of.spread_percent) = steps(&of.path, &tolerance);
        }
        Self { schema: SCHEMA, points, series }
    }
}

/// Where values step, and how far those of a stretch without a step lie apart.
fn steps(values: &[Option<f64>], tolerance: &Tolerance) -> (Vec<Step>, f64) {
    let mut steps = Vec::new();
    let mut last: Option<(usize, f64)> = None;
    // Least and greatest of the stretch.
    let (mut stretch, mut spread) = (None::<[f64; 2]>, 0.0_f64);
    for (at, value) in values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))) {
        match last {
            Some((from, before)) if is_beyond(before, value, tolerance) => {
                steps.push(Step { at, from, path: [before, value], change_percent: percent(before, value) });
                stretch = Some([value, value]);
            }
            _ => {
                let [least, most] = stretch.unwrap_or([value, value]);
                let [least, most] = [least.min(value), most.max(value)];
                stretch = Some([least, most]);
                spread = spread.max(percent(least, most).unwrap_or(0.0));
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
        let tolerance = Tolerance { path: 0.1, least: 0.5, made_up: 1.0, put_off: 10.0 };
        let values = [Some(1000.0), Some(1000.2), None, Some(1002.0), Some(1002.1), Some(990.0)];
        let (found, spread) = steps(&values, &tolerance);
        let places: Vec<(usize, usize)> = found.iter().map(|step| (step.from, step.at)).collect();
        assert_eq!(places, [(1, 3), (4, 5)]);
        assert!((spread - 0.02).abs() < 1e-9, "{spread}");
        assert_eq!(found[0].path, [1000.2, 1002.0]);
        assert_eq!(steps(&[None, None], &tolerance), (Vec::new(), 0.0));
    }
}
