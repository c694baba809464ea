//! What grew, as text.

use crate::output::Output;
use kerntune_compare::number::{figure, fixed, grouped};
use kerntune_guard::cause::Changed;
use kerntune_guard::{judge::Verdict, Check, CheckedCell, CheckedRow, Explained};

/// A check: every row, then what explains those that are findings.
pub fn check(found: &Check, output: &Output) {
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
        put_off(cell, output);
        for row in &cell.missing {
            output.print(&format!("missing     {row} of {}: only one of the two has it", named(cell)));
        }
        if let Some(why) = &cell.unexplained {
            output.print(&format!("note        {why}"));
        }
    }
    for (cell, row) in found.cells.iter().flat_map(|cell| cell.rows.iter().map(move |row| (cell, row))) {
        if let Some(explained) = &row.explained {
            let what = match row.verdict {
                Verdict::MadeUp => format!("{} instructions/op are made up for", figure(row.made_up)),
                _ => format!("{} instructions/op", signed(row.path[1] - row.path[0])),
            };
            output.print(&format!("\n{} of {}: {what}", row.row, named(cell)));
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
        named(cell),
        row.row.clone(),
        figure(row.path[0]),
        figure(row.path[1]),
        row.change_percent.map_or("-".into(), |change| format!("{change:+.3}")),
        if row.made_up > 0.0 { figure(row.made_up) } else { String::new() },
        format!("{}", row.tolerance.path),
        row.verdict.to_string(),
    ]
}

fn put_off(cell: &CheckedCell, output: &Output) {
    let of = &cell.put_off;
    let parts: Vec<String> = of
        .classes
        .iter()
        .map(|(class, [before, after])| format!("{class} {} to {}", grouped(*before), grouped(*after)))
        .collect();
    let change = of.change_percent.map_or(String::new(), |change| format!(" ({change:+.2} %)"));
    let verdict = if of.longer { "  LONGER" } else { "" };
    output.print(&format!(
        "put off     {}: {} to {} instructions{change}: {}{verdict}",
        named(cell),
        grouped(of.sum[0]),
        grouped(of.sum[1]),
        parts.join(", ")
    ));
}

fn named(cell: &CheckedCell) -> String {
    let names = [&cell.workload, &cell.configuration, &cell.compiler];
    names.into_iter().filter(|name| !name.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", figure(value.abs()))
}

/// Functions, their call paths, their lines; and that nothing is left.
pub fn explain(of: &Explained, output: &Output) {
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
    for place in of.made_up.iter().take(2) {
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

/// The call path on which a function changed most, and its lines that did.
fn lines(row: &Changed, output: &Output) {
    output.print(&format!("  {}: {}", row.function, row.path.join(" > ")));
    let Some(place) = &row.source else { return };
    let beside = if place.beside { ", beside it" } else { "" };
    for (sign, lines) in [('-', &place.removed), ('+', &place.added)] {
        for line in lines {
            output.print(&format!("    {}:{} {sign} {}{beside}", place.file, line.line, line.text));
        }
    }
}
