//! Text output of guard checks.

use kerntune_command::CliOutput;
use kerntune_compare::number::{figure, fixed, grouped};
use kerntune_guard::cause::ChangedFunction;
use kerntune_guard::judge::RowVerdict;
use kerntune_guard::{CheckReport, CheckedCell, CheckedRow, RowExplanation};

/// Prints a check: every row, then explanations of the findings.
pub fn check(found: &CheckReport, output: &CliOutput) {
    let [base, new] = &found.subjects;
    output.print(&format!("{}\nagainst {}\n", new.what, base.what));
    let remeasured = found.remeasured();
    remeasured.iter().for_each(|why| output.print(&format!("note        {why}")));
    if !remeasured.is_empty() {
        output.print("");
    }
    output.table(
        &["WORKLOAD", "ROW", "#BEFORE", "#NOW", "#CHANGE %", "#MADE UP", "#TOLERANCE %", "VERDICT"],
        found.cells.iter().flat_map(|cell| cell.rows.iter().map(move |row| line(cell, row))),
    );
    for cell in &found.cells {
        deferred(cell, output);
        for row in &cell.missing {
            output.print(&format!("missing     {row} of {}: only one of the two has it", cell_name(cell)));
        }
        if let Some(why) = &cell.unexplained {
            output.print(&format!("note        {why}"));
        }
    }
    for (cell, row) in found.cells.iter().flat_map(|cell| cell.rows.iter().map(move |row| (cell, row))) {
        if let Some(explained) = &row.explained {
            let what = match row.verdict {
                RowVerdict::Compensated => {
                    format!("{} instructions/op are made up for", figure(row.compensated))
                }
                _ => format!("{} instructions/op", signed(row.path[1] - row.path[0])),
            };
            output.print(&format!("\n{} of {}: {what}", row.row, cell_name(cell)));
            explain(explained, output);
        }
    }
    let rows: usize = found.cells.iter().map(|cell| cell.rows.len()).sum();
    output.print(&match found.findings {
        0 => format!("\nNo path of {rows} rows grew by more than its tolerance."),
        findings => format!("\n{findings} of {rows} rows and sums are findings."),
    });
    output.print(
        "\nbefore, now: an operation's own kernel instructions, exact. made up: instructions/op by which a part of the path grew\n\
         while other parts beside it shrank. put off: kernel work that is not the operation's, such as timers and kernel\n\
         threads (docs/guard.md).",
    );
}

fn line(cell: &CheckedCell, row: &CheckedRow) -> Vec<String> {
    vec![
        cell_name(cell),
        row.row.clone(),
        figure(row.path[0]),
        figure(row.path[1]),
        row.change_percent.map_or("-".into(), |change| format!("{change:+.3}")),
        if row.compensated > 0.0 { figure(row.compensated) } else { String::new() },
        format!("{}", row.tolerance.path),
        row.verdict.to_string(),
    ]
}

fn deferred(cell: &CheckedCell, output: &CliOutput) {
    let of = &cell.deferred;
    let parts: Vec<String> = of
        .classes
        .iter()
        .map(|(class, [before, after])| format!("{class} {} to {}", grouped(*before), grouped(*after)))
        .collect();
    let change = of.change_percent.map_or(String::new(), |change| format!(" ({change:+.2} %)"));
    let verdict = if of.longer { "  LONGER" } else { "" };
    output.print(&format!(
        "put off     {}: {} to {} instructions{change}: {}{verdict}",
        cell_name(cell),
        grouped(of.sum[0]),
        grouped(of.sum[1]),
        parts.join(", ")
    ));
}

fn cell_name(cell: &CheckedCell) -> String {
    let names = [&cell.workload, &cell.configuration, &cell.compiler];
    names.into_iter().filter(|name| !name.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", figure(value.abs()))
}

/// Prints the functions that explain a row, their call paths and lines, and the unexplained rest.
pub fn explain(of: &RowExplanation, output: &CliOutput) {
    let operations = of.operations.map(|count| count.max(1) as f64);
    let per = |sums: [i128; 2]| sums[1] as f64 / operations[1] - sums[0] as f64 / operations[0];
    let calls = |sums: [i128; 2]| {
        let each = |side: usize| sums[side] as f64 / operations[side];
        format!("{} → {}", fixed(each(0), 2), fixed(each(1), 2))
    };
    output.table(
        &["#INSTRUCTIONS/OP", "#CALLS/OP", "FUNCTION", "SOURCE", "WHAT HAPPENED"],
        of.functions.iter().map(|row| {
            let place = row.source.as_ref().map(|place| format!("{}:{}", place.file, place.line));
            vec![
                signed(per(row.instructions)),
                calls(row.calls),
                row.function.clone(),
                place.or_else(|| row.file.clone()).unwrap_or_default(),
                row.what.clone(),
            ]
        }),
    );
    let elsewhere = signed(per(of.elsewhere));
    let all = signed(per(of.own));
    let more = of.more_change as f64 / operations[1];
    output.print(&format!(
        "{} in {} more functions, {elsewhere} in no function or on the way back to user code; all of it {all}, rest {}",
        signed(more),
        of.more_functions,
        of.rest
    ));
    for place in of.compensated.iter().take(2) {
        let said = |parts: &[(String, i128)]| {
            let parts = parts.iter().take(4);
            parts
                .map(|(name, change)| format!("{name} {}", signed(*change as f64 / operations[1])))
                .collect::<Vec<_>>()
                .join(", ")
        };
        output.print(&format!(
            "made up for, below {}: {} by {}",
            place.within.join(" > "),
            said(&place.longer),
            said(&place.shorter)
        ));
    }
    for row in of.functions.iter().take(5) {
        lines(row, output);
    }
}

/// Prints the call path on which a function changed most, and its changed source lines.
fn lines(row: &ChangedFunction, output: &CliOutput) {
    output.print(&format!("  {}: {}", row.function, row.path.join(" > ")));
    let Some(place) = &row.source else { return };
    let beside = if place.beside { ", beside it" } else { "" };
    for (sign, lines) in [('-', &place.removed), ('+', &place.added)] {
        for line in lines {
            output.print(&format!("    {}:{} {sign} {}{beside}", place.file, line.line, line.text));
        }
    }
}
