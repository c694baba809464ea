//! Changes on the exact machine beside timed changes of the same recipes, as text.

use crate::Style;
use kerntune_stats::{ModelRange, ModelRangeSummary, PredictedRow, Prediction, RankCorrelation};
use kerntune_table::{number, printable, render, Columns, Document, Table, TextRole};

/// Renders one line per row, the rank correlation of each figure, and a legend.
pub fn table(prediction: &Prediction, style: Style) -> String {
    let mut document = Document::new("", "");
    let mut columns = names(|row: &&PredictedRow| *row);
    for (at, head) in
        ["path\nlength %", "taken\nbranches %", "L1I\nmisses %", "iTLB\nmisses %", "model\ncycles %"]
            .into_iter()
            .enumerate()
    {
        let percent = move |row: &&PredictedRow| Some(number::change(row.predicted_percent[at]?, 1));
        columns.text_only(head, percent).right().null("-");
    }
    document.table(Table::text_only(&prediction.rows, columns));
    document.text("\n");
    let figures = prediction.correlations.iter().map(|of| (of.figure.replace('_', " "), of.correlation));
    document.table(ranks("figure", figures, prediction.confidence));
    if let Some(models) = &prediction.under_models {
        add_ranges(&mut document, prediction, models);
    }
    for row in &prediction.left_out {
        document.text(format!("left out: {}: {}\n", printable(&row.name()), printable(&row.why)));
    }
    let model = prediction.model.as_deref().unwrap_or("none");
    document.note(&format!(
        "Spearman's rho of each figure's change with the change of the time, over {} rows; front-end model {}. The interval \
         and p take the rows for independent. p: by 100,000 random orders.",
        prediction.rows.len(),
        printable(model)
    ));
    render::text(&document, style)
}

/// Declares the columns of recipes, each named once, rows, and timed changes.
fn names<'a, R: 'a>(of: impl Fn(&R) -> &PredictedRow + Copy + 'a) -> Columns<'a, R> {
    let mut columns = Columns::<R>::new();
    columns.text_only("recipe", move |row| of(row).recipe.clone()).once();
    columns.text_only("row", move |row| of(row).name());
    columns.text_only("time %", move |row| number::change(of(row).measured_percent, 2)).right();
    columns.text_only("interval", move |row| interval(of(row))).right().role(|_| TextRole::Faint);
    columns
}

/// Returns a table with one line per name.
fn ranks<'a>(
    head: &'static str,
    rows: impl Iterator<Item = (String, Option<RankCorrelation>)>,
    confidence: f64,
) -> Table<'a, (String, Option<RankCorrelation>)> {
    let mut columns = Columns::<(String, Option<RankCorrelation>)>::new();
    columns.text_only(head, |row| row.0.clone());
    columns.text_only("rank correlation", |row| Some(format!("{:+.2}", row.1?.rho))).right().null("-");
    let interval = format!("{} % interval", number::fixed(100.0 * confidence, 0));
    columns
        .text_only(interval, |row| row.1?.interval.map(|[low, high]| format!("{low:+.2} … {high:+.2}")))
        .right()
        .null("-");
    let p = |p: f64| if p < 0.001 { "<0.001".into() } else { number::fixed(p, 3) };
    columns.text_only("p", move |row| Some(p(row.1?.p))).right().null("-");
    columns.text_only("rows", |row| Some(row.1?.pairs.to_string())).right().null("-");
    Table::text_only(rows, columns)
}

/// Formats a count with its share: `9 of 15 (60 %)`.
fn part(some: usize, all: usize) -> String {
    match all {
        0 => "0 of 0".into(),
        _ => format!("{some} of {all} ({} %)", number::fixed(100.0 * some as f64 / all as f64, 0)),
    }
}

/// Summarizes the models' agreement with the clock, in sentences.
pub(crate) fn sentences(models: &ModelRangeSummary) -> Vec<String> {
    let mut sentences = vec![
        format!(
            "The timed change lies in the models' range in {}; its interval has a part of the range in {}.",
            part(models.inside, models.points),
            part(models.overlapping, models.points)
        ),
        format!(
            "Of the rows that the clock shows to have changed, the whole range has the clock's sign in {}.",
            part(models.right_sign, models.shown)
        ),
    ];
    if let Some(found) = models.middle {
        let interval =
            found.interval.map_or(String::new(), |[low, high]| format!(" ({low:+.2} … {high:+.2})"));
        sentences.push(format!(
            "Rank correlation of the middle of the range with the time: {:+.2}{interval} over {} points.",
            found.rho, found.pairs
        ));
    }
    sentences
}

