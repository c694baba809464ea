//! Benchmark rows on the exact machine: the measured run is recorded, and each row's region gives
//! its figures per operation.

use super::{empty_row, fitting, uname, Error, SelectedRows};
use crate::dry_run::DryRun;
use crate::measuring::compare::measured_request;
use crate::measuring::start_offset::with_start_offset;
use crate::runs::model::Model;
use crate::runs::record::{record_all, RecordRequest, MACHINE};
use crate::runs::run_files::RUN;
use crate::{Result, Session};
use kerntune_compare::{Measurement, Metric, ModelCosts, OperationCounters};
use kerntune_guest::{SuiteRow, Workload};
use kerntune_kernel::Kernel;
use kerntune_profile::rfc3339;
use kerntune_stats::{
    BenchResults, ExactFigures, MeasuredKernel as KernelName, MeasuredValue, ResultsRow, RowDirection,
    SkippedRow, RESULTS_SCHEMA,
};
use std::time::SystemTime;

/// Kernel, model and number of runs on the exact machine.
#[derive(Debug, Clone, Copy)]
pub struct ExactRequest<'a> {
    /// Kernel to boot.
    pub kernel: &'a Kernel,
    /// Front-end model of the recordings.
    pub model: &'a Model,
    /// Number of repeated boots; all but the first show what does not repeat.
    pub boots: u32,
    /// Number of runs for each boot, each with another start offset.
    pub runs: u32,
    /// Factor on the usual work of each row.
    pub scale: f64,
}

/// Splits the selection into what this kernel can run and the rows that are skipped.
///
/// # Errors
/// A configuration that cannot be read; no row that can run.
pub fn check(kernel: &Kernel, selection: Vec<SelectedRows>) -> Result<(Vec<SelectedRows>, Vec<SkippedRow>)> {
    fitting(kernel, selection, MACHINE, |_| None)
}

/// Records the rows that [`check`] left. Earlier recordings, such as those of `kerntune compare`,
/// are used again.
///
/// # Errors
/// Those of a recording, and rows that are missing in it.
pub fn run(
    session: &Session,
    (selection, skipped): (Vec<SelectedRows>, Vec<SkippedRow>),
    request: &ExactRequest,
) -> Result<BenchResults> {
    check_scale(&selection, request.scale)?;
    let manifest = &request.kernel.manifest;
    let mut results = BenchResults {
        schema: RESULTS_SCHEMA.into(),
        machine: MACHINE.into(),
        kernel: KernelName {
            id: Some(manifest.id.clone()),
            build_id: request.kernel.build_id()?,
            ..KernelName::default()
        },
        started: rfc3339(SystemTime::now()),
        scale: Some(request.scale),
        model: Some(request.model.name.clone()),
        skipped,
        ..BenchResults::default()
    };
    let restricted = restricted(&selection, request.scale);
    // Each suite with each start offset, in the order of the values of a row.
    let offsets: Vec<Vec<Workload>> = restricted
        .iter()
        .map(|workload| (0..request.runs).map(|run| with_start_offset(workload, run)).collect())
        .collect();
    let times: Vec<(u32, u32)> =
        (0..request.boots).flat_map(|boot| (0..request.runs).map(move |run| (boot, run))).collect();
    let (kernel, model) = (request.kernel, request.model);
    let requests: Vec<RecordRequest> = offsets
        .iter()
        .flat_map(|offsets| times.iter().map(move |time| (offsets, time)))
        .map(|(offsets, &(boot, run))| measured_request(kernel, &offsets[run as usize], model, boot))
        .collect();
    let recorded = record_all(session, &requests)?;
    for ((at, SelectedRows { suite, rows }), workload) in selection.iter().enumerate().zip(&restricted) {
        let first = results.rows.len();
        results.rows.extend(rows.iter().map(|row| ResultsRow {
            unit: Metric::PathLength.unit_per_operation().into(),
            better: RowDirection::Lower,
            ..empty_row(&workload.name, row)
        }));
        for (&(boot, run), recorded) in times.iter().zip(&recorded[at * times.len()..]) {
            (results.kernel.release, results.kernel.version) =
                uname(&recorded.path.join(RUN).join("console.log"));
            let measurement = recorded.measurement()?;
            for (row, result) in rows.iter().zip(&mut results.rows[first..]) {
                let counters = counters(&measurement, row).ok_or_else(|| Error::NotRecorded {
                    suite: suite.workload.name.clone(),
                    row: row.name.clone(),
                    profile: recorded.manifest.id.clone(),
                })?;
                result.values.push(value((boot, run), &counters, request.model.costs.as_ref()));
            }
        }
    }
    Ok(results)
}

