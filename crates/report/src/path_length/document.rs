//! Document of the path length comparison: figures of both, tree of changes, and the single paths
//! that changed most.

use super::align::{AlignedPath, FoldReason, FoldedFunction};
use super::{find, weight, PathLengthDiff, PathLengthOptions};
use crate::side_by_side::{change_role, SideBySide};
use crate::{head, health, Result};
use kerntune_profile::{Profile, ScopeTotals};
use kerntune_table::number::{change, figure, fixed, grouped};
use kerntune_table::{printable, Columns, Document, Table, TextRole};
use std::rc::Rc;

/// Name and version of the JSON form.
pub const SCHEMA: &str = "kerntune-path-length/1";

/// Description of the JSON form.
const ABOUT: &str =
    "What makes an operation's path longer in another kernel, by call path, A first. Figures are `[A, B]`, \
     whole instructions of all operations: divide by `operations`. `--top` and `--min-percent` are for text.";

/// Number of folded functions that are named.
const MAX_NAMED: usize = 4;
/// Number of frames of a single path that are named, from its end.
const MAX_FRAMES: usize = 6;

/// Compares two profiles: figures of both, then the paths that explain the difference.
///
/// # Errors
/// An unknown region, no operations, a profile that is not exact; [`crate::Error::Sum`] if the
/// paths do not sum to the path length: an internal error.
pub fn document<'a>(
    base: &'a Profile,
    other: &'a Profile,
    options: &PathLengthOptions,
) -> Result<Document<'a>> {
    let profiles = [base, other];
    let found = Rc::new(find(profiles, options)?);
    let mut document = Document::new(SCHEMA, ABOUT);
    document.names_its_subject = true;
    let help = "Name of the regions that both are restricted to; null for all.";
    document.field("region", help, options.region.as_deref());
    let [a, b] = found.difference.totals;
    document.object("base", "Profile A.", side_columns(), &(base, a));
    document.object("other", "Profile B.", side_columns(), &(other, b));
    document.table(whole(profiles, &found, options));
    let parts =
        |side: usize| -> i128 { found.aligned.places.iter().map(|place| place.instructions()[side]).sum() };
    document.field(
        "rest",
        "Kernel instructions of both that no path has: 0, or the command fails.",
        [0, 1].map(|side| found.whole[side] - parts(side)),
    );
    let help = "Paths that one of them took, parents before children; among siblings, greatest change first.";
    let table = Table::new("paths", found.in_order(), path_columns(found.clone()));
    document.table(table.help(help).only_if(false));
    let title = format!(
        "By call path, instructions per operation; paths that change it by less than {} % share a line \
         with their siblings",
        options.min_percent
    );
    for (title, head, lines) in [
        (title, "path", tree(&found, options)),
        ("Single paths, each without its callees".into(), "path, from its end", single(&found, options)),
    ] {
        let table = Table::text_only(lines, figure_columns(found.clone(), head));
        document.table(table.title(TextRole::Head, title).hidden_if_empty());
    }
    document.note(
        "(B: + f 9)  f is a function that B alone has, or calls where A calls directly what is below it (between): it counts as its caller",
    );
    document.note("[A], [B]  taken in that kernel alone, though both have the function");
    for (side, profile) in SIDES.into_iter().zip(profiles) {
        health::add_side(&mut document, side, profile);
    }
    Ok(document)
}

/// Names of the two profiles.
const SIDES: [&str; 2] = ["A", "B"];

