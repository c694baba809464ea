//! Correlation of changes of the exact machine's figures with changes of measured times.

use crate::{
    mean, BenchResults, ComparisonOptions, CpuTime, Error, ExactFigures, JoinedResults, ModelRange,
    ModelRangeSummary, RankCorrelation, Result, RowDirection, TimedComparison, TimedRow, UncomparedRow,
};
use serde::{Deserialize, Serialize};

/// Schema of a [`Prediction`] as JSON.
pub const PREDICTION_SCHEMA: &str = "kerntune-bench-prediction/1";

/// Results of one recipe: base and tuned kernel on a machine with a clock, and on the exact
/// machine.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipeResults {
    /// Timed results of the base and of the tuned kernel, each with the file's name. Several files
    /// of a kernel are further boots.
    pub timed: [Vec<(String, BenchResults)>; 2],
    /// Exact results of the base and of the tuned kernel, each with the file's name.
    pub exact: [(String, BenchResults); 2],
}

/// Result of the correlation, as `kerntune bench correlate --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Format and version of this object, [`PREDICTION_SCHEMA`].
    pub schema: String,
    /// Front-end model of the exact results.
    pub model: Option<String>,
    /// Confidence of each interval.
    pub confidence: f64,
    /// Rows of all recipes.
    pub rows: Vec<PredictedRow>,
    /// Correlation of each figure with the time, over all rows.
    pub correlations: Vec<FigureCorrelation>,
    /// Agreement of several front-end models with the clock; `None` with one model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_models: Option<ModelRangeSummary>,
    /// Rows that are missing in some file or cannot be compared.
    pub left_out: Vec<UncomparedRow>,
}

/// One row of one recipe, with measured and predicted changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictedRow {
    /// Name of the recipe: the first file of the tuned kernel's timed results.
    pub recipe: String,
    /// Name of the row's suite.
    pub suite: String,
    /// Name of the row in its suite.
    pub row: String,
    /// Measured change of the time of an operation, in per cent; a rate is inverted first.
    pub measured_percent: f64,
    /// Lower end of the interval of the measured change, in per cent.
    pub low_percent: f64,
    /// Upper end of the interval of the measured change, in per cent; `None` (`null`) if unbounded.
    pub high_percent: Option<f64>,
    /// Change of each exact figure, in per cent, in the order of [`FIGURES`]; `None` where the base
    /// kernel has 0 or the model lacks the figure.
    pub predicted_percent: [Option<f64>; FIGURES.len()],
    /// Share of the guest kernel in the guest's CPU time while the base kernel ran the row; `None`
    /// if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_share: Option<f64>,
    /// Change of model cycles under each of several models, in per cent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_models_percent: Vec<Option<f64>>,
    /// Range of these changes, scaled by `kernel_share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ModelRange>,
}

impl PredictedRow {
    /// Returns `suite/row`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.suite, self.row)
    }
}

/// Reason in `left_out` of rows that the caller skips.
const SKIPPED: &str = "asked to be left out";

/// Names of the exact machine's figures.
pub const FIGURES: [&str; 5] = ["path_length", "taken_branches", "l1i_misses", "itlb_misses", "model_cycles"];

/// Rank correlation of a figure's changes with those of the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureCorrelation {
    /// Name of the figure, one of [`FIGURES`].
    pub figure: String,
    /// `None` if too few rows have the figure, or if it is the same in all rows.
    pub correlation: Option<RankCorrelation>,
}

