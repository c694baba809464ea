//! Lines of figures: one JSON line for each row of a suite's programs (`embedded/guest/kt_suite.h`), and
//! for each step that init timed (`embedded/guest/init/times.c`).

use kerntune_stats::PerfCounter;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Work and time of one row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SuiteLine {
    pub row: String,
    /// May be left out by a program that runs each row once.
    #[serde(default)]
    pub iteration: u32,
    pub operations: u64,
    pub nanoseconds: u64,
    /// CPU time of the step in programs; only init knows it.
    #[serde(default)]
    pub user_nanoseconds: u64,
    /// CPU time of the step in the kernel; only init knows it.
    #[serde(default)]
    pub system_nanoseconds: u64,
    /// Counters of KT_COUNTERS, summed over all operations.
    #[serde(default)]
    pub counters: BTreeMap<PerfCounter, u64>,
    /// Reasons for counters of KT_COUNTERS that did not count.
    #[serde(default)]
    pub uncounted: BTreeMap<PerfCounter, String>,
}

impl SuiteLine {
    /// Returns the counters per operation.
    pub fn counted(&self) -> BTreeMap<PerfCounter, f64> {
        let per = |(&counter, &count): (&PerfCounter, &u64)| (counter, count as f64 / self.operations as f64);
        self.counters.iter().map(per).collect()
    }
}

/// Returns the environment variable that asks a suite's programs for these counters
/// (`embedded/guest/kt_counters.h`); `None` if there are none.
pub fn environment(counters: &[PerfCounter]) -> Option<(String, String)> {
    let names: Vec<&str> = counters.iter().map(|counter| counter.name()).collect();
    (!names.is_empty()).then(|| ("KT_COUNTERS".into(), names.join(",")))
}

/// Parses lines of nonzero work, each row and iteration once; otherwise returns the mistake.
pub fn parse(text: &str) -> Result<Vec<SuiteLine>, String> {
    let mut lines: Vec<SuiteLine> = Vec::new();
    for text in text.lines() {
        let line = parse_line(text)?;
        if lines.iter().any(|known| (&known.row, known.iteration) == (&line.row, line.iteration)) {
            return Err(format!("{text:?} (a second time)"));
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Parses init's lines, one for each step with a region, in the order of the steps; a step that is
/// repeated has several. Otherwise returns the mistake.
pub fn parse_steps(text: &str) -> Result<Vec<SuiteLine>, String> {
    text.lines().map(parse_line).collect()
}

fn parse_line(text: &str) -> Result<SuiteLine, String> {
    let line: SuiteLine = serde_json::from_str(text).map_err(|error| format!("{text:?} ({error})"))?;
    match line.operations == 0 || line.nanoseconds == 0 {
        true => Err(format!("{text:?} (no operations, or no time)")),
        false => Ok(line),
    }
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
        assert_eq!(line.counted(), [(PerfCounter::Cycles, 2.5)].into());
        assert_eq!(line.uncounted[&PerfCounter::L1iMisses], "No such file or directory");
        let asked = environment(&[PerfCounter::Cycles, PerfCounter::L1iMisses]).unwrap();
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
