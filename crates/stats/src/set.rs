//! Joined results files of one kernel.

use crate::{BenchResults, Error, MeasuredKernel, Result, RowDirection, Sample, ValuePosition};
use std::collections::HashMap;

/// Joined results of one kernel, or of several builds that count as one kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinedResults {
    /// Machine on which all files were measured.
    pub machine: String,
    /// Measured kernels, each once, in the order of the files.
    pub kernels: Vec<MeasuredKernel>,
    /// Names of the files.
    pub origins: Vec<String>,
    /// Rows, in the order of first occurrence.
    pub rows: Vec<JoinedRow>,
    /// Index in `rows` by suite and row.
    index: HashMap<(String, String), usize>,
}

/// One row with the values of all files.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinedRow {
    /// Name of the row's suite.
    pub suite: String,
    /// Name of the row in its suite.
    pub row: String,
    /// Unit of the values.
    pub unit: String,
    /// Direction in which values improve.
    pub better: RowDirection,
    /// Values of all files.
    pub sample: Sample,
    /// Name of the first file that has the row.
    pub(crate) origin: String,
}

impl JoinedRow {
    /// Returns `suite/row`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.suite, self.row)
    }

    /// Describes the values: `ns/op, lower is better`.
    fn meaning(&self) -> String {
        let better = if self.better == RowDirection::Lower { "lower" } else { "higher" };
        format!("{}, {better} is better", self.unit)
    }

    /// Refuses a row of the same name with another unit or direction.
    pub(crate) fn check_same_as(&self, other: &JoinedRow) -> Result<()> {
        if (&self.unit, self.better) == (&other.unit, other.better) {
            return Ok(());
        }
        Err(Error::Units {
            row: self.name(),
            one: self.origin.clone(),
            one_unit: self.meaning(),
            other: other.origin.clone(),
            other_unit: other.meaning(),
        })
    }
}

impl JoinedResults {
    /// Joins files, each given with its name. Boots of different files are different boots,
    /// whatever their numbers; files of different kernels are different builds.
    ///
    /// # Errors
    /// No files, files of different machines, rows of one name with different units or directions.
    pub fn join(files: &[(String, BenchResults)]) -> Result<JoinedResults> {
        let (first, _) = files.first().ok_or(Error::NoFiles)?;
        let machine = files[0].1.machine.clone();
        let mut set =
            JoinedResults { machine, kernels: vec![], origins: vec![], rows: vec![], index: HashMap::new() };
        let mut values: Vec<Vec<(ValuePosition, f64)>> = Vec::new();
        // Numbers of (kernel, build) and of (file, build, boot) in the joined sample.
        let (mut builds, mut boots) = (SequentialIds::default(), SequentialIds::default());
        for (file, (origin, results)) in files.iter().enumerate() {
            check_machines(first, &set.machine, origin, &results.machine)?;
            set.origins.push(origin.clone());
            let kernel =
                set.kernels.iter().position(|kernel| *kernel == results.kernel).unwrap_or_else(|| {
                    set.kernels.push(results.kernel.clone());
                    set.kernels.len() - 1
                });
            for row in &results.rows {
                let new = JoinedRow {
                    suite: row.suite.clone(),
                    row: row.row.clone(),
                    unit: row.unit.clone(),
                    better: row.better,
                    sample: row.sample()?,
                    origin: origin.clone(),
                };
                let key = (row.suite.clone(), row.row.clone());
                let at = *set.index.entry(key).or_insert(set.rows.len());
                if at == set.rows.len() {
                    set.rows.push(new.clone());
                    values.push(Vec::new());
                }
                set.rows[at].check_same_as(&new)?;
                values[at].extend(new.sample.values().iter().map(|(place, value)| {
                    let build = builds.of((kernel, place.build as usize, 0));
                    let boot = boots.of((file, place.build as usize, place.boot as usize));
                    (ValuePosition { build, boot, ..*place }, *value)
                }));
            }
        }
        for (row, values) in set.rows.iter_mut().zip(values) {
            row.sample = Sample::new(values)?;
        }
        Ok(set)
    }

    /// Returns the row with this suite and name.
    pub fn row(&self, suite: &str, row: &str) -> Option<&JoinedRow> {
        self.index.get(&(suite.into(), row.into())).map(|at| &self.rows[*at])
    }

