//! Figures of some CPUs of a run, in recordings where each CPU stands for a host.

use crate::measurement::figures;
use crate::{Error, Measurement, Result};
use kerntune_profile::{Profile, RegionStats};

impl Measurement {
    /// Combines two hosts, each represented by one CPU of a recording: CPU `cpu` as in `there`, all
    /// other CPUs as in `here`.
    ///
    /// Both recordings must be of the same run of a workload. Its CPUs may wait for each other only
    /// to answer requests, so that the code of one CPU does not depend on the other's kernel.
    ///
    /// # Errors
    /// Errors of [`Measurement::from_profile`]; a profile without figures of each CPU; different
    /// numbers of operations.
    pub fn from_two_hosts(here: &Profile, there: &Profile, cpu: u32) -> Result<Self> {
        let mut sum = Self::from_cpus(here, &|number| number != cpu)?;
        let other = Self::from_cpus(there, &|number| number == cpu)?;
        for counters in &mut sum.operations {
            let name = &counters.operation;
            let half = other.operation(name).filter(|half| half.operations == counters.operations);
            let Some(half) = half else {
                let (operation, here) = (name.clone(), counters.operations);
                let there = other.operation(name).map_or(0, |half| half.operations);
                return Err(Error::OtherHalf { operation, here, there });
            };
            counters.add_counts(&half.counts, [&half.events, &half.whole_events]);
        }
        sum.total.add_counts(&other.total.counts, [&other.total.events, &other.total.whole_events]);
        Ok(sum)
    }

    /// Returns the figures of the CPUs whose number `wanted` accepts.
    fn from_cpus(profile: &Profile, wanted: &dyn Fn(u32) -> bool) -> Result<Self> {
        Self::check(profile)?;
        let regions: Vec<RegionStats> = (profile.tables.regions.iter())
            .map(|region| {
                let whole = part(profile, region, &|_| true);
                // Figures by CPU are useless if they do not add up to the region.
                let is_all = whole == *region;
                let lacks =
                    || Error::NoCpus { profile: profile.manifest.id.clone(), region: region.name.clone() };
                is_all.then(|| part(profile, region, wanted)).ok_or_else(lacks)
            })
            .collect::<Result<_>>()?;
        Self::from_regions(regions.iter().map(|region| {
            let rows = profile.tables.cpu_model_events.iter();
            let rows = rows.filter(|row| row.region == region.region && wanted(row.cpu));
            figures(region, rows.map(|row| (row.event, row.kernel, row.user)))
        }))
    }
}

