//! What a suite's program prints: one JSON line for each row that it did (`guest/kt_suite.h`).

use kerntune_stats::Counter;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One row's work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Line {
    pub row: String,
    /// May be left out by a program that does each row once.
    #[serde(default)]
    pub iteration: u32,
    pub operations: u64,
    pub nanoseconds: u64,
    /// What KT_COUNTERS asked for, over all operations.
    #[serde(default)]
    pub counters: BTreeMap<Counter, u64>,
    /// Why the rest of that did not count.
    #[serde(default)]
    pub uncounted: BTreeMap<Counter, String>,
}

impl Line {
    /// The counters, per operation.
    pub fn counted(&self) -> BTreeMap<Counter, f64> {
        let per = |(&counter, &count): (&Counter, &u64)| (counter, count as f64 / self.operations as f64);
        self.counters.iter().map(per).collect()
    }
}

/// What is set in the environment of a suite's programs to have these counters (`guest/kt_counters.h`); nothing for none.
pub fn environment(counters: &[Counter]) -> Option<(String, String)> {
    let names: Vec<&str> = counters.iter().map(|counter| counter.name()).collect();
    (!names.is_empty()).then(|| ("KT_COUNTERS".into(), names.join(",")))
}

/// Nothing but lines of work that was done, each row and iteration once; what is wrong otherwise.
pub fn parse(text: &str) -> Result<Vec<Line>, String> {
    let mut lines: Vec<Line> = Vec::new();
    for text in text.lines() {
        let line: Line = serde_json::from_str(text).map_err(|error| format!("{text:?} ({error})"))?;
        if line.operations == 0 || line.nanoseconds == 0 {
            return Err(format!("{text:?} (no operations, or no time)"));
        }
        if lines.iter().any(|known| (&known.row, known.iteration) == (&line.row, line.iteration)) {
            return Err(format!("{text:?} (a second time)"));
        }
        lines.push(line);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_per_operation_and_what_did_not_count_says_why() {
        let text =
            "{\"row\":\"a\",\"operations\":4,\"nanoseconds\":9,\"counters\":{\"cycles\":10},\"uncounted\":\
                    {\"l1i_misses\":\"No such file or directory\"}}";
        let line = parse(text).unwrap().remove(0);
        assert_eq!(line.counted(), [(Counter::Cycles, 2.5)].into());
        assert_eq!(line.uncounted[&Counter::L1iMisses], "No such file or directory");
        let asked = environment(&[Counter::Cycles, Counter::L1iMisses]).unwrap();
        assert_eq!(asked, ("KT_COUNTERS".into(), "cycles,l1i_misses".into()));
        assert_eq!(environment(&[]), None);
    }

    #[test]
    fn only_work_that_was_done_is_a_figure() {
        let text = "{\"row\":\"getpid\",\"operations\":4,\"nanoseconds\":100}\n\
                    {\"row\":\"nop\",\"iteration\":1,\"operations\":1,\"nanoseconds\":1}\n";
        let lines = parse(text).unwrap();
        assert_eq!((lines[0].iteration, lines[1].iteration, lines[1].row.as_str()), (0, 1, "nop"));
        for (bad, word) in [
            (text.repeat(2), "a second time"),
            (text.replace(":4", ":0"), "no operations"),
            (text.replace("100", "-5"), "-5"),
            (format!("done\n{text}"), "\"done\""),
        ] {
            let message = parse(&bad).unwrap_err();
            assert!(message.contains(word), "{message}");
        }
    }
}
