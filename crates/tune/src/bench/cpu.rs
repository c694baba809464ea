//! CPU time of a boot by row, for rows that are a step of their own.

use super::measured::RowMeasurement;
use kerntune_guest::Workload;
use kerntune_machine::{CpuTimes, PhaseCpuTimes};
use kerntune_stats::CpuTime;
use std::collections::BTreeMap;

/// Sums up CPU time by region. A step lasts from init's message that it begins to init's next
/// message, so the start and the end of the load generator are included.
pub(super) fn times_by_region(
    workload: &Workload,
    run: &str,
    boot: u32,
    spent: &[PhaseCpuTimes],
) -> BTreeMap<String, CpuTime> {
    let mut rows: BTreeMap<String, CpuTime> = BTreeMap::new();
    for (step, number) in workload.measured.steps.iter().zip(1..) {
        let Some(region) = &step.region else { continue };
        let phase = format!("{run} step {number} ");
        let Some(pair) = spent.windows(2).find(|pair| pair[0].phase.starts_with(&phase)) else { continue };
        let CpuTimes { kernel, programs, host_for_kernel, host_for_programs } =
            pair[1].cpu.since(&pair[0].cpu);
        let seconds = pair[1].seconds - pair[0].seconds;
        let one =
            CpuTime { seconds, kernel, programs, host_for_kernel, host_for_programs, ..CpuTime::default() };
        let row = rows.entry(region.clone()).or_default();
        *row = CpuTime { boot, ..CpuTime::sum(&[*row, one]) };
    }
    rows
}

/// Sums up the CPU time by row as init measured it, over the iterations of a boot.
pub(super) fn times_of_steps(boot: u32, measured: &[RowMeasurement]) -> BTreeMap<String, CpuTime> {
    let mut rows: BTreeMap<String, CpuTime> = BTreeMap::new();
    for (name, one) in measured.iter().filter_map(|of_row| Some((&of_row.row, of_row.cpu?))) {
        let row = rows.entry(name.clone()).or_default();
        *row = CpuTime { boot, ..CpuTime::sum(&[*row, one]) };
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_one_region_are_one_row_and_others_none() {
        let mut workload = Workload::find("redis", &[]).unwrap();
        let steps = workload.measured.steps.clone();
        workload.measured.steps.extend(steps);
        let phases = [
            ("measured warm-up 1 redis-benchmark", 1.0),
            ("measured step 1 redis_set", 2.0),
            ("measured step 2 redis_get", 5.0),
            ("measured step 3 redis_set", 6.0),
            ("measured step 4 redis_get", 8.0),
            ("results", 8.5),
        ];
        let spent = phases.map(|(phase, at)| PhaseCpuTimes {
            phase: phase.into(),
            seconds: at,
            cpu: CpuTimes { kernel: at / 2.0, host_for_programs: at / 4.0, ..CpuTimes::default() },
        });
        let rows = times_by_region(&workload, "measured", 7, &spent);
        let of =
            |row: &str| (rows[row].boot, rows[row].seconds, rows[row].kernel, rows[row].host_for_programs);
        assert_eq!((of("redis_set"), of("redis_get")), ((7, 5.0, 2.5, 1.25), (7, 1.5, 0.75, 0.375)));
        // The last step of a run that ended early has no end.
        assert!(!times_by_region(&workload, "measured", 0, &spent[..3]).contains_key("redis_get"));
        assert!(times_by_region(&workload, "measured", 0, &[]).is_empty());
    }
}
