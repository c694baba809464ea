//! Gains of several recipes beside each other.

use super::parts::{percent, PaperSection, SectionContent};
use crate::{ExperimentOutcome, ExperimentState, PaperOutcome};
use kerntune_stats::median;
use kerntune_table::columns::{Alignment, TextTable};

/// Returns the table of all recipes; `None` if there is only one.
pub(crate) fn recipes_section(outcome: &PaperOutcome) -> Option<PaperSection> {
    if outcome.beside.is_empty() {
        return None;
    }
    let heads = [
        ("table", Alignment::Left),
        ("recipe", Alignment::Left),
        ("rows better", Alignment::Right),
        ("worse", Alignment::Right),
        ("median row", Alignment::Right),
        ("least", Alignment::Right),
        ("most", Alignment::Right),
    ];
    let mut table = TextTable::new(heads.map(|(name, side)| (name.to_string(), side)).to_vec());
    for (at, part) in outcome.experiments.iter().enumerate() {
        let own = (outcome.recipe.as_str(), Some(part));
        let others = outcome.beside.iter().map(|other| (other.recipe.as_str(), other.experiments.get(at)));
        for (recipe, part) in std::iter::once(own).chain(others) {
            table.rows.extend(part.map(|part| cells(recipe, part)));
        }
    }
    Some(PaperSection {
        title: "All recipes".into(),
        about: "Improvements of the kernel's model cycles, or of instructions where the model has no costs."
            .into(),
        content: SectionContent::Table(table),
    })
}

fn cells(recipe: &str, part: &ExperimentOutcome) -> Vec<String> {
    let mut cells = vec![part.title.clone(), recipe.to_string()];
    let measured = match &part.state {
        ExperimentState::Measured(measured) => measured,
        ExperimentState::NotMade { because } => {
            cells.push(format!("not made: {because}"));
            cells.resize(7, String::new());
            return cells;
        }
    };
    let figures: Vec<_> = measured.rows.iter().filter_map(|row| row.ranked()).collect();
    let count = |better: bool| {
        let shown = figures.iter().filter(|figure| !figure.within_noise);
        shown.filter(|figure| (figure.improvement_percent > 0.0) == better).count()
    };
    let mut gains: Vec<f64> = figures.iter().map(|figure| figure.improvement_percent).collect();
    gains.sort_by(f64::total_cmp);
    let text = |gain: Option<f64>| gain.map_or(String::new(), percent);
    cells.extend([count(true).to_string(), count(false).to_string()]);
    let middle = (!gains.is_empty()).then(|| median(&gains));
    cells.extend([middle, gains.first().copied(), gains.last().copied()].map(text));
    cells
}
