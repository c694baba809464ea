//! Draws the state of `live top` on the screen.

use super::state::{TopRow, TopSort, TopState, TopTab};
use crate::keys::key_help;
use kerntune_compare::number::{figure, fixed, grouped};
use kerntune_live::TopView;
use kerntune_report::printable;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as Cells, Table, Tabs};
use ratatui::Frame;

/// Help line with the keys.
const KEYS: &str =
    "1-5 Tab list  s sort  / filter  space freeze  i interval  w keep as profile  ? keys  q quit";
/// All keys, for the help.
const ALL_KEYS: &[[&str; 2]] = &[
    ["1 … 5, Tab, Shift-Tab", "another list: functions, paths, subsystems, interrupts, rates"],
    ["up, down, Page Up, Page Down, Home, End", "scroll"],
    ["s", "sort by self time, total time, name"],
    ["/", "show only names or source paths with a text; Enter keeps it, Esc ends it"],
    ["space", "freeze the screen; the collector goes on"],
    ["i", "the last interval, not everything since the start"],
    ["w", "keep what was collected as a profile"],
    ["?", "these keys"],
    ["q, Esc, Ctrl-C", "quit"],
];
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// Draws the screen; limits the scroll position to the length of the list.
pub fn draw(frame: &mut Frame, state: &mut TopState) {
    let [head, tabs, list, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(state)), head);
    let titles = TopTab::ALL.iter().zip(1..).map(|(tab, number)| format!("{number} {}", tab.title()));
    let chosen = TopTab::ALL.iter().position(|tab| *tab == state.tab);
    frame.render_widget(
        Tabs::new(titles).select(chosen).highlight_style(BOLD.add_modifier(Modifier::REVERSED)),
        tabs,
    );
    match state.help {
        true => key_help(frame, list, ALL_KEYS),
        false => rows(frame, list, state),
    }
    let text = match (&state.said, state.typing) {
        (_, true) => format!("/{}_", printable(&state.filter)),
        (said, false) if !said.is_empty() => printable(said),
        _ => KEYS.to_string(),
    };
    frame.render_widget(Paragraph::new(text).style(FAINT), foot);
}

fn percent(part: u64, whole: u64) -> String {
    fixed(if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }, 1)
}

fn head_lines(state: &TopState) -> Vec<Line<'static>> {
    let view = state.view();
    let seconds = fixed(view.wall_ns as f64 / 1e9, 1);
    let kernel = view.samples.saturating_sub(view.halted).saturating_sub(view.user);
    let mut first = vec![
        Span::styled(format!("{} ", view.source), BOLD),
        Span::raw(format!("{seconds} s, {} samples, {} lost", grouped(view.samples), grouped(view.lost))),
    ];
    if state.recent {
        first.push(Span::styled("  [last interval]", BOLD));
    }
    if state.frozen {
        first.push(Span::styled("  [frozen]", BOLD));
    }
    if !state.filter.is_empty() {
        first.push(Span::raw(format!("  filter: {}", printable(&state.filter))));
    }
    let part = |samples| percent(samples, view.samples);
    let second = format!(
        "idle {} %  user {} %  kernel {} %, of that interrupts {} %  (sampled: ± is √n)",
        part(view.halted),
        part(view.user),
        part(kernel),
        part(view.interrupts)
    );
    vec![Line::from(first), Line::from(second)]
}

fn rows(frame: &mut Frame, area: Rect, state: &mut TopState) {
    let all = state.rows();
    let room = usize::from(area.height.saturating_sub(1));
    state.top = state.top.min(all.len().saturating_sub(room));
    let mark =
        |word: &str, sort: TopSort| if state.sort == sort { format!("{word}*") } else { word.to_string() };
    let (heads, widths): (Vec<String>, Vec<Constraint>) = match state.tab {
        TopTab::Rates => (
            vec!["count".into(), "per second".into(), mark("what", TopSort::Name), "source".into()],
            vec![Constraint::Length(14), Constraint::Length(12), Constraint::Fill(2), Constraint::Fill(1)],
        ),
        TopTab::Functions => (
            vec![
                mark("% self", TopSort::SelfTime),
                "±".into(),
                mark("% total", TopSort::Total),
                mark("function", TopSort::Name),
                "source".into(),
            ],
            vec![
                Constraint::Length(8),
                Constraint::Length(6),
                Constraint::Length(8),
                Constraint::Fill(1),
                Constraint::Fill(1),
            ],
        ),
        _ => (
            vec![mark("% samples", TopSort::SelfTime), "±".into(), mark("what", TopSort::Name)],
            vec![Constraint::Length(10), Constraint::Length(6), Constraint::Fill(1)],
        ),
    };
    let view = state.view();
    let lines = all.iter().skip(state.top).take(room).map(|row| cells(row, state.tab, view));
    let table = Table::new(lines, widths).header(Cells::new(heads).style(BOLD)).column_spacing(1);
    frame.render_widget(table, area);
}

