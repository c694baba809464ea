//! What a CPU counted beside the times.

use crate::output::Output;
use kerntune_compare::number::figure;
use kerntune_stats::{Counter, Results, ResultsRow};
use std::collections::BTreeMap;

/// The counters that some row has, in the order of tables.
fn counted(results: &Results) -> Vec<Counter> {
    let has = |counter: &Counter| results.rows.iter().any(|row| row.counted(*counter).is_some());
    Counter::all().filter(has).collect()
}

/// A table of medians, a column for each counter, and why others did not count.
pub fn table(results: &Results, output: &Output) {
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

/// A line for each row and counter: the base kernel's count, and by how much others' differ. `heads` are those of the columns.
pub fn changes(times: &[Results], heads: &[&str], output: &Output) {
    let Some((base, others)) = times.split_first() else { return };
    let counters = counted(base);
    let lines = base.rows.iter().flat_map(|row| counters.iter().map(move |&counter| (row, counter)));
    let lines: Vec<Vec<String>> = lines
        .filter_map(|(row, counter)| {
            let count = row.counted(counter)?;
            let change = |other: &Results| {
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

fn say_uncounted(results: &Results, output: &Output) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (counter, reason) in &results.uncounted {
        reasons.entry(reason).or_default().push(counter.name());
    }
    for (reason, counters) in reasons {
        output.note(&format!("not counted: {}: {reason}", counters.join(", ")));
    }
}
