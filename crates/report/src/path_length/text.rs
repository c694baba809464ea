//! Text of the path length comparison: figures of both, tree of changes, and the single paths that
//! changed most.

use super::align::{AlignedPath, FoldReason, FoldedFunction};
use super::{find, weight, PathLengthDiff, PathLengthOptions};
use kerntune_table::columns::{Alignment, TableBuilder, TextCell};
use kerntune_table::{printable, Style, TextRole};
use crate::{health, Result};
use kerntune_table::number::{change, figure, fixed, grouped};
use kerntune_profile::{KernelId, Profile};

/// Number of folded functions that are named.
const MAX_NAMED: usize = 4;
/// Number of frames of a single path that are named, from its end.
const MAX_FRAMES: usize = 6;

/// Renders the figures of both, then the paths that explain the difference.
///
/// # Errors
/// An unknown region, no operations, a profile that is not exact; [`crate::Error::Sum`] if the
/// paths do not sum to the path length: an internal error.
pub fn text(base: &Profile, other: &Profile, options: &PathLengthOptions, style: Style) -> Result<String> {
    let profiles = [base, other];
    let found = find(profiles, options)?;
    let mut out = whole(profiles, &found, options).render(style);
    let heading = format!(
        "\nBy call path, instructions per operation; paths that change it by less than {} % share a line \
         with their siblings",
        options.min_percent
    );
    out += &format!("{}\n{}", style.paint(TextRole::Head, &heading), tree(&found, options).render(style));
    let heading = "\nSingle paths, each without its callees";
    out += &format!("{}\n{}", style.paint(TextRole::Head, heading), single(&found, options).render(style));
    let lines = [
        "(B: + f 9)  f is a function that B alone has, or calls where A calls directly what is below it (between): it counts as its caller",
        "[A], [B]  taken in that kernel alone, though both have the function",
    ];
    lines.iter().for_each(|line| out += &(style.paint(TextRole::Faint, line) + "\n"));
    for (side, profile) in ["A", "B"].into_iter().zip(profiles) {
        for note in health::text_notes(profile, style) {
            out += &format!("{}  {side}: {}\n", style.paint(TextRole::Bad, "note"), printable(&note));
        }
    }
    Ok(out)
}

fn whole(profiles: [&Profile; 2], found: &PathLengthDiff, options: &PathLengthOptions) -> TableBuilder {
    let mut table = TableBuilder::new([
        ("", Alignment::Left),
        ("A", Alignment::Right),
        ("B", Alignment::Right),
        ("B - A", Alignment::Right),
        ("%", Alignment::Right),
    ]);
    let mut row = |head: &str, texts: [String; 4]| {
        let [a, b, change, percent] = texts;
        table.row([TextCell(head.into(), TextRole::Head), a.into(), b.into(), change.into(), percent.into()]);
    };
    let text = |of: fn(&Profile) -> String| {
        [printable(&of(profiles[0])), printable(&of(profiles[1])), String::new(), String::new()]
    };
    row("profile", text(|profile| profile.manifest.id.clone()));
    let kernel = |profile: &Profile| {
        let KernelId { label, version, .. } = &profile.manifest.kernel;
        format!("{label} {version}")
    };
    row("kernel", text(kernel));
    row("workload", text(|profile| profile.manifest.workload.clone()));
    if let Some(region) = &options.region {
        row("region", [printable(region), printable(region), String::new(), String::new()]);
    }
    let operations = found.operations.map(|count| grouped(u64::try_from(count).unwrap_or(u64::MAX)));
    let [a, b] = operations;
    row("operations", [a, b, String::new(), String::new()]);
    let mut per = |head: &str, values: [i128; 2]| {
        let [a, b] = [0, 1].map(|side| values[side] as f64 / found.operations[side] as f64);
        let percent = if a > 0.0 { change(100.0 * (b - a) / a, 2) } else { "-".into() };
        row(head, [figure(a), figure(b), signed(b - a), percent]);
    };
    per("path length, kernel instr./op", found.whole);
    per("user instr./op", found.user);
    let calls = [0, 1].map(|side| {
        let own = found.aligned.places.iter().map(|place| {
            let parts = place.parts.iter().filter(|part| part.side == side).map(|part| part.calls);
            place.self_figures[side].calls + parts.sum::<i128>()
        });
        own.sum::<i128>()
    });
    per("calls/op", calls);
    table
}