/// Adds each row's range over the models beside the timed change, a summary, and each model's
/// result.
fn add_ranges<'a>(document: &mut Document<'a>, prediction: &'a Prediction, models: &ModelRangeSummary) {
    let rows = prediction.rows.iter().filter_map(|row| Some((row, row.range?)));
    let mut columns = names(|row: &(&PredictedRow, ModelRange)| row.0);
    columns.text_only("models %\nfrom", |row| number::change(row.1.low_percent, 1)).right();
    columns.text_only("\nto", |row| number::change(row.1.high_percent, 1)).right();
    columns
        .text_only("the clock's\nchange is", |(row, range)| {
            let word = match range {
                _ if range.inside => "inside",
                _ if row.measured_percent > range.high_percent => "above",
                _ => "below",
            };
            format!("{word}{}", if range.overlaps && !range.inside { ", not its interval" } else { "" })
        })
        .role(|(_, range)| if range.inside { TextRole::Good } else { TextRole::Bad });
    columns.text_only("kernel's\nshare %", |row| row.0.kernel_share.map(|share| 100.0 * share)).decimals(0);
    let head = format!("Model cycles under {} front-end models against the clock\n", models.models.len());
    document.text("\n");
    document.painted(TextRole::Head, head);
    document.text("\n");
    document.table(Table::text_only(rows, columns));
    document.text("\n");
    sentences(models).iter().for_each(|sentence| document.text(format!("{sentence}\n")));
    document.text("\n");
    let by_model = models.models.iter().cloned().zip(models.by_model.iter().copied());
    document.table(ranks("model cycles of", by_model, prediction.confidence));
    document.text("\n");
    if prediction.rows.iter().any(|row| row.kernel_share.is_some()) {
        document.note(
            "Where the kernel's share of the CPU time was measured, a model's change is taken times that share: the rest of \
             the time is not the kernel's.",
        );
    }
}

fn interval(row: &PredictedRow) -> String {
    let low = number::change(row.low_percent, 2);
    match row.high_percent {
        Some(high) => format!("{low} … {}", number::change(high, 2)),
        None => format!("{low} …"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_stats::{FigureCorrelation, UncomparedRow, PREDICTION_SCHEMA};

    #[test]
    fn a_figure_without_correlation_is_a_dash_and_recipes_are_said_once() {
        let row = |name: &str| PredictedRow {
            recipe: "pgo.json".into(),
            suite: "batched".into(),
            row: name.into(),
            measured_percent: -12.5,
            low_percent: -15.0,
            high_percent: Some(-10.0),
            predicted_percent: [Some(-3.0), Some(-20.0), Some(-40.0), None, Some(-25.0)],
            kernel_share: None,
            under_models_percent: vec![Some(-25.0), Some(-13.0)],
            range: None,
        };
        let found = RankCorrelation { pairs: 2, rho: 0.5, interval: Some([-0.1, 0.8]), p: 0.0001 };
        let of = |figure: &str, correlation| FigureCorrelation { figure: figure.into(), correlation };
        let prediction = Prediction {
            schema: PREDICTION_SCHEMA.into(),
            model: Some("zen4".into()),
            confidence: 0.95,
            rows: vec![row("tcp_rr_1"), row("nop")],
            correlations: vec![of("itlb_misses", None), of("model_cycles", Some(found))],
            under_models: None,
            left_out: vec![UncomparedRow {
                suite: "batched".into(),
                row: "mix".into(),
                why: "no boots".into(),
            }],
        };
        let text = table(&prediction, Style::PLAIN);
        for words in
            ["tcp_rr_1", "-12.50", "-40.0", "+0.50", "-0.10 … +0.80", "<0.001", "zen4", "mix: no boots"]
        {
            assert!(text.contains(words), "{words:?} is not in:\n{text}");
        }
        assert_eq!(text.matches("pgo.json").count(), 1);
        assert!(!text.contains("front-end models against"), "{text}");
        let models = vec!["zen4".into(), "skylake".into()];
        let with = prediction.clone().add_models(models, |row| row.under_models_percent.clone());
        let ranges = table(&with, Style::PLAIN);
        for words in [
            "under 2 front-end models",
            "above, not its interval",
            "in 0 of 2 (0 %)",
            "part of the range in 2 of 2",
            "sign in 2 of 2",
            "model cycles of",
            "skylake",
        ] {
            assert!(ranges.contains(words), "{words:?} is not in:\n{ranges}");
        }
        let picture = crate::html::clock::picture(&with).unwrap();
        assert!(picture.starts_with("<svg xmlns") && picture.contains("batched/tcp_rr_1"), "{picture}");
        assert_eq!(crate::html::clock::picture(&prediction), None);
        assert!(text.lines().any(|line| line.starts_with("itlb misses") && line.contains('-')));
    }
}
