//! Kernels tuned for several workloads, each running all of them.

use crate::compare::{from_recordings, measured};
use crate::model::Model;
use crate::optimize::{optimize, OptimizeRequest, Optimized};
use crate::part::RecipeOptions;
use crate::record::{record_all, RecordRequest};
use crate::{Recipe, Result, Session};
use kerntune_compare::{Comparison, Metric, TOTAL};
use kerntune_guest::Workload;
use kerntune_kernel::Kernel;
use kerntune_optimize::gcc_pgo::Exclusions;
use serde::Serialize;
use std::num::NonZeroUsize;

/// What a kernel is called that is tuned for all workloads together.
pub const TOGETHER: &str = "all together";

/// A kernel tuned for one workload, running one of them.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// What ran.
    pub running: String,
    /// Changes of its sums against the base kernel in percent, in the order of [`Metric::COUNTED`].
    pub changes: [f64; 4],
    /// The ratio of model cycles to the base kernel's (or, without these, the geometric mean of the four ratios); less
    /// is better.
    pub score: f64,
}

/// A kernel tuned for one workload.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it is tuned for.
    pub tuned_for: String,
    /// Its id.
    pub kernel: String,
    /// Running each workload, in the order of the rows.
    pub cells: Vec<Cell>,
}

/// "Tuned for X, running Y", for all pairs.
#[derive(Debug, Clone, Serialize)]
pub struct Cross {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// The recipe.
    pub recipe: Recipe,
    /// Id of the kernel that all were made from and are compared with.
    pub base: String,
    /// One for each workload.
    pub rows: Vec<Row>,
}

/// How kernels are tuned.
#[derive(Debug, Clone, Copy)]
pub struct CrossRequest<'a> {
    /// By which recipe.
    pub recipe: Recipe,
    /// What it is told beside that.
    pub options: RecipeOptions,
    /// The front-end model of the measurements.
    pub model: &'a Model,
    /// What the recipe leaves out.
    pub exclusions: &'a Exclusions,
    /// Whether one more kernel is tuned for all workloads together, each training as often as the others.
    pub together: bool,
    /// Jobs of make; None for one per processor.
    pub jobs: Option<NonZeroUsize>,
}

/// Tunes `kernel` for each workload and runs all on all. Nothing that is there already is made again.
///
/// # Errors
/// Those of the tunings and of the recordings.
pub fn cross(
    session: &Session,
    kernel: &Kernel,
    workloads: &[Workload],
    request: &CrossRequest,
) -> Result<Cross> {
    let CrossRequest { recipe, options, model, exclusions, together, jobs } = *request;
    let mut tuned = Vec::new();
    let mut make = |workload, also: &[(Workload, u32)], name: String| -> Result<()> {
        let request =
            OptimizeRequest { workload, recipe, options, model, given: None, also, exclusions, jobs };
        let optimized = optimize(session, kernel.clone(), &request)?;
        optimized.proof.verdict()?;
        tuned.push((name, optimized));
        Ok(())
    };
    for workload in workloads {
        make(workload, &[], workload.name.clone())?;
    }
    if let (true, [first, rest @ ..]) = (together, workloads) {
        let also: Vec<(Workload, u32)> = rest.iter().map(|workload| (workload.clone(), 1)).collect();
        make(first, &also, TOGETHER.into())?;
    }
    // The recipe makes the same base kernel of this one, whatever it tunes it for.
    let base = tuned.first().map_or(kernel, |(_, optimized)| &optimized.base);
    let runs = || [(base, 0), (base, 1)].into_iter().chain(tuned.iter().map(|(_, of)| (&of.tuned, 0)));
    let requests: Vec<RecordRequest> = workloads
        .iter()
        .flat_map(|workload| runs().map(move |(kernel, repeat)| measured(kernel, workload, model, repeat)))
        .collect();
    let recorded = record_all(session, &requests)?;
    let mut rows = Vec::new();
    for (at, (tuned_for, Optimized { tuned: with, .. })) in tuned.iter().enumerate() {
        let mut cells = Vec::new();
        for (running, runs) in workloads.iter().zip(recorded.chunks(2 + tuned.len())) {
            let runs = [&runs[0], &runs[1], &runs[2 + at]];
            let comparison = from_recordings([base, with], runs, running, model)?;
            cells.push(Cell {
                running: running.name.clone(),
                changes: changes(&comparison),
                score: score(&comparison),
            });
        }
        rows.push(Row { tuned_for: tuned_for.clone(), kernel: with.manifest.id.clone(), cells });
    }
    Ok(Cross { schema: "kerntune-cross/1", recipe, base: base.manifest.id.clone(), rows })
}

/// The changes of the workload's sums in percent, in the order of [`Metric::COUNTED`].
pub(crate) fn changes(comparison: &Comparison) -> [f64; 4] {
    let change = |metric| comparison.row(TOTAL, metric).and_then(|row| row.change_percent);
    Metric::COUNTED.map(|metric| change(metric).unwrap_or_default())
}

/// How good the tuned kernel is, less is better, 1 where nothing changed: the ratio of model cycles. A model that
/// does not say what its events cost has no cycles; then it is the geometric mean of the four ratios, which
/// needs no weights.
pub(crate) fn score(comparison: &Comparison) -> f64 {
    let row = |metric| comparison.row(TOTAL, metric).filter(|row| row.base > 0.0 && row.tuned > 0.0);
    let ratio = |metric| row(metric).map(|row| row.tuned / row.base);
    ratio(Metric::ModelCycles).unwrap_or_else(|| {
        let logs: f64 = Metric::COUNTED.map(|metric| ratio(metric).unwrap_or(1.0).ln()).iter().sum();
        (logs / Metric::COUNTED.len() as f64).exp()
    })
}