impl Prediction {
    /// Joins timed and exact results by row.
    ///
    /// Rows named in `skip` (`row` or `suite/row`) are left out: name those for which the two
    /// machines are known to run different code.
    ///
    /// # Errors
    /// Errors of [`TimedComparison::new`]; exact results without figures or of different front-end
    /// models; a row to skip that no recipe has.
    pub fn new(recipes: &[RecipeResults], skip: &[String], options: &ComparisonOptions) -> Result<Self> {
        let (mut rows, mut left_out) = (Vec::new(), Vec::new());
        let first = recipes.first().ok_or(Error::NoFiles)?;
        let (origin, model) = (&first.exact[0].0, &first.exact[0].1.model);
        for RecipeResults { timed: [timed_base, timed_tuned], exact } in recipes {
            for (other, results) in exact {
                if results.model != *model {
                    let name = |model: &Option<String>| model.clone().unwrap_or_else(|| "none".into());
                    return Err(Error::Models {
                        one: origin.clone(),
                        one_model: name(model),
                        other: other.clone(),
                        other_model: name(&results.model),
                    });
                }
            }
            let comparison = TimedComparison::new(
                &JoinedResults::join(timed_base)?,
                &JoinedResults::join(timed_tuned)?,
                None,
                options,
            )?;
            let named = timed_tuned.first().map_or(String::new(), |(file, _)| file.clone());
            left_out.extend(comparison.left_out);
            for row in comparison.rows {
                if skip.iter().any(|name| *name == row.row || *name == row.name()) {
                    left_out.push(UncomparedRow { suite: row.suite, row: row.row, why: SKIPPED.into() });
                    continue;
                }
                let figures = |(origin, results): &(String, BenchResults)| {
                    figures(origin, results, &row.suite, &row.row)
                };
                let (Some(base), Some(tuned)) = (figures(&exact[0])?, figures(&exact[1])?) else {
                    let why = "only the timed results have it".into();
                    left_out.push(UncomparedRow { suite: row.suite, row: row.row, why });
                    continue;
                };
                let (measured_percent, low_percent, high_percent) = time(&row);
                rows.push(PredictedRow {
                    recipe: named.clone(),
                    measured_percent,
                    low_percent,
                    high_percent,
                    kernel_share: kernel_share(timed_base, &row),
                    under_models_percent: Vec::new(),
                    range: None,
                    predicted_percent: std::array::from_fn(|at| change(base[at]?, tuned[at]?)),
                    suite: row.suite,
                    row: row.row,
                });
            }
        }
        let skipped = |name: &String| left_out.iter().any(|row| *name == row.row || *name == row.name());
        if let Some(name) = skip.iter().find(|name| !skipped(name)) {
            return Err(Error::NoRow { row: name.clone() });
        }
        let correlations = FIGURES.iter().enumerate().map(|(at, figure)| FigureCorrelation {
            figure: (*figure).into(),
            correlation: RankCorrelation::new(&pairs(&rows, at), options.confidence),
        });
        Ok(Self {
            schema: PREDICTION_SCHEMA.into(),
            model: model.clone(),
            confidence: options.confidence,
            correlations: correlations.collect(),
            rows,
            under_models: None,
            left_out,
        })
    }

    /// Adds the changes under several front-end models. `change` returns for a row the change of
    /// model cycles under each of `models`, in per cent.
    #[must_use]
    pub fn add_models(
        mut self,
        models: Vec<String>,
        mut change: impl FnMut(&PredictedRow) -> Vec<Option<f64>>,
    ) -> Self {
        for row in &mut self.rows {
            row.under_models_percent = change(row);
        }
        self.under_models = Some(ModelRangeSummary::new(models, &mut self.rows, self.confidence));
        self
    }

    /// Combines predictions of the same rows under one model each: the first one gets the range
    /// over all models.
    ///
    /// # Errors
    /// [`Error::NoFiles`] if `all` is empty.
    pub fn combine_models(all: Vec<Self>) -> Result<Self> {
        let model = |of: &Self| of.model.clone().unwrap_or_else(|| "none".into());
        let names: Vec<String> = all.iter().map(model).collect();
        let rest = all.clone();
        let first = all.into_iter().next().ok_or(Error::NoFiles)?;
        let cycles = FIGURES.len() - 1;
        Ok(first.add_models(names, |row| {
            let same = |other: &&PredictedRow| {
                (&other.recipe, &other.suite, &other.row) == (&row.recipe, &row.suite, &row.row)
            };
            let of = |one: &Self| one.rows.iter().find(same).and_then(|row| row.predicted_percent[cycles]);
            rest.iter().map(of).collect()
        }))
    }

    /// Serializes the prediction as JSON, with a final newline.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a prediction has no keys that are not text");
        text + "\n"
    }
}

fn pairs(rows: &[PredictedRow], figure: usize) -> Vec<(f64, f64)> {
    rows.iter().filter_map(|row| Some((row.predicted_percent[figure]?, row.measured_percent))).collect()
}

/// Returns the change of an operation's time with its interval, in per cent. Rows in which higher
/// is better are rates.
fn time(row: &TimedRow) -> (f64, f64, Option<f64>) {
    let inverse = |percent: f64| (percent > -100.0).then(|| (100.0 / (100.0 + percent) - 1.0) * 100.0);
    match row.better {
        RowDirection::Lower => (row.change_percent, row.low_percent, row.high_percent),
        RowDirection::Higher => (
            inverse(row.change_percent).unwrap_or(f64::MAX),
            row.high_percent.and_then(inverse).unwrap_or(-100.0),
            inverse(row.low_percent),
        ),
    }
}

