//! Range of each row's change under several models.

use crate::{ModelRange, ModelRangeSummary, PredictedRow, RankCorrelation};

impl ModelRangeSummary {
    /// Sets [`PredictedRow::range`] of the rows that have a change under each of `models`, and
    /// counts them.
    ///
    /// Where a row has a [`PredictedRow::kernel_share`], a model's change is multiplied by it,
    /// since no kernel changes the rest of the time.
    pub fn new(models: Vec<String>, rows: &mut [PredictedRow], confidence: f64) -> Self {
        let mut by_model = vec![Vec::new(); models.len()];
        let mut middles = Vec::new();
        let mut of = Self {
            models,
            points: 0,
            inside: 0,
            overlapping: 0,
            shown: 0,
            right_sign: 0,
            middle: None,
            by_model: Vec::new(),
        };
        for row in rows {
            row.range = None;
            let share = row.kernel_share.unwrap_or(1.0);
            let changes: Option<Vec<f64>> = row.under_models_percent.iter().copied().collect();
            let changes = changes.filter(|changes| changes.len() == of.models.len());
            let Some(changes) =
                changes.map(|all| all.iter().map(|change| share * change).collect::<Vec<_>>())
            else {
                continue;
            };
            let Some(range) = ModelRange::of(&changes, row) else { continue };
            of.points += 1;
            of.inside += usize::from(range.inside);
            of.overlapping += usize::from(range.overlaps);
            if let Some(faster) = is_faster(row) {
                of.shown += 1;
                let same = if faster { range.high_percent < 0.0 } else { range.low_percent > 0.0 };
                of.right_sign += usize::from(same);
            }
            middles.push(((range.low_percent + range.high_percent) / 2.0, row.measured_percent));
            for (pairs, change) in by_model.iter_mut().zip(&changes) {
                pairs.push((*change, row.measured_percent));
            }
            row.range = Some(range);
        }
        of.middle = RankCorrelation::new(&middles, confidence);
        of.by_model = by_model.iter().map(|pairs| RankCorrelation::new(pairs, confidence)).collect();
        of
    }
}

impl ModelRange {
    fn of(changes: &[f64], row: &PredictedRow) -> Option<Self> {
        let low = changes.iter().copied().min_by(f64::total_cmp)?;
        let high = changes.iter().copied().max_by(f64::total_cmp)?;
        let reaches = row.high_percent.is_none_or(|end| end >= low);
        Some(Self {
            low_percent: low,
            high_percent: high,
            inside: (low..=high).contains(&row.measured_percent),
            overlaps: reaches && row.low_percent <= high,
        })
    }
}

/// Checks whether the clock shows the row to be faster; `None` if it shows no change.
fn is_faster(row: &PredictedRow) -> Option<bool> {
    match row.high_percent {
        Some(high) if high < 0.0 => Some(true),
        _ if row.low_percent > 0.0 => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, measured: [f64; 3], models: &[Option<f64>], share: Option<f64>) -> PredictedRow {
        PredictedRow {
            recipe: "pgo.json".into(),
            suite: "batched".into(),
            row: name.into(),
            measured_percent: measured[1],
            low_percent: measured[0],
            high_percent: Some(measured[2]),
            predicted_percent: [None; crate::FIGURES.len()],
            kernel_share: share,
            under_models_percent: models.to_vec(),
            range: None,
        }
    }

    #[test]
    fn a_change_is_inside_beside_or_beyond() {
        let models = |a: f64, b: f64| [Some(a), Some(b)];
        let mut rows = vec![
            row("inside", [-25.0, -20.0, -15.0], &models(-30.0, -18.0), None),
            row("beside", [-25.0, -12.0, -8.0], &models(-30.0, -18.0), None),
            row("beyond", [-3.0, -2.0, -1.0], &models(-30.0, -18.0), None),
            row("slower", [1.0, 2.0, 3.0], &models(-9.0, 1.0), None),
            // A tenth of the time is the kernel's.
            row("server", [-5.0, -2.0, 1.0], &models(-30.0, -10.0), Some(0.1)),
            row("unknown", [-5.0, -2.0, 1.0], &[Some(-1.0), None], None),
        ];
        let of = ModelRangeSummary::new(vec!["a".into(), "b".into()], &mut rows, 0.95);
        assert_eq!((of.points, of.inside, of.overlapping), (5, 2, 4));
        assert_eq!((of.shown, of.right_sign), (4, 3));
        assert_eq!(rows[5].range, None);
        let server = rows[4].range.unwrap();
        assert!((server.low_percent + 3.0).abs() < 1e-12 && (server.high_percent + 1.0).abs() < 1e-12);
        assert!(server.inside);
        assert_eq!(of.by_model.len(), 2);
        assert_eq!(of.middle.unwrap().pairs, 5);
        // For the row that became slower, the models disagree about the sign.
        assert!(rows[3].range.unwrap().overlaps && !rows[3].range.unwrap().inside);
    }

    #[test]
    fn an_interval_without_an_end_reaches_everything_above() {
        let mut rows =
            vec![PredictedRow { high_percent: None, ..row("a", [-5.0, 0.0, 0.0], &[Some(40.0)], None) }];
        let of = ModelRangeSummary::new(vec!["a".into()], &mut rows, 0.95);
        assert_eq!((of.points, of.overlapping, of.shown, of.middle), (1, 1, 0, None));
        rows[0].under_models_percent = vec![Some(-6.0)];
        assert_eq!(ModelRangeSummary::new(vec!["a".into()], &mut rows, 0.95).overlapping, 0);
    }
}
