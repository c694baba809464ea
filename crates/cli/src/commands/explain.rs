//! `kerntune compare --explain`.

use super::compare::CompareOptions;
use kerntune_command::{work_to_read, workload, CliOutput, Exit, Failure, GlobalOptions};
use kerntune_compare::number::grouped;
use kerntune_tune::explain::{explain, most_changed, ExplainResult};
use kerntune_tune::Session;

/// Without `--all`, the functions shown explain this share of all changes.
const SHOWN: f64 = 0.8;

pub fn run(global: &GlobalOptions, options: &CompareOptions, output: &CliOutput) -> Result<Exit, Failure> {
    let work = work_to_read(global)?;
    let workload = workload(&options.workload, &options.cpus)?;
    let model = options.model.find(false)?;
    let base = kerntune_kernel::find(&work, &options.base)?;
    let tuned = kerntune_kernel::find(&work, &options.tuned)?;
    let session = Session::new(&work, output.progress())?;
    let explained = explain(&session, [&base, &tuned], &workload, &model)?;
    match options.format.json {
        true => output.json(&explained),
        false => print(&explained, options.all, output),
    }
    Ok(Exit::Ok)
}

fn print(explained: &ExplainResult, all: bool, output: &CliOutput) {
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
    let rows = if all { &explained.functions[..] } else { most_changed(&explained.functions, SHOWN) };
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