fn side_columns<'a>() -> Columns<'a, (&'a Profile, ScopeTotals)> {
    let mut columns = Columns::<(&'a Profile, ScopeTotals)>::new();
    columns.part(head::of_profile(), |row| &row.0);
    columns.add("operations", "Operations of the regions; never 0.", |row| row.1.operations);
    columns.add("kernel_instructions", "Instructions of the kernel in them: the sum of the paths.", |row| {
        row.1.kernel_instructions
    });
    columns
}

/// Declares the members of a path, of which the rows have index and depth.
fn path_columns<'a>(found: Rc<PathLengthDiff>) -> Columns<'a, (usize, usize)> {
    let of = |get: fn(&AlignedPath) -> [i128; 2]| {
        let found = found.clone();
        move |row: &(usize, usize)| get(&found.aligned.places[row.0])
    };
    let mut parts = Columns::<(FoldedFunction, String)>::new();
    parts.add("function", "Function that counts as the path's.", |row| row.1.clone());
    parts.add("only", "Kernel that has it as a frame: `A` or `B`.", |row| SIDES[row.0.side]);
    parts.add(
        "why",
        "`alone`: the other kernel has no function of that name; `between`: it calls what is below directly.",
        |row| match row.0.why {
            FoldReason::Alone => "alone",
            FoldReason::Between => "between",
        },
    );
    parts.add("calls", "Its calls.", |row| row.0.calls);
    parts.add("instructions", "Its instructions.", |row| row.0.instructions);
    let mut columns = Columns::<(usize, usize)>::new();
    let names = found.clone();
    columns.add(
        "path",
        "Names from the root: a thread's (`kworker` is all of them), `[interrupt]` or `[idle task]`, then \
         functions; `[way back to user code]` runs after the kernel's last function.",
        move |row| names.path(row.0),
    );
    columns.add("depth", "Number of paths above.", |row| row.1);
    let files = found.clone();
    columns.add("file", "Source file of the function.", move |row| {
        let function = files.difference.function(&files.aligned.places[row.0].frame);
        function.and_then(|function| function.file.clone())
    });
    let only = found.clone();
    columns.add("only", "Kernel in which alone the path was taken: `A` or `B`.", move |row| {
        only.aligned.places[row.0].only().map(|side| SIDES[side])
    });
    columns.add(
        "instructions",
        "Instructions of the function with its `parts`; their sum is `kernel_instructions`.",
        of(AlignedPath::instructions),
    );
    columns.add("within", "Instructions of the path and those below it.", of(|place| place.total));
    columns.add(
        "calls",
        "Calls of the function over this path.",
        of(|place| place.self_figures.map(|own| own.calls)),
    );
    let help = "Functions of one kernel that count as the path's.";
    columns.records("parts", help, parts, move |row| {
        let parts = found.aligned.places[row.0].parts.iter();
        parts.map(|part| (*part, found.function(part.row))).collect()
    });
    columns
}

fn whole<'a>(
    profiles: [&Profile; 2],
    found: &PathLengthDiff,
    options: &PathLengthOptions,
) -> Table<'a, Vec<String>> {
    let mut table = SideBySide::new(&["A", "B", "B - A", "%"], profiles, options.region.as_deref());
    let operations = found.operations.map(|count| grouped(u64::try_from(count).unwrap_or(u64::MAX)));
    table.row("operations", operations);
    let calls = [0, 1].map(|side| {
        let own = found.aligned.places.iter().map(|place| {
            let parts = place.parts.iter().filter(|part| part.side == side).map(|part| part.calls);
            place.self_figures[side].calls + parts.sum::<i128>()
        });
        own.sum::<i128>()
    });
    for (head, values) in
        [("path length, kernel instr./op", found.whole), ("user instr./op", found.user), ("calls/op", calls)]
    {
        let [a, b] = [0, 1].map(|side| values[side] as f64 / found.operations[side] as f64);
        let percent = if a > 0.0 { change(100.0 * (b - a) / a, 2) } else { "-".into() };
        table.row(head, [figure(a), figure(b), signed(b - a), percent]);
    }
    table.into_table()
}

/// Formats with a sign; whole numbers if large.
fn signed(value: f64) -> String {
    let text = fixed(value, if value.abs() >= 1_000.0 { 0 } else { 1 });
    match value > 0.0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
        true => format!("+{text}"),
        false => text,
    }
}

/// Line of a table of paths.
struct FigureLine {
    /// Instructions of both.
    values: [i128; 2],
    calls: Option<[i128; 2]>,
    name: String,
    role: TextRole,
}

impl FigureLine {
    fn new(values: [i128; 2], name: impl Into<String>) -> Self {
        Self { values, calls: None, name: name.into(), role: TextRole::Plain }
    }

    fn calls(self, place: &AlignedPath) -> Self {
        Self { calls: Some(place.self_figures.map(|own| own.calls)), ..self }
    }