/// Adds the recordings of [`run`] to a dry run; with no kernel, those of one that is to be built.
///
/// # Errors
/// Those of [`run`] before it boots the kernel.
pub fn dry_run(
    dry: &mut DryRun,
    selection: &[SelectedRows],
    kernel: Option<&Kernel>,
    (model, scale): (&Model, f64),
    (boots, runs): (u32, u32),
) -> Result<()> {
    check_scale(selection, scale)?;
    for workload in &restricted(selection, scale) {
        let what = format!("run {}", workload.name);
        let Some(kernel) = kernel else {
            dry.runs(what, workload, "measured", boots * runs);
            continue;
        };
        let offsets: Vec<Workload> = (0..runs).map(|run| with_start_offset(workload, run)).collect();
        let requests: Vec<RecordRequest> = (0..boots)
            .flat_map(|boot| {
                offsets.iter().map(move |workload| measured_request(kernel, workload, model, boot))
            })
            .collect();
        dry.recordings(what, &requests)?;
    }
    Ok(())
}

fn check_scale(selection: &[SelectedRows], scale: f64) -> Result<()> {
    match selection.iter().find(|selected| scale != 1.0 && !selected.suite.is_scalable()) {
        Some(selected) => Err(Error::NotScalable { suite: selected.suite.workload.name.clone() }.into()),
        None => Ok(()),
    }
}

/// Returns the workload of each suite with its selected rows alone.
fn restricted(selection: &[SelectedRows], scale: f64) -> Vec<Workload> {
    let each = selection.iter();
    each.map(|SelectedRows { suite, rows }| suite.restricted(&rows.iter().collect::<Vec<_>>(), scale))
        .collect()
}

/// Returns a row's counters. The aggregate row counts the whole run as one operation.
fn counters(measurement: &Measurement, row: &SuiteRow) -> Option<OperationCounters> {
    match row.is_aggregate() {
        true => Some(OperationCounters { operations: 1, ..measurement.total.clone() }),
        false => measurement.operation(&row.name).cloned(),
    }
}

fn value((boot, run): (u32, u32), counters: &OperationCounters, costs: Option<&ModelCosts>) -> MeasuredValue {
    let per = |sum: f64| sum / counters.operations as f64;
    let some = |metric: Metric| metric.count(counters).map(|sum| per(sum as f64));
    let counted = |metric: Metric| some(metric).unwrap_or_default();
    let figures = ExactFigures {
        path_length: counted(Metric::PathLength),
        taken_branches: counted(Metric::TakenBranches),
        l1i_misses: counted(Metric::L1iMisses),
        itlb_misses: counted(Metric::ItlbMisses),
        model_cycles: costs.map(|costs| per(costs.cycles(counters))),
        user_instructions: some(Metric::UserInstructions),
        user_l1i_misses: some(Metric::UserL1iMisses),
        user_itlb_misses: some(Metric::UserItlbMisses),
        whole_cycles: costs.and_then(|costs| costs.whole_cycles(counters)).map(per),
    };
    MeasuredValue {
        boot,
        run,
        value: figures.path_length,
        figures: Some(figures),
        ..MeasuredValue::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_guest::{Suite, Workload};

    #[test]
    fn figures_are_per_operation_and_the_sum_is_one() {
        let of = |name: &str, operations, kernel_instructions| OperationCounters {
            operation: name.into(),
            operations,
            counts: Metric::COUNTED
                .into_iter()
                .zip([kernel_instructions, kernel_instructions / 10])
                .collect(),
            ..Default::default()
        };
        let run = Measurement { operations: vec![of("syscall", 4, 400)], total: of("total", 7, 1000) };
        let suite = Suite::of(Workload::find("mckusick", &[]).unwrap()).unwrap();
        let costs = ModelCosts { path_length: 0.5, ..ModelCosts::default() };
        let figures = |row: &str| {
            let counters = counters(&run, suite.row(row).unwrap()).unwrap();
            let value = value((2, 3), &counters, Some(&costs));
            assert_eq!((value.boot, value.run, value.figures.unwrap().path_length), (2, 3, value.value));
            assert_eq!(value.figures.unwrap().user_instructions, None);
            (value.value, value.figures.unwrap().taken_branches, value.figures.unwrap().model_cycles)
        };
        assert_eq!(figures("syscall"), (100.0, 10.0, Some(50.0)));
        assert_eq!(figures("aggregate"), (1000.0, 100.0, Some(500.0)));
        assert_eq!(counters(&run, suite.row("csw").unwrap()), None);
    }
}
