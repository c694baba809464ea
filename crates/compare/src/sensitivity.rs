//! Sensitivity of a comparison to chance: random layouts of the base kernel, other front-end
//! models.

use crate::{
    Comparison, Measurement, MetricRow, ModelChangeRow, ModelChanges, ModelCosts, RandomLayoutRow,
    RandomLayouts, TOTAL,
};

impl Comparison {
    /// Ranks both kernels among random layouts of the base kernel.
    ///
    /// `runs` has a measurement of each layout, `kernels` its id. Operations that are missing in a
    /// layout's run have no rows.
    pub fn place_among(
        &self,
        runs: &[Measurement],
        kernels: Vec<String>,
        seed: u64,
        costs: Option<&ModelCosts>,
    ) -> RandomLayouts {
        let rows =
            self.rows.iter().filter(|row| RandomLayouts::METRICS.contains(&row.metric)).filter_map(|row| {
                let figure = |run: &Measurement| run.figure(&row.operation, row.metric, costs);
                unplaced(row).with_values(runs.iter().map(figure).collect::<Option<Vec<f64>>>()?)
            });
        RandomLayouts { seed, kernels, rows: rows.collect() }
    }

    /// Collects the changes of comparisons of the same kernels and workload, each under another
    /// model.
    pub fn across_models(comparisons: &[Comparison]) -> ModelChanges {
        let models = comparisons.iter().map(|of| of.model.clone()).collect();
        let Some(first) = comparisons.first() else { return ModelChanges { models, rows: Vec::new() } };
        let rows = first.operations().chain([TOTAL]).flat_map(|operation| {
            ModelChanges::METRICS.into_iter().filter_map(move |metric| {
                let change = |of: &Comparison| of.row(operation, metric).and_then(|row| row.change_percent);
                let changes_percent: Vec<_> = comparisons.iter().map(change).collect();
                let some = changes_percent.iter().any(Option::is_some);
                some.then(|| ModelChangeRow { operation: operation.into(), metric, changes_percent })
            })
        });
        ModelChanges { models, rows: rows.collect() }
    }
}

fn unplaced(row: &MetricRow) -> RandomLayoutRow {
    RandomLayoutRow {
        operation: row.operation.clone(),
        metric: row.metric,
        unit: row.unit.clone(),
        model: row.model,
        base: row.base,
        tuned: row.tuned,
        values: Vec::new(),
        quartiles: [0.0; 5],
        below_base: 0,
        below_tuned: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ComparisonLabels, Metric, RegionFigures};

    fn run(l1i: u64) -> Measurement {
        let counts = Metric::COUNTED.into_iter().zip([1000, 100, l1i, 0]).collect();
        let region = RegionFigures {
            name: "a",
            depth: 0,
            closed: true,
            operations: 10,
            counts,
            events: Default::default(),
            whole_events: Default::default(),
        };
        Measurement::from_regions([region]).unwrap()
    }

    #[test]
    fn a_kernel_has_a_place_among_random_layouts() {
        let comparison = Comparison::new(&run(80), &run(80), &run(50), ComparisonLabels::default()).unwrap();
        let runs: Vec<_> = [100, 60, 90, 70, 80].map(run).into();
        let ids: Vec<String> = (0..5).map(|at| at.to_string()).collect();
        let layouts = comparison.place_among(&runs, ids, 1, None);
        let row = layouts.row("a", Metric::L1iMisses).unwrap();
        assert_eq!(row.quartiles, [6.0, 7.0, 8.0, 9.0, 10.0]);
        assert_eq!((row.below_base, row.below_tuned), (2, 0));
        assert_eq!((row.spread_percent(), row.change_from_median()), (Some(50.0), Some(-37.5)));
        let total = layouts.row(TOTAL, Metric::L1iMisses).unwrap();
        assert_eq!((total.values[0], total.quartiles[4]), (100.0, 100.0));
        let path = layouts.row("a", Metric::PathLength).unwrap();
        assert_eq!((path.below_tuned, path.spread_percent()), (0, Some(0.0)));
        assert_eq!(layouts.row("a", Metric::ItlbMisses).unwrap().spread_percent(), None);
        assert!(layouts.row("a", Metric::TakenBranches).is_none());
        assert!(comparison.place_among(&[], Vec::new(), 1, None).rows.is_empty());
    }

    #[test]
    fn a_gain_is_a_range_over_models() {
        let of = |model: &str, costs: Option<ModelCosts>, tuned: u64| {
            let labels = ComparisonLabels { model: model.into(), costs, ..ComparisonLabels::default() };
            Comparison::new(&run(100), &run(100), &run(tuned), labels).unwrap()
        };
        let costs = Some(ModelCosts { l1i_misses: 1.0, ..ModelCosts::default() });
        let all = [of("x", costs, 60), of("y", None, 90), of("x+next-line", costs, 105)];
        let models = Comparison::across_models(&all);
        let row = models.row(TOTAL, Metric::L1iMisses).unwrap();
        assert_eq!(row.range(), Some([(0, -40.0), (2, 5.0)]));
        let cycles = models.row("a", Metric::ModelCycles).unwrap();
        assert_eq!(cycles.changes_percent, [Some(-40.0), None, Some(5.0)]);
        assert_eq!(models.row("a", Metric::ItlbMisses).unwrap().range(), Some([(0, 0.0), (2, 0.0)]));
        assert!(models.row("a", Metric::WholeCycles).is_none() && models.models[1] == "y");
        assert!(Comparison::across_models(&[]).rows.is_empty());
    }
}