fn cells(row: &TopRow, tab: TopTab, view: &TopView) -> Cells<'static> {
    let text = |text: String| Cell::new(Line::from(text).right_aligned());
    let name = Cell::new(printable(&row.name));
    let error = || percent((row.own as f64).sqrt().round() as u64, view.samples);
    match tab {
        TopTab::Rates => {
            let rate = row.own as f64 * 1e9 / view.wall_ns.max(1) as f64;
            Cells::new([text(grouped(row.own)), text(figure(rate)), name, Cell::new(row.place.clone())])
        }
        TopTab::Functions => Cells::new([
            text(percent(row.own, view.samples)),
            text(error()),
            text(percent(row.total.unwrap_or(0), view.samples)),
            name,
            Cell::new(printable(&row.place)),
        ]),
        TopTab::Paths | TopTab::Subsystems | TopTab::Interrupts => {
            Cells::new([text(percent(row.own, view.samples)), text(error()), name])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::tests::view;
    use super::*;
    use crate::keys::TerminalKey;
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    /// Returns the lines of the screen without trailing spaces.
    fn screen(state: &mut TopState, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line =
            |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_string();
        (0..height).map(line).collect()
    }

    #[test]
    fn functions_with_their_shares() {
        let mut state = TopState::default();
        state.take(view(1));
        let lines = screen(&mut state, 80, 8);
        assert_eq!(lines[0], "perf: cpu-clock 2.0 s, 4,000 samples, 0 lost");
        assert_eq!(
            lines[1],
            "idle 25.0 %  user 12.5 %  kernel 62.5 %, of that interrupts 2.5 %  (sampled: ± i"
        );
        assert_eq!(lines[2], " 1 functions │ 2 paths │ 3 subsystems │ 4 interrupts │ 5 rates");
        assert!(
            lines[3].starts_with("% self*") && lines[3].contains("% total") && lines[3].contains("function")
        );
        let words: Vec<&str> = lines[4].split_whitespace().collect();
        assert_eq!(words, ["10.0", "0.5", "10.0", "clear_page", "arch/x86/lib/clear_page.S"]);
        assert!(lines[6].contains("ksys_read") && lines[7].starts_with("1-5 Tab list"), "{lines:#?}");
    }

    #[test]
    fn every_list_fits_any_screen() {
        let mut state = TopState::default();
        state.take(view(1));
        for tab in ['1', '2', '3', '4', '5'] {
            state.key(TerminalKey::Char(tab));
            state.key(TerminalKey::Down(usize::MAX));
            for (width, height) in [(120, 40), (20, 5), (1, 1)] {
                screen(&mut state, width, height);
            }
        }
        let rates = screen(&mut state, 80, 8);
        let words: Vec<&str> = rates[4].split_whitespace().collect();
        assert_eq!(words, ["500", "250", "LOC", "Local", "timer", "interrupts", "/proc/interrupts"]);
    }

    #[test]
    fn marks_and_names_cannot_steer_the_terminal() {
        let mut state = TopState::default();
        let mut hostile = view(1);
        hostile.functions[0].name = "x\u{1b}[31m".into();
        state.take(hostile);
        for key in
            [TerminalKey::Char(' '), TerminalKey::Char('i'), TerminalKey::Char('/'), TerminalKey::Char('x')]
        {
            state.key(key);
        }
        let lines = screen(&mut state, 100, 8);
        assert!(
            lines[0].contains("[frozen]")
                && lines[0].contains("[last interval]")
                && lines[0].contains("filter: x")
        );
        assert!(lines[7].starts_with("/x_"), "{lines:#?}");
        assert!(!lines.concat().contains('\u{1b}'));
    }
}
