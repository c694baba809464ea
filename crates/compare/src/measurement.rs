//! The exact counters of one run.

use crate::{Error, Result};
use kerntune_profile::{ModelEvent, Profile, Tables};
use serde::{Deserialize, Serialize};

/// The `operation` of the rows that sum up all outermost regions.
pub const TOTAL: &str = "total";

/// One stretch between a begin and an end mark, as a recording or a profile has it. Counters
/// are of kernel code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionFigures<'a> {
    /// The name that the mark gave: the operation.
    pub name: &'a str,
    /// How many regions were open around it; those with 0 never overlap.
    pub depth: u32,
    /// Whether its end mark was seen.
    pub closed: bool,
    /// Operations done in it.
    pub operations: u64,
    /// Kernel instructions.
    pub kernel_instructions: u64,
    /// Kernel branches taken.
    pub taken_branches: u64,
    /// Model: L1I misses of kernel code.
    pub l1i_misses: u64,
    /// Model: iTLB misses of kernel code.
    pub itlb_misses: u64,
    /// Model: events of kernel code behind the first level.
    pub events: ModelEvents,
}

/// What a model with a second-level cache or a branch predictor counted there; 0 of parts that it does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelEvents {
    /// Lines that neither the L1I nor the L2 had.
    pub l2_misses: u64,
    /// Taken branches whose target only the second-level branch target buffer had.
    pub btb_l2_hits: u64,
    /// Taken calls, jumps and returns that no branch target buffer had.
    pub btb_misses: u64,
    /// Taken branches after which something else was fetched.
    pub mispredictions: u64,
}

impl ModelEvents {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Those of kernel code in a region of a profile.
    fn of(region: u32, tables: &Tables) -> Self {
        let mut events = Self::default();
        for row in tables.model_events.iter().filter(|row| row.region == region) {
            *events.of_kind(row.event) = row.kernel;
        }
        events
    }

    fn of_kind(&mut self, kind: ModelEvent) -> &mut u64 {
        match kind {
            ModelEvent::L2Miss => &mut self.l2_misses,
            ModelEvent::BtbL2Hit => &mut self.btb_l2_hits,
            ModelEvent::BtbMiss => &mut self.btb_misses,
            ModelEvent::Misprediction => &mut self.mispredictions,
        }
    }
}

/// Sums over all regions of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationCounters {
    /// The regions' name.
    pub operation: String,
    /// Operations done.
    pub operations: u64,
    /// Kernel instructions.
    pub kernel_instructions: u64,
    /// Kernel branches taken.
    pub taken_branches: u64,
    /// Model: L1I misses of kernel code.
    pub l1i_misses: u64,
    /// Model: iTLB misses of kernel code.
    pub itlb_misses: u64,
    /// Model: events of kernel code behind the first level.
    #[serde(default, skip_serializing_if = "ModelEvents::is_nothing")]
    pub events: ModelEvents,
}

impl OperationCounters {
    /// Saturates: figures may come from a damaged file.
    fn add(&mut self, region: &RegionFigures) {
        for (sum, figure) in [
            (&mut self.operations, region.operations),
            (&mut self.kernel_instructions, region.kernel_instructions),
            (&mut self.taken_branches, region.taken_branches),
            (&mut self.l1i_misses, region.l1i_misses),
            (&mut self.itlb_misses, region.itlb_misses),
            (&mut self.events.l2_misses, region.events.l2_misses),
            (&mut self.events.btb_l2_hits, region.events.btb_l2_hits),
            (&mut self.events.btb_misses, region.events.btb_misses),
            (&mut self.events.mispredictions, region.events.mispredictions),
        ] {
            *sum = sum.saturating_add(figure);
        }
    }
}

/// One run on an exact machine: what each operation took, and what all of it took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// Operations in the order in which they first ran. Regions without operations have no entry.
    pub operations: Vec<OperationCounters>,
    /// The sum over the outermost regions; its `operation` is [`TOTAL`].
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

    /// The regions of a profile. Refused if its figures are not whole: regions that never ended,
    /// or no front-end model.
    pub fn from_profile(profile: &Profile) -> Result<Self> {
        let manifest = &profile.manifest;
        match manifest.health.get("unclosed_regions") {
            Some(&count) if count > 0 => {
                return Err(Error::OpenRegions { profile: manifest.id.clone(), count })
            }
            _ => {}
        }
        if !manifest.capture.model {
            return Err(Error::NoModel { profile: manifest.id.clone() });
        }
        Self::from_regions(profile.tables.regions.iter().map(|region| RegionFigures {
            name: &region.name,
            depth: region.depth,
            closed: true,
            operations: region.operations,
            kernel_instructions: region.kernel_instructions.get(),
            taken_branches: region.kernel_taken_branches,
            l1i_misses: region.kernel_l1i_misses,
            itlb_misses: region.kernel_itlb_misses,
            events: ModelEvents::of(region.region, &profile.tables),
        }))
    }

    /// The counters of an operation.
    pub fn operation(&self, name: &str) -> Option<&OperationCounters> {
        self.operations.iter().find(|counters| counters.operation == name)
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
            kernel_instructions: 1000 * scale,
            taken_branches: 100 * scale,
            l1i_misses: 10 * scale,
            itlb_misses: scale,
            events: ModelEvents { l2_misses: 2 * scale, mispredictions: 5 * scale, ..ModelEvents::default() },
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
        assert_eq!(run.operation("tcp_rr").unwrap().kernel_instructions, 7000);
        assert_eq!((run.total.kernel_instructions, run.total.itlb_misses), (18_000, 18));
        assert_eq!(run.total.operations, 25);
        assert_eq!((run.total.events.l2_misses, run.total.events.mispredictions), (36, 90));
        assert_eq!(run.operation("tcp_rr").unwrap().events.l2_misses, 14);
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
        profile.manifest.health.insert("unclosed_regions".into(), 2);
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
