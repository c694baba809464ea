//! Work of calls before they reach the boundary: figures, and the nested stages.

use super::figures::{call, figures, function, node, spread, spreads};
use super::{children, head, per, tree, AnatomyView, NodeFold};
use kerntune_analyze::anatomy::{BoundaryEntry, ExampleCall, NodeFigures};
use kerntune_profile::{CallKind, FunctionIndex};
use kerntune_table::number::grouped;
use kerntune_table::{printable, Columns, Document, Table, TextRole};

/// Number of first boundary functions that are named.
const MAX_FIRST_FUNCTIONS: usize = 5;

/// Line of the stages before the boundary.
enum StageLine {
    /// Node that is open at the boundary; its earlier callees follow.
    Open(usize),
    /// Completed node with its subtree.
    Built(usize),
    /// Depth, and nodes that are too small for lines of their own.
    Small(u32, Vec<usize>),
    /// Depth of the boundary.
    Boundary(u32),
}

/// Lists the work of the typical call before the boundary: the nodes open there, each with what it
/// called before, in call order. Together the lines have every call and all time before the
/// boundary, each once.
fn stages(shown: &AnatomyView, reached: &BoundaryEntry) -> Vec<StageLine> {
    let nodes = &shown.anatomy.nodes;
    let whole = nodes.first().map_or(0, |root| root.boundary.before.elapsed_ns);
    let is_small = |child: &usize| {
        nodes[*child].boundary.before.elapsed_ns as f64 * 100.0 < whole as f64 * shown.min_percent
    };
    let (mut out, mut late, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(node) = nodes.get(at) {
        out.push(StageLine::Open(at));
        let leads_there = |child: usize| (child..child + nodes[child].len as usize).contains(&reached.from);
        let next = children(nodes, at).find(|child| leads_there(*child));
        let ran = |child: &usize| nodes[*child].boundary.before.calls > 0 && Some(*child) != next;
        let (small, mut large): (Vec<usize>, Vec<usize>) =
            children(nodes, at).filter(ran).partition(is_small);
        large.sort_by_key(|child| nodes[*child].boundary.order);
        // The node that leads to the boundary may have been called before; nodes called after its
        // last call come after it.
        let order = next.map_or(u32::MAX, |next| nodes[next].boundary.order);
        let (before, after): (Vec<usize>, Vec<usize>) =
            large.into_iter().partition(|child| nodes[*child].boundary.order < order);
        out.extend(before.into_iter().map(StageLine::Built));
        match small[..] {
            [] => {}
            [one] => out.push(StageLine::Built(one)),
            _ => out.push(StageLine::Small(node.depth + 1, small)),
        }
        late.push(after);
        match next {
            Some(next) => at = next,
            None => {
                out.push(StageLine::Boundary(node.depth + 1));
                break;
            }
        }
    }
    out.extend(late.into_iter().rev().flatten().map(StageLine::Built));
    out
}

/// Adds the section; `before` is null if no boundary was asked for.
pub(super) fn add<'a>(document: &mut Document<'a>, shown: &AnatomyView<'a>) {
    let help =
        "What calls do before they first enter the boundary, without that call; null without `--until`.";
    document.nullable("before", help, columns(*shown), shown.until.map(|_| shown));
    let Some(until) = shown.until else { return };
    let (before, until) = (&shown.anatomy.before, printable(until));
    let reached = before.spreads.ns.count;
    let others = shown.calls() - reached;
    let heading = match (reached, others) {
        (0, _) => format!("Before {until}: no call gets there"),
        (reached, 0) => format!("Before {until}, which all {} calls reach", grouped(reached)),
        (reached, others) => {
            format!("Before {until}, which {} calls reach and {} do not", grouped(reached), grouped(others))
        }
    };
    document.text("\n");
    document.painted(TextRole::Head, heading + "\n");
    let Some(call) = &before.typical else { return };
    let Some(boundary) = &call.before else { return };
    let mut first: Vec<_> = before.functions.iter().map(|(function, calls)| (*calls, *function)).collect();
    first.sort_unstable_by_key(|(calls, function)| (std::cmp::Reverse(*calls), *function));
    if first.len() > 1 {
        let names = first.iter().take(MAX_FIRST_FUNCTIONS);
        let names: Vec<String> =
            names.map(|(calls, f)| format!("{} {}", shown.name(*f), grouped(*calls))).collect();
        let more = first.len().saturating_sub(MAX_FIRST_FUNCTIONS);
        let more = if more > 0 { format!(", {} more", grouped(more as u64)) } else { String::new() };
        document.text(format!("first there: {}{more}\n", names.join(", ")));
    }
    document.table(head::spreads(shown, &before.spreads, Some(&before.after_ns)));
    let table = Table::text_only(stage_rows(shown, boundary), stage_columns(*shown));
    let table = table.title(TextRole::Head, title(shown, call, boundary));
    document.table(table.hidden_if_empty());
}

