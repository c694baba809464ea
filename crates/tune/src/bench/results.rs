//! The common format of results: `docs/json.md`.

use kerntune_guest::{Better, SuiteRow};
use serde::Serialize;
use std::fmt;

/// Name and version of the JSON form.
pub const SCHEMA: &str = "kerntune-bench-results/1";

/// What one kernel's rows came to on one machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `emulator`, `host`.
    pub machine: &'static str,
    /// Whose figures these are.
    pub kernel: KernelName,
    /// When the first row began, RFC 3339.
    pub started: String,
    /// How many times its usual work each row did.
    pub scale: f64,
    /// The front-end model of machines that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// In the order of the suites.
    pub rows: Vec<Row>,
    /// Rows that were asked for and cannot run there.
    pub skipped: Vec<Skipped>,
}

/// A kernel as it names itself, and as kerntune does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct KernelName {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// Its id in the work directory, if it is there.
    pub id: Option<String>,
    /// The linker's hash: kernels of one release, of which one is tuned, differ in it.
    pub build_id: Option<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The suite's workload.
    pub suite: String,
    /// Its name there.
    pub row: String,
    /// Of its values.
    pub unit: String,
    /// Which values are good.
    pub better: Better,
    /// In order of time.
    pub values: Vec<Value>,
}

/// One value, and where it stands among the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Value {
    /// One build of each kernel: 0.
    pub build: u32,
    /// From 0.
    pub boot: u32,
    /// Of the suite's program in that boot, from 0.
    pub run: u32,
    /// Of the row in that run, from 0.
    pub iteration: u32,
    /// In the row's unit.
    pub value: f64,
    /// Of the exact machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
}

/// What an operation takes on the exact machine, all of kernel code.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_cycles: Option<f64>,
}

/// A row without figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

impl Row {
    /// Without values, in the unit that the row itself has.
    pub(super) fn timed(suite: &str, row: &SuiteRow) -> Self {
        Self {
            suite: suite.into(),
            row: row.name.clone(),
            unit: row.unit.name().into(),
            better: row.unit.better(),
            values: Vec::new(),
        }
    }

    /// The values' median, least and greatest; None if there are none.
    pub fn spread(&self) -> Option<[f64; 3]> {
        let mut values: Vec<f64> = self.values.iter().map(|value| value.value).collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let last = values.len() - 1;
        Some([(values[last / 2] + values[last.div_ceil(2)]) / 2.0, least, most])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_does_not_have_is_not_in_the_document() {
        let value = |value| Value { build: 0, boot: 1, run: 2, iteration: 3, value, figures: None };
        let mut row = Row {
            suite: "kbx".into(),
            row: "getpid".into(),
            unit: "ns/op".into(),
            better: Better::Lower,
            values: vec![value(3.0), value(1.0), value(2.0), value(9.5)],
        };
        assert_eq!(row.spread(), Some([2.5, 1.0, 9.5]));
        assert_eq!(
            serde_json::to_string(&row.values[0]).unwrap(),
            r#"{"build":0,"boot":1,"run":2,"iteration":3,"value":3.0}"#
        );
        assert_eq!(serde_json::to_value(&row).unwrap()["better"], "lower");
        row.values.clear();
        assert_eq!(row.spread(), None);
    }
}
