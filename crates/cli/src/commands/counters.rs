//! Text for CPU counters that were read during timed runs.

use clap::Args;
use kerntune_command::CliOutput;
use kerntune_compare::number::figure;
use kerntune_stats::{BenchResults, PerfCounter, ResultsRow};
use std::collections::BTreeMap;
use std::str::FromStr;

#[derive(Debug, Clone, Args)]
pub struct CounterOptions {
    /// On kvm and host: counters to read during timed runs, separated by commas: instructions,
    /// cycles, branches, branch_misses, l1i_misses, itlb_misses, page_faults, context_switches, or
    /// none [default: the CPU counters, which are the first six]
    #[arg(long, value_name = "LIST")]
    counters: Option<CounterList>,
}

impl CounterOptions {
    /// Returns the counters to read on a machine that has them.
    pub fn chosen(&self) -> &[PerfCounter] {
        self.counters.as_ref().map_or(PerfCounter::HARDWARE, |CounterList(counters)| counters)
    }

    /// Returns true if `--counters` named at least one counter.
    pub fn are_asked(&self) -> bool {
        self.counters.as_ref().is_some_and(|CounterList(counters)| !counters.is_empty())
    }
}

/// Counters parsed from names separated by commas; `none` is the empty list.
#[derive(Debug, Clone, PartialEq)]
struct CounterList(Vec<PerfCounter>);

impl FromStr for CounterList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(Vec::new())),
            names => names.split(',').map(PerfCounter::from_str).collect::<Result<_, _>>().map(Self),
        }
    }
}

/// Returns the counters that at least one row has, in table order.
fn counted(results: &BenchResults) -> Vec<PerfCounter> {
    let has = |counter: &PerfCounter| results.rows.iter().any(|row| row.counted(*counter).is_some());
    PerfCounter::all().filter(has).collect()
}

/// Prints a table of medians with a column for each counter, and the reasons that other counters
/// were not available.
pub fn table(results: &BenchResults, output: &CliOutput) {
    let counters = counted(results);
    if !counters.is_empty() {
        let heads =
            counters.iter().map(|counter| format!("#{}", counter.name().replace('_', " ").to_uppercase()));
        let heads: Vec<String> = ["SUITE".into(), "ROW".into()].into_iter().chain(heads).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let lines = results.rows.iter().map(|row| {
            let counts = counters.iter().map(|&counter| row.counted(counter).map_or("-".into(), figure));
            [row.suite.clone(), row.row.clone()].into_iter().chain(counts).collect()
        });
        output.note("\ncounted per operation, of kernel code, medians:");
        output.table(&heads, lines);
    }
    say_uncounted(results, output);
}

/// Prints a line for each row and counter: the base kernel's count, and the difference of each
/// other kernel. `heads` are the column heads.
pub fn changes(times: &[BenchResults], heads: &[&str], output: &CliOutput) {
    let Some((base, others)) = times.split_first() else { return };
    let counters = counted(base);
    let lines = base.rows.iter().flat_map(|row| counters.iter().map(move |&counter| (row, counter)));
    let lines: Vec<Vec<String>> = lines
        .filter_map(|(row, counter)| {
            let count = row.counted(counter)?;
            let change = |other: &BenchResults| {
                let same = |beside: &&ResultsRow| (&beside.suite, &beside.row) == (&row.suite, &row.row);
                let beside = other.rows.iter().find(same).and_then(|beside| beside.counted(counter));
                beside.map_or("-".into(), |beside| format!("{:+.2} %", (beside / count - 1.0) * 100.0))
            };
            let mut line = vec![row.row.clone(), counter.name().replace('_', " "), figure(count)];
            line.extend(others.iter().map(change));
            Some(line)
        })
        .collect();
    if !lines.is_empty() {
        output.note("\ncounted per operation, of kernel code, medians:");
        let heads: Vec<&str> = ["ROW", "COUNTER"].into_iter().chain(heads.iter().copied()).collect();
        output.table(&heads, lines);
    }
    say_uncounted(base, output);
}

fn say_uncounted(results: &BenchResults, output: &CliOutput) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (counter, reason) in &results.uncounted {
        reasons.entry(reason).or_default().push(counter.name());
    }
    for (reason, counters) in reasons {
        output.note(&format!("not counted: {}: {reason}", counters.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_by_commas() {
        let parse = |text: &str| text.parse::<CounterList>();
        assert_eq!(parse("none"), Ok(CounterList(vec![])));
        assert_eq!(
            parse("cycles,page_faults"),
            Ok(CounterList(vec![PerfCounter::Cycles, PerfCounter::PageFaults]))
        );
        assert!(parse("cycles,,").unwrap_err().contains("instructions, cycles"));
        assert_eq!(CounterOptions { counters: None }.chosen(), PerfCounter::HARDWARE);
        let command = CounterOptions::augment_args(clap::Command::new("test"));
        let help = command.get_arguments().find_map(clap::Arg::get_help).unwrap().to_string();
        assert!(PerfCounter::all().all(|counter| help.contains(counter.name())), "{help}");
    }
}
