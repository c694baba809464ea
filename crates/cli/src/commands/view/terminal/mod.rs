//! `kerntune view --tui`: a profile in the terminal.
//!
//! `model.rs` is what a profile says, `state.rs` what of it is chosen and what each key does, `draw.rs` puts it on a screen;
//! this file is the terminal.

mod draw;
mod model;
mod state;

use crate::args::View;
use crate::exit::{Exit, Failure};
use crate::global::Global;
use crate::subject::Subject;
use kerntune_profile::{find, Profile};
use kerntune_work::interrupt;
use model::Model;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::DefaultTerminal;
use state::{Key, State};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// How long an interruption may wait to be seen.
const LOOK_EVERY: Duration = Duration::from_millis(200);

fn of_terminal(error: io::Error) -> Failure {
    Failure { exit: Exit::Output, message: format!("cannot use the terminal: {error}") }
}

/// Shows it until somebody has seen enough.
pub fn run(global: &Global, options: &View) -> Result<Exit, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("view --tui needs a terminal; without one: kerntune report PROFILE"));
    }
    let of = Subject::open(global, &options.profile)?;
    let other = match &options.against {
        Some(name) => Some(Profile::load(&find(&of.work, name)?.path)?),
        None => None,
    };
    let model = Model::new(&of.profile, other.as_ref(), options.region.as_deref())?;
    let mut terminal = ratatui::try_init().map_err(of_terminal)?;
    let shown = show(&mut terminal, &mut State::new(model));
    ratatui::restore();
    shown
}

fn show(terminal: &mut DefaultTerminal, state: &mut State) -> Result<Exit, Failure> {
    loop {
        interrupt::check()?;
        terminal.draw(|frame| draw::draw(frame, state)).map_err(of_terminal)?;
        let key = loop {
            interrupt::check()?;
            if event::poll(LOOK_EVERY).map_err(of_terminal)? {
                match event::read().map_err(of_terminal)? {
                    Event::Resize(..) => break None,
                    happened => {
                        if let Some(key) = key(&happened) {
                            break Some(key);
                        }
                    }
                }
            }
        };
        if key.is_some_and(|key| !state.key(key)) {
            return Ok(Exit::Ok);
        }
    }
}

/// The key that was pressed, if it is one of ours.
fn key(event: &Event) -> Option<Key> {
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
