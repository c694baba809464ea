//! Mean gain over all rows as one figure.

use crate::ratio::{student_quantile, student_tail};
use crate::sample::mean;
use crate::shift::LocationShift;
use crate::{RatioMethod, RowDirection, VariationLevel};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Geometric mean of the speedups of all rows, tuned against base. The speed is the value of a
/// rate, and the inverse of a time.
///
/// Rows of one file share their boots, and a slow boot slows all of them down. Therefore the
/// logarithms of the rows of a boot are averaged first, and the error comes from the means of
/// boots. Different files have different boots: their variances add up, with degrees of freedom
/// after Welch and Satterthwaite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OverallGain {
    /// Number of averaged rows.
    pub rows: usize,
    /// Mean gain in speed, 100 · (mean of tuned / base − 1): above 0 the tuned kernel is faster.
    pub gain_percent: f64,
    /// Lower end of the interval of the gain, in per cent.
    pub low_percent: f64,
    /// Upper end of the interval of the gain, in per cent.
    pub high_percent: f64,
    /// P-value of the gain or loss.
    pub p: f64,
    /// Gain of a second measurement of the base kernel; `None` without one or if it lacks some of
    /// the rows.
    pub aa_percent: Option<f64>,
}

/// Degrees of freedom at which Student's distribution is practically normal.
const NORMAL_DEGREES: f64 = 1e6;

/// Compared units of a row, in the order of their positions.
#[derive(Debug, Clone)]
pub(crate) struct RowUnits {
    /// Files of base and tuned kernel that contain the row.
    pub files: [String; 2],
    pub better: RowDirection,
    pub level: VariationLevel,
    pub base: Vec<f64>,
    pub tuned: Vec<f64>,
    /// Units of the second measurement of the base kernel.
    pub again: Option<Vec<f64>>,
}

impl OverallGain {
    /// Averages `rows`. `None` with fewer than two rows, rows that share boots on one side only,
    /// rows of one file with different units, a value of 0, or boots so far apart that an end of
    /// the interval exceeds an `f64`.
    pub(crate) fn new(rows: &[RowUnits], confidence: f64, method: RatioMethod) -> Option<Self> {
        if rows.len() < 2 {
            return None;
        }
        let mut files: BTreeMap<&[String; 2], Vec<&RowUnits>> = BTreeMap::new();
        for row in rows {
            files.entry(&row.files).or_default().push(row);
        }
        let of_side = |side: usize| files.keys().map(|both| &both[side]).collect::<BTreeSet<_>>().len();
        if of_side(0) != files.len() || of_side(1) != files.len() {
            return None;
        }
        let (mut log, mut parts, mut again) = (0.0, Vec::new(), Some(0.0));
        for of_file in files.values() {
            let weight = of_file.len() as f64 / rows.len() as f64;
            let base = speeds(of_file, |row| Some(&row.base))?;
            let tuned = speeds(of_file, |row| Some(&row.tuned))?;
            let (gain, variances) = difference(&base, &tuned, method);
            log += weight * gain;
            parts.extend(variances.into_iter().map(|(variance, own)| (weight.powi(2) * variance, own)));
            let same = speeds(of_file, |row| row.again.as_ref());
            again = again.zip(same).map(|(sum, same)| sum + weight * difference(&base, &same, method).0);
        }
        let variance: f64 = parts.iter().map(|(variance, _)| variance).sum();
        let error = variance.sqrt();
        let degrees = variance.powi(2) / parts.iter().map(|(part, own)| part * part / own).sum::<f64>();
        let (reach, p) = match error > 0.0 {
            true => {
                let quantile = student_quantile((1.0 + confidence) / 2.0, degrees);
                (quantile * error, (2.0 * student_tail((log / error).abs(), degrees)).min(1.0))
            }
            false => (0.0, if log == 0.0 { 1.0 } else { 0.0 }),
        };
        let percent = |log: f64| 100.0 * log.exp_m1();
        let together = Self {
            rows: rows.len(),
            gain_percent: percent(log),
            low_percent: percent(log - reach),
            high_percent: percent(log + reach),
            p,
            aa_percent: again.map(percent),
        };
        let figures = [together.gain_percent, together.low_percent, together.high_percent, p];
        figures.iter().chain(&together.aa_percent).all(|figure| figure.is_finite()).then_some(together)
    }
}

