//! What the exact machine's figures say of a change, held against what a clock says.

use crate::{mean, Comparison, Error, Figures, LeftOut, Options, RankCorrelation, Result, Results, Set};
use serde::{Deserialize, Serialize};

/// What such a document calls itself.
pub const PREDICTION_SCHEMA: &str = "kerntune-bench-prediction/1";

/// A base kernel and a tuned one on a machine with a clock, and the same recipe on the exact machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// Timed results of the base kernel and of the tuned one, each with the file's name.
    pub timed: [(String, Results); 2],
    /// Exact results, likewise.
    pub exact: [(String, Results); 2],
}

/// The result, which is also what `--json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// [`PREDICTION_SCHEMA`].
    pub schema: String,
    /// The front-end model of the exact results.
    pub model: Option<String>,
    /// Of each interval.
    pub confidence: f64,
    /// Rows of all recipes.
    pub rows: Vec<PredictedRow>,
    /// Of each figure with the time, over these rows.
    pub correlations: Vec<FigureCorrelation>,
    /// Rows that are not in all files, or not comparable.
    pub left_out: Vec<LeftOut>,
}

/// One row of one recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictedRow {
    /// The timed results of the tuned kernel: the file.
    pub recipe: String,
    /// Its suite.
    pub suite: String,
    /// Its name there.
    pub row: String,
    /// How the time changed, per cent.
    pub measured_percent: f64,
    /// Its interval; `null` where it has no upper end.
    pub low_percent: f64,
    /// See `low_percent`.
    pub high_percent: Option<f64>,
    /// How each figure of the exact machine changed, per cent, in the order of [`FIGURES`]; `null` of a figure that the
    /// base kernel has 0 of, or that the model does not have.
    pub predicted_percent: [Option<f64>; FIGURES.len()],
}

/// Why a row is left out that was asked to be.
const SKIPPED: &str = "asked to be left out";

/// The exact machine's figures.
pub const FIGURES: [&str; 5] = ["path_length", "taken_branches", "l1i_misses", "itlb_misses", "model_cycles"];

/// How far a figure puts changes in the order of the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureCorrelation {
    /// One of [`FIGURES`].
    pub figure: String,
    /// `None` if too few rows have it, or it is the same in all.
    pub correlation: Option<RankCorrelation>,
}