    fn role(self, role: TextRole) -> Self {
        Self { role, ..self }
    }
}

/// Declares the columns of both tables of paths.
fn figure_columns<'a>(found: Rc<PathLengthDiff>, last: &'static str) -> Columns<'a, FigureLine> {
    let operations = found.operations;
    let per = move |side: usize, value: i128| value as f64 / operations[side] as f64;
    let whole = per(0, found.whole[0]);
    let mut columns = Columns::<FigureLine>::new();
    columns.text_only("A\ninstr./op", move |line| per(0, line.values[0]));
    columns.text_only("B\ninstr./op", move |line| per(1, line.values[1]));
    let (change_of, color_of) = (found.clone(), found.clone());
    columns
        .text_only("B - A", move |line| signed(change_of.change(line.values)))
        .right()
        .role(move |line| change_role(color_of.change(line.values)));
    columns
        .text_only("% of A's\nlength", move |line| match whole > 0.0 {
            true => change(100.0 * found.change(line.values) / whole, 2),
            false => "-".into(),
        })
        .right();
    for (side, head) in ["calls A\n/op", "calls B\n/op"].into_iter().enumerate() {
        columns.text_only(head, move |line| line.calls.map(|calls| per(side, calls[side])));
    }
    columns.text_only(last, |line| line.name.clone()).role(|line| line.role);
    columns
}

/// Returns the tree without small changes. Below each line stand its self instructions and its
/// children, which sum to it.
fn tree(found: &PathLengthDiff, options: &PathLengthOptions) -> Vec<FigureLine> {
    let mut lines = Vec::new();
    let min = options.min_percent / 100.0 * found.whole[0] as f64 / found.operations[0] as f64;
    let large = |at: &usize| found.change(found.aligned.places[*at].total).abs() >= min;
    // Lines still to be written, the next one last.
    let mut steps: Vec<(usize, PathTreeLine)> = Vec::new();
    let level =
        |steps: &mut Vec<(usize, PathTreeLine)>, itself: Option<usize>, siblings: &[usize], depth: usize| {
            let (own, small): (Vec<usize>, Vec<usize>) = siblings.iter().partition(|at| large(at));
            let of_itself = itself.map_or([0, 0], |at| found.aligned.places[at].instructions());
            let apart = itself.filter(|_| found.change(of_itself).abs() >= min && of_itself != [0, 0]);
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
                lines.push(FigureLine::new(place.total, name).calls(place));
                if place.children.iter().any(large) {
                    level(&mut steps, Some(at), &place.children, depth + 1);
                }
            }
            PathTreeLine::Itself(at) => {
                let own = found.aligned.places[at].instructions();
                lines.push(FigureLine::new(own, format!("{:indent$}itself", "")).role(TextRole::Faint));
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
                let name = format!("{:indent$}{name}", "");
                lines.push(FigureLine::new([of(0), of(1)], name).role(TextRole::Faint));
            }
        }
    }
    lines.push(FigureLine::new(found.whole, "total").role(TextRole::Head));
    lines
}

/// Line of the tree.
enum PathTreeLine {
    Place(usize),
    /// Self instructions of a path.
    Itself(usize),
    /// Small children with their subtrees, together with the self instructions of a path if given.
    Small(Option<usize>, Vec<usize>),
}

/// Returns the paths whose self instructions changed most.
fn single(found: &PathLengthDiff, options: &PathLengthOptions) -> Vec<FigureLine> {
    let mut lines = Vec::new();
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
        lines.push(FigureLine::new(place.instructions(), text).calls(place));
    }
    if !rest.is_empty() {
        let sum = [0, 1]
            .map(|side| rest.iter().map(|at| found.aligned.places[*at].instructions()[side]).sum::<i128>());
        let name = format!("{} more paths (--top)", grouped(rest.len() as u64));
        lines.push(FigureLine::new(sum, name).role(TextRole::Faint));
    }
    // The remainder was checked to be 0 before any output.
    lines.push(FigureLine::new([0, 0], "rest"));
    lines.push(FigureLine::new(found.whole, "total").role(TextRole::Head));
    lines
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
