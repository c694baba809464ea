//! Comparison of two kernels as text.

use crate::{layouts, models, Style};
use kerntune_compare::{number, CodeScope, Comparison, KernelRef, Metric, MetricRow, Verdict, TOTAL};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{printable, TextRole};

/// Renders the verdict, both kernels, one line per operation and metric, and a legend. Operations
/// have the metrics of [`changes`], the total has all.
pub fn table(comparison: &Comparison, style: Style) -> String {
    let mut out = head(comparison, style);
    let several = comparison.runs * comparison.seeds > 1;
    let mut heads = vec![
        ("operation", Alignment::Left),
        ("metric", Alignment::Left),
        ("base", Alignment::Right),
        ("tuned", Alignment::Right),
        ("change % ", Alignment::Right),
    ];
    heads.extend(several.then_some(("99 % interval", Alignment::Right)));
    heads.extend([("A/A %", Alignment::Right), ("unit", Alignment::Left)]);
    let mut table = TableBuilder::with(heads);
    let mut last = "";
    let brief = brief(comparison);
    let shown = |row: &&MetricRow| row.operation == TOTAL || brief.contains(&row.metric);
    for row in comparison.rows.iter().filter(shown) {
        let first = row.operation != last;
        if first && !last.is_empty() {
            table.gap();
        }
        last = &row.operation;
        let mut cells = vec![
            if first { TextCell(printable(&row.operation), TextRole::Head) } else { "".into() },
            row.metric.title().into(),
            number::figure(row.base).into(),
            number::figure(row.tuned).into(),
            TextCell(starred(row, change(row, 2)), role(row)),
        ];
        cells.extend(several.then(|| interval(row).into()));
        let unit = format!("{}{}", row.unit, if row.model { ", model" } else { "" });
        cells.extend([aa(row).into(), TextCell(unit, TextRole::Faint)]);
        table.row_of(cells);
    }
    out.push_str(&table.render(style));
    out.push('\n');
    out.push_str(&legend(comparison, style));
    if let Some(layouts) = &comparison.layouts {
        out.push('\n');
        out.push_str(&layouts::table(layouts, style));
    }
    if let Some(models) = &comparison.models {
        out.push('\n');
        out.push_str(&models::table(models, style));
    }
    out
}

/// Renders the verdict, both kernels, one line per operation with the change of each metric, and a
/// legend, to fit on one screen.
pub fn changes(comparison: &Comparison, style: Style) -> String {
    let mut out = head(comparison, style);
    let heads = [
        ("operation", Alignment::Left),
        ("path length,\nbase", Alignment::Right),
        ("kernel instr.\ntuned", Alignment::Right),
    ];
    let metrics = brief(comparison);
    let changes = metrics.iter().map(|metric| (metric.head(), Alignment::Right));
    let mut table = TableBuilder::with(heads.into_iter().chain(changes));
    let cell = |row: Option<&MetricRow>| {
        row.map_or("".into(), |row| TextCell(starred(row, change_unit(row)), role(row)))
    };
    for operation in comparison.operations().chain([TOTAL]) {
        if operation == TOTAL {
            table.gap();
        }
        let path = comparison.row(operation, Metric::PathLength);
        let figure = |of: fn(&MetricRow) -> f64| path.map_or(String::new(), |row| number::figure(of(row)));
        let mut cells = vec![
            TextCell(printable(operation), TextRole::Head),
            figure(|row| row.base).into(),
            figure(|row| row.tuned).into(),
        ];
        cells.extend(metrics.iter().map(|metric| cell(comparison.row(operation, *metric))));
        table.row_of(cells);
    }
    out.push_str(&table.render(style));
    out.push('\n');
    out.push_str(&legend(comparison, style));
    out
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

fn head(comparison: &Comparison, style: Style) -> String {
    let mut out = String::new();
    for sentence in Verdict::new(comparison).sentences() {
        out.push_str(&style.paint(TextRole::Head, &printable(&sentence)));
        out.push('\n');
    }
    out.push('\n');
    for (word, kernel) in [("base ", &comparison.base), ("tuned", &comparison.tuned)] {
        out.push_str(&format!("{word}  {}\n", describe(kernel)));
    }
    out.push_str(&format!(
        "workload {} on machine {}\n\n",
        printable(&comparison.workload),
        printable(&comparison.machine)
    ));
    out
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

fn legend(comparison: &Comparison, style: Style) -> String {
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
    let paint = |line: String| style.paint(TextRole::Faint, &line) + "\n";
    lines.into_iter().map(paint).collect()
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
