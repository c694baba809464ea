//! Exact counters of one run.

use crate::metric::{Metric, ModelEvents, OperationCounters};
use crate::{Error, Result};
use kerntune_profile::{Anomaly, ModelEvent, Profile, RegionStats};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Value of `operation` in rows that sum up all outermost regions.
pub const TOTAL: &str = "total";

/// One region of a recording or a profile, between a begin and an end mark. Each count belongs to
/// kernel code, user code or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionFigures<'a> {
    /// Name of the mark, which is the operation.
    pub name: &'a str,
    /// Number of regions open around this one; regions of depth 0 never overlap.
    pub depth: u32,
    /// True if the end mark was seen.
    pub closed: bool,
    /// Operations done in the region.
    pub operations: u64,
    /// Counted metrics, as opposed to computed ones.
    pub counts: BTreeMap<Metric, u64>,
    /// Model events of kernel code behind the first level.
    pub events: ModelEvents,
    /// Model events of kernel and user code behind the first level.
    pub whole_events: ModelEvents,
}

impl OperationCounters {
    fn add(&mut self, region: &RegionFigures) {
        self.operations = self.operations.saturating_add(region.operations);
        self.add_counts(&region.counts, [&region.events, &region.whole_events]);
    }

    /// Adds counts. Saturates, since figures may come from a damaged file.
    pub(crate) fn add_counts(
        &mut self,
        counts: &BTreeMap<Metric, u64>,
        [events, whole_events]: [&ModelEvents; 2],
    ) {
        self.events.add(events);
        self.whole_events.add(whole_events);
        for (&metric, &count) in counts {
            let sum = self.counts.entry(metric).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}

/// One run on an exact machine: counters of each operation and of all together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// Operations in the order in which they first ran. Regions without operations have no entry.
    pub operations: Vec<OperationCounters>,
    /// Sum over the outermost regions; its `operation` is [`TOTAL`].
    pub total: OperationCounters,
}

impl Measurement {
    /// Adds up regions of the same name; the outermost ones (depth 0) make the total. A region
    /// without operations counts towards the total only.
    pub fn from_regions<'a>(regions: impl IntoIterator<Item = RegionFigures<'a>>) -> Result<Self> {
        let mut operations: Vec<OperationCounters> = Vec::new();
        let mut total = OperationCounters { operation: TOTAL.into(), ..OperationCounters::default() };
        for region in regions {
            if !region.closed {
                return Err(Error::OpenRegion { region: region.name.into() });
            }
            if region.name == TOTAL {
                return Err(Error::ReservedName);
            }
            let known = operations.iter().position(|known| known.operation == region.name);
            let at = known.unwrap_or_else(|| {
                operations.push(OperationCounters { operation: region.name.into(), ..Default::default() });
                operations.len() - 1
            });
            operations[at].add(&region);
            if region.depth == 0 {
                total.add(&region);
            }
        }
        operations.retain(|counters| counters.operations > 0);
        if operations.is_empty() {
            return Err(Error::NothingMeasured);
        }
        Ok(Self { operations, total })
    }

    /// Measures the regions of a profile.
    ///
    /// # Errors
    /// Incomplete figures: regions that never ended, or no front-end model.
    pub fn from_profile(profile: &Profile) -> Result<Self> {
        Self::check(profile)?;
        Self::from_regions(profile.tables.regions.iter().map(|region| {
            let rows = profile.tables.model_events.iter().filter(|row| row.region == region.region);
            figures(region, rows.map(|row| (row.event, row.kernel, row.user)))
        }))
    }

    /// Checks that a profile's figures are complete.
    pub(crate) fn check(profile: &Profile) -> Result<()> {
        let manifest = &profile.manifest;
        match manifest.anomaly(Anomaly::UnclosedRegions) {
            count @ 1.. => Err(Error::OpenRegions { profile: manifest.id.clone(), count }),
            _ if !manifest.capture.model => Err(Error::NoModel { profile: manifest.id.clone() }),
            _ => Ok(()),
        }
    }

