//! Cross comparison: kernels tuned for several workloads, each running all of them.

use crate::dry_run::DryRun;
use crate::measuring::compare::{from_recordings, measured_request};
use crate::recipe_parts::settings::TuningSettings;
use crate::runs::record::{record_all, RecordRequest};
use crate::tuning::optimize::{self, optimize, OptimizeRequest, OptimizeResult};
use crate::{Recipe, Result, Session};
use kerntune_compare::{Comparison, Metric, TOTAL};
use kerntune_guest::Workload;
use kerntune_kernel::Kernel;
use serde::Serialize;
use std::num::NonZeroUsize;

/// Row name of the kernel that is tuned for all workloads together.
pub const TOGETHER: &str = "all together";

/// A kernel tuned for one workload, running one workload.
#[derive(Debug, Clone, Serialize)]
pub struct CrossCell {
    /// Name of the workload that ran.
    pub running: String,
    /// Changes of the workload's sums against the base kernel in percent, in the order of
    /// [`Metric::COUNTED`].
    pub changes: [f64; 4],
    /// Ratio of model cycles to those of the base kernel; without cycles, the geometric mean of the
    /// four ratios. Less is better.
    pub score: f64,
    /// Operation whose path length grew most, or shrank least; `None` without operations.
    pub worst_operation: Option<OperationChange>,
}

/// Change of an operation's path length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationChange {
    /// Name of the operation.
    pub operation: String,
    /// Change against the base kernel in percent.
    pub change_percent: f64,
}

/// A kernel tuned for one workload, running each of them.
#[derive(Debug, Clone, Serialize)]
pub struct CrossRow {
    /// Name of the workload that the kernel is tuned for.
    pub tuned_for: String,
    /// Id of the tuned kernel.
    pub kernel: String,
    /// Runs of all workloads, in the order of the rows.
    pub cells: Vec<CrossCell>,
}

/// Table "tuned for X, running Y" of all pairs.
#[derive(Debug, Clone, Serialize)]
pub struct CrossResult {
    /// Format and version of this object in JSON.
    pub schema: &'static str,
    /// Recipe of all tuned kernels.
    pub recipe: Recipe,
    /// Id of the base kernel.
    pub base: String,
    /// One row for each workload.
    pub rows: Vec<CrossRow>,
}

/// Recipe and settings of a cross comparison.
#[derive(Debug, Clone, Copy)]
pub struct CrossRequest<'a> {
    /// Recipe that tunes the kernels.
    pub recipe: Recipe,
    /// Settings of all tunings but their workloads.
    pub settings: TuningSettings<'a>,
    /// True if one more kernel is tuned for all workloads together, with equal weights.
    pub together: bool,
    /// Jobs of make; `None` for one per processor.
    pub jobs: Option<NonZeroUsize>,
}