    /// Refuses a kernel that is not one of `base`'s: the A/A pair would not show measurement noise
    /// alone.
    pub(crate) fn check_same_kernel(&self, base: &JoinedResults) -> Result<()> {
        match self.kernels.iter().find(|kernel| !base.kernels.contains(kernel)) {
            None => Ok(()),
            Some(kernel) => Err(Error::AnotherKernel {
                files: self.origins.join(", "),
                kernel: kernel.to_string(),
                base: base.kernels.iter().map(MeasuredKernel::to_string).collect::<Vec<_>>().join(" and "),
            }),
        }
    }

    /// Refuses results of another machine.
    pub(crate) fn check_same_machine(&self, other: &JoinedResults) -> Result<()> {
        check_machines(&self.origins[0], &self.machine, &other.origins[0], &other.machine)
    }
}

fn check_machines(one: &str, one_machine: &str, other: &str, other_machine: &str) -> Result<()> {
    if one_machine == other_machine {
        return Ok(());
    }
    let [one, one_machine, other, other_machine] = [one, one_machine, other, other_machine].map(String::from);
    Err(Error::Machines { one, one_machine, other, other_machine })
}

/// Assigns numbers to keys in the order of first occurrence.
#[derive(Default)]
struct SequentialIds(HashMap<(usize, usize, usize), u32>);

impl SequentialIds {
    fn of(&mut self, key: (usize, usize, usize)) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert(next)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{MeasuredValue, ResultsRow, VariationLevel, RESULTS_SCHEMA};

    /// A file of one row, `values[boot][iteration]`.
    pub(crate) fn file(version: &str, row: &str, values: &[&[f64]]) -> (String, BenchResults) {
        let mut all = Vec::new();
        for (boot, values) in values.iter().enumerate() {
            all.extend(values.iter().enumerate().map(|(iteration, value)| MeasuredValue {
                build: 0,
                boot: boot as u32,
                run: 0,
                iteration: iteration as u32,
                value: *value,
                ..MeasuredValue::default()
            }));
        }
        let results = BenchResults {
            schema: RESULTS_SCHEMA.into(),
            machine: "host".into(),
            kernel: MeasuredKernel {
                release: "6.12".into(),
                version: version.into(),
                ..MeasuredKernel::default()
            },
            started: "2026-11-22T08:00:00Z".into(),
            rows: vec![ResultsRow {
                suite: "kbx".into(),
                row: row.into(),
                unit: "ns/op".into(),
                better: RowDirection::Lower,
                values: all,
                cpu: vec![],
            }],
            ..BenchResults::default()
        };
        (format!("{version}.json"), results)
    }

    #[test]
    fn files_are_boots_and_kernels_are_builds() {
        let files = [
            file("#1", "getpid", &[&[1.0, 2.0], &[3.0]]),
            file("#1", "getpid", &[&[4.0]]),
            file("#2", "getpid", &[&[5.0]]),
        ];
        let set = JoinedResults::join(&files).unwrap();
        let sample = &set.row("kbx", "getpid").unwrap().sample;
        assert_eq!(sample.means(VariationLevel::Boot), [1.5, 3.0, 4.0, 5.0]);
        assert_eq!((sample.count(VariationLevel::Build), set.kernels.len()), (2, 2));
        assert!(set.row("kbx", "fork").is_none());
    }

    #[test]
    fn files_that_do_not_belong_together_are_refused() {
        let one = file("#1", "getpid", &[&[1.0]]);
        let mut other = file("#2", "getpid", &[&[1.0]]);
        other.1.rows[0].unit = "us/op".into();
        let error = JoinedResults::join(&[one.clone(), other.clone()]).unwrap_err().to_string();
        for word in ["kbx/getpid", "#1.json in ns/op, lower", "#2.json in us/op"] {
            assert!(error.contains(word), "{error}");
        }
        other.1.machine = "uml".into();
        let error = JoinedResults::join(&[one, other]).unwrap_err().to_string();
        assert!(error.contains("#1.json") && error.contains("\"uml\""), "{error}");
        assert!(matches!(JoinedResults::join(&[]), Err(Error::NoFiles)));
    }
}