    /// Returns the counters of an operation.
    pub fn operation(&self, name: &str) -> Option<&OperationCounters> {
        self.operations.iter().find(|counters| counters.operation == name)
    }
}

/// Returns a profile's region, with the model events behind the first level in kernel and in user
/// mode.
pub(crate) fn figures(
    region: &RegionStats,
    counted: impl Iterator<Item = (ModelEvent, u64, u64)>,
) -> RegionFigures<'_> {
    let [events, whole_events] = ModelEvents::of(counted);
    RegionFigures {
        name: &region.name,
        depth: region.depth,
        closed: true,
        operations: region.operations,
        counts: Metric::all().iter().filter_map(|metric| Some((*metric, metric.of(region)?))).collect(),
        events,
        whole_events,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str, depth: u32, operations: u64, scale: u64) -> RegionFigures<'_> {
        RegionFigures {
            name,
            depth,
            closed: true,
            operations,
            counts: Metric::COUNTED.into_iter().zip([1000, 100, 10, 1].map(|count| count * scale)).collect(),
            events: ModelEvents { l2_misses: 2 * scale, mispredictions: 5 * scale, ..ModelEvents::default() },
            whole_events: ModelEvents { l2_misses: 3 * scale, ..ModelEvents::default() },
        }
    }

    #[test]
    fn same_names_add_up_and_inner_regions_stay_out_of_the_total() {
        let run = Measurement::from_regions([
            region("tcp_rr", 0, 10, 3),
            region("connect", 1, 2, 1),
            region("udp_rr", 0, 5, 2),
            region("tcp_rr", 0, 10, 4),
            region("setup", 0, 0, 9),
        ])
        .unwrap();
        let names: Vec<_> = run.operations.iter().map(|o| (o.operation.as_str(), o.operations)).collect();
        assert_eq!(names, [("tcp_rr", 20), ("connect", 2), ("udp_rr", 5)]);
        assert_eq!(Metric::PathLength.count(run.operation("tcp_rr").unwrap()), Some(7000));
        let total = |metric: Metric| metric.count(&run.total);
        assert_eq!((total(Metric::PathLength), total(Metric::ItlbMisses)), (Some(18_000), Some(18)));
        assert_eq!(total(Metric::ModelCycles), None);
        assert_eq!(run.total.operations, 25);
        assert_eq!((run.total.events.l2_misses, run.total.events.mispredictions), (36, 90));
        assert_eq!(run.operation("tcp_rr").unwrap().events.l2_misses, 14);
        assert_eq!(run.total.whole_events.l2_misses, 54);
    }

    #[test]
    fn profiles_that_are_not_whole_are_refused() {
        use kerntune_profile::{KernelId, Manifest, Tables};
        let manifest = Manifest::new("p1", KernelId::default(), "rr", "emulator");
        let mut profile = Profile { manifest, tables: Tables::default() };
        let refused = |profile: &Profile| Measurement::from_profile(profile).unwrap_err().to_string();
        assert!(refused(&profile).starts_with("profile p1 was recorded without a front-end model"));
        profile.manifest.capture.model = true;
        assert!(matches!(Measurement::from_profile(&profile), Err(Error::NothingMeasured)));
        profile.manifest.set_anomaly(Anomaly::UnclosedRegions, 2);
        assert!(refused(&profile).starts_with("profile p1 has 2 regions that were begun and never ended"));
    }

    #[test]
    fn runs_that_measure_nothing_are_refused() {
        assert!(matches!(Measurement::from_regions([]), Err(Error::NothingMeasured)));
        assert!(matches!(Measurement::from_regions([region("a", 0, 0, 1)]), Err(Error::NothingMeasured)));
        let open = RegionFigures { closed: false, ..region("a", 0, 1, 1) };
        let error = Measurement::from_regions([open]).unwrap_err();
        assert!(error.to_string().starts_with("region \"a\" was begun and never ended"), "{error}");
        assert!(matches!(Measurement::from_regions([region("total", 0, 1, 1)]), Err(Error::ReservedName)));
    }
}
