//! Results file of `kerntune bench run`: one machine, one kernel, values with their positions.

use crate::{CpuTime, Error, PerfCounter, Result, Sample, ValuePosition};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// Schema of a results file.
pub const RESULTS_SCHEMA: &str = "kerntune-bench-results/1";

/// One results file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchResults {
    /// Format and version of this object, [`RESULTS_SCHEMA`].
    pub schema: String,
    /// Machine: `host`, `uml`, `kvm` or `emulator`.
    pub machine: String,
    /// Kernel that was measured.
    pub kernel: MeasuredKernel,
    /// Label of the kernel in listings, if it was timed together with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Start of the measurement, RFC 3339.
    pub started: String,
    /// Factor by which each row's work was scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Number of times that each row was timed in a boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Front-end model, on machines that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Model of the guest's CPU in QEMU's notation, on machines that choose one: `max`,
    /// `max,-arch-capabilities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Mechanism by which the guest's programs enter the kernel, on machines with several:
    /// `ptrace`, `seccomp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Measured rows.
    pub rows: Vec<ResultsRow>,
    /// Requested rows that cannot run on this machine.
    #[serde(default)]
    pub skipped: Vec<SkippedRow>,
    /// Requested counters that did not count, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uncounted: BTreeMap<PerfCounter, String>,
}

/// Identity of a measured kernel: its own version strings, and kerntune's id.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MeasuredKernel {
    /// Release, as `uname -r` prints it.
    pub release: String,
    /// Version, as `uname -v` prints it; contains the date of the build.
    pub version: String,
    /// Id in the work directory, if kerntune built the kernel.
    pub id: Option<String>,
    /// Build id that the linker computed. It tells kernels of one release apart, such as base and
    /// tuned.
    #[serde(default)]
    pub build_id: Option<String>,
}

/// One row of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultsRow {
    /// Name of the suite: `kbx`, `osbench`, …
    pub suite: String,
    /// Name of the row in its suite.
    pub row: String,
    /// Unit of the values: `ns/op`, `MB/s`, …
    pub unit: String,
    /// Direction in which values improve.
    pub better: RowDirection,
    /// Measured values, in any order.
    pub values: Vec<MeasuredValue>,
    /// CPU time of each boot while the row ran; empty on machines that do not know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuTime>,
}

/// Direction in which the values of a row improve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowDirection {
    /// Less is better, as for times.
    Lower,
    /// More is better, as for rates.
    Higher,
}

/// One value and its position; all numbers count from 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredValue {
    /// Number of the build.
    pub build: u32,
    /// Number of the boot within the build.
    pub boot: u32,
    /// Number of the run within the boot.
    pub run: u32,
    /// Number of the iteration within the run.
    pub iteration: u32,
    /// Value in the row's unit.
    pub value: f64,
    /// Figures of the exact machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<ExactFigures>,
    /// CPU counters per operation, on machines that have them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<PerfCounter, f64>,
}

/// Figures of one operation on the exact machine; of kernel code unless stated otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ExactFigures {
    /// Kernel instructions; equal to the value.
    pub path_length: f64,
    /// Taken branches.
    pub taken_branches: f64,
    /// L1I misses of the front-end model.
    pub l1i_misses: f64,
    /// iTLB misses of the front-end model.
    pub itlb_misses: f64,
    /// Model cycles; `None` if the model has no costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_cycles: Option<f64>,
    /// Instructions of user code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_instructions: Option<f64>,
    /// L1I misses of user code, by the front-end model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_l1i_misses: Option<f64>,
    /// iTLB misses of user code, by the front-end model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_itlb_misses: Option<f64>,
    /// Model cycles of kernel and user code; `None` if the model has no costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_cycles: Option<f64>,
}

/// Requested row that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRow {
    /// Name of the suite's workload.
    pub suite: String,
    /// Name of the row in its suite.
    pub row: String,
    /// Reason: what the machine lacks.
    pub reason: String,
}

impl fmt::Display for SkippedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}: {}", self.suite, self.row, self.reason)
    }
}

