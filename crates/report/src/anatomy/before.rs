//! Work of calls before they reach the boundary: figures, and the nested stages.

use super::{children, head, per, tree, AnatomyView, NodeFold};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{printable, Style, TextRole};
use kerntune_analyze::anatomy::{AnatomyNode, BoundaryEntry, ExampleCall};
use kerntune_table::number::grouped;

/// Number of first boundary functions that are named.
const MAX_FIRST_FUNCTIONS: usize = 5;

/// Line of the stages before the boundary.
pub(super) enum StageLine {
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
pub(super) fn stages(shown: &AnatomyView, reached: &BoundaryEntry) -> Vec<StageLine> {
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

/// Renders the section; empty if no boundary was asked for.
pub(super) fn text(shown: &AnatomyView, style: Style) -> String {
    let Some(until) = shown.until else { return String::new() };
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
    let mut out = format!("\n{}\n", style.paint(TextRole::Head, &heading));
    let Some(call) = &before.typical else { return out };
    let Some(boundary) = &call.before else { return out };
    let mut first: Vec<_> = before.functions.iter().map(|(function, calls)| (*calls, *function)).collect();
    first.sort_unstable_by_key(|(calls, function)| (std::cmp::Reverse(*calls), *function));
    if first.len() > 1 {
        let names = first.iter().take(MAX_FIRST_FUNCTIONS);
        let names: Vec<String> =
            names.map(|(calls, f)| format!("{} {}", shown.name(*f), grouped(*calls))).collect();
        let more = first.len().saturating_sub(MAX_FIRST_FUNCTIONS);
        let more = if more > 0 { format!(", {} more", grouped(more as u64)) } else { String::new() };
        out += &format!("first there: {}{more}\n", names.join(", "));
    }
    out += &head::spreads(shown, &before.spreads, Some(&before.after_ns)).render(style);
    out += &format!("\n{}\n", style.paint(TextRole::Head, &title(shown, call, boundary)));
    out + &table(shown, boundary, reached).render(style)
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

fn table(shown: &AnatomyView, boundary: &BoundaryEntry, reached: u64) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("calls", Alignment::Right),
        ("functions", Alignment::Right),
        ("self", Alignment::Right),
        ("elapsed", Alignment::Right),
        ("mean", Alignment::Right),
        ("function", Alignment::Left),
    ]);
    let nodes = &shown.anatomy.nodes;
    for stage in stages(shown, boundary) {
        let name = |at: &usize| TextCell::from(tree::label(shown, &nodes[*at]));
        let (roots, name) = match stage {
            StageLine::Open(at) => {
                let AnatomyNode { boundary, all, .. } = &nodes[at];
                table.row([
                    grouped(boundary.before.calls).into(),
                    grouped(boundary.before.functions).into(),
                    grouped(boundary.before.self_ticks).into(),
                    grouped(boundary.before.elapsed_ns).into(),
                    per(all.before.elapsed_ns, reached).into(),
                    TextCell(name(&at).0, TextRole::Head),
                ]);
                continue;
            }
            StageLine::Boundary(depth) => {
                let name = format!(
                    "{:indent$}-> {}",
                    "",
                    shown.name(boundary.function),
                    indent = 2 * depth as usize
                );
                let empty = || TextCell::from("");
                table.row([empty(), empty(), empty(), empty(), empty(), TextCell(name, TextRole::Good)]);
                continue;
            }
            StageLine::Built(at) => (vec![at], name(&at)),
            StageLine::Small(depth, roots) => {
                let functions = NodeFold { nodes, roots: &roots }.part(|node| node.boundary.before).functions;
                (roots, tree::more(depth, functions))
            }
        };
        let fold = NodeFold { nodes, roots: &roots };
        let (typical, all) = (fold.part(|node| node.boundary.before), fold.part(|node| node.all.before));
        table.row([
            grouped(typical.calls).into(),
            grouped(typical.functions).into(),
            "".into(),
            grouped(typical.elapsed_ns).into(),
            per(all.elapsed_ns, reached).into(),
            name,
        ]);
    }
    table
}
