//! `kerntune compare --explain`.

use kerntune_command::CliOutput;
use kerntune_compare::number::grouped;
use kerntune_tune::explain::{max_changed, ExplainResult};

/// Without `--all`, the functions shown explain this share of all changes.
const SHOWN: f64 = 0.8;

/// Prints the explanation as text: all functions, or those that explain most of the change.
pub fn print(explained: &ExplainResult, all: bool, output: &CliOutput) {
    let [base, tuned] = &explained.labels;
    let percent = |[a, b]: [u64; 2]| match a {
        0 => String::new(),
        a => format!(" ({:+.1} %)", 100.0 * (b as f64 / a as f64 - 1.0)),
    };
    let pair = |[a, b]: [u64; 2]| format!("{} → {}", grouped(a), grouped(b));
    output.print(&format!("{} on {base} → {tuned}", explained.workload));
    output.print(&format!(
        "  instructions    {}{}",
        pair(explained.instructions),
        percent(explained.instructions)
    ));
    let taken = explained.taken_branches;
    output.print(&format!("  taken branches  {}{}\n", pair(taken), percent(taken)));
    let rows = if all { &explained.functions[..] } else { max_changed(&explained.functions, SHOWN) };
    let signed = |values: [u64; 2]| change(values.map(i128::from));
    output.table(
        &["#INSTRUCTIONS", "#TAKEN", "#CALLS", "#BYTES", "FUNCTION", "WHAT HAPPENED"],
        rows.iter().map(|row| {
            vec![
                signed(row.instructions),
                signed(row.taken_branches),
                pair(row.calls),
                pair(row.bytes),
                row.function.clone(),
                row.what.join("; "),
            ]
        }),
    );
    let rest = explained.functions.len() - rows.len();
    let sum = |side: usize| explained.functions[rows.len()..].iter().map(|row| row.instructions[side]).sum();
    output.print(&format!(
        "\n{} instructions in {rest} more functions (--all), {} in no function or on the way back to user code; all of them sum to the total",
        signed([sum(0), sum(1)]),
        change(explained.elsewhere.map(i128::from)),
    ));
}

/// Formats `tuned - base` with its sign.
fn change([base, tuned]: [i128; 2]) -> String {
    let sign = if tuned < base { "-" } else { "+" };
    format!("{sign}{}", grouped(u64::try_from(tuned.abs_diff(base)).unwrap_or(u64::MAX)))
}
