//! Members of the JSON form that several sections have: functions, spreads, figures of calls.

use super::AnatomyView;
use kerntune_analyze::anatomy::{CallFigures, ExampleCall, FigureSpread, FigureSpreads, NodeFigures};
use kerntune_profile::FunctionIndex;
use kerntune_table::Columns;

/// Declares the members that name the function of a row; a row without one does not have them.
pub(super) fn function<'a, R: 'a>(
    shown: AnatomyView<'a>,
    get: impl Fn(&R) -> Option<FunctionIndex> + Copy + 'a,
) -> Columns<'a, R> {
    let symbol = move |row: &R| shown.symbol(get(row)?);
    let mut columns = Columns::<R>::new();
    columns
        .add("function", "Function.", move |row| get(row).map(|of| shown.profile.tables.name(of)))
        .when(move |row| get(row).is_some());
    columns
        .add("file", "Its source file.", move |row| symbol(row)?.file.as_deref())
        .when(move |row| get(row).is_some());
    columns
        .add("module", "Its module or user binary.", move |row| symbol(row)?.module.as_deref())
        .when(move |row| get(row).is_some());
    columns
}

pub(super) fn spread<'a>() -> Columns<'a, FigureSpread> {
    let mut columns = Columns::<FigureSpread>::new();
    columns.add("count", "Calls.", |row| row.count);
    columns.add("sum", "Sum.", |row| row.sum);
    columns.add("least", "Least.", |row| row.min);
    columns.add("median", "Median, the lower of two in the middle.", |row| row.median);
    columns.add("greatest", "Greatest.", |row| row.greatest);
    columns.add(
        "rounding",
        "Greatest error of the median: 0 but for figures with more than 65,536 different values.",
        |row| row.rounding,
    );
    columns
}

pub(super) fn spreads<'a>() -> Columns<'a, FigureSpreads> {
    let mut columns = Columns::<FigureSpreads>::new();
    columns.object("elapsed", "Time.", spread(), |row| &row.ns);
    columns.object("calls", "Calls within it, and itself.", spread(), |row| &row.calls);
    columns.object("functions", "Different functions, itself among them.", spread(), |row| &row.functions);
    columns.object("depth", "Calls open at a time, itself among them.", spread(), |row| &row.depth);
    columns
}

pub(super) fn figures<'a>() -> Columns<'a, CallFigures> {
    let mut columns = Columns::<CallFigures>::new();
    columns.add("elapsed", "Time.", |row| row.ns);
    columns.add("calls", "Calls within it, and itself.", |row| row.calls);
    columns.add("functions", "Different functions, itself among them.", |row| row.functions);
    columns.add("depth", "Calls open at a time, itself among them.", |row| row.depth);
    columns
}

pub(super) fn call<'a>(shown: AnatomyView<'a>) -> Columns<'a, ExampleCall> {
    let thread = move |row: &ExampleCall| shown.recording.threads.get(row.thread as usize);
    let mut columns = Columns::<ExampleCall>::new();
    columns.add("begin_ns", "Virtual time at which it begins.", |row| row.begin_ns);
    columns.add("pid", "Its thread; null if that is not known.", move |row| Some(thread(row)?.pid));
    columns.add("comm", "Name of the thread.", move |row| Some(thread(row)?.comm.as_str()));
    columns.part(figures(), |row| &row.figures);
    columns
}

pub(super) fn node<'a>() -> Columns<'a, NodeFigures> {
    let mut columns = Columns::<NodeFigures>::new();
    columns.add("calls", "Calls.", |row| row.calls);
    columns.add("self", "Time without callees.", |row| row.self_ticks);
    columns.add("elapsed", "Time with callees.", |row| row.elapsed_ns);
    columns.add("functions", "Different functions at it and below it.", |row| row.functions);
    columns
}
