//! The file that `kerntune bench run` writes: one machine, one kernel, values with their places.

use crate::{Counter, CpuTime, Error, Place, Result, Sample};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// What such a file calls itself.
pub const RESULTS_SCHEMA: &str = "kerntune-bench-results/1";

/// One file of results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`RESULTS_SCHEMA`].
    pub schema: String,
    /// Where it was measured: `host`, `uml`, `kvm`, `emulator`.
    pub machine: String,
    /// What was measured.
    pub kernel: Kernel,
    /// The name under which the kernel is listed, where it was timed beside others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When, RFC 3339.
    pub started: String,
    /// How many times its usual work each row did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// How often each row was timed in a boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// The front-end model of machines that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// By which way the guest's programs enter the kernel, where there are several: `ptrace`, `seccomp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The figures.
    pub rows: Vec<ResultsRow>,
    /// Rows that were asked for and cannot run there.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// Counters that were asked for and did not count, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uncounted: BTreeMap<Counter, String>,
}

/// A kernel as it names itself, and as kerntune does.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`, which has the date of the build in it.
    pub version: String,
    /// kerntune's own id, if it built the kernel.
    pub id: Option<String>,
    /// The linker's hash: kernels of one release, of which one is tuned, differ in it.
    #[serde(default)]
    pub build_id: Option<String>,
}

/// One row of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultsRow {
    /// `kbx`, `osbench`, …
    pub suite: String,
    /// The row's name in its suite.
    pub row: String,
    /// `ns/op`, `MB/s`, …
    pub unit: String,
    /// Which values are good.
    pub better: Better,
    /// What was measured, in any order.
    pub values: Vec<Value>,
    /// Where the CPU time of each boot went while the row ran, as far as the machine knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuTime>,
}

/// Which values are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times: the less the better.
    Lower,
    /// Rates: the more the better.
    Higher,
}

/// One value and where it comes from, each number from 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// Number of the build.
    pub build: u32,
    /// Number of its boot.
    pub boot: u32,
    /// Number of the run in that boot.
    pub run: u32,
    /// Number of the repetition in that run.
    pub iteration: u32,
    /// In the row's unit.
    pub value: f64,
    /// Of the exact machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// Of a CPU that has them, per operation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<Counter, f64>,
}

/// What an operation takes on the exact machine, of kernel code where nothing else is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Instructions; the value itself.
    pub path_length: f64,
    /// Branches taken.
    pub taken_branches: f64,
    /// Of the model.
    pub l1i_misses: f64,
    /// Of the model.
    pub itlb_misses: f64,
    /// Of models that say what events cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_cycles: Option<f64>,
    /// Of user code: instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_instructions: Option<f64>,
    /// Of user code, of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_l1i_misses: Option<f64>,
    /// Of user code, of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_itlb_misses: Option<f64>,
    /// Of kernel and user code, of models that say what events cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_cycles: Option<f64>,
}

/// A row without figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The suite's workload.
    pub suite: String,
    /// Its name there.
    pub row: String,
    /// What the machine lacks.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}: {}", self.suite, self.row, self.reason)
    }
}

/// `Linux 6.12.117 #1 SMP … (3f9a01)`.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Linux {} {}", self.release, self.version)?;
        self.id.as_ref().map_or(Ok(()), |id| write!(f, " ({id})"))
    }
}

impl Results {
    /// From a file's text; `origin` names it in errors. Fields that are not known are skipped. What comes back can
    /// be compared: names are unique and not empty, every value is a measurement and every place is there once.
    pub fn parse(origin: &str, text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            schema: Option<serde_json::Value>,
        }
        let json = |source| Error::Json { origin: origin.into(), source };
        let head: Head = serde_json::from_str(text).map_err(json)?;
        if head.schema.as_ref().and_then(|schema| schema.as_str()) != Some(RESULTS_SCHEMA) {
            let found = head.schema.map_or("missing".into(), |schema| shortened(&schema.to_string()));
            return Err(Error::Schema { origin: origin.into(), found });
        }
        let results: Results = serde_json::from_str(text).map_err(json)?;
        results.check(origin)?;
        Ok(results)
    }

    fn check(&self, origin: &str) -> Result<()> {
        if self.rows.is_empty() {
            return Err(Error::NoRows { origin: origin.into() });
        }
        let mut names = HashSet::new();
        for (index, row) in self.rows.iter().enumerate() {
            for (field, text) in [("suite", &row.suite), ("row", &row.row), ("unit", &row.unit)] {
                if text.is_empty() {
                    return Err(Error::Unnamed { origin: origin.into(), index, field });
                }
            }
            if !names.insert((&row.suite, &row.row)) {
                return Err(Error::RowTwice { origin: origin.into(), row: row.name() });
            }
            row.sample().map_err(|source| Error::Row {
                origin: origin.into(),
                row: row.name(),
                source: Box::new(source),
            })?;
        }
        Ok(())
    }
}