/// Returns the share of the guest's kernel in the CPU time, over all boots.
fn kernel_share(files: &[(String, BenchResults)], row: &TimedRow) -> Option<f64> {
    let of_row = files.iter().flat_map(|(_, results)| &results.rows);
    let times: Vec<CpuTime> = of_row
        .filter(|other| (&other.suite, &other.row) == (&row.suite, &row.row))
        .flat_map(|other| other.cpu.iter().copied())
        .collect();
    CpuTime::sum(&times).shares().map(|[kernel, ..]| kernel)
}

fn change(base: f64, tuned: f64) -> Option<f64> {
    (base > 0.0).then(|| (tuned / base - 1.0) * 100.0)
}

/// Returns the means of a row's figures over its values; `None` if there is no such row.
fn figures(
    origin: &str,
    results: &BenchResults,
    suite: &str,
    name: &str,
) -> Result<Option<[Option<f64>; FIGURES.len()]>> {
    let Some(row) = results.rows.iter().find(|row| row.suite == suite && row.row == name) else {
        return Ok(None);
    };
    let all: Option<Vec<ExactFigures>> = row.values.iter().map(|value| value.figures).collect();
    let all = all.filter(|all| !all.is_empty());
    let all = all.ok_or_else(|| Error::NoFigures { origin: origin.into(), row: row.name() })?;
    let of = |figure: fn(&ExactFigures) -> f64| Some(mean(&all.iter().map(figure).collect::<Vec<_>>()));
    let cycles: Option<Vec<f64>> = all.iter().map(|figures| figures.model_cycles).collect();
    Ok(Some([
        of(|figures| figures.path_length),
        of(|figures| figures.taken_branches),
        of(|figures| figures.l1i_misses),
        of(|figures| figures.itlb_misses),
        cycles.map(|cycles| mean(&cycles)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MeasuredValue, ResultsRow, RowDirection, RESULTS_SCHEMA};

    fn results(machine: &str, rows: Vec<ResultsRow>) -> BenchResults {
        BenchResults {
            schema: RESULTS_SCHEMA.into(),
            machine: machine.into(),
            model: (machine == "emulator").then(|| "generic".into()),
            rows,
            ..BenchResults::default()
        }
    }

    fn row(name: &str, unit: &str, values: Vec<MeasuredValue>) -> ResultsRow {
        ResultsRow {
            suite: "batched".into(),
            row: name.into(),
            unit: unit.into(),
            better: RowDirection::Lower,
            values,
            cpu: Vec::new(),
        }
    }

    /// Timed rows `a`, `b`, …, one for each time, with three boots each.
    fn timed(times: &[f64]) -> BenchResults {
        let value = |time: f64, boot: u32| MeasuredValue {
            build: 0,
            boot,
            run: 0,
            iteration: 0,
            value: time + f64::from(boot),
            ..MeasuredValue::default()
        };
        let rows = "abcdefgh".chars().zip(times);
        results(
            "uml",
            rows.map(|(n, &t)| row(&n.to_string(), "ns/op", (0..3).map(|b| value(t, b)).collect())).collect(),
        )
    }

    fn exact(cycles: &[f64], itlb_misses: f64) -> BenchResults {
        let value = |cycles: f64| MeasuredValue {
            build: 0,
            boot: 0,
            run: 0,
            iteration: 0,
            value: 100.0,
            figures: Some(ExactFigures {
                path_length: 100.0,
                taken_branches: cycles / 10.0,
                l1i_misses: 1.0,
                itlb_misses,
                model_cycles: Some(cycles),
                ..ExactFigures::default()
            }),
            ..MeasuredValue::default()
        };
        let rows = "abcdefgh".chars().zip(cycles);
        results(
            "emulator",
            rows.map(|(n, &c)| row(&n.to_string(), "instructions/op", vec![value(c)])).collect(),
        )
    }

    fn recipe() -> RecipeResults {
        let file = |name: &str, results: BenchResults| (name.to_owned(), results);
        RecipeResults {
            timed: [
                vec![file("base.json", timed(&[1000.0, 1000.0, 1000.0, 1000.0, 1000.0]))],
                vec![file("pgo.json", timed(&[900.0, 800.0, 950.0, 700.0, 1000.0]))],
            ],
            exact: [
                file("ebase.json", exact(&[100.0, 100.0, 100.0, 100.0], 0.0)),
                file("epgo.json", exact(&[80.0, 90.0, 95.0, 50.0], 0.0)),
            ],
        }
    }

    #[test]
    fn changes_are_held_against_changes() {
        let prediction = Prediction::new(&[recipe()], &[], &ComparisonOptions::default()).unwrap();
        assert_eq!(prediction.rows.len(), 4);
        let second = &prediction.rows[1];
        assert_eq!((second.recipe.as_str(), second.row.as_str()), ("pgo.json", "b"));
        assert!((second.measured_percent + 19.98).abs() < 0.01, "{second:?}");
        let predicted = second.predicted_percent.map(|percent| percent.map(f64::round));
        assert_eq!(predicted, [Some(0.0), Some(-10.0), Some(0.0), None, Some(-10.0)]);
        // Measured −10, −20, −5, −30 against −20, −10, −5, −50: two neighbors changed places.
        let cycles = prediction.correlations[4].correlation.unwrap();
        assert!((cycles.pairs, (cycles.rho * 10.0).round()) == (4, 8.0), "{cycles:?}");
        assert_eq!(prediction.correlations[0].correlation, None, "the same in all rows");
        assert_eq!(prediction.left_out.len(), 1);
        let again: Prediction = serde_json::from_str(&prediction.to_json()).unwrap();
        assert_eq!(again.schema, PREDICTION_SCHEMA);
        // Two recipes have twice the rows.
        let both = Prediction::new(&[recipe(), recipe()], &[], &ComparisonOptions::default()).unwrap();
        assert_eq!((both.rows.len(), both.correlations[4].correlation.unwrap().pairs), (8, 8));
        // Rows known to run different code on the two machines can be left out, and are listed.
        let skip = ["a".to_owned(), "batched/c".to_owned()];
        let fewer = Prediction::new(&[recipe()], &skip, &ComparisonOptions::default()).unwrap();
        assert_eq!(fewer.rows.iter().map(|row| row.row.as_str()).collect::<Vec<_>>(), ["b", "d"]);
        assert!(fewer.left_out.iter().any(|row| row.name() == "batched/c" && row.why == SKIPPED));
        let error = Prediction::new(&[recipe()], &["z".to_owned()], &ComparisonOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("\"z\""), "{error}");
    }

    #[test]
    fn models_make_a_range_and_rates_are_times() {
        let first = recipe();
        let mut second = recipe();
        for (_, results) in &mut second.exact {
            results.model = Some("zen4".into());
        }
        second.exact[1].1 = exact(&[90.0, 70.0, 96.0, 80.0], 0.0);
        second.exact[1].1.model = Some("zen4".into());
        let all =
            [first, second].map(|of| Prediction::new(&[of], &[], &ComparisonOptions::default()).unwrap());
        let of = Prediction::combine_models(all.to_vec()).unwrap();
        let range = of.rows[1].range.unwrap();
        assert_eq!(
            (range.low_percent.round(), range.high_percent.round(), range.inside),
            (-30.0, -10.0, true)
        );
        let together = of.under_models.as_ref().unwrap();
        assert_eq!(together.models, ["generic", "zen4"]);
        // Timed -10, -20, -5, -30 per cent; ranges -20 … -10, -30 … -10, -5 … -4, -50 … -20.
        assert_eq!((together.points, together.inside), (4, 3));
        assert!(matches!(Prediction::combine_models(Vec::new()), Err(Error::NoFiles)));

        let mut rates = recipe();
        for (_, results) in rates.timed.iter_mut().flatten() {
            for row in &mut results.rows {
                (row.unit, row.better) = ("requests/s".into(), RowDirection::Higher);
                row.cpu = vec![CpuTime { kernel: 1.0, programs: 3.0, ..CpuTime::default() }];
            }
        }
        let of = Prediction::new(&[rates], &[], &ComparisonOptions::default()).unwrap();
        let row = &of.rows[1];
        // 801 of 1,001 requests/s: each takes 1,001/801 of the time.
        assert!((row.measured_percent - 24.97).abs() < 0.01, "{row:?}");
        assert!(row.low_percent < row.measured_percent && row.high_percent.unwrap() > row.measured_percent);
        assert_eq!(row.kernel_share, Some(0.25));
    }

    #[test]
    fn files_that_do_not_belong_are_refused() {
        let refused = |recipe: RecipeResults| {
            Prediction::new(&[recipe], &[], &ComparisonOptions::default()).unwrap_err().to_string()
        };
        let mut other = recipe();
        other.exact[1].1.model = Some("zen4".into());
        assert!(refused(other).contains("epgo.json with \"zen4\""));
        let mut plain = recipe();
        plain.exact = plain.timed.clone().map(|files| files[0].clone());
        plain.exact.iter_mut().for_each(|(_, results)| results.model = Some("generic".into()));
        let error = refused(plain);
        assert!(error.contains("base.json") && error.contains("emulator"), "{error}");
        assert!(matches!(Prediction::new(&[], &[], &ComparisonOptions::default()), Err(Error::NoFiles)));
    }
}
