//! Changes on the exact machine beside timed changes of the same recipes, as text.

use crate::Style;
use kerntune_stats::{FigureCorrelation, ModelRangeSummary, PredictedRow, Prediction, RankCorrelation};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::number;
use kerntune_table::{printable, TextRole};

/// Renders one line per row, the rank correlation of each figure, and a legend.
pub fn table(prediction: &Prediction, style: Style) -> String {
    let mut table = TableBuilder::new([
        ("recipe", Alignment::Left),
        ("row", Alignment::Left),
        ("time %", Alignment::Right),
        ("interval", Alignment::Right),
        ("path\nlength %", Alignment::Right),
        ("taken\nbranches %", Alignment::Right),
        ("L1I\nmisses %", Alignment::Right),
        ("iTLB\nmisses %", Alignment::Right),
        ("model\ncycles %", Alignment::Right),
    ]);
    let mut before = None;
    for row in &prediction.rows {
        let recipe = if before == Some(&row.recipe) { String::new() } else { printable(&row.recipe) };
        before = Some(&row.recipe);
        let [path, branches, l1i, itlb, cycles] = row.predicted_percent.map(percent);
        table.row([
            recipe.into(),
            printable(&format!("{}/{}", row.suite, row.row)).into(),
            number::change(row.measured_percent, 2).into(),
            TextCell(interval(row), TextRole::Faint),
            path,
            branches,
            l1i,
            itlb,
            cycles,
        ]);
    }
    let mut out = table.render(style);
    out.push('\n');
    out.push_str(&correlations(prediction, style));
    if let Some(models) = &prediction.under_models {
        out.push_str(&ranges(prediction, models, style));
    }
    for row in &prediction.left_out {
        out.push_str(&format!("left out: {}: {}\n", printable(&row.name()), printable(&row.why)));
    }
    let model = prediction.model.as_deref().unwrap_or("none");
    let legend = format!(
        "Spearman's rho of each figure's change with the change of the time, over {} rows; front-end model {}. The interval \
         and p take the rows for independent. p: by 100,000 random orders.",
        prediction.rows.len(),
        printable(model)
    );
    out.push_str(&style.paint(TextRole::Faint, &legend));
    out.push('\n');
    out
}

fn correlations(prediction: &Prediction, style: Style) -> String {
    let of = |FigureCorrelation { figure, correlation }: &FigureCorrelation| {
        (figure.replace('_', " "), *correlation)
    };
    ranks("figure", prediction.correlations.iter().map(of), prediction.confidence, style)
}

/// Adds one line per name.
fn ranks(
    what: &'static str,
    lines: impl Iterator<Item = (String, Option<RankCorrelation>)>,
    confidence: f64,
    style: Style,
) -> String {
    let interval = format!("{} % interval", number::fixed(100.0 * confidence, 0));
    let mut table = TableBuilder::new([
        (what, Alignment::Left),
        ("rank correlation", Alignment::Right),
        (interval.as_str(), Alignment::Right),
        ("p", Alignment::Right),
        ("rows", Alignment::Right),
    ]);
    for (name, correlation) in lines {
        let name = TextCell::from(printable(&name));
        let Some(found) = correlation else {
            table.row([name, "-".into(), "-".into(), "-".into(), "-".into()]);
            continue;
        };
        let range = match found.interval {
            Some([low, high]) => format!("{low:+.2} … {high:+.2}"),
            None => "-".into(),
        };
        let p = if found.p < 0.001 { "<0.001".into() } else { number::fixed(found.p, 3) };
        table.row([
            name,
            format!("{:+.2}", found.rho).into(),
            range.into(),
            p.into(),
            found.pairs.to_string().into(),
        ]);
    }
    table.render(style)
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

/// Renders each row's range over the models beside the timed change, a summary, and each model's
/// result.
fn ranges(prediction: &Prediction, models: &ModelRangeSummary, style: Style) -> String {
    let mut table = TableBuilder::new([
        ("recipe", Alignment::Left),
        ("row", Alignment::Left),
        ("time %", Alignment::Right),
        ("interval", Alignment::Right),
        ("models %\nfrom", Alignment::Right),
        ("\nto", Alignment::Right),
        ("the clock's\nchange is", Alignment::Left),
        ("kernel's\nshare %", Alignment::Right),
    ]);
    let mut before = None;
    for row in &prediction.rows {
        let Some(range) = row.range else { continue };
        let recipe = if before == Some(&row.recipe) { String::new() } else { printable(&row.recipe) };
        before = Some(&row.recipe);
        let (word, role) = match range {
            _ if range.inside => ("inside", TextRole::Good),
            _ if row.measured_percent > range.high_percent => ("above", TextRole::Bad),
            _ => ("below", TextRole::Bad),
        };
        let beside = if range.overlaps && !range.inside { ", not its interval" } else { "" };
        table.row([
            recipe.into(),
            printable(&row.name()).into(),
            number::change(row.measured_percent, 2).into(),
            TextCell(interval(row), TextRole::Faint),
            number::change(range.low_percent, 1).into(),
            number::change(range.high_percent, 1).into(),
            TextCell(format!("{word}{beside}"), role),
            row.kernel_share.map_or("".into(), |share| number::fixed(100.0 * share, 0).into()),
        ]);
    }
    let head = format!("Model cycles under {} front-end models against the clock", models.models.len());
    let mut out = format!("\n{}\n\n{}\n", style.paint(TextRole::Head, &head), table.render(style));
    for sentence in sentences(models) {
        out.push_str(&sentence);
        out.push('\n');
    }
    out.push('\n');
    let lines = models.models.iter().cloned().zip(models.by_model.iter().copied());
    out.push_str(&ranks("model cycles of", lines, prediction.confidence, style));
    out.push('\n');
    if prediction.rows.iter().any(|row| row.kernel_share.is_some()) {
        let note = "Where the kernel's share of the CPU time was measured, a model's change is taken times that share: the rest of \
                    the time is not the kernel's.";
        out.push_str(&style.paint(TextRole::Faint, note));
        out.push('\n');
    }
    out
}

fn percent(change: Option<f64>) -> TextCell {
    change.map_or_else(|| "-".into(), |change| number::change(change, 1).into())
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
    use kerntune_stats::{RankCorrelation, UncomparedRow, PREDICTION_SCHEMA};

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