impl ResultsRow {
    /// `suite/row`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.suite, self.row)
    }

    /// The values' median, least and greatest; None if there are none.
    pub fn spread(&self) -> Option<[f64; 3]> {
        spread(self.values.iter().map(|value| value.value).collect())
    }

    /// The median of a counter, per operation; None unless all values have it.
    pub fn counted(&self, counter: Counter) -> Option<f64> {
        let counts: Option<Vec<f64>> =
            self.values.iter().map(|value| value.counters.get(&counter).copied()).collect();
        spread(counts?).map(|[median, ..]| median)
    }

    /// Its values as a sample.
    pub fn sample(&self) -> Result<Sample> {
        let place = |v: &Value| Place { build: v.build, boot: v.boot, run: v.run, iteration: v.iteration };
        Sample::new(self.values.iter().map(|value| (place(value), value.value)).collect())
    }
}

/// Median, least and greatest.
fn spread(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let last = values.len() - 1;
    Some([(values[last / 2] + values[last.div_ceil(2)]) / 2.0, least, most])
}

/// Someone else's document may have anything for a schema.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST {
        return text.into();
    }
    text.chars().take(MOST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"schema":"kerntune-bench-results/1","machine":"host","new":[1],
        "kernel":{"release":"6.12.1","version":"\#1 SMP","id":null},"started":"2026-11-22T08:00:00Z",
        "rows":[{"suite":"kbx","row":"getpid","unit":"ns/op","better":"lower","values":[
        {"build":0,"boot":0,"run":0,"iteration":1,"value":101.5},
        {"build":0,"boot":0,"run":0,"iteration":0,"value":1e2}]}]}"#;

    fn good() -> String {
        GOOD.replace("\\#", "#")
    }

    #[test]
    fn a_good_file_is_read_and_written_back() {
        let results = Results::parse("a.json", &good()).unwrap();
        assert_eq!((results.rows[0].name().as_str(), results.rows[0].better), ("kbx/getpid", Better::Lower));
        let again = serde_json::to_string(&results).unwrap();
        assert_eq!(Results::parse("b.json", &again).unwrap(), results);
    }

    #[test]
    fn what_a_machine_does_not_have_is_not_in_the_document() {
        let mut row = Results::parse("a.json", &good()).unwrap().rows.remove(0);
        assert_eq!(row.spread(), Some([100.75, 100.0, 101.5]));
        let text = r#"{"build":0,"boot":0,"run":0,"iteration":1,"value":101.5}"#;
        assert_eq!(serde_json::to_string(&row.values[0]).unwrap(), text);
        assert_eq!(row.counted(Counter::Cycles), None);
        row.values[0].counters.insert(Counter::Cycles, 5.0);
        assert_eq!(row.counted(Counter::Cycles), None, "only one of two has it");
        row.values[1].counters.insert(Counter::Cycles, 7.0);
        assert_eq!(row.counted(Counter::Cycles), Some(6.0));
        let with = serde_json::to_string(&row.values[0]).unwrap();
        assert!(with.contains(r#""counters":{"cycles":5.0}"#), "{with}");
        row.values.clear();
        assert_eq!(row.spread(), None);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file() {
        let place = "at build 0, boot 0, run 0, iteration 1";
        for (from, to, words) in [
            ("results/1", "results/2", vec!["a.json", "\"kerntune-bench-results/2\"", "bench run"]),
            ("\"schema\":\"kerntune-bench-results/1\",", "", vec!["missing"]),
            ("101.5", "\"fast\"", vec!["a.json", "invalid type", "line 4"]),
            ("101.5", "-1", vec!["a.json: row kbx/getpid: -1", place]),
            ("101.5", "1e300", vec!["1e100"]),
            ("101.5", "1e999", vec!["out of range"]),
            ("101.5", "NaN", vec!["a.json", "line 4"]),
            ("\"iteration\":1", "\"iteration\":0", vec!["two values", "iteration 0"]),
            ("\"iteration\":1", "\"iteration\":-1", vec!["-1"]),
            ("\"lower\"", "\"less\"", vec!["less", "lower"]),
            ("\"getpid\"", "\"\"", vec!["row 0 has no row"]),
            ("\"boot\":0,", "", vec!["boot"]),
        ] {
            let text = good().replacen(from, to, 1);
            assert_ne!(text, good(), "{from}");
            let error = Results::parse("a.json", &text).unwrap_err().to_string();
            for word in words {
                assert!(error.contains(word), "{word:?} is not in: {error}");
            }
        }
        let empty = r#"{"schema":"kerntune-bench-results/1","machine":"host","started":"",
            "kernel":{"release":"","version":"","id":null},"rows":[]}"#;
        assert!(matches!(Results::parse("a", empty), Err(Error::NoRows { .. })));
    }
}
