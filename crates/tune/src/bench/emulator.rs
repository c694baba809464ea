//! The exact machine: the measured run is recorded, and each row's region gives its figures per operation.

use super::{empty_row, fitting, uname, Error, Selected};
use crate::compare::measured;
use crate::model::Model;
use crate::moment::later;
use crate::record::{record_all, RecordRequest, MACHINE};
use crate::run_files::RUN;
use crate::{Result, Session};
use kerntune_compare::{Costs, Measurement, Metric, OperationCounters};
use kerntune_guest::{SuiteRow, Workload};
use kerntune_kernel::Kernel;
use kerntune_profile::rfc3339;
use kerntune_stats::{
    Better, Figures, Kernel as KernelName, Results, ResultsRow, Skipped, Value, RESULTS_SCHEMA,
};
use std::time::SystemTime;

/// Which kernel, under which model, how often.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What boots.
    pub kernel: &'a Kernel,
    /// The front-end model to run along.
    pub model: &'a Model,
    /// How often; all boots but the first show what does not repeat.
    pub boots: u32,
    /// In each boot's place so many runs, begun at as many moments.
    pub runs: u32,
    /// How many times its usual work each row does.
    pub scale: f64,
}

/// What this kernel can run, and what it lacks for the rest.
///
/// # Errors
/// Its configuration cannot be read, or nothing is left.
pub fn check(kernel: &Kernel, selection: Vec<Selected>) -> Result<(Vec<Selected>, Vec<Skipped>)> {
    fitting(kernel, selection, MACHINE, |_| None)
}

/// Records what [`check`] left; recordings that are there, such as those of `kerntune compare`, are used again.
///
/// # Errors
/// Those of a recording, and rows that are not in it.
pub fn run(
    session: &Session,
    (selection, skipped): (Vec<Selected>, Vec<Skipped>),
    request: &Request,
) -> Result<Results> {
    let fixed = selection.iter().find(|s| request.scale != 1.0 && !s.suite.is_scalable());
    if let Some(selected) = fixed {
        return Err(Error::NotScalable { suite: selected.suite.workload.name.clone() }.into());
    }
    let manifest = &request.kernel.manifest;
    let mut results = Results {
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
        ..Results::default()
    };
    let restricted: Vec<Workload> = selection
        .iter()
        .map(|Selected { suite, rows }| suite.restricted(&rows.iter().collect::<Vec<_>>(), request.scale))
        .collect();
    // Each suite at each moment, as often as was asked for: in the order in which rows have their values.
    let moments: Vec<Vec<Workload>> = restricted
        .iter()
        .map(|workload| (0..request.runs).map(|run| later(workload, run)).collect())
        .collect();
    let times: Vec<(u32, u32)> =
        (0..request.boots).flat_map(|boot| (0..request.runs).map(move |run| (boot, run))).collect();
    let (kernel, model) = (request.kernel, request.model);
    let requests: Vec<RecordRequest> = moments
        .iter()
        .flat_map(|moments| times.iter().map(move |time| (moments, time)))
        .map(|(moments, &(boot, run))| measured(kernel, &moments[run as usize], model, boot))
        .collect();
    let recorded = record_all(session, &requests)?;
    for ((at, Selected { suite, rows }), workload) in selection.iter().enumerate().zip(&restricted) {
        let first = results.rows.len();
        results.rows.extend(rows.iter().map(|row| ResultsRow {
            unit: Metric::PathLength.unit_per_operation().into(),
            better: Better::Lower,
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

/// A row's sums; those of the aggregate are of one operation, which is all of the run.
fn counters(measurement: &Measurement, row: &SuiteRow) -> Option<OperationCounters> {
    match row.is_aggregate() {
        true => Some(OperationCounters { operations: 1, ..measurement.total.clone() }),
        false => measurement.operation(&row.name).cloned(),
    }
}

fn value((boot, run): (u32, u32), counters: &OperationCounters, costs: Option<&Costs>) -> Value {
    let per = |sum: f64| sum / counters.operations as f64;
    let some = |metric: Metric| metric.count(counters).map(|sum| per(sum as f64));
    let counted = |metric: Metric| some(metric).unwrap_or_default();
    let figures = Figures {
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
    Value { boot, run, value: figures.path_length, figures: Some(figures), ..Value::default() }
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
        let costs = Costs { path_length: 0.5, ..Costs::default() };
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