/// Formats with a sign; whole numbers if large.
fn signed(value: f64) -> String {
    let text = fixed(value, if value.abs() >= 1_000.0 { 0 } else { 1 });
    match value > 0.0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
        true => format!("+{text}"),
        false => text,
    }
}

/// Table builder with the columns that both tables share.
struct FigureColumns {
    table: TableBuilder,
}

impl FigureColumns {
    fn new(last: &str) -> Self {
        let heads = [
            ("A\ninstr./op", Alignment::Right),
            ("B\ninstr./op", Alignment::Right),
            ("B - A", Alignment::Right),
            ("% of A's\nlength", Alignment::Right),
            ("calls A\n/op", Alignment::Right),
            ("calls B\n/op", Alignment::Right),
            (last, Alignment::Left),
        ];
        Self { table: TableBuilder::new(heads) }
    }

    fn add(&mut self, found: &PathLengthDiff, values: [i128; 2], calls: Option<[i128; 2]>, name: TextCell) {
        let per = |side: usize, value: i128| value as f64 / found.operations[side] as f64;
        let moved = found.change(values);
        let role = match moved {
            change if change < 0.0 => TextRole::Good,
            change if change > 0.0 => TextRole::Bad,
            _ => TextRole::Plain,
        };
        let whole = per(0, found.whole[0]);
        let percent = if whole > 0.0 { change(100.0 * moved / whole, 2) } else { "-".into() };
        let [a, b] = calls.map_or(Default::default(), |calls| {
            [0, 1].map(|side| if calls[side] == 0 { "0".into() } else { figure(per(side, calls[side])) })
        });
        self.table.row([
            figure(per(0, values[0])).into(),
            figure(per(1, values[1])).into(),
            TextCell(signed(moved), role),
            percent.into(),
            a.into(),
            b.into(),
            name,
        ]);
    }
}

/// Renders the tree without small changes. Below each line stand its self instructions and its
/// children, which sum to it.
fn tree(found: &PathLengthDiff, options: &PathLengthOptions) -> TableBuilder {
    let mut line = FigureColumns::new("path");
    let least = options.min_percent / 100.0 * found.whole[0] as f64 / found.operations[0] as f64;
    let large = |at: &usize| found.change(found.aligned.places[*at].total).abs() >= least;
    // Lines still to be written, the next one last.
    let mut steps: Vec<(usize, PathTreeLine)> = Vec::new();
    let level =
        |steps: &mut Vec<(usize, PathTreeLine)>, itself: Option<usize>, siblings: &[usize], depth: usize| {
            let (own, small): (Vec<usize>, Vec<usize>) = siblings.iter().partition(|at| large(at));
            let of_itself = itself.map_or([0, 0], |at| found.aligned.places[at].instructions());
            let apart = itself.filter(|_| found.change(of_itself).abs() >= least && of_itself != [0, 0]);
            let small = PathTreeLine::Small(itself.filter(|_| apart.is_none() && of_itself != [0, 0]), small);
            if !matches!(&small, PathTreeLine::Small(None, small) if small.is_empty()) {
                steps.push((depth, small));
            }
            steps.extend(own.into_iter().rev().map(|at| (depth, PathTreeLine::Place(at))));
            steps.extend(apart.map(|at| (depth, PathTreeLine::Itself(at))));
        };
    level(&mut steps, None, &found.aligned.roots, 0);
    while let Some((depth, step)) = steps.pop() {
        let indent = 2 * depth;
        match step {
            PathTreeLine::Place(at) => {
                let place = &found.aligned.places[at];
                let name = format!("{:indent$}{}", "", label(found, place));
                line.add(found, place.total, Some(place.self_figures.map(|own| own.calls)), name.into());
                if place.children.iter().any(large) {
                    level(&mut steps, Some(at), &place.children, depth + 1);
                }
            }
            PathTreeLine::Itself(at) => {
                let own = found.aligned.places[at].instructions();
                line.add(found, own, None, TextCell(format!("{:indent$}itself", ""), TextRole::Faint));
            }
            PathTreeLine::Small(itself, places) => {
                let own = itself.map_or([0, 0], |at| found.aligned.places[at].instructions());
                let of = |side: usize| {
                    own[side] + places.iter().map(|at| found.aligned.places[*at].total[side]).sum::<i128>()
                };
                let more = match places.len() {
                    0 => String::new(),
                    1 => "1 more path".into(),
                    many => format!("{} more paths", grouped(many as u64)),
                };
                let name = match (itself.is_some(), more.is_empty()) {
                    (true, true) => "itself".into(),
                    (true, false) => format!("… itself and {more}"),
                    (false, _) => format!("… {more}"),
                };
                line.add(
                    found,
                    [of(0), of(1)],
                    None,
                    TextCell(format!("{:indent$}{name}", ""), TextRole::Faint),
                );
            }
        }
    }
    line.add(found, found.whole, None, TextCell("total".into(), TextRole::Head));
    line.table
}

