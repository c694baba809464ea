//! What the exact machine says of a recipe beside what a clock says, as text.

use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role};
use crate::Style;
use kerntune_compare::number;
use kerntune_stats::{FigureCorrelation, PredictedRow, Prediction};

/// One line per row, the rank correlation of each figure below it, legend.
pub fn table(prediction: &Prediction, style: Style) -> String {
    let mut table = Columns::new([
        ("recipe", Side::Left),
        ("row", Side::Left),
        ("time %", Side::Right),
        ("interval", Side::Right),
        ("path\nlength %", Side::Right),
        ("taken\nbranches %", Side::Right),
        ("L1I\nmisses %", Side::Right),
        ("iTLB\nmisses %", Side::Right),
        ("model\ncycles %", Side::Right),
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
            Cell(interval(row), Role::Faint),
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
    out.push_str(&style.paint(Role::Faint, &legend));
    out.push('\n');
    out
}

fn correlations(prediction: &Prediction, style: Style) -> String {
    let interval = format!("{} % interval", number::fixed(100.0 * prediction.confidence, 0));
    let mut table = Columns::new([
        ("figure", Side::Left),
        ("rank correlation", Side::Right),
        (interval.as_str(), Side::Right),
        ("p", Side::Right),
        ("rows", Side::Right),
    ]);
    for FigureCorrelation { figure, correlation } in &prediction.correlations {
        let figure = Cell::from(figure.replace('_', " "));
        let Some(found) = correlation else {
            table.row([figure, "-".into(), "-".into(), "-".into(), "-".into()]);
            continue;
        };
        let range = match found.interval {
            Some([low, high]) => format!("{low:+.2} … {high:+.2}"),
            None => "-".into(),
        };
        let p = if found.p < 0.001 { "<0.001".into() } else { number::fixed(found.p, 3) };
        table.row([
            figure,
            format!("{:+.2}", found.rho).into(),
            range.into(),
            p.into(),
            found.pairs.to_string().into(),
        ]);
    }
    table.render(style)
}

fn percent(change: Option<f64>) -> Cell {
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
    use kerntune_stats::{LeftOut, RankCorrelation, PREDICTION_SCHEMA};

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
        };
        let found = RankCorrelation { pairs: 2, rho: 0.5, interval: Some([-0.1, 0.8]), p: 0.0001 };
        let of = |figure: &str, correlation| FigureCorrelation { figure: figure.into(), correlation };
        let prediction = Prediction {
            schema: PREDICTION_SCHEMA.into(),
            model: Some("zen4".into()),
            confidence: 0.95,
            rows: vec![row("tcp_rr_1"), row("nop")],
            correlations: vec![of("itlb_misses", None), of("model_cycles", Some(found))],
            left_out: vec![LeftOut { suite: "batched".into(), row: "mix".into(), why: "no boots".into() }],
        };
        let text = table(&prediction, Style::PLAIN);
        for words in
            ["tcp_rr_1", "-12.50", "-40.0", "+0.50", "-0.10 … +0.80", "<0.001", "zen4", "mix: no boots"]
        {
            assert!(text.contains(words), "{words:?} is not in:\n{text}");
        }
        assert_eq!(text.matches("pgo.json").count(), 1);
        assert!(text.lines().any(|line| line.starts_with("itlb misses") && line.contains('-')));
    }
}
