//! Draws the state of `view --tui` on the screen.

use super::state::{ViewRow, ViewSort, ViewState, ViewTab};
use crate::keys::key_help;
use kerntune_compare::number::{fixed, grouped};
use kerntune_report::diff::DiffLine as Change;
use kerntune_report::printable;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as Cells, Table, Tabs, Wrap};
use ratatui::Frame;

/// Help line with the keys.
const KEYS: &str =
    "1-4 Tab list  arrows move, open, close  Enter in the tree  s sort  / filter  ? keys  q quit";
/// All keys, for the help.
const ALL_KEYS: &[[&str; 2]] = &[
    ["1 … 4, Tab, Shift-Tab", "another list: call tree, functions, paths, difference"],
    ["up, down, Page Up, Page Down, Home, End", "another line"],
    ["right, left", "open, close a line of the tree"],
    ["Enter", "open or close; of a function or a path: show it in the tree"],
    ["s", "sort by self time, total time, calls, name"],
    ["/", "show only names with a text; Enter keeps it, Esc ends it"],
    ["?", "these keys"],
    ["q, Ctrl-C", "quit"],
];
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
/// Color of decreases, as in reports: less is better.
const BETTER: Style = Style::new().fg(Color::Green);
const WORSE: Style = Style::new().fg(Color::Red);

/// Draws the screen; keeps the selected line visible.
pub fn draw(frame: &mut Frame, state: &mut ViewState) {
    // A title that is too long for a line goes on in the next.
    let columns = usize::from(frame.area().width).max(1);
    let title = state.model.title.chars().count().div_ceil(columns).max(1);
    let [head, tabs, list, foot] = Layout::vertical([
        Constraint::Length(u16::try_from(title).unwrap_or(1) + 1),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(state)).wrap(Wrap { trim: false }), head);
    let titles = ViewTab::ALL.iter().zip(1..).map(|(tab, number)| format!("{number} {}", tab.title()));
    let chosen = ViewTab::ALL.iter().position(|tab| *tab == state.tab);
    frame.render_widget(Tabs::new(titles).select(chosen).highlight_style(BOLD.patch(CHOSEN)), tabs);
    match state.help {
        true => key_help(frame, list, ALL_KEYS),
        false => rows(frame, list, state),
    }
    let text = match (state.typing, state.filter.is_empty()) {
        (true, _) => format!("/{}_", printable(&state.filter)),
        (false, true) => KEYS.to_string(),
        (false, false) => format!("filter: {}  (Esc: all)  {KEYS}", printable(&state.filter)),
    };
    frame.render_widget(Paragraph::new(text).style(FAINT), foot);
}

fn head_lines(state: &ViewState) -> Vec<Line<'static>> {
    let model = &state.model;
    let second = match (&model.difference, state.tab) {
        (Some((other, _)), ViewTab::Difference) => format!("against {other}"),
        _ => format!(
            "{} in all; {} lines",
            model.measure.readable(model.busy),
            grouped(state.rows().len() as u64)
        ),
    };
    vec![Line::from(Span::styled(model.title.clone(), BOLD)), Line::from(second)]
}

fn percent(part: u64, whole: u64) -> String {
    fixed(if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }, 2)
}

fn signed(value: i128) -> String {
    let digits = grouped(u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX));
    match value {
        0 => digits,
        ..0 => format!("-{digits}"),
        _ => format!("+{digits}"),
    }
}

