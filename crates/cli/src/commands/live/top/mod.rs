//! `kerntune live top`: what the kernel of this machine does, as it does it.
//!
//! `state.rs` is what is chosen and known, and what each key does; `draw.rs` puts it on a screen; this file is the terminal,
//! and where the figures come from.

mod draw;
mod state;

use super::ask::{asked, strange};
use super::{keep, kernel_id, with_module};
use crate::args::Watch;
use crate::exit::{Exit, Failure};
use crate::keys::key;
use crate::output::Output;
use kerntune_live::daemon::{state as of, Answer, Place, Request, State as Found};
use kerntune_live::{Collector, Labels, TopView};
use kerntune_profile::KernelId;
use kerntune_symbols::Running;
use kerntune_work::{interrupt, WorkDir};
use ratatui::crossterm::event::{self, Event};
use ratatui::DefaultTerminal;
use state::{State, Wish};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Functions and paths that are asked for.
const MOST: usize = 2_000;
/// How long a key may wait to be seen.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where figures come from.
enum Feed<'a> {
    /// The collector that runs.
    Asked(&'a WorkDir),
    /// One of our own, which ends with the screen.
    Own(&'a WorkDir, Box<Collector>, Option<KernelId>),
}

impl Feed<'_> {
    fn view(&mut self) -> Result<TopView, Failure> {
        match self {
            Feed::Asked(work) => match asked(work, &Request::Top { most: MOST })? {
                Answer::Top(view) => Ok(*view),
                _ => Err(strange()),
            },
            Feed::Own(_, collector, _) => Ok(collector.top(MOST)?),
        }
    }

    /// Waits a moment for a key; a collector of our own works meanwhile.
    fn wait(&mut self) -> Result<Option<Event>, Failure> {
        let patience = match self {
            Feed::Asked(_) => LOOK_EVERY,
            Feed::Own(_, collector, _) => {
                collector.take()?;
                Duration::ZERO
            }
        };
        let read = || if event::poll(patience)? { event::read().map(Some) } else { Ok(None) };
        read().map_err(of_terminal)
    }

    fn save(&mut self) -> Result<PathBuf, Failure> {
        let workload = "live".to_string();
        match self {
            Feed::Asked(work) => match asked(work, &Request::Dump { workload })? {
                Answer::Dumped { path } => Ok(path),
                _ => Err(strange()),
            },
            Feed::Own(work, collector, kernel) => {
                let labels =
                    Labels { workload, region: "live".into(), kernel: kernel.clone(), ..Labels::default() };
                Ok(keep(work, collector, labels)?.0)
            }
        }
    }
}

fn of_terminal(error: io::Error) -> Failure {
    Failure { exit: Exit::Output, message: format!("cannot use the terminal: {error}") }
}

/// Shows it until somebody has seen enough.
pub fn run(work: &WorkDir, watch: &Watch, every: Duration, output: &Output) -> Result<Exit, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "live top needs a terminal; without one: kerntune live dump, kerntune live status --json",
        ));
    }
    let runs = matches!(of(&Place::of(work))?, Found::Runs(_));
    let mut feed = if runs {
        if watch.is_given() {
            return Err(Failure::usage(
                "a collector runs already, and what it watches was chosen when it was started",
            ));
        }
        Feed::Asked(work)
    } else {
        let (running, own) = Running::find_in(work)?;
        let collector = Collector::start(with_module(work, watch.options()?, output), running)?;
        Feed::Own(work, Box::new(collector), own.as_ref().map(kernel_id))
    };
    let mut terminal = ratatui::try_init().map_err(of_terminal)?;
    let shown = show(&mut terminal, &mut feed, every);
    ratatui::restore();
    for path in shown? {
        output.note(&format!("profile {}", path.display()));
    }
    Ok(Exit::Ok)
}

/// The profiles that were kept.
fn show(terminal: &mut DefaultTerminal, feed: &mut Feed, every: Duration) -> Result<Vec<PathBuf>, Failure> {
    let (mut state, mut kept) = (State::default(), Vec::new());
    let mut next = Instant::now();
    loop {
        interrupt::check()?;
        if Instant::now() >= next {
            state.take(feed.view()?);
            next = Instant::now() + every;
            terminal.draw(|frame| draw::draw(frame, &mut state)).map_err(of_terminal)?;
        }
        let Some(happened) = feed.wait()? else { continue };
        if let Some(key) = key(&happened) {
            match state.key(key) {
                Wish::Quit => return Ok(kept),
                Wish::Save => match feed.save() {
                    Ok(path) => {
                        state.say(format!("kept as {}", path.display()));
                        kept.push(path);
                    }
                    Err(failure) => state.say(failure.message),
                },
                Wish::Nothing => {}
            }
        }
        terminal.draw(|frame| draw::draw(frame, &mut state)).map_err(of_terminal)?;
    }
}