/// Tunes `kernel` for each workload and runs all workloads on all kernels. Earlier results are used
/// again.
///
/// # Errors
/// Those of the tunings and of the recordings.
pub fn cross(
    session: &Session,
    kernel: &Kernel,
    workloads: &[Workload],
    request: &CrossRequest,
) -> Result<CrossResult> {
    let CrossRequest { recipe, settings, together, jobs } = *request;
    let model = settings.model;
    let mut tuned = Vec::new();
    let mut make = |workload, also_trained_on: &[(Workload, u32)], name: String| -> Result<()> {
        let settings = TuningSettings { also_trained_on, ..settings };
        let request = OptimizeRequest { workload, recipe, settings, jobs };
        let optimized = optimize(session, kernel.clone(), &request)?;
        optimized.proof.verdict()?;
        tuned.push((name, optimized));
        Ok(())
    };
    for workload in workloads {
        make(workload, &[], workload.name.clone())?;
    }
    if let (true, [first, rest @ ..]) = (together, workloads) {
        let also_trained_on: Vec<(Workload, u32)> =
            rest.iter().map(|workload| (workload.clone(), 1)).collect();
        make(first, &also_trained_on, TOGETHER.into())?;
    }
    // The recipe makes the same base kernel for every workload.
    let base = tuned.first().map_or(kernel, |(_, optimized)| &optimized.base);
    let runs = || [(base, 0), (base, 1)].into_iter().chain(tuned.iter().map(|(_, of)| (&of.tuned, 0)));
    let requests: Vec<RecordRequest> = workloads
        .iter()
        .flat_map(|workload| {
            runs().map(move |(kernel, repeat)| measured_request(kernel, workload, model, repeat))
        })
        .collect();
    let recorded = record_all(session, &requests)?;
    let mut rows = Vec::new();
    for (at, (tuned_for, OptimizeResult { tuned: with, .. })) in tuned.iter().enumerate() {
        let mut cells = Vec::new();
        for (running, runs) in workloads.iter().zip(recorded.chunks(2 + tuned.len())) {
            let runs = [&runs[0], &runs[1], &runs[2 + at]];
            let comparison = from_recordings([base, with], runs, running, model)?;
            cells.push(CrossCell {
                running: running.name.clone(),
                changes: changes(&comparison),
                score: score(&comparison),
                worst_operation: worst_operation(&comparison),
            });
        }
        rows.push(CrossRow { tuned_for: tuned_for.clone(), kernel: with.manifest.id.clone(), cells });
    }
    Ok(CrossResult { schema: "kerntune-cross/1", recipe, base: base.manifest.id.clone(), rows })
}

/// Adds the steps of [`cross`] to a dry run.
///
/// # Errors
/// Those of [`cross`] before it builds anything.
pub fn dry_run(
    dry: &mut DryRun,
    kernel: &Kernel,
    workloads: &[Workload],
    request: &CrossRequest,
) -> Result<()> {
    let CrossRequest { recipe, settings, together, jobs } = *request;
    let also: Vec<(Workload, u32)> = workloads.iter().skip(1).map(|workload| (workload.clone(), 1)).collect();
    let all = workloads.first().filter(|_| together).map(|workload| (workload, &also[..]));
    let each: Vec<_> = workloads.iter().map(|workload| (workload, &[][..])).chain(all).collect();
    for (workload, also_trained_on) in &each {
        let settings = TuningSettings { also_trained_on, ..settings };
        optimize::dry_run(kernel, &OptimizeRequest { workload, recipe, settings, jobs }, dry)?;
    }
    let count = 2 + u32::try_from(each.len()).unwrap_or(u32::MAX);
    for workload in workloads {
        dry.runs(format!("run {} on all kernels", workload.name), workload, "measured", count);
    }
    Ok(())
}

/// Returns the changes of the workload's sums in percent, in the order of [`Metric::COUNTED`].
pub(crate) fn changes(comparison: &Comparison) -> [f64; 4] {
    let change = |metric| comparison.row(TOTAL, metric).and_then(|row| row.change_percent);
    Metric::COUNTED.map(|metric| change(metric).unwrap_or_default())
}

/// Returns the operation whose path length grew most.
fn worst_operation(comparison: &Comparison) -> Option<OperationChange> {
    let row = comparison.largest_growth(Metric::PathLength)?;
    Some(OperationChange { operation: row.operation.clone(), change_percent: row.change_percent? })
}

/// Returns the tuned kernel's score: 1 means no change, less is better. This is the ratio of model
/// cycles. A model without costs has no cycles; then it is the geometric mean of the four ratios,
/// which needs no weights.
pub(crate) fn score(comparison: &Comparison) -> f64 {
    let row = |metric| comparison.row(TOTAL, metric).filter(|row| row.base > 0.0 && row.tuned > 0.0);
    let ratio = |metric| row(metric).map(|row| row.tuned / row.base);
    ratio(Metric::ModelCycles).unwrap_or_else(|| {
        let logs: f64 = Metric::COUNTED.map(|metric| ratio(metric).unwrap_or(1.0).ln()).iter().sum();
        (logs / Metric::COUNTED.len() as f64).exp()
    })
}
