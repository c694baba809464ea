//! Comparison of two kernels as text.

use crate::{layouts, models, Style};
use kerntune_compare::{number, CodeScope, Comparison, KernelRef, Metric, MetricRow, Verdict, TOTAL};
use kerntune_table::{printable, render, Columns, Document, Table, TextRole};

/// Renders the verdict, both kernels, one line per operation and metric, and a legend. Operations
/// have the metrics of [`changes`], the total has all.
pub fn table(comparison: &Comparison, style: Style) -> String {
    let mut document = head(comparison);
    let several = comparison.runs * comparison.seeds > 1;
    let brief = brief(comparison);
    let rows = comparison.rows.iter().filter(|row| row.operation == TOTAL || brief.contains(&row.metric));
    let mut columns = Columns::<&MetricRow>::new();
    columns.text_only("operation", |row| row.operation.clone()).once().role(|_| TextRole::Head);
    columns.text_only("metric", |row| row.metric.title());
    columns.text_only("base", |row| row.base);
    columns.text_only("tuned", |row| row.tuned);
    columns.text_only("change % ", |row| starred(row, change(row, 2))).right().role(|row| role(row));
    columns.text_only("99 % interval", |row| interval(row)).right().only_if(several);
    columns.text_only("A/A %", |row| aa(row)).right();
    columns
        .text_only("unit", |row| format!("{}{}", row.unit, if row.model { ", model" } else { "" }))
        .role(|_| TextRole::Faint);
    document.table(Table::text_only(rows, columns).spaced());
    add_legend(&mut document, comparison);
    if let Some(layouts) = &comparison.layouts {
        layouts::add(&mut document, layouts);
    }
    if let Some(models) = &comparison.models {
        models::add(&mut document, models);
    }
    render::text(&document, style)
}

/// Renders the verdict, both kernels, one line per operation with the change of each metric, and a
/// legend, to fit on one screen.
pub fn changes(comparison: &Comparison, style: Style) -> String {
    let mut document = head(comparison);
    let path = |operation: &str| comparison.row(operation, Metric::PathLength);
    let mut columns = Columns::<&str>::new();
    columns.text_only("operation", |operation| operation.to_string()).role(|_| TextRole::Head);
    columns.text_only("path length,\nbase", move |operation| path(operation).map(|row| row.base));
    columns.text_only("kernel instr.\ntuned", move |operation| path(operation).map(|row| row.tuned));
    for metric in brief(comparison) {
        columns
            .text_only(metric.head(), move |operation| {
                comparison.row(operation, metric).map(|row| starred(row, change_unit(row)))
            })
            .right()
            .role(move |operation| comparison.row(operation, metric).map_or(TextRole::Plain, role));
    }
    let last = comparison.operations().last();
    let table = Table::text_only(comparison.operations().chain([TOTAL]), columns);
    document.table(table.rule("", move |operation| Some(*operation) == last));
    add_legend(&mut document, comparison);
    render::text(&document, style)
}

/// Returns the metrics of the one-screen table: the kernel's own, and instructions and cycles of
/// the whole path.
pub(crate) fn brief(comparison: &Comparison) -> Vec<Metric> {
    let has = |metric: Metric| comparison.rows.iter().any(|row| row.metric == metric);
    let is_brief = |metric: &Metric| match metric.code_scope() {
        CodeScope::Kernel => true,
        CodeScope::User => false,
        CodeScope::Whole => matches!(metric, Metric::WholeInstructions | Metric::WholeCycles) && has(*metric),
    };
    Metric::all().iter().copied().filter(is_brief).collect()
}

fn head(comparison: &Comparison) -> Document<'_> {
    let mut document = Document::new("", "");
    for sentence in Verdict::new(comparison).sentences() {
        document.painted(TextRole::Head, printable(&sentence) + "\n");
    }
    document.text("\n");
    for (word, kernel) in [("base ", &comparison.base), ("tuned", &comparison.tuned)] {
        document.text(format!("{word}  {}\n", describe(kernel)));
    }
    document.text(format!(
        "workload {} on machine {}\n\n",
        printable(&comparison.workload),
        printable(&comparison.machine)
    ));
    document
}

/// Describes a kernel in one line: `gcc -O2: Linux 6.12.9, gcc 12.2.0, no recipe (0f3c)`.
pub fn describe(kernel: &KernelRef) -> String {
    let mut parts = Vec::new();
    if !kernel.version.is_empty() {
        parts.push(format!("Linux {}", kernel.version));
    }
    if !kernel.compiler.is_empty() {
        parts.push(kernel.compiler.clone());
    }
    parts.push(kernel.recipe.as_ref().map_or("no recipe".into(), |recipe| format!("recipe {recipe}")));
    printable(&format!("{}: {} ({})", kernel.label, parts.join(", "), kernel.id))
}

