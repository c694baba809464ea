//! Files of one kernel joined.

use crate::{Better, Error, Kernel, Place, Result, Results, Sample};
use std::collections::HashMap;

/// What was measured of one kernel, or of several builds that are to be taken as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// Where it was measured.
    pub machine: String,
    /// The kernels, each once, in the order of the files.
    pub kernels: Vec<Kernel>,
    /// The files.
    pub origins: Vec<String>,
    /// In the order in which they first come.
    pub rows: Vec<SetRow>,
    /// Where each suite's row is among them.
    index: HashMap<(String, String), usize>,
}

/// One row with the values of all files.
#[derive(Debug, Clone, PartialEq)]
pub struct SetRow {
    /// Its suite.
    pub suite: String,
    /// Its name there.
    pub row: String,
    /// Unit of its values.
    pub unit: String,
    /// Which values are good.
    pub better: Better,
    /// The values.
    pub sample: Sample,
    /// The first file that has it.
    pub(crate) origin: String,
}

impl SetRow {
    /// `suite/row`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.suite, self.row)
    }

    /// `ns/op, lower is better`.
    fn meaning(&self) -> String {
        let better = if self.better == Better::Lower { "lower" } else { "higher" };
        format!("{}, {better} is better", self.unit)
    }

    /// An error if a row of the same name means something else.
    pub(crate) fn check_same_as(&self, other: &SetRow) -> Result<()> {
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

impl Set {
    /// Joins files, each with its name. Boots of different files are different boots, whatever their numbers;
    /// files of different kernels are different builds.
    pub fn join(files: &[(String, Results)]) -> Result<Set> {
        let (first, _) = files.first().ok_or(Error::NoFiles)?;
        let machine = files[0].1.machine.clone();
        let mut set = Set { machine, kernels: vec![], origins: vec![], rows: vec![], index: HashMap::new() };
        let mut values: Vec<Vec<(Place, f64)>> = Vec::new();
        // The numbers that (kernel, build) and (file, build, boot) get here.
        let (mut builds, mut boots) = (Numbers::default(), Numbers::default());
        for (file, (origin, results)) in files.iter().enumerate() {
            check_machines(first, &set.machine, origin, &results.machine)?;
            set.origins.push(origin.clone());
            let kernel =
                set.kernels.iter().position(|kernel| *kernel == results.kernel).unwrap_or_else(|| {
                    set.kernels.push(results.kernel.clone());
                    set.kernels.len() - 1
                });
            for row in &results.rows {
                let new = SetRow {
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
                    (Place { build, boot, ..*place }, *value)
                }));
            }
        }
        for (row, values) in set.rows.iter_mut().zip(values) {
            row.sample = Sample::new(values)?;
        }
        Ok(set)
    }

    /// A row by suite and name.
    pub fn row(&self, suite: &str, row: &str) -> Option<&SetRow> {
        self.index.get(&(suite.into(), row.into())).map(|at| &self.rows[*at])
    }

    /// An error if a kernel of this set is none of `base`'s: what differs then is not the measurement alone.
    pub(crate) fn check_same_kernel(&self, base: &Set) -> Result<()> {
        match self.kernels.iter().find(|kernel| !base.kernels.contains(kernel)) {
            None => Ok(()),
            Some(kernel) => Err(Error::AnotherKernel {
                files: self.origins.join(", "),
                kernel: kernel.to_string(),
                base: base.kernels.iter().map(Kernel::to_string).collect::<Vec<_>>().join(" and "),
            }),
        }
    }

    /// An error if the sets were not measured on the same machine.
    pub(crate) fn check_same_machine(&self, other: &Set) -> Result<()> {
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

/// Numbers for keys, in the order in which they first come.
#[derive(Default)]
struct Numbers(HashMap<(usize, usize, usize), u32>);

impl Numbers {
    fn of(&mut self, key: (usize, usize, usize)) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert(next)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Level, ResultsRow, Value, RESULTS_SCHEMA};

    /// A file of one row, `values[boot][iteration]`.
    pub(crate) fn file(version: &str, row: &str, values: &[&[f64]]) -> (String, Results) {
        let mut all = Vec::new();
        for (boot, values) in values.iter().enumerate() {
            all.extend(values.iter().enumerate().map(|(iteration, value)| Value {
                build: 0,
                boot: boot as u32,
                run: 0,
                iteration: iteration as u32,
                value: *value,
                ..Value::default()
            }));
        }
        let results = Results {
            schema: RESULTS_SCHEMA.into(),
            machine: "host".into(),
            kernel: Kernel { release: "6.12".into(), version: version.into(), ..Kernel::default() },
            started: "2026-11-22T08:00:00Z".into(),
            rows: vec![ResultsRow {
                suite: "kbx".into(),
                row: row.into(),
                unit: "ns/op".into(),
                better: Better::Lower,
                values: all,
                cpu: vec![],
            }],
            ..Results::default()
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
        let set = Set::join(&files).unwrap();
        let sample = &set.row("kbx", "getpid").unwrap().sample;
        assert_eq!(sample.means(Level::Boot), [1.5, 3.0, 4.0, 5.0]);
        assert_eq!((sample.count(Level::Build), set.kernels.len()), (2, 2));
        assert!(set.row("kbx", "fork").is_none());
    }

    #[test]
    fn files_that_do_not_belong_together_are_refused() {
        let one = file("#1", "getpid", &[&[1.0]]);
        let mut other = file("#2", "getpid", &[&[1.0]]);
        other.1.rows[0].unit = "us/op".into();
        let error = Set::join(&[one.clone(), other.clone()]).unwrap_err().to_string();
        for word in ["kbx/getpid", "#1.json in ns/op, lower", "#2.json in us/op"] {
            assert!(error.contains(word), "{error}");
        }
        other.1.machine = "uml".into();
        let error = Set::join(&[one, other]).unwrap_err().to_string();
        assert!(error.contains("#1.json") && error.contains("\"uml\""), "{error}");
        assert!(matches!(Set::join(&[]), Err(Error::NoFiles)));
    }
}
