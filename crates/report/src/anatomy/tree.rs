//! The tree of calls: on average, in the typical call, and in the worst.

use super::figures::{function, node};
use super::{children, per, AnatomyView, NodeFold};
use kerntune_analyze::anatomy::{AnatomyNode, NodeFigures, NodeSums};
use kerntune_profile::{CallKind, FunctionIndex};
use kerntune_table::number::grouped;
use kerntune_table::{Columns, Document, Table, TextRole};

/// Largest depth that is shown; bounds the recursion of consumers.
const MAX_DEPTH: u32 = 1_000;

/// Line of the tree: a node, or several folded into one line.
enum TreeLine {
    /// Index of a node.
    Node(usize),
    /// Depth, and folded nodes with their subtrees: too small, or too deep to be shown.
    Fold(u32, Vec<usize>),
}

/// Returns the lines of the whole tree. Together they have every call and all time, each once.
fn lines(shown: &AnatomyView) -> Vec<TreeLine> {
    let mut out = Vec::new();
    walk(shown, 0, &mut out);
    out
}

fn walk(shown: &AnatomyView, at: usize, out: &mut Vec<TreeLine>) {
    let nodes = &shown.anatomy.nodes;
    let (Some(node), Some(root)) = (nodes.get(at), nodes.first()) else { return };
    out.push(TreeLine::Node(at));
    let deepest = node.depth >= shown.depth.unwrap_or(MAX_DEPTH).min(MAX_DEPTH);
    let large = |at: &usize| {
        let child = &nodes[*at];
        [(child.all, root.all), (child.typical, root.typical), (child.worst, root.worst)]
            .iter()
            .any(|(part, whole)| is_large(part, whole, shown.min_percent))
    };
    let (own, folded): (Vec<usize>, Vec<usize>) =
        children(nodes, at).partition(|child| !deepest && large(child));
    own.into_iter().for_each(|child| walk(shown, child, out));
    match folded[..] {
        [] => {}
        // A fold line would be as long as the node itself.
        [child] if !deepest && nodes[child].len == 1 => out.push(TreeLine::Node(child)),
        _ => out.push(TreeLine::Fold(node.depth + 1, folded)),
    }
}

/// Checks whether a part has at least this percentage of the whole.
fn is_large(part: &NodeSums, whole: &NodeSums, percent: f64) -> bool {
    let (part, whole) = (part.whole, whole.whole);
    part.calls > 0 && part.elapsed_ns as f64 * 100.0 >= whole.elapsed_ns as f64 * percent
}

/// Returns `-> name`, as `report path` writes it; the operation has no arrow.
pub(super) fn label(shown: &AnatomyView, node: &AnatomyNode) -> String {
    let sign = match node.how {
        _ if node.depth == 0 => "",
        CallKind::Call => "-> ",
        CallKind::Jump => "~> ",
        CallKind::Syscall => "=> ",
        CallKind::Exception => "?! ",
        CallKind::Interrupt => "!! ",
    };
    format!("{:indent$}{sign}{}", "", shown.name(node.function), indent = indent(node.depth))
}

/// Returns `… 3 more functions`.
pub(super) fn more(depth: u32, functions: u64) -> String {
    let what = if functions == 1 { "function" } else { "functions" };
    format!("{:indent$}… {} more {what}", "", grouped(functions), indent = indent(depth))
}

fn indent(depth: u32) -> usize {
    2 * depth as usize
}

/// Line with its figures.
struct TreeRow {
    depth: u32,
    /// `None` for several nodes.
    function: Option<FunctionIndex>,
    how: Option<CallKind>,
    operations: Option<u64>,
    /// In all calls, in the typical one, and in the worst.
    all: NodeFigures,
    typical: NodeFigures,
    worst: NodeFigures,
    /// In all calls before the boundary; `None` without one.
    before: Option<NodeFigures>,
    name: String,
}

fn row(shown: &AnatomyView, line: TreeLine) -> TreeRow {
    let nodes = &shown.anatomy.nodes;
    let is_divided = shown.until.is_some();
    match line {
        TreeLine::Node(at) => {
            let node = &nodes[at];
            TreeRow {
                depth: node.depth,
                function: Some(node.function),
                how: Some(node.how),
                operations: Some(node.all.operations),
                all: node.all.whole,
                typical: node.typical.whole,
                worst: node.worst.whole,
                before: is_divided.then_some(node.all.before),
                name: label(shown, node),
            }
        }
        TreeLine::Fold(depth, roots) => {
            let fold = NodeFold { nodes, roots: &roots };
            let all = fold.part(|node| node.all.whole);
            TreeRow {
                depth,
                function: None,
                how: None,
                operations: None,
                all,
                typical: fold.part(|node| node.typical.whole),
                worst: fold.part(|node| node.worst.whole),
                before: is_divided.then(|| fold.part(|node| node.all.before)),
                name: more(depth, all.functions),
            }
        }
    }
}

/// Adds the tree.
pub(super) fn add<'a>(document: &mut Document<'a>, shown: &AnatomyView<'a>) {
    let calls = shown.calls();
    let unit = if shown.profile.manifest.exact { "instr." } else { "ns" };
    let mut columns = Columns::<TreeRow>::new();
    columns.add(
        "kind",
        "`call`; `more` for several with all that is below them: too deep (`--depth`), or too small (`--min-percent`).",
        |row| if row.function.is_some() { "call" } else { "more" },
    );
    columns.add("depth", "0 for the operation; children follow, one deeper.", |row| row.depth);
    columns.part(function(*shown, |row: &TreeRow| row.function), |row| row);
    columns.add("how", "`call`, `jump`, `interrupt`, `exception` or `syscall`; null for `more`.", |row| {
        row.how.map(CallKind::as_str)
    });
    columns
        .add("operations", "Calls of the operation in which it is; null for `more`.", |row| row.operations);
    columns
        .object("all", "In all calls; `calls` and `self` sum to those of the calls.", node(), |row| &row.all);
    columns.object("typical", "In the typical call.", node(), |row| &row.typical);
    columns.object("worst", "In the worst call.", node(), |row| &row.worst);
    let help = "In all calls before the boundary; null without `--until`.";
    columns.record("before", help, node(), |row| row.before);
    columns.text_only("calls\nper op", move |row| per(row.all.calls, calls)).right();
    columns.text_only("self\nper op", move |row| per(row.all.self_ticks, calls)).right();
    columns.text_only("elapsed\nper op", move |row| per(row.all.elapsed_ns, calls)).right();
    columns.text_only("functions", |row| row.all.functions);
    columns.text_only("typical\ncalls", |row| row.typical.calls).zero("");
    columns.text_only(format!("typical\n{unit}"), |row| row.typical.elapsed_ns).zero("");
    columns.text_only("worst\ncalls", |row| row.worst.calls).zero("");
    columns.text_only(format!("worst\n{unit}"), |row| row.worst.elapsed_ns).zero("");
    columns.text_only("function", |row| row.name.clone()).role(|row| match row.function {
        Some(_) => TextRole::Plain,
        None => TextRole::Faint,
    });
    let rows = lines(shown).into_iter().map(|line| row(shown, line));
    let title = "Calls within it: on average per operation, in the typical one, and in the worst";
    let table = Table::new("tree", rows, columns).help("Calls as a tree, in preorder.");
    document.table(table.title(TextRole::Head, title).default_rows(usize::MAX).hidden_if_empty());
}