/// Line of the tree.
enum PathTreeLine {
    Place(usize),
    /// Self instructions of a path.
    Itself(usize),
    /// Small children with their subtrees, together with the self instructions of a path if given.
    Small(Option<usize>, Vec<usize>),
}

/// Renders the paths whose self instructions changed most.
fn single(found: &PathLengthDiff, options: &PathLengthOptions) -> TableBuilder {
    let mut line = FigureColumns::new("path, from its end");
    let mut places: Vec<usize> = found.in_order().into_iter().map(|(at, _)| at).collect();
    let key = |at: &usize| {
        let own = found.aligned.places[*at].instructions();
        std::cmp::Reverse(weight(own, found.operations))
    };
    places.sort_by_key(key);
    let shown = options.top.unwrap_or(places.len()).min(places.len());
    let (rows, rest) = places.split_at(shown);
    for at in rows {
        let place = &found.aligned.places[*at];
        let mut names = found.path(*at);
        names.pop();
        let mut text = label(found, place);
        for name in names.iter().rev().take(MAX_FRAMES - 1) {
            text += &format!(" < {}", printable(name));
        }
        if names.len() >= MAX_FRAMES {
            text += " < …";
        }
        line.add(found, place.instructions(), Some(place.self_figures.map(|own| own.calls)), text.into());
    }
    if !rest.is_empty() {
        let sum = [0, 1]
            .map(|side| rest.iter().map(|at| found.aligned.places[*at].instructions()[side]).sum::<i128>());
        let name = format!("{} more paths (--top)", grouped(rest.len() as u64));
        line.add(found, sum, None, TextCell(name, TextRole::Faint));
    }
    // The remainder was checked to be 0 before any output.
    line.add(found, [0, 0], None, "rest".into());
    line.add(found, found.whole, None, TextCell("total".into(), TextRole::Head));
    line.table
}

/// Returns the name of a path, with the functions that count as it.
fn label(found: &PathLengthDiff, place: &AlignedPath) -> String {
    let mut text = printable(&found.name(place));
    if let Some(side) = place.only() {
        text += [" [A]", " [B]"][side];
    }
    let parts: Vec<String> = (0..2).filter_map(|side| parts(found, place, side)).collect();
    if !parts.is_empty() {
        text += &format!(" ({})", parts.join("; "));
    }
    text
}

/// Lists the functions of one kernel that count as a path; `None` if there are none.
fn parts(found: &PathLengthDiff, place: &AlignedPath, side: usize) -> Option<String> {
    let mut parts: Vec<&FoldedFunction> = place.parts.iter().filter(|part| part.side == side).collect();
    parts.sort_by_key(|part| (std::cmp::Reverse(part.instructions), part.row));
    let per = |instructions: i128| figure(instructions as f64 / found.operations[side] as f64);
    let name = |part: &&FoldedFunction| {
        let through = if part.why == FoldReason::Between { " between" } else { "" };
        format!("+ {}{through} {}", printable(&found.function(part.row)), per(part.instructions))
    };
    let mut names: Vec<String> = parts.iter().take(MAX_NAMED).map(name).collect();
    if let Some(more) = parts.get(MAX_NAMED..).filter(|more| !more.is_empty()) {
        let sum = more.iter().map(|part| part.instructions).sum();
        names.push(format!("+ {} more {}", more.len(), per(sum)));
    }
    (!names.is_empty()).then(|| format!("{}: {}", ["A", "B"][side], names.join(" ")))
}