/// Returns the region with the counters of the wanted CPUs only.
fn part(profile: &Profile, region: &RegionStats, wanted: &dyn Fn(u32) -> bool) -> RegionStats {
    let mut part = RegionStats {
        kernel_instructions: Default::default(),
        user_instructions: Default::default(),
        kernel_taken_branches: 0,
        user_taken_branches: 0,
        kernel_l1i_misses: 0,
        user_l1i_misses: 0,
        kernel_itlb_misses: 0,
        user_itlb_misses: 0,
        ..region.clone()
    };
    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
    let tables = &profile.tables;
    for row in tables.cpus.iter().filter(|row| row.region == region.region && wanted(row.cpu)) {
        add(&mut part.kernel_instructions.0, row.kernel_instructions.0);
        add(&mut part.user_instructions.0, row.user_instructions.0);
    }
    for row in tables.cpu_front_ends.iter().filter(|row| row.region == region.region && wanted(row.cpu)) {
        add(&mut part.kernel_taken_branches, row.kernel_taken_branches);
        add(&mut part.user_taken_branches, row.user_taken_branches);
        add(&mut part.kernel_l1i_misses, row.kernel_l1i_misses);
        add(&mut part.user_l1i_misses, row.user_l1i_misses);
        add(&mut part.kernel_itlb_misses, row.kernel_itlb_misses);
        add(&mut part.user_itlb_misses, row.user_itlb_misses);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;
    use kerntune_profile::{
        CaptureSummary, CpuFrontEndStats, CpuModelEventStats, CpuStats, Instructions, KernelId, Manifest,
        ModelEvent, ModelEventStats, Tables, Ticks,
    };

    /// Returns a profile of 10 operations; CPU 0 has `zero` events of each kind, CPU 1 `one`.
    fn profile([zero, one]: [u64; 2]) -> Profile {
        let mut manifest = Manifest::new("p", KernelId::default(), "remote", "emulator");
        manifest.capture = CaptureSummary { model: true, ..CaptureSummary::default() };
        let ns = Ticks::ZERO;
        let all = zero + one;
        let region = RegionStats {
            region: 0,
            name: "remote_tcp_rr_1".into(),
            begin_ticks: ns,
            elapsed_ticks: ns,
            busy_ticks: ns,
            idle_ticks: ns,
            user_ticks: ns,
            unattributed_ticks: ns,
            operations: 10,
            depth: 0,
            kernel_instructions: Instructions(all),
            user_instructions: Instructions(2 * all),
            kernel_taken_branches: 3 * all,
            user_taken_branches: 4 * all,
            kernel_l1i_misses: 5 * all,
            user_l1i_misses: 6 * all,
            kernel_itlb_misses: 7 * all,
            user_itlb_misses: 8 * all,
        };
        let each = |of: u64, cpu| {
            let front_end = CpuFrontEndStats {
                region: 0,
                cpu,
                kernel_taken_branches: 3 * of,
                user_taken_branches: 4 * of,
                kernel_l1i_misses: 5 * of,
                user_l1i_misses: 6 * of,
                kernel_itlb_misses: 7 * of,
                user_itlb_misses: 8 * of,
            };
            let cpus = CpuStats {
                cpu,
                kernel_instructions: Instructions(of),
                user_instructions: Instructions(2 * of),
                busy_ticks: ns,
                halted_ticks: ns,
                ..CpuStats::default()
            };
            let event = ModelEvent::L2Miss;
            (cpus, front_end, CpuModelEventStats { region: 0, cpu, event, kernel: 9 * of, user: of })
        };
        let (mut tables, event) = (Tables::default(), ModelEvent::L2Miss);
        tables.model_events = vec![ModelEventStats { region: 0, event, kernel: 9 * all, user: all }];
        tables.regions = vec![region];
        for (cpus, front_end, events) in [each(zero, 0), each(one, 1)] {
            tables.cpus.push(cpus);
            tables.cpu_front_ends.push(front_end);
            tables.cpu_model_events.push(events);
        }
        Profile { manifest, tables }
    }

    #[test]
    fn a_run_of_two_hosts_has_each_half_from_its_own_recording() {
        let (base, tuned) = (profile([100, 1000]), profile([80, 700]));
        let both = |there| Measurement::from_two_hosts(&tuned, there, 1).unwrap();
        assert_eq!(both(&tuned), Measurement::from_profile(&tuned).unwrap());
        let mixed = both(&base);
        for counters in [&mixed.operations[0], &mixed.total] {
            let counted = Metric::COUNTED.map(|metric| metric.count(counters).unwrap());
            assert_eq!(counted, [1, 3, 5, 7].map(|times| times * (80 + 1000)));
            let counted = Metric::WHOLE.map(|metric| metric.count(counters).unwrap());
            assert_eq!(counted, [3, 7, 11, 15].map(|times| times * (80 + 1000)));
            assert_eq!(counters.events.l2_misses, 9 * (80 + 1000));
            assert_eq!((counters.whole_events.l2_misses, counters.operations), (10 * (80 + 1000), 10));
        }
    }

    #[test]
    fn halves_that_are_not_whole_or_not_of_the_same_work_are_refused() {
        let base = profile([100, 1000]);
        let refused = |tuned: &Profile| Measurement::from_two_hosts(tuned, &base, 1).unwrap_err().to_string();
        let mut old = profile([80, 700]);
        old.tables.cpu_front_ends.clear();
        assert!(
            refused(&old).contains("what each CPU did in region \"remote_tcp_rr_1\""),
            "{}",
            refused(&old)
        );
        let mut more = profile([80, 700]);
        more.tables.regions[0].operations = 11;
        assert!(refused(&more).contains("11 times in one recording and 10 times"), "{}", refused(&more));
        let mut uncounted = profile([80, 700]);
        uncounted.manifest.capture.model = false;
        assert!(refused(&uncounted).contains("without a front-end model"), "{}", refused(&uncounted));
    }
}
