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
use crate::keys::key;
use crate::subject::Subject;
use kerntune_profile::{find, Profile};
use kerntune_work::interrupt;
use model::Model;
use ratatui::crossterm::event::{self, Event};
use ratatui::DefaultTerminal;
use state::State;
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
