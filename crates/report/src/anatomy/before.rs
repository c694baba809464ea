//! What calls do before they reach the boundary: figures, and what builds what.

use super::{children, head, per, tree, Fold, Shown};
use crate::columns::{Cell, Columns, Side};
use crate::style::{printable, Role, Style};
use kerntune_analyze::anatomy::{Call, Node, Reached};
use kerntune_compare::number::grouped;

/// First functions of the boundary that are named.
const FIRST: usize = 5;

/// A line of what builds what.
pub(super) enum Stage {
    /// This node is open at the boundary: what it called before follows.
    Open(usize),
    /// A node with all that is below it.
    Built(usize),
    /// So deep, what is too small for a line of its own.
    Small(u32, Vec<usize>),
    /// So deep, the boundary.
    Boundary(u32),
}

/// What the typical call does before the boundary: what is open there, and what each of these called before, in the order
/// in which it first did. Together they have every call and all time before the boundary, each once.
pub(super) fn stages(shown: &Shown, reached: &Reached) -> Vec<Stage> {
    let nodes = &shown.anatomy.nodes;
    let whole = nodes.first().map_or(0, |root| root.gate.before.elapsed_ns);
    let is_small = |child: &usize| {
        nodes[*child].gate.before.elapsed_ns as f64 * 100.0 < whole as f64 * shown.min_percent
    };
    let (mut out, mut late, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(node) = nodes.get(at) {
        out.push(Stage::Open(at));
        let leads_there = |child: usize| (child..child + nodes[child].len as usize).contains(&reached.from);
        let next = children(nodes, at).find(|child| leads_there(*child));
        let ran = |child: &usize| nodes[*child].gate.before.calls > 0 && Some(*child) != next;
        let (small, mut large): (Vec<usize>, Vec<usize>) =
            children(nodes, at).filter(ran).partition(is_small);
        large.sort_by_key(|child| nodes[*child].gate.order);
        // What leads to the boundary may have been called before: what was called first after that comes after it.
        let order = next.map_or(u32::MAX, |next| nodes[next].gate.order);
        let (before, after): (Vec<usize>, Vec<usize>) =
            large.into_iter().partition(|child| nodes[*child].gate.order < order);
        out.extend(before.into_iter().map(Stage::Built));
        match small[..] {
            [] => {}
            [one] => out.push(Stage::Built(one)),
            _ => out.push(Stage::Small(node.depth + 1, small)),
        }
        late.push(after);
        match next {
            Some(next) => at = next,
            None => {
                out.push(Stage::Boundary(node.depth + 1));
                break;
            }
        }
    }
    out.extend(late.into_iter().rev().flatten().map(Stage::Built));
    out
}

/// What there is to say; nothing if no boundary was asked for.
pub(super) fn text(shown: &Shown, style: Style) -> String {
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
    let mut out = format!("\n{}\n", style.paint(Role::Head, &heading));
    let Some(call) = &before.typical else { return out };
    let Some(gate) = &call.before else { return out };
    let mut first: Vec<_> = before.functions.iter().map(|(function, calls)| (*calls, *function)).collect();
    first.sort_unstable_by_key(|(calls, function)| (std::cmp::Reverse(*calls), *function));
    if first.len() > 1 {
        let names = first.iter().take(FIRST);
        let names: Vec<String> =
            names.map(|(calls, f)| format!("{} {}", shown.name(*f), grouped(*calls))).collect();
        let more = first.len().saturating_sub(FIRST);
        let more = if more > 0 { format!(", {} more", grouped(more as u64)) } else { String::new() };
        out += &format!("first there: {}{more}\n", names.join(", "));
    }
    out += &head::spreads(shown, &before.spreads, Some(&before.after_ns)).render(style);
    out += &format!("\n{}\n", style.paint(Role::Head, &title(shown, call, gate)));
    out + &table(shown, gate, reached).render(style)
}

fn title(shown: &Shown, call: &Call, gate: &Reached) -> String {
    let figures = &gate.figures;
    format!(
        "In order, in a typical call: {} calls of {} functions and {} {} (of {} in all) before {}",
        grouped(figures.calls),
        grouped(figures.functions),
        grouped(figures.ns),
        shown.unit(),
        grouped(call.figures.ns),
        shown.name(gate.function)
    )
}

fn table(shown: &Shown, gate: &Reached, reached: u64) -> Columns {
    let mut table = Columns::new([
        ("calls", Side::Right),
        ("functions", Side::Right),
        ("self", Side::Right),
        ("elapsed", Side::Right),
        ("mean", Side::Right),
        ("function", Side::Left),
    ]);
    let nodes = &shown.anatomy.nodes;
    for stage in stages(shown, gate) {
        let name = |at: &usize| Cell::from(tree::label(shown, &nodes[*at]));
        let (roots, name) = match stage {
            Stage::Open(at) => {
                let Node { gate, all, .. } = &nodes[at];
                table.row([
                    grouped(gate.before.calls).into(),
                    grouped(gate.before.functions).into(),
                    grouped(gate.before.net_ns).into(),
                    grouped(gate.before.elapsed_ns).into(),
                    per(all.before.elapsed_ns, reached).into(),
                    Cell(name(&at).0, Role::Head),
                ]);
                continue;
            }
            Stage::Boundary(depth) => {
                let name =
                    format!("{:indent$}-> {}", "", shown.name(gate.function), indent = 2 * depth as usize);
                let empty = || Cell::from("");
                table.row([empty(), empty(), empty(), empty(), empty(), Cell(name, Role::Good)]);
                continue;
            }
            Stage::Built(at) => (vec![at], name(&at)),
            Stage::Small(depth, roots) => {
                let functions = Fold { nodes, roots: &roots }.part(|node| node.gate.before).functions;
                (roots, tree::more(depth, functions))
            }
        };
        let fold = Fold { nodes, roots: &roots };
        let (typical, all) = (fold.part(|node| node.gate.before), fold.part(|node| node.all.before));
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