/// Writes `Linux 6.12.117 #1 SMP … (3f9a01)`.
impl fmt::Display for MeasuredKernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Linux {} {}", self.release, self.version)?;
        self.id.as_ref().map_or(Ok(()), |id| write!(f, " ({id})"))
    }
}

impl BenchResults {
    /// Parses and checks a results file; `origin` names it in errors.
    ///
    /// Unknown fields are ignored. The result can be compared: names are unique and not empty,
    /// every value is a measurement, and no position occurs twice.
    pub fn parse(origin: &str, text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct SchemaHeader {
            schema: Option<serde_json::Value>,
        }
        let json = |source| Error::Json { origin: origin.into(), source };
        let head: SchemaHeader = serde_json::from_str(text).map_err(json)?;
        if head.schema.as_ref().and_then(|schema| schema.as_str()) != Some(RESULTS_SCHEMA) {
            let found = head.schema.map_or("missing".into(), |schema| shortened(&schema.to_string()));
            return Err(Error::Schema { origin: origin.into(), found });
        }
        let results: BenchResults = serde_json::from_str(text).map_err(json)?;
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
    /// Returns `suite/row`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.suite, self.row)
    }

    /// Returns median, minimum and maximum of the values; `None` if there are no values.
    pub fn spread(&self) -> Option<[f64; 3]> {
        spread(self.values.iter().map(|value| value.value).collect())
    }

    /// Returns the median of a counter, per operation; `None` unless all values have it.
    pub fn counted(&self, counter: PerfCounter) -> Option<f64> {
        let counts: Option<Vec<f64>> =
            self.values.iter().map(|value| value.counters.get(&counter).copied()).collect();
        spread(counts?).map(|[median, ..]| median)
    }

    /// Returns the values as a [`Sample`].
    pub fn sample(&self) -> Result<Sample> {
        let place = |v: &MeasuredValue| ValuePosition {
            build: v.build,
            boot: v.boot,
            run: v.run,
            iteration: v.iteration,
        };
        Sample::new(self.values.iter().map(|value| (place(value), value.value)).collect())
    }
}

/// Returns median, minimum and maximum.
fn spread(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    let (min, max) = (*values.first()?, *values.last()?);
    let last = values.len() - 1;
    Some([(values[last / 2] + values[last.div_ceil(2)]) / 2.0, min, max])
}

/// Shortens a foreign document's schema for an error message: it may be any text.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    if text.chars().count() <= MAX_CHARS {
        return text.into();
    }
    text.chars().take(MAX_CHARS).chain(['…']).collect()
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
        let results = BenchResults::parse("a.json", &good()).unwrap();
        assert_eq!(
            (results.rows[0].name().as_str(), results.rows[0].better),
            ("kbx/getpid", RowDirection::Lower)
        );
        let again = serde_json::to_string(&results).unwrap();
        assert_eq!(BenchResults::parse("b.json", &again).unwrap(), results);
    }

    #[test]
    fn what_a_machine_does_not_have_is_not_in_the_document() {
        let mut row = BenchResults::parse("a.json", &good()).unwrap().rows.remove(0);
        assert_eq!(row.spread(), Some([100.75, 100.0, 101.5]));
        let text = r#"{"build":0,"boot":0,"run":0,"iteration":1,"value":101.5}"#;
        assert_eq!(serde_json::to_string(&row.values[0]).unwrap(), text);
        assert_eq!(row.counted(PerfCounter::Cycles), None);
        row.values[0].counters.insert(PerfCounter::Cycles, 5.0);
        assert_eq!(row.counted(PerfCounter::Cycles), None, "only one of two has it");
        row.values[1].counters.insert(PerfCounter::Cycles, 7.0);
        assert_eq!(row.counted(PerfCounter::Cycles), Some(6.0));
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
            let error = BenchResults::parse("a.json", &text).unwrap_err().to_string();
            for word in words {
                assert!(error.contains(word), "{word:?} is not in: {error}");
            }
        }
        let empty = r#"{"schema":"kerntune-bench-results/1","machine":"host","started":"",
            "kernel":{"release":"","version":"","id":null},"rows":[]}"#;
        assert!(matches!(BenchResults::parse("a", empty), Err(Error::NoRows { .. })));
    }
}
