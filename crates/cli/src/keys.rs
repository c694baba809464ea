//! Keys of the terminal user interfaces.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Rect};
use ratatui::widgets::{Cell, Row, Table};
use ratatui::Frame;

/// A key press that a terminal user interface handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalKey {
    Char(char),
    Escape,
    Enter,
    Backspace,
    Next,
    Previous,
    Left,
    Right,
    Up(usize),
    Down(usize),
    Interrupt,
}

/// Converts a terminal event to a key; `None` for other events.
pub fn key(event: &Event) -> Option<TerminalKey> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else { return None };
    Some(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => TerminalKey::Interrupt,
        KeyCode::Char(c) => TerminalKey::Char(*c),
        KeyCode::Esc => TerminalKey::Escape,
        KeyCode::Enter => TerminalKey::Enter,
        KeyCode::Backspace => TerminalKey::Backspace,
        KeyCode::Tab => TerminalKey::Next,
        KeyCode::BackTab => TerminalKey::Previous,
        KeyCode::Left => TerminalKey::Left,
        KeyCode::Right => TerminalKey::Right,
        KeyCode::Up => TerminalKey::Up(1),
        KeyCode::Down => TerminalKey::Down(1),
        KeyCode::PageUp => TerminalKey::Up(20),
        KeyCode::PageDown => TerminalKey::Down(20),
        KeyCode::Home => TerminalKey::Up(usize::MAX),
        KeyCode::End => TerminalKey::Down(usize::MAX),
        _ => return None,
    })
}

/// Draws a list of keys and what they do.
pub fn key_help(frame: &mut Frame, area: Rect, keys: &[[&'static str; 2]]) {
    let lines = keys.iter().map(|words| Row::new(words.map(Cell::from)));
    let widths = [Constraint::Length(40), Constraint::Fill(1)];
    frame.render_widget(Table::new(lines, widths).column_spacing(1), area);
}
