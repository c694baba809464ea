//! All rows together: how much faster they got, as one figure.

use crate::ratio::{student_quantile, student_tail};
use crate::sample::mean;
use crate::shift::Shift;
use crate::{Better, Level, Method};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The geometric mean of the speeds of all rows, tuned against base: of rates the values, of times their inverses.
///
/// Rows of one file share their boots, and a boot that was slow was so for all of them. So what is averaged first are the
/// logarithms of a boot's rows; the means of boots have the error. Files have boots of their own: their variances add
/// up, with degrees of freedom after Welch and Satterthwaite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Together {
    /// How many rows.
    pub rows: usize,
    /// (mean of tuned / base − 1), per cent: above 0 the tuned kernel is faster.
    pub gain_percent: f64,
    /// Its interval, per cent.
    pub low_percent: f64,
    /// See `low_percent`.
    pub high_percent: f64,
    /// That a gain or loss like this is chance.
    pub p: f64,
    /// The same of the base kernel measured again; `None` if it was not, or not in all rows.
    pub aa_percent: Option<f64>,
}

/// With so many degrees of freedom Student's distribution is the normal one.
const NORMAL: f64 = 1e6;

/// The units of a row that are compared, in the order of their places.
#[derive(Debug, Clone)]
pub(crate) struct Units {
    /// The files of base and tuned that have it.
    pub files: [String; 2],
    pub better: Better,
    pub level: Level,
    pub base: Vec<f64>,
    pub tuned: Vec<f64>,
    /// Of the base kernel measured again.
    pub again: Option<Vec<f64>>,
}

