//! The command `kerntune view --tui`: shows a profile in the terminal.
//!
//! `model.rs` has the figures of the profile, `state.rs` the selection and the reaction to keys,
//! `draw.rs` draws them; this file handles the terminal.

mod draw;
mod model;
mod state;

use super::ViewOptions;
use crate::keys::key;
use kerntune_command::{Exit, Failure, GlobalOptions, ProfileSubject};
use kerntune_profile::{find, Profile};
use kerntune_work::interrupt;
use model::ViewModel;
use ratatui::crossterm::event::{self, Event};
use ratatui::DefaultTerminal;
use state::ViewState;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// Largest delay until an interrupt is handled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

fn of_terminal(error: io::Error) -> Failure {
    Failure { exit: Exit::Output, message: format!("cannot use the terminal: {error}") }
}

/// Shows the profile until the user quits.
pub fn run(global: &GlobalOptions, options: &ViewOptions) -> Result<Exit, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage("view --tui needs a terminal; without one: kerntune report PROFILE"));
    }
    let of = ProfileSubject::open(global, &options.profile)?;
    let other = match &options.against {
        Some(name) => Some(Profile::load(&find(&of.work, name)?.path)?),
        None => None,
    };
    let model = ViewModel::new(&of.profile, other.as_ref(), options.region.as_deref())?;
    let mut terminal = ratatui::try_init().map_err(of_terminal)?;
    let shown = show(&mut terminal, &mut ViewState::new(model));
    ratatui::restore();
    shown
}

fn show(terminal: &mut DefaultTerminal, state: &mut ViewState) -> Result<Exit, Failure> {
    loop {
        interrupt::check()?;
        terminal.draw(|frame| draw::draw(frame, state)).map_err(of_terminal)?;
        let key = loop {
            interrupt::check()?;
            if event::poll(POLL_INTERVAL).map_err(of_terminal)? {
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