/// Declares the members of `before`.
pub(super) fn columns<'a>(shown: AnatomyView<'a>) -> Columns<'a, AnatomyView<'a>> {
    let mut first = function(shown, |row: &(FunctionIndex, u64)| Some(row.0));
    first.add("operations", "Calls of the operation in which it was the first.", |row| row.1);
    let mut typical = call(shown);
    let reaches = function(shown, |row: &FunctionIndex| Some(*row));
    typical.record("reaches", "Function of the boundary that it enters.", reaches, |row| {
        Some(row.before?.function)
    });
    typical.record("before", "Its figures until then.", figures(), |row| Some(row.before?.figures));
    typical.records("stages", "Its work until then, in order.", stage_columns(shown), move |row| {
        row.before.as_ref().map_or(Vec::new(), |boundary| stage_rows(&shown, boundary))
    });
    let mut columns = Columns::<AnatomyView>::new();
    columns.add("reach", "Calls that enter the boundary.", |of| of.anatomy.before.spreads.ns.count);
    columns.add("do_not", "Calls that do not.", |of| of.calls() - of.anatomy.before.spreads.ns.count);
    columns.records("first", "First functions of the boundary.", first, |of| {
        of.anatomy.before.functions.iter().map(|(function, calls)| (*function, *calls)).collect()
    });
    columns
        .object("spreads", "Figures of these calls before it.", spreads(), |of| &of.anatomy.before.spreads);
    columns.object("after", "Time of these calls from then on.", spread(), |of| &of.anatomy.before.after_ns);
    columns.record("typical", "First call with the median time before it.", typical, |of| {
        of.anatomy.before.typical.filter(|call| call.before.is_some())
    });
    columns
}

fn title(shown: &AnatomyView, call: &ExampleCall, boundary: &BoundaryEntry) -> String {
    let figures = &boundary.figures;
    format!(
        "In order, in a typical call: {} calls of {} functions and {} {} (of {} in all) before {}",
        grouped(figures.calls),
        grouped(figures.functions),
        grouped(figures.ns),
        shown.unit(),
        grouped(call.figures.ns),
        shown.name(boundary.function)
    )
}

/// Line of the typical call's work before the boundary.
struct StageRow {
    kind: &'static str,
    depth: u32,
    function: Option<FunctionIndex>,
    how: Option<CallKind>,
    /// Before the boundary, in that call.
    figures: NodeFigures,
    /// Elapsed time before the boundary, in all calls that reach it.
    all_elapsed: u64,
    name: String,
    role: TextRole,
}

fn stage_rows(shown: &AnatomyView, boundary: &BoundaryEntry) -> Vec<StageRow> {
    let nodes = &shown.anatomy.nodes;
    let below = |roots: &[usize]| {
        let fold = NodeFold { nodes, roots };
        (fold.part(|node| node.boundary.before), fold.part(|node| node.all.before).elapsed_ns)
    };
    let row = |stage: StageLine| {
        let (kind, depth, node, (figures, all_elapsed)) = match &stage {
            StageLine::Open(at) => {
                let node = &nodes[*at];
                ("open", node.depth, Some(node), (node.boundary.before, node.all.before.elapsed_ns))
            }
            StageLine::Built(at) => ("built", nodes[*at].depth, Some(&nodes[*at]), below(&[*at])),
            StageLine::Small(depth, roots) => ("more", *depth, None, below(roots)),
            StageLine::Boundary(depth) => ("boundary", *depth, None, Default::default()),
        };
        let (name, role) = match (&stage, node) {
            (StageLine::Open(_), Some(node)) => (tree::label(shown, node), TextRole::Head),
            (_, Some(node)) => (tree::label(shown, node), TextRole::Plain),
            (StageLine::Boundary(_), None) => {
                let indent = 2 * depth as usize;
                (format!("{:indent$}-> {}", "", shown.name(boundary.function)), TextRole::Good)
            }
            (_, None) => (tree::more(depth, figures.functions), TextRole::Faint),
        };
        let function = match stage {
            StageLine::Boundary(_) => Some(boundary.function),
            _ => node.map(|node| node.function),
        };
        StageRow { kind, depth, function, how: node.map(|node| node.how), figures, all_elapsed, name, role }
    };
    stages(shown, boundary).into_iter().map(row).collect()
}

fn stage_columns<'a>(shown: AnatomyView<'a>) -> Columns<'a, StageRow> {
    let reached = shown.anatomy.before.spreads.ns.count;
    let figure = |get: fn(&NodeFigures) -> u64| {
        move |row: &StageRow| (row.kind != "boundary").then(|| get(&row.figures))
    };
    let mut columns = Columns::<StageRow>::new();
    columns.add(
        "kind",
        "`open`: open when the boundary is entered, and by itself; `built`: called before, with all that is below it; \
         `more`: several such, too small for a line; `boundary`.",
        |row| row.kind,
    );
    columns.add("depth", "0 for the operation.", |row| row.depth);
    columns.part(function(shown, |row: &StageRow| row.function), |row| row);
    columns.add(
        "how",
        "`call`, `jump`, `interrupt`, `exception` or `syscall`; null for `more` and `boundary`.",
        |row| row.how.map(CallKind::as_str),
    );
    columns.part(node(), |row| &row.figures);
    columns.text_only("calls", figure(|of| of.calls));
    columns.text_only("functions", figure(|of| of.functions));
    columns.text_only("self", |row| (row.kind == "open").then_some(row.figures.self_ticks));
    columns.text_only("elapsed", figure(|of| of.elapsed_ns));
    columns
        .add("all_elapsed", "`elapsed` in all calls that reach the boundary.", |row| row.all_elapsed)
        .head("mean")
        .text(move |row| match row.kind {
            "boundary" => String::new(),
            _ => per(row.all_elapsed, reached),
        });
    columns.text_only("function", |row| row.name.clone()).role(|row| row.role);
    columns
}
