//! Puts it on a screen.

use super::state::{Row, Sort, State, Tab};
use kerntune_compare::number::{fixed, grouped};
use kerntune_report::diff::Line as Change;
use kerntune_report::printable;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as Cells, Table, Tabs};
use ratatui::Frame;

/// What keys do, in a line.
const KEYS: &str = "1-4 Tab list  arrows move, open, close  Enter in the tree  s sort  / filter  q quit";
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
/// As in reports: less is better.
const BETTER: Style = Style::new().fg(Color::Green);
const WORSE: Style = Style::new().fg(Color::Red);

/// Draws all of it; keeps the chosen line in sight.
pub fn draw(frame: &mut Frame, state: &mut State) {
    let [head, tabs, list, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(state)), head);
    let titles = Tab::ALL.iter().zip(1..).map(|(tab, number)| format!("{number} {}", tab.title()));
    let chosen = Tab::ALL.iter().position(|tab| *tab == state.tab);
    frame.render_widget(Tabs::new(titles).select(chosen).highlight_style(BOLD.patch(CHOSEN)), tabs);
    rows(frame, list, state);
    let text = match (state.typing, state.filter.is_empty()) {
        (true, _) => format!("/{}_", printable(&state.filter)),
        (false, true) => KEYS.to_string(),
        (false, false) => format!("filter: {}  (Esc: all)  {KEYS}", printable(&state.filter)),
    };
    frame.render_widget(Paragraph::new(text).style(FAINT), foot);
}

fn head_lines(state: &State) -> Vec<Line<'static>> {
    let model = &state.model;
    let second = match (&model.difference, state.tab) {
        (Some((other, _)), Tab::Difference) => format!("against {other}"),
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

fn rows(frame: &mut Frame, area: Rect, state: &mut State) {
    let room = usize::from(area.height.saturating_sub(1));
    state.fit(room);
    let unit = state.model.measure.one().name();
    let mark =
        |word: &str, sort: Sort| if state.sort == sort { format!("{word}*") } else { word.to_string() };
    let number = Constraint::Length;
    let (heads, widths): (Vec<String>, Vec<Constraint>) = match state.tab {
        Tab::Tree => (
            vec!["% total".into(), "% self".into(), "calls".into(), "call tree".into()],
            vec![number(8), number(8), number(12), Constraint::Fill(1)],
        ),
        Tab::Functions => (
            vec![
                mark("% self", Sort::Own),
                mark("% total", Sort::Total),
                mark("calls", Sort::Calls),
                mark("function", Sort::Name),
                "source".into(),
            ],
            vec![number(8), number(8), number(12), Constraint::Fill(3), Constraint::Fill(2)],
        ),
        Tab::Paths => (
            vec![
                mark("% self", Sort::Own),
                mark("% total", Sort::Total),
                mark("calls", Sort::Calls),
                mark("path, from its end", Sort::Name),
            ],
            vec![number(8), number(8), number(12), Constraint::Fill(1)],
        ),
        Tab::Difference => (
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
    if state.tab == Tab::Difference && state.model.difference.is_none() {
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

fn cells(row: &Row, state: &State) -> Cells<'static> {
    let model = &state.model;
    let share = |part: u64| right(percent(part, model.busy));
    let calls = |calls: Option<u64>| right(calls.map_or(String::new(), grouped));
    match *row {
        Row::Node(at, depth) => {
            let node = &model.nodes[at];
            let mark = match (node.children.is_empty(), state.is_open(at)) {
                (true, _) => " ",
                (false, true) => "▾",
                (false, false) => "▸",
            };
            let name = format!("{}{mark} {}", "  ".repeat(depth), node.name);
            Cells::new([share(node.total), share(node.own), calls(node.calls), Cell::new(name)])
        }
        Row::Function(at) => {
            let function = &model.functions[at];
            Cells::new([
                share(function.own),
                share(function.total),
                calls(Some(function.calls)),
                Cell::new(function.name.clone()),
                Cell::new(function.file.clone()),
            ])
        }
        Row::Path(at) => {
            let node = &model.nodes[at];
            Cells::new([share(node.own), share(node.total), calls(node.calls), Cell::new(model.path(at))])
        }
        Row::Change(at) => change(&state.changes()[at]),
    }
}

fn change(line: &Change) -> Cells<'static> {
    let style = match line.net[1] - line.net[0] {
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
        plain(line.net[0]),
        plain(line.net[1]),
        right(signed(line.net[1] - line.net[0])).style(style),
        right(calls),
        Cell::new(name),
    ])
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