impl Together {
    /// None of fewer than two rows, of rows that share boots on one side only, of rows of one file with different units,
    /// where a value is 0, and where boots are so far apart that an `f64` cannot hold a limit of the interval.
    pub(crate) fn new(rows: &[Units], confidence: f64, method: Method) -> Option<Self> {
        if rows.len() < 2 {
            return None;
        }
        let mut files: BTreeMap<&[String; 2], Vec<&Units>> = BTreeMap::new();
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

/// How much larger units' logarithms are, and the parts of its variance with their degrees of freedom.
fn difference(base: &[f64], tuned: &[f64], method: Method) -> (f64, Vec<(f64, f64)>) {
    if method == Method::HodgesLehmann && Shift::is_of_use([base.len(), tuned.len()]) {
        let shift = Shift::of_logs(base, tuned);
        return (shift.estimate(), vec![(shift.error().powi(2), NORMAL)]);
    }
    let part = |units: &[f64]| (variance_of_mean(units), units.len() as f64 - 1.0);
    (mean(tuned) - mean(base), vec![part(base), part(tuned)])
}

/// Of each unit of some rows the mean logarithm of their speeds.
fn speeds<'a>(rows: &[&'a Units], side: impl Fn(&'a Units) -> Option<&'a Vec<f64>>) -> Option<Vec<f64>> {
    let of_rows = rows.iter().map(|row| Some((row.better, side(row)?))).collect::<Option<Vec<_>>>()?;
    let units = of_rows.first()?.1.len();
    let level = rows.first()?.level;
    let alike = rows.iter().all(|row| row.level == level)
        && of_rows.iter().all(|(_, values)| values.len() == units && values.iter().all(|v| *v > 0.0));
    if units < 2 || !alike {
        return None;
    }
    let speed = |better: Better, value: f64| match better {
        Better::Higher => value.ln(),
        Better::Lower => -value.ln(),
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

    fn row(file: &str, better: Better, base: &[f64], tuned: &[f64]) -> Units {
        let (base, tuned) = (base.to_vec(), tuned.to_vec());
        Units { files: [file, file].map(String::from), better, level: Level::Boot, base, tuned, again: None }
    }

    #[test]
    fn times_and_rates_are_speeds() {
        let rows = [
            row("a", Better::Lower, &[100.0, 100.0], &[80.0, 80.0]),
            row("b", Better::Higher, &[10.0, 10.0], &[20.0, 20.0]),
        ];
        let all = Together::new(&rows, 0.95, Method::Student).unwrap();
        // √(1.25 · 2), without any error.
        assert!((all.gain_percent - 100.0 * (2.5f64.sqrt() - 1.0)).abs() < 1e-9);
        assert_eq!((all.low_percent, all.high_percent, all.p), (all.gain_percent, all.gain_percent, 0.0));
        assert_eq!((all.rows, all.aa_percent), (2, None));
    }

    #[test]
    fn one_row_twice_is_no_more_certain_than_once() {
        let (base, tuned) = ([100.0, 103.0, 98.0, 101.0], [97.0, 95.0, 99.0, 96.0]);
        let rows = [(); 2].map(|()| row("a", Better::Lower, &base, &tuned));
        let all = Together::new(&rows, 0.95, Method::Student).unwrap();
        let once = Ratio::new(&tuned, &base).unwrap();
        let interval = once.interval(0.95);
        // Of logarithms here, of means there.
        assert!((all.gain_percent - 100.0 * (once.estimate() - 1.0)).abs() < 0.05, "{all:?}");
        assert!((all.low_percent - 100.0 * (interval.low - 1.0)).abs() < 0.3, "{all:?} {interval:?}");
        assert!((all.high_percent - 100.0 * (interval.high - 1.0)).abs() < 0.3, "{all:?} {interval:?}");
        // In files of their own they are two measurements.
        let apart = [row("a", Better::Lower, &base, &tuned), row("b", Better::Lower, &base, &tuned)];
        let apart = Together::new(&apart, 0.95, Method::Student).unwrap();
        assert!(apart.high_percent - apart.low_percent < 0.75 * (all.high_percent - all.low_percent));
    }

    #[test]
    fn the_base_kernel_again_stands_beside_it_if_it_has_all_rows() {
        let mut rows = ["a", "b"].map(|file| row(file, Better::Higher, &[10.0, 10.0], &[11.0, 12.0]));
        rows[0].again = Some(vec![10.1, 10.1]);
        assert_eq!(Together::new(&rows, 0.95, Method::Student).unwrap().aa_percent, None);
        rows[1].again = Some(vec![10.1, 10.1]);
        assert!(
            (Together::new(&rows, 0.95, Method::Student).unwrap().aa_percent.unwrap() - 1.0).abs() < 1e-9
        );
    }

    #[test]
    fn what_does_not_belong_together_has_no_mean() {
        let one = row("a", Better::Lower, &[1.0, 2.0], &[1.0, 2.0]);
        assert_eq!(Together::new(std::slice::from_ref(&one), 0.95, Method::Student), None);
        for other in [
            row("a", Better::Lower, &[1.0, 2.0, 3.0], &[1.0, 2.0]),
            row("b", Better::Lower, &[1.0, 0.0], &[1.0, 2.0]),
            row("b", Better::Lower, &[1.0], &[1.0, 2.0]),
            // Two boots that differ by a factor of 10^200: the interval reaches beyond all numbers.
            row("b", Better::Lower, &[1.0, 2.0], &[1e-100, 1e100]),
            // The base kernel's boots are the same, and the tuned kernel's are not.
            Units { files: ["a", "b"].map(String::from), ..one.clone() },
        ] {
            assert_eq!(Together::new(&[one.clone(), other], 0.95, Method::Student), None);
        }
    }

    /// Boots that differ, rows that differ within a boot, a true gain of 3 %: 95 of 100 intervals contain it.
    #[test]
    fn intervals_cover_what_they_say() {
        const ROUNDS: usize = 2000;
        let mut rng = Rng::new(1);
        let mut normal = || (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
        let mut covered = 0;
        for _ in 0..ROUNDS {
            let rows: Vec<Units> = ["a", "b", "c"]
                .into_iter()
                .flat_map(|file| {
                    let boots: [Vec<f64>; 2] = [(); 2].map(|()| (0..6).map(|_| 0.03 * normal()).collect());
                    let side = |side: usize, gain: f64, normal: &mut dyn FnMut() -> f64| -> Vec<f64> {
                        boots[side].iter().map(|boot| gain * (boot + 0.02 * normal()).exp()).collect()
                    };
                    [(); 2].map(|()| {
                        let base = side(0, 1.0, &mut normal);
                        let tuned = side(1, 1.03, &mut normal);
                        row(file, Better::Higher, &base, &tuned)
                    })
                })
                .collect();
            let all = Together::new(&rows, 0.95, Method::Student).unwrap();
            covered += usize::from((all.low_percent..all.high_percent).contains(&3.0));
        }
        let share = covered as f64 / ROUNDS as f64;
        assert!((0.935..0.965).contains(&share), "{share}");
    }
}