impl Prediction {
    /// Joins all by row, but for rows named in `skip` (`row` or `suite/row`), of which it is known that the two machines
    /// do not run the same code for them.
    ///
    /// # Errors
    /// Those of [`Comparison::new`]; exact results without figures or of different front-end models; a row to skip that is
    /// in no recipe.
    pub fn new(recipes: &[Recipe], skip: &[String], options: &Options) -> Result<Self> {
        let (mut rows, mut left_out) = (Vec::new(), Vec::new());
        let first = recipes.first().ok_or(Error::NoFiles)?;
        let (origin, model) = (&first.exact[0].0, &first.exact[0].1.model);
        for Recipe { timed: [timed_base, timed_tuned], exact } in recipes {
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
            let set = |file: &(String, Results)| Set::join(std::slice::from_ref(file));
            let comparison = Comparison::new(&set(timed_base)?, &set(timed_tuned)?, None, options)?;
            left_out.extend(comparison.left_out);
            for row in comparison.rows {
                if skip.iter().any(|name| *name == row.row || *name == row.name()) {
                    left_out.push(LeftOut { suite: row.suite, row: row.row, why: SKIPPED.into() });
                    continue;
                }
                let figures =
                    |(origin, results): &(String, Results)| figures(origin, results, &row.suite, &row.row);
                let (Some(base), Some(tuned)) = (figures(&exact[0])?, figures(&exact[1])?) else {
                    let why = "only the timed results have it".into();
                    left_out.push(LeftOut { suite: row.suite, row: row.row, why });
                    continue;
                };
                rows.push(PredictedRow {
                    recipe: timed_tuned.0.clone(),
                    measured_percent: row.change_percent,
                    low_percent: row.low_percent,
                    high_percent: row.high_percent,
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
            left_out,
        })
    }

    /// As JSON, with a newline at its end.
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a prediction has no keys that are not text");
        text + "\n"
    }
}

fn pairs(rows: &[PredictedRow], figure: usize) -> Vec<(f64, f64)> {
    rows.iter().filter_map(|row| Some((row.predicted_percent[figure]?, row.measured_percent))).collect()
}

fn change(base: f64, tuned: f64) -> Option<f64> {
    (base > 0.0).then(|| (tuned / base - 1.0) * 100.0)
}

/// The means of a row's figures over its values; `None` if the row is not there.
fn figures(
    origin: &str,
    results: &Results,
    suite: &str,
    name: &str,
) -> Result<Option<[Option<f64>; FIGURES.len()]>> {
    let Some(row) = results.rows.iter().find(|row| row.suite == suite && row.row == name) else {
        return Ok(None);
    };
    let all: Option<Vec<Figures>> = row.values.iter().map(|value| value.figures).collect();
    let all = all.filter(|all| !all.is_empty());
    let all = all.ok_or_else(|| Error::NoFigures { origin: origin.into(), row: row.name() })?;
    let of = |figure: fn(&Figures) -> f64| Some(mean(&all.iter().map(figure).collect::<Vec<_>>()));
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
    use crate::{Better, ResultsRow, Value, RESULTS_SCHEMA};

    fn results(machine: &str, rows: Vec<ResultsRow>) -> Results {
        Results {
            schema: RESULTS_SCHEMA.into(),
            machine: machine.into(),
            model: (machine == "emulator").then(|| "generic".into()),
            rows,
            ..Results::default()
        }
    }

    fn row(name: &str, unit: &str, values: Vec<Value>) -> ResultsRow {
        ResultsRow {
            suite: "batched".into(),
            row: name.into(),
            unit: unit.into(),
            better: Better::Lower,
            values,
            cpu: Vec::new(),
        }
    }

    /// Rows `a`, `b`, … of these times, each in three boots.
    fn timed(times: &[f64]) -> Results {
        let value = |time: f64, boot: u32| Value {
            build: 0,
            boot,
            run: 0,
            iteration: 0,
            value: time + f64::from(boot),
            ..Value::default()
        };
        let rows = "abcdefgh".chars().zip(times);
        results(
            "uml",
            rows.map(|(n, &t)| row(&n.to_string(), "ns/op", (0..3).map(|b| value(t, b)).collect())).collect(),
        )
    }

    fn exact(cycles: &[f64], itlb_misses: f64) -> Results {
        let value = |cycles: f64| Value {
            build: 0,
            boot: 0,
            run: 0,
            iteration: 0,
            value: 100.0,
            figures: Some(Figures {
                path_length: 100.0,
                taken_branches: cycles / 10.0,
                l1i_misses: 1.0,
                itlb_misses,
                model_cycles: Some(cycles),
                ..Figures::default()
            }),
            ..Value::default()
        };
        let rows = "abcdefgh".chars().zip(cycles);
        results(
            "emulator",
            rows.map(|(n, &c)| row(&n.to_string(), "instructions/op", vec![value(c)])).collect(),
        )
    }

    fn recipe() -> Recipe {
        let file = |name: &str, results: Results| (name.to_owned(), results);
        Recipe {
            timed: [
                file("base.json", timed(&[1000.0, 1000.0, 1000.0, 1000.0, 1000.0])),
                file("pgo.json", timed(&[900.0, 800.0, 950.0, 700.0, 1000.0])),
            ],
            exact: [
                file("ebase.json", exact(&[100.0, 100.0, 100.0, 100.0], 0.0)),
                file("epgo.json", exact(&[80.0, 90.0, 95.0, 50.0], 0.0)),
            ],
        }
    }

    #[test]
    fn changes_are_held_against_changes() {
        let prediction = Prediction::new(&[recipe()], &[], &Options::default()).unwrap();
        assert_eq!(prediction.rows.len(), 4);
        let second = &prediction.rows[1];
        assert_eq!((second.recipe.as_str(), second.row.as_str()), ("pgo.json", "b"));
        assert!((second.measured_percent + 19.98).abs() < 0.01, "{second:?}");
        let predicted = second.predicted_percent.map(|percent| percent.map(f64::round));
        assert_eq!(predicted, [Some(0.0), Some(-10.0), Some(0.0), None, Some(-10.0)]);
        // Measured −10, −20, −5, −30 against −20, −10, −5, −50: two neighbours changed places.
        let cycles = prediction.correlations[4].correlation.unwrap();
        assert!((cycles.pairs, (cycles.rho * 10.0).round()) == (4, 8.0), "{cycles:?}");
        assert_eq!(prediction.correlations[0].correlation, None, "the same in all rows");
        assert_eq!(prediction.left_out.len(), 1);
        let again: Prediction = serde_json::from_str(&prediction.to_json()).unwrap();
        assert_eq!(again.schema, PREDICTION_SCHEMA);
        // Two recipes are twice the rows.
        let both = Prediction::new(&[recipe(), recipe()], &[], &Options::default()).unwrap();
        assert_eq!((both.rows.len(), both.correlations[4].correlation.unwrap().pairs), (8, 8));
        // What is known not to be the same code on both machines can be left out, and is named.
        let skip = ["a".to_owned(), "batched/c".to_owned()];
        let fewer = Prediction::new(&[recipe()], &skip, &Options::default()).unwrap();
        assert_eq!(fewer.rows.iter().map(|row| row.row.as_str()).collect::<Vec<_>>(), ["b", "d"]);
        assert!(fewer.left_out.iter().any(|row| row.name() == "batched/c" && row.why == SKIPPED));
        let error =
            Prediction::new(&[recipe()], &["z".to_owned()], &Options::default()).unwrap_err().to_string();
        assert!(error.contains("\"z\""), "{error}");
    }

    #[test]
    fn files_that_do_not_belong_are_refused() {
        let refused =
            |recipe: Recipe| Prediction::new(&[recipe], &[], &Options::default()).unwrap_err().to_string();
        let mut other = recipe();
        other.exact[1].1.model = Some("zen4".into());
        assert!(refused(other).contains("epgo.json with \"zen4\""));
        let mut plain = recipe();
        plain.exact = plain.timed.clone();
        plain.exact.iter_mut().for_each(|(_, results)| results.model = Some("generic".into()));
        let error = refused(plain);
        assert!(error.contains("base.json") && error.contains("emulator"), "{error}");
        assert!(matches!(Prediction::new(&[], &[], &Options::default()), Err(Error::NoFiles)));
    }
}
