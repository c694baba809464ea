//! The tree of calls: on average, in the typical call, and in the worst.

use super::{children, per, Fold, Shown};
use crate::columns::{Cell, Columns, Side};
use crate::style::{Role, Style};
use kerntune_analyze::anatomy::{Node, Part, Sums};
use kerntune_compare::number::grouped;
use kerntune_profile::How;

/// Levels that are shown at most, so that whoever walks the tree may recurse.
const DEPTH_SHOWN: u32 = 1_000;

/// A line of a tree.
pub(super) enum Line {
    /// A node of its own.
    Node(usize),
    /// So deep, these nodes with all that is below them: they are small, or too deep to be shown.
    Fold(u32, Vec<usize>),
}

/// The lines of the whole tree. Together they have every call and all time, each once.
pub(super) fn lines(shown: &Shown) -> Vec<Line> {
    let mut out = Vec::new();
    walk(shown, 0, &mut out);
    out
}

fn walk(shown: &Shown, at: usize, out: &mut Vec<Line>) {
    let nodes = &shown.anatomy.nodes;
    let (Some(node), Some(root)) = (nodes.get(at), nodes.first()) else { return };
    out.push(Line::Node(at));
    let deepest = node.depth >= shown.depth.unwrap_or(DEPTH_SHOWN).min(DEPTH_SHOWN);
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
        // As long as a line that says that there is one.
        [child] if !deepest && nodes[child].len == 1 => out.push(Line::Node(child)),
        _ => out.push(Line::Fold(node.depth + 1, folded)),
    }
}

/// Whether a part has at least so many per cent of the whole.
fn is_large(part: &Sums, whole: &Sums, percent: f64) -> bool {
    let (part, whole) = (part.whole, whole.whole);
    part.calls > 0 && part.elapsed_ns as f64 * 100.0 >= whole.elapsed_ns as f64 * percent
}

/// `-> name`, as `report path` writes it; the operation has no sign.
pub(super) fn label(shown: &Shown, node: &Node) -> String {
    let sign = match node.how {
        _ if node.depth == 0 => "",
        How::Call => "-> ",
        How::Jump => "~> ",
        How::Syscall => "=> ",
        How::Exception => "?! ",
        How::Interrupt => "!! ",
    };
    format!("{:indent$}{sign}{}", "", shown.name(node.function), indent = indent(node.depth))
}

/// `… 3 more functions`
pub(super) fn more(depth: u32, functions: u64) -> Cell {
    let what = if functions == 1 { "function" } else { "functions" };
    let text = format!("{:indent$}… {} more {what}", "", grouped(functions), indent = indent(depth));
    Cell(text, Role::Faint)
}

fn indent(depth: u32) -> usize {
    2 * depth as usize
}

/// The tree as a table.
pub(super) fn text(shown: &Shown, style: Style) -> String {
    let unit = if shown.profile.manifest.exact { "instr." } else { "ns" };
    let [typical, worst] = ["typical", "worst"].map(|head| format!("{head}\n{unit}"));
    let mut table = Columns::new([
        ("calls\nper op", Side::Right),
        ("self\nper op", Side::Right),
        ("elapsed\nper op", Side::Right),
        ("functions", Side::Right),
        ("typical\ncalls", Side::Right),
        (typical.as_str(), Side::Right),
        ("worst\ncalls", Side::Right),
        (worst.as_str(), Side::Right),
        ("function", Side::Left),
    ]);
    let calls = shown.calls();
    let nodes = &shown.anatomy.nodes;
    let mut row = |all: Part, typical: Part, worst: Part, name: Cell| {
        table.row([
            per(all.calls, calls).into(),
            per(all.net_ns, calls).into(),
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
            Line::Node(at) => {
                let node = &nodes[at];
                row(node.all.whole, node.typical.whole, node.worst.whole, label(shown, node).into());
            }
            Line::Fold(depth, roots) => {
                let fold = Fold { nodes, roots: &roots };
                let all = fold.part(|node| node.all.whole);
                let name = more(depth, all.functions);
                row(all, fold.part(|node| node.typical.whole), fold.part(|node| node.worst.whole), name);
            }
        }
    }
    let heading = "Calls within it: on average per operation, in the typical one, and in the worst";
    format!("\n{}\n{}", style.paint(Role::Head, heading), table.render(style))
}

/// Nothing for what did not happen.
pub(super) fn count(value: u64) -> String {
    if value == 0 {
        String::new()
    } else {
        grouped(value)
    }
}
