//! A comparison as text.

use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role};
use crate::{layouts, models, Style};
use kerntune_compare::{number, Comparison, KernelRef, Metric, Row, Verdict, Whose, TOTAL};

/// Verdict, both kernels, one line per operation and metric, legend: of each operation the metrics of [`changes`], of the total all.
pub fn table(comparison: &Comparison, style: Style) -> String {
    let mut out = head(comparison, style);
    let several = comparison.runs * comparison.seeds > 1;
    let mut heads = vec![
        ("operation", Side::Left),
        ("metric", Side::Left),
        ("base", Side::Right),
        ("tuned", Side::Right),
        ("change % ", Side::Right),
    ];
    heads.extend(several.then_some(("99 % interval", Side::Right)));
    heads.extend([("A/A %", Side::Right), ("unit", Side::Left)]);
    let mut table = Columns::with(heads);
    let mut last = "";
    let brief = brief(comparison);
    let shown = |row: &&Row| row.operation == TOTAL || brief.contains(&row.metric);
    for row in comparison.rows.iter().filter(shown) {
        let first = row.operation != last;
        if first && !last.is_empty() {
            table.gap();
        }
        last = &row.operation;
        let mut cells = vec![
            if first { Cell(printable(&row.operation), Role::Head) } else { "".into() },
            row.metric.title().into(),
            number::figure(row.base).into(),
            number::figure(row.tuned).into(),
            Cell(starred(row, change(row, 2)), role(row)),
        ];
        cells.extend(several.then(|| interval(row).into()));
        let unit = format!("{}{}", row.unit, if row.model { ", model" } else { "" });
        cells.extend([aa(row).into(), Cell(unit, Role::Faint)]);
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

/// Verdict, both kernels, one line per operation with the change of each metric, legend: what
/// fits on one screen.
pub fn changes(comparison: &Comparison, style: Style) -> String {
    let mut out = head(comparison, style);
    let heads = [
        ("operation", Side::Left),
        ("path length,\nbase", Side::Right),
        ("kernel instr.\ntuned", Side::Right),
    ];
    let metrics = brief(comparison);
    let changes = metrics.iter().map(|metric| (metric.head(), Side::Right));
    let mut table = Columns::with(heads.into_iter().chain(changes));
    let cell =
        |row: Option<&Row>| row.map_or("".into(), |row| Cell(starred(row, change_unit(row)), role(row)));
    for operation in comparison.operations().chain([TOTAL]) {
        if operation == TOTAL {
            table.gap();
        }
        let path = comparison.row(operation, Metric::PathLength);
        let figure = |of: fn(&Row) -> f64| path.map_or(String::new(), |row| number::figure(of(row)));
        let mut cells = vec![
            Cell(printable(operation), Role::Head),
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

/// What the one-screen table has: the kernel's own figures, and of the whole path its instructions and cycles.
pub(crate) fn brief(comparison: &Comparison) -> Vec<Metric> {
    let has = |metric: Metric| comparison.rows.iter().any(|row| row.metric == metric);
    let is_brief = |metric: &Metric| match metric.whose() {
        Whose::Kernel => true,
        Whose::User => false,
        Whose::Whole => matches!(metric, Metric::WholeInstructions | Metric::WholeCycles) && has(*metric),
    };
    Metric::all().iter().copied().filter(is_brief).collect()
}

fn head(comparison: &Comparison, style: Style) -> String {
    let mut out = String::new();
    for sentence in Verdict::new(comparison).sentences() {
        out.push_str(&style.paint(Role::Head, &printable(&sentence)));
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

/// A kernel in one line: `gcc -O2: Linux 6.12.9, gcc 12.2.0, no recipe (0f3c)`.
pub(crate) fn describe(kernel: &KernelRef) -> String {
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
    if comparison.rows.iter().any(Row::within_noise) {
        let noise = match comparison.runs * comparison.seeds {
            1 => "*      not larger than the A/A difference (a second run of the base kernel against its first)",
            _ => "*      may be chance: the 99 % interval of the change contains 0",
        };
        lines.push(noise.into());
    }
    if comparison.rows.iter().any(|row| row.is_of_other_work()) {
        lines.push("~      user code ran differently: not the kernel's change alone".into());
    }
    if comparison.rows.iter().any(|row| row.model) {
        lines.push(format!("model  figures of a front-end model, {}", model_name(comparison)));
    }
    let whole = comparison.metrics().any(|metric| metric.whose() == Whose::Whole);
    let whose = match whole {
        true => "Kernel code, except figures named user or whole (kernel and user code);",
        false => "Kernel code only,",
    };
    lines.push(format!("{whose} between marks, per operation; total: the sum of all regions."));
    let paint = |line: String| style.paint(Role::Faint, &line) + "\n";
    lines.into_iter().map(paint).collect()
}

/// What figures are means of; none of one run.
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

/// Where the model's sizes are from: `machines/generic.toml`.
pub(crate) fn model_name(comparison: &Comparison) -> String {
    match comparison.model.as_str() {
        "" => "see docs/measuring.md".into(),
        model => model_files(model),
    }
}

/// The files of a model and of its parts, of `zen4+tage` two.
pub(crate) fn model_files(model: &str) -> String {
    let model = printable(model).to_string();
    let mut names = model.split('+');
    let first = format!("machines/{}.toml", names.next().unwrap_or_default());
    names.fold(first, |files, part| format!("{files} with machines/parts/{part}.toml"))
}

fn role(row: &Row) -> Role {
    match row {
        _ if row.is_better() => Role::Good,
        _ if row.is_worse() => Role::Bad,
        _ => Role::Faint,
    }
}

/// With its mark or room for one, so that figures line up.
fn starred(row: &Row, text: String) -> String {
    text + match mark(row) {
        "" => " ",
        mark => mark,
    }
}

/// `*` of what may be chance, `~` of what is of other work.
pub(crate) fn mark(row: &Row) -> &'static str {
    match (row.within_noise(), row.is_of_other_work()) {
        (true, _) => "*",
        (false, true) => "~",
        (false, false) => "",
    }
}

/// `-11.82`, or `from 0` where the base is 0.
pub(crate) fn change(row: &Row, decimals: usize) -> String {
    row.change_percent.map_or("from 0".into(), |percent| number::change(percent, decimals))
}

/// `-11.8 %`, or `from 0` where the base is 0.
pub(crate) fn change_unit(row: &Row) -> String {
    row.change_percent.map_or("from 0".into(), |percent| format!("{} %", number::change(percent, 1)))
}

/// Between what the change lies: `-7.1 to -6.6`; nothing where that is not known.
pub(crate) fn interval(row: &Row) -> String {
    row.interval_percent.map_or(String::new(), |ends| {
        let [low, high] = ends.map(|end| number::change(end, 2));
        format!("{low} to {high}")
    })
}

/// The A/A difference: `0`, `0.02`, `from 0` where the base's first run has 0 and its second not.
pub(crate) fn aa(row: &Row) -> String {
    row.aa_percent.map_or("from 0".into(), number::difference)
}
