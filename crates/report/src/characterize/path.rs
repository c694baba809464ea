//! Counters of regions: path length, code misses, model cycles, data accesses.

use super::event::{outermost, CharacterInput, FigureBasis};
use kerntune_compare::{Metric, ModelCosts, ModelEvents, OperationCounters};
use kerntune_profile::{ModelEvent, Profile, RegionScope, RegionStats};
use serde::Serialize;
use std::collections::BTreeMap;

/// Counter with its rates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PathFigure {
    pub figure: &'static str,
    /// Mode of the code: `kernel` or `user`.
    pub mode: &'static str,
    pub basis: FigureBasis,
    pub count: u64,
    pub per_operation: Option<f64>,
    pub per_second: Option<f64>,
    /// Rate per 1,000 instructions of that code, or per 1,000 of its data accesses.
    pub per_thousand: f64,
}

/// Cycles of a front end that never waits for data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ModelCycles {
    /// `kernel`, `user`, or `both`.
    pub mode: &'static str,
    pub cycles: f64,
    pub per_operation: Option<f64>,
    pub per_second: Option<f64>,
    /// Cycles per instruction (CPI).
    pub per_instruction: f64,
}

/// Counters of the outermost regions, by mode.
pub(crate) struct ModeCounters {
    /// By mode: instructions, taken branches, L1I and iTLB misses.
    by_mode: [(&'static str, [u64; 4]); 2],
    /// Model events beyond the first cache level, by mode.
    events: BTreeMap<ModelEvent, [u64; 2]>,
}

impl ModeCounters {
    pub fn of(profile: &Profile, scope: &RegionScope) -> Self {
        let sum =
            |of: fn(&RegionStats) -> u64| outermost(profile, scope).map(of).fold(0, u64::saturating_add);
        let kernel = [
            sum(|row| row.kernel_instructions.get()),
            sum(|row| row.kernel_taken_branches),
            sum(|row| row.kernel_l1i_misses),
            sum(|row| row.kernel_itlb_misses),
        ];
        let user = [
            sum(|row| row.user_instructions.get()),
            sum(|row| row.user_taken_branches),
            sum(|row| row.user_l1i_misses),
            sum(|row| row.user_itlb_misses),
        ];
        let mut events: BTreeMap<ModelEvent, [u64; 2]> = BTreeMap::new();
        let outer = scope.outermost();
        for row in profile.tables.model_events.iter().filter(|row| outer.contains(&row.region)) {
            let [kernel, user] = events.entry(row.event).or_default();
            *kernel = kernel.saturating_add(row.kernel);
            *user = user.saturating_add(row.user);
        }
        Self { by_mode: [("kernel", kernel), ("user", user)], events }
    }

    /// Checks whether instructions were counted; imported and sampled profiles have none.
    pub fn are_there(&self) -> bool {
        self.by_mode.iter().any(|(_, counts)| counts[0] > 0)
    }
}

const PATH: [(&str, FigureBasis); 4] = [
    ("instructions", FigureBasis::Exact),
    ("taken_branches", FigureBasis::Exact),
    ("l1i_misses", FigureBasis::Model),
    ("itlb_misses", FigureBasis::Model),
];

fn figure(
    of: &CharacterInput,
    name: &'static str,
    mode: &'static str,
    basis: FigureBasis,
    count: u64,
    whole: u64,
) -> PathFigure {
    PathFigure {
        figure: name,
        mode,
        basis,
        count,
        per_operation: of.rates.per_operation(count as f64),
        per_second: of.rates.per_second(count as f64),
        per_thousand: if whole == 0 { 0.0 } else { count as f64 * 1000.0 / whole as f64 },
    }
}

/// Returns the basis of counts: a count is exact only in an exact profile.
fn counted(of: &CharacterInput, basis: FigureBasis) -> FigureBasis {
    match basis {
        FigureBasis::Exact => FigureBasis::of(of.profile),
        other => other,
    }
}

pub(crate) fn path(of: &CharacterInput, counters: &ModeCounters) -> Vec<PathFigure> {
    let capture = &of.profile.manifest.capture;
    if !counters.are_there() {
        return Vec::new();
    }
    let known = [true, capture.edges, capture.model, capture.model];
    let mut figures = Vec::new();
    for (at, (name, basis)) in PATH.into_iter().enumerate().filter(|(at, _)| known[*at]) {
        for (mode, counts) in counters.by_mode {
            figures.push(figure(of, name, mode, counted(of, basis), counts[at], counts[0]));
        }
    }
    for (event, counts) in &counters.events {
        for ((mode, of_mode), count) in counters.by_mode.into_iter().zip(counts) {
            figures.push(figure(of, event.as_str(), mode, FigureBasis::Model, *count, of_mode[0]));
        }
    }
    figures
}

pub(crate) fn cycles(
    of: &CharacterInput,
    counters: &ModeCounters,
    costs: Option<ModelCosts>,
) -> Vec<ModelCycles> {
    let Some(costs) = costs.filter(|_| of.profile.manifest.capture.model && counters.are_there()) else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    let (mut all, mut instructions) = (0.0, 0.0);
    let row = |mode, cycles: f64, executed: f64| ModelCycles {
        mode,
        cycles,
        per_operation: of.rates.per_operation(cycles),
        per_second: of.rates.per_second(cycles),
        per_instruction: if executed == 0.0 { 0.0 } else { cycles / executed },
    };
    for (at, (mode, counts)) in counters.by_mode.into_iter().enumerate() {
        let event = |event| counters.events.get(&event).map_or(0, |counts| counts[at]);
        let sums = OperationCounters {
            counts: Metric::COUNTED.into_iter().zip(counts).collect(),
            events: ModelEvents {
                l2_misses: event(ModelEvent::L2Miss),
                btb_l2_hits: event(ModelEvent::BtbL2Hit),
                btb_misses: event(ModelEvent::BtbMiss),
                mispredictions: event(ModelEvent::Misprediction),
                direction_mispredictions: event(ModelEvent::DirectionMisprediction),
            },
            ..OperationCounters::default()
        };
        let (cycles, executed) = (costs.cycles(&sums), counts[0] as f64);
        rows.push(row(mode, cycles, executed));
        (all, instructions) = (all + cycles, instructions + executed);
    }
    rows.push(row("both", all, instructions));
    rows
}

pub(crate) fn data(of: &CharacterInput) -> Vec<PathFigure> {
    const FIGURES: [(&str, FigureBasis); 8] = [
        ("loads", FigureBasis::Exact),
        ("stores", FigureBasis::Exact),
        ("l1d_misses", FigureBasis::Model),
        ("l2_misses", FigureBasis::Model),
        ("l3_misses", FigureBasis::Model),
        ("transfers", FigureBasis::Model),
        ("dtlb_misses", FigureBasis::Model),
        ("walks", FigureBasis::Model),
    ];
    let mut figures = Vec::new();
    for mode in ["kernel", "user"] {
        let rows = || {
            let rows = of.profile.tables.data_accesses.iter();
            rows.filter(move |row| row.mode == mode && of.scope.contains(row.region))
        };
        if rows().next().is_none() {
            continue;
        }
        let mut sums = [0u64; FIGURES.len()];
        for row in rows() {
            let counts = [
                row.loads,
                row.stores,
                row.l1d_misses,
                row.l2_misses,
                row.l3_misses,
                row.transfers,
                row.dtlb_misses,
                row.walks,
            ];
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
        let all = sums[0].saturating_add(sums[1]);
        for ((name, basis), count) in FIGURES.into_iter().zip(sums) {
            figures.push(figure(of, name, mode, counted(of, basis), count, all));
        }
    }
    figures
}