fn rows(frame: &mut Frame, area: Rect, state: &mut ViewState) {
    let room = usize::from(area.height.saturating_sub(1));
    state.fit(room);
    let unit = state.model.measure.smallest_unit().name();
    let mark =
        |word: &str, sort: ViewSort| if state.sort == sort { format!("{word}*") } else { word.to_string() };
    let number = Constraint::Length;
    let (heads, widths): (Vec<String>, Vec<Constraint>) = match state.tab {
        ViewTab::Tree => (
            vec!["% total".into(), "% self".into(), "calls".into(), "call tree".into()],
            vec![number(8), number(8), number(12), Constraint::Fill(1)],
        ),
        ViewTab::Functions => (
            vec![
                mark("% self", ViewSort::SelfTime),
                mark("% total", ViewSort::Total),
                mark("calls", ViewSort::Calls),
                mark("function", ViewSort::Name),
                "source".into(),
            ],
            vec![number(8), number(8), number(12), Constraint::Fill(3), Constraint::Fill(2)],
        ),
        ViewTab::Paths => (
            vec![
                mark("% self", ViewSort::SelfTime),
                mark("% total", ViewSort::Total),
                mark("calls", ViewSort::Calls),
                mark("path, from its end", ViewSort::Name),
            ],
            vec![number(8), number(8), number(12), Constraint::Fill(1)],
        ),
        ViewTab::Difference => (
            vec![
                format!("A, {unit}"),
                format!("B, {unit}"),
                "B - A".into(),
                "calls B - A".into(),
                "function".into(),
            ],
            vec![number(14), number(14), number(14), number(12), Constraint::Fill(1)],
        ),
    };
    if state.tab == ViewTab::Difference && state.model.difference.is_none() {
        let text = "no other profile: kerntune view --tui PROFILE --against OTHER";
        frame.render_widget(Paragraph::new(text).style(FAINT), area);
        return;
    }
    let shown = state.rows().iter().enumerate().skip(state.top).take(room);
    let lines: Vec<Cells> = shown
        .map(|(at, row)| {
            let cells = cells(row, state);
            if at == state.at {
                cells.style(CHOSEN)
            } else {
                cells
            }
        })
        .collect();
    let table = Table::new(lines, widths).header(Cells::new(heads).style(BOLD)).column_spacing(1);
    frame.render_widget(table, area);
}

fn right(text: String) -> Cell<'static> {
    Cell::new(Line::from(text).right_aligned())
}

fn cells(row: &ViewRow, state: &ViewState) -> Cells<'static> {
    let model = &state.model;
    let share = |part: u64| right(percent(part, model.busy));
    let calls = |calls: Option<u64>| right(calls.map_or(String::new(), grouped));
    match *row {
        ViewRow::Node(at, depth) => {
            let node = &model.nodes[at];
            let mark = match (node.children.is_empty(), state.is_open(at)) {
                (true, _) => " ",
                (false, true) => "▾",
                (false, false) => "▸",
            };
            let name = format!("{}{mark} {}", "  ".repeat(depth), node.name);
            Cells::new([share(node.total), share(node.own), calls(node.calls), Cell::new(name)])
        }
        ViewRow::Function(at) => {
            let function = &model.functions[at];
            Cells::new([
                share(function.own),
                share(function.total),
                calls(Some(function.calls)),
                Cell::new(function.name.clone()),
                Cell::new(function.file.clone()),
            ])
        }
        ViewRow::Path(at) => {
            let node = &model.nodes[at];
            Cells::new([share(node.own), share(node.total), calls(node.calls), Cell::new(model.path(at))])
        }
        ViewRow::Change(at) => change(&state.changes()[at]),
    }
}

fn change(line: &Change) -> Cells<'static> {
    let style = match line.self_ticks[1] - line.self_ticks[0] {
        ..0 => BETTER,
        0 => Style::new(),
        _ => WORSE,
    };
    let plain = |value: i128| right(signed(value).trim_start_matches('+').to_string());
    let calls = line.calls.map_or(String::new(), |calls| signed(calls[1] - calls[0]));
    let name = match line.with.as_slice() {
        [] => printable(&line.name),
        with => printable(&format!("{}  with {}", line.name, with.join(", "))),
    };
    Cells::new([
        plain(line.self_ticks[0]),
        plain(line.self_ticks[1]),
        right(signed(line.self_ticks[1] - line.self_ticks[0])).style(style),
        right(calls),
        Cell::new(name),
    ])
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