fn add_legend(document: &mut Document, comparison: &Comparison) {
    document.text("\n");
    let mut lines = Vec::new();
    lines.extend(means(comparison));
    if comparison.rows.iter().any(MetricRow::within_noise) {
        let noise = match comparison.runs * comparison.seeds {
            1 => "*      not larger than the A/A difference (a second run of the base kernel against its first)",
            _ => "*      may be chance: the 99 % interval of the change contains 0",
        };
        lines.push(noise.into());
    }
    if comparison.rows.iter().any(|row| row.has_unequal_user_code()) {
        lines.push("~      user code ran differently: not the kernel's change alone".into());
    }
    if comparison.rows.iter().any(|row| row.model) {
        lines.push(format!("model  figures of a front-end model, {}", model_name(comparison)));
    }
    let whole = comparison.metrics().any(|metric| metric.code_scope() == CodeScope::Whole);
    let whose = match whole {
        true => "Kernel code, except figures named user or whole (kernel and user code);",
        false => "Kernel code only,",
    };
    lines.push(format!("{whose} between marks, per operation; total: the sum of all regions."));
    lines.iter().for_each(|line| document.note(line));
}

/// Returns a sentence on the number of runs that figures are means of; `None` for a single run.
pub(crate) fn means(comparison: &Comparison) -> Option<String> {
    let moments = |runs| format!("{runs} runs of each kernel, begun at {runs} moments (--runs)");
    match (comparison.seeds, comparison.runs) {
        (1, 1) => None,
        (1, runs) => Some(format!("Means of {}.", moments(runs))),
        (seeds, 1) => Some(format!("Means of {seeds} runs of each kernel, with {seeds} seeds (--seeds).")),
        (seeds, runs) => Some(format!(
            "Means over {seeds} seeds (--seeds) of {}; the interval is over seeds.",
            moments(runs)
        )),
    }
}

/// Returns the file that defines the front-end model: `data/cpu-models/generic.toml`.
pub(crate) fn model_name(comparison: &Comparison) -> String {
    match comparison.model.as_str() {
        "" => "see docs/measuring.md".into(),
        model => model_files(model),
    }
}

/// Returns the files of a model and of its parts: two for `zen4+tage`.
pub(crate) fn model_files(model: &str) -> String {
    let model = printable(model).to_string();
    let mut names = model.split('+');
    let first = format!("data/cpu-models/{}.toml", names.next().unwrap_or_default());
    names.fold(first, |files, part| format!("{files} with data/cpu-models/parts/{part}.toml"))
}

fn role(row: &MetricRow) -> TextRole {
    match row {
        _ if row.is_better() => TextRole::Good,
        _ if row.is_worse() => TextRole::Bad,
        _ => TextRole::Faint,
    }
}

/// Appends the row's mark, or a space, so that figures line up.
fn starred(row: &MetricRow, text: String) -> String {
    text + match mark(row) {
        "" => " ",
        mark => mark,
    }
}

/// Returns `*` for a change within the A/A difference, `~` if the kernels did different work.
pub(crate) fn mark(row: &MetricRow) -> &'static str {
    match (row.within_noise(), row.has_unequal_user_code()) {
        (true, _) => "*",
        (false, true) => "~",
        (false, false) => "",
    }
}

/// Formats the relative change: `-11.82`, or `from 0` where the base is 0.
pub(crate) fn change(row: &MetricRow, decimals: usize) -> String {
    row.change_percent.map_or("from 0".into(), |percent| number::change(percent, decimals))
}

/// Formats the relative change with its unit: `-11.8 %`, or `from 0` where the base is 0.
pub(crate) fn change_unit(row: &MetricRow) -> String {
    row.change_percent.map_or("from 0".into(), |percent| format!("{} %", number::change(percent, 1)))
}

/// Formats the bounds of the change: `-7.1 to -6.6`; empty if unknown.
pub(crate) fn interval(row: &MetricRow) -> String {
    row.interval_percent.map_or(String::new(), |ends| {
        let [low, high] = ends.map(|end| number::change(end, 2));
        format!("{low} to {high}")
    })
}

/// Formats the A/A difference: `0`, `0.02`, or `from 0` where only the base's first run has 0.
pub(crate) fn aa(row: &MetricRow) -> String {
    row.aa_percent.map_or("from 0".into(), number::difference)
}
