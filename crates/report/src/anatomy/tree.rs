//! The tree of calls: on average, in the typical call, and in the worst.

use super::{children, per, AnatomyView, NodeFold};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{Style, TextRole};
use kerntune_analyze::anatomy::{AnatomyNode, NodeFigures, NodeSums};
use kerntune_table::number::grouped;
use kerntune_profile::CallKind;

/// Largest depth that is shown; bounds the recursion of consumers.
const MAX_DEPTH: u32 = 1_000;

/// Line of the tree: a node, or several folded into one line.
pub(super) enum TreeLine {
    /// Index of a node.
    Node(usize),
    /// Depth, and folded nodes with their subtrees: too small, or too deep to be shown.
    Fold(u32, Vec<usize>),
}

/// Returns the lines of the whole tree. Together they have every call and all time, each once.
pub(super) fn lines(shown: &AnatomyView) -> Vec<TreeLine> {
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
pub(super) fn more(depth: u32, functions: u64) -> TextCell {
    let what = if functions == 1 { "function" } else { "functions" };
    let text = format!("{:indent$}… {} more {what}", "", grouped(functions), indent = indent(depth));
    TextCell(text, TextRole::Faint)
}

fn indent(depth: u32) -> usize {
    2 * depth as usize
}

/// Renders the tree as a table.
pub(super) fn text(shown: &AnatomyView, style: Style) -> String {
    let unit = if shown.profile.manifest.exact { "instr." } else { "ns" };
    let [typical, worst] = ["typical", "worst"].map(|head| format!("{head}\n{unit}"));
    let mut table = TableBuilder::new([
        ("calls\nper op", Alignment::Right),
        ("self\nper op", Alignment::Right),
        ("elapsed\nper op", Alignment::Right),
        ("functions", Alignment::Right),
        ("typical\ncalls", Alignment::Right),
        (typical.as_str(), Alignment::Right),
        ("worst\ncalls", Alignment::Right),
        (worst.as_str(), Alignment::Right),
        ("function", Alignment::Left),
    ]);
    let calls = shown.calls();
    let nodes = &shown.anatomy.nodes;
    let mut row = |all: NodeFigures, typical: NodeFigures, worst: NodeFigures, name: TextCell| {
        table.row([
            per(all.calls, calls).into(),
            per(all.self_ticks, calls).into(),
            per(all.elapsed_ns, calls).into(),
            grouped(all.functions).into(),
            count(typical.calls).into(),
            count(typical.elapsed_ns).into(),
            count(worst.calls).into(),
            count(worst.elapsed_ns).into(),
            name,
        ]);
    };
    for line in lines(shown) {
        match line {
            TreeLine::Node(at) => {
                let node = &nodes[at];
                row(node.all.whole, node.typical.whole, node.worst.whole, label(shown, node).into());
            }
            TreeLine::Fold(depth, roots) => {
                let fold = NodeFold { nodes, roots: &roots };
                let all = fold.part(|node| node.all.whole);
                let name = more(depth, all.functions);
                row(all, fold.part(|node| node.typical.whole), fold.part(|node| node.worst.whole), name);
            }
        }
    }
    let heading = "Calls within it: on average per operation, in the typical one, and in the worst";
    format!("\n{}\n{}", style.paint(TextRole::Head, heading), table.render(style))
}

/// Formats a count; empty for 0.
pub(super) fn count(value: u64) -> String {
    if value == 0 {
        String::new()
    } else {
        grouped(value)
    }
}
