//! Keys of what is shown in a terminal.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key, whatever the terminal calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
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

/// The key that was pressed, if it is one of ours.
pub fn key(event: &Event) -> Option<Key> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else { return None };
    Some(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(c) => Key::Char(*c),
        KeyCode::Esc => Key::Escape,
        KeyCode::Enter => Key::Enter,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Next,
        KeyCode::BackTab => Key::Previous,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up(1),
        KeyCode::Down => Key::Down(1),
        KeyCode::PageUp => Key::Up(20),
        KeyCode::PageDown => Key::Down(20),
        KeyCode::Home => Key::Up(usize::MAX),
        KeyCode::End => Key::Down(usize::MAX),
        _ => return None,
    })
}