/// Returns the mean difference of the units' logarithms, and the parts of its variance with their
/// degrees of freedom.
fn difference(base: &[f64], tuned: &[f64], method: RatioMethod) -> (f64, Vec<(f64, f64)>) {
    if method == RatioMethod::HodgesLehmann && LocationShift::is_applicable([base.len(), tuned.len()]) {
        let shift = LocationShift::from_logs(base, tuned);
        return (shift.estimate(), vec![(shift.error().powi(2), NORMAL_DEGREES)]);
    }
    let part = |units: &[f64]| (variance_of_mean(units), units.len() as f64 - 1.0);
    (mean(tuned) - mean(base), vec![part(base), part(tuned)])
}

/// Returns for each unit the mean logarithm of the speeds of `rows`.
fn speeds<'a>(
    rows: &[&'a RowUnits],
    side: impl Fn(&'a RowUnits) -> Option<&'a Vec<f64>>,
) -> Option<Vec<f64>> {
    let of_rows = rows.iter().map(|row| Some((row.better, side(row)?))).collect::<Option<Vec<_>>>()?;
    let units = of_rows.first()?.1.len();
    let level = rows.first()?.level;
    let alike = rows.iter().all(|row| row.level == level)
        && of_rows.iter().all(|(_, values)| values.len() == units && values.iter().all(|v| *v > 0.0));
    if units < 2 || !alike {
        return None;
    }
    let speed = |better: RowDirection, value: f64| match better {
        RowDirection::Higher => value.ln(),
        RowDirection::Lower => -value.ln(),
    };
    let unit = |at: usize| {
        let logs = of_rows.iter().map(|(better, values)| speed(*better, values[at]));
        logs.sum::<f64>() / of_rows.len() as f64
    };
    Some((0..units).map(unit).collect())
}

fn variance_of_mean(units: &[f64]) -> f64 {
    let (middle, n) = (mean(units), units.len() as f64);
    units.iter().map(|unit| (unit - middle).powi(2)).sum::<f64>() / (n - 1.0) / n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ratio, Rng};

    fn row(file: &str, better: RowDirection, base: &[f64], tuned: &[f64]) -> RowUnits {
        let (base, tuned) = (base.to_vec(), tuned.to_vec());
        RowUnits {
            files: [file, file].map(String::from),
            better,
            level: VariationLevel::Boot,
            base,
            tuned,
            again: None,
        }
    }

    #[test]
    fn times_and_rates_are_speeds() {
        let rows = [
            row("a", RowDirection::Lower, &[100.0, 100.0], &[80.0, 80.0]),
            row("b", RowDirection::Higher, &[10.0, 10.0], &[20.0, 20.0]),
        ];
        let all = OverallGain::new(&rows, 0.95, RatioMethod::Student).unwrap();
        // √(1.25 · 2), without any error.
        assert!((all.gain_percent - 100.0 * (2.5f64.sqrt() - 1.0)).abs() < 1e-9);
        assert_eq!((all.low_percent, all.high_percent, all.p), (all.gain_percent, all.gain_percent, 0.0));
        assert_eq!((all.rows, all.aa_percent), (2, None));
    }

    #[test]
    fn one_row_twice_is_no_more_certain_than_once() {
        let (base, tuned) = ([100.0, 103.0, 98.0, 101.0], [97.0, 95.0, 99.0, 96.0]);
        let rows = [(); 2].map(|()| row("a", RowDirection::Lower, &base, &tuned));
        let all = OverallGain::new(&rows, 0.95, RatioMethod::Student).unwrap();
        let once = Ratio::new(&tuned, &base).unwrap();
        let interval = once.interval(0.95);
        // The mean is of logarithms here, and of values there.
        assert!((all.gain_percent - 100.0 * (once.estimate() - 1.0)).abs() < 0.05, "{all:?}");
        assert!((all.low_percent - 100.0 * (interval.low - 1.0)).abs() < 0.3, "{all:?} {interval:?}");
        assert!((all.high_percent - 100.0 * (interval.high - 1.0)).abs() < 0.3, "{all:?} {interval:?}");
        // In separate files the rows are independent measurements.
        let apart =
            [row("a", RowDirection::Lower, &base, &tuned), row("b", RowDirection::Lower, &base, &tuned)];
        let apart = OverallGain::new(&apart, 0.95, RatioMethod::Student).unwrap();
        assert!(apart.high_percent - apart.low_percent < 0.75 * (all.high_percent - all.low_percent));
    }

    #[test]
    fn the_base_kernel_again_stands_beside_it_if_it_has_all_rows() {
        let mut rows = ["a", "b"].map(|file| row(file, RowDirection::Higher, &[10.0, 10.0], &[11.0, 12.0]));
        rows[0].again = Some(vec![10.1, 10.1]);
        assert_eq!(OverallGain::new(&rows, 0.95, RatioMethod::Student).unwrap().aa_percent, None);
        rows[1].again = Some(vec![10.1, 10.1]);
        assert!(
            (OverallGain::new(&rows, 0.95, RatioMethod::Student).unwrap().aa_percent.unwrap() - 1.0).abs()
                < 1e-9
        );
    }

    #[test]
    fn what_does_not_belong_together_has_no_mean() {
        let one = row("a", RowDirection::Lower, &[1.0, 2.0], &[1.0, 2.0]);
        assert_eq!(OverallGain::new(std::slice::from_ref(&one), 0.95, RatioMethod::Student), None);
        for other in [
            row("a", RowDirection::Lower, &[1.0, 2.0, 3.0], &[1.0, 2.0]),
            row("b", RowDirection::Lower, &[1.0, 0.0], &[1.0, 2.0]),
            row("b", RowDirection::Lower, &[1.0], &[1.0, 2.0]),
            // Two boots that differ by a factor of 10^200: an end of the interval overflows.
            row("b", RowDirection::Lower, &[1.0, 2.0], &[1e-100, 1e100]),
            // The base kernel's rows share boots, the tuned kernel's do not.
            RowUnits { files: ["a", "b"].map(String::from), ..one.clone() },
        ] {
            assert_eq!(OverallGain::new(&[one.clone(), other], 0.95, RatioMethod::Student), None);
        }
    }

    /// Boots differ, rows differ within a boot, the true gain is 3 %: 95 of 100 intervals contain
    /// it.
    #[test]
    fn intervals_cover_what_they_say() {
        const ROUNDS: usize = 2000;
        let mut rng = Rng::new(1);
        let mut normal = || (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
        let mut covered = 0;
        for _ in 0..ROUNDS {
            let rows: Vec<RowUnits> = ["a", "b", "c"]
                .into_iter()
                .flat_map(|file| {
                    let boots: [Vec<f64>; 2] = [(); 2].map(|()| (0..6).map(|_| 0.03 * normal()).collect());
                    let side = |side: usize, gain: f64, normal: &mut dyn FnMut() -> f64| -> Vec<f64> {
                        boots[side].iter().map(|boot| gain * (boot + 0.02 * normal()).exp()).collect()
                    };
                    [(); 2].map(|()| {
                        let base = side(0, 1.0, &mut normal);
                        let tuned = side(1, 1.03, &mut normal);
                        row(file, RowDirection::Higher, &base, &tuned)
                    })
                })
                .collect();
            let all = OverallGain::new(&rows, 0.95, RatioMethod::Student).unwrap();
            covered += usize::from((all.low_percent..all.high_percent).contains(&3.0));
        }
        let share = covered as f64 / ROUNDS as f64;
        assert!((0.935..0.965).contains(&share), "{share}");
    }
}
