//! The command `kerntune live top`: shows the activity of this machine's kernel, updated
//! continuously.
//!
//! `state.rs` has the state and the reaction to keys, `draw.rs` draws it; this file handles the
//! terminal and the source of figures.

mod draw;
mod state;

use super::ask::{ask_collector, unexpected_answer};
use super::{keep, kernel_id, with_module, LiveOptions};
use crate::keys::key;
use kerntune_command::{CliOutput, Exit, Failure};
use kerntune_live::daemon::{state as of, DaemonDir, DaemonRequest, DaemonResponse, DaemonState as Found};
use kerntune_live::{Collector, ProfileLabels, TopView};
use kerntune_profile::KernelId;
use kerntune_symbols::RunningKernel;
use kerntune_work::{interrupt, WorkDir};
use ratatui::crossterm::event::{self, Event};
use ratatui::DefaultTerminal;
use state::{TopAction, TopState};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Largest number of functions and of paths to request.
const MAX_ROWS: usize = 2_000;
/// Largest delay until a key is handled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Source of the figures.
enum TopFeed<'a> {
    /// The collector that runs in the background.
    Asked(&'a WorkDir),
    /// A collector in this process, which ends with the screen.
    Own(&'a WorkDir, Box<Collector>, Option<KernelId>),
}

impl TopFeed<'_> {
    fn view(&mut self) -> Result<TopView, Failure> {
        match self {
            TopFeed::Asked(work) => match ask_collector(work, &DaemonRequest::Top { max: MAX_ROWS })? {
                DaemonResponse::Top(view) => Ok(*view),
                _ => Err(unexpected_answer()),
            },
            TopFeed::Own(_, collector, _) => Ok(collector.top(MAX_ROWS)?),
        }
    }

    /// Waits briefly for a key; a collector in this process works meanwhile.
    fn wait(&mut self) -> Result<Option<Event>, Failure> {
        let patience = match self {
            TopFeed::Asked(_) => POLL_INTERVAL,
            TopFeed::Own(_, collector, _) => {
                collector.poll()?;
                Duration::ZERO
            }
        };
        let read = || if event::poll(patience)? { event::read().map(Some) } else { Ok(None) };
        read().map_err(of_terminal)
    }

    fn save(&mut self) -> Result<PathBuf, Failure> {
        let workload = "live".to_string();
        match self {
            TopFeed::Asked(work) => match ask_collector(work, &DaemonRequest::Dump { workload })? {
                DaemonResponse::Dumped { path } => Ok(path),
                _ => Err(unexpected_answer()),
            },
            TopFeed::Own(work, collector, kernel) => {
                let labels = ProfileLabels {
                    workload,
                    region: "live".into(),
                    kernel: kernel.clone(),
                    ..ProfileLabels::default()
                };
                Ok(keep(work, collector, labels)?.0)
            }
        }
    }
}

fn of_terminal(error: io::Error) -> Failure {
    Failure { exit: Exit::Output, message: format!("cannot use the terminal: {error}") }
}

/// Shows the screen until the user quits.
pub fn run(
    work: &WorkDir,
    watch: &LiveOptions,
    every: Duration,
    output: &CliOutput,
) -> Result<Exit, Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "live top needs a terminal; without one: kerntune live dump, kerntune live status --json",
        ));
    }
    if watch.branches {
        return Err(Failure::usage(
            "live top shows times, and --branches samples none: kerntune live start --branches, and live dump",
        ));
    }
    let runs = matches!(of(&DaemonDir::of(work))?, Found::Runs(_));
    let mut feed = if runs {
        if watch.is_given() {
            return Err(Failure::usage(
                "a collector runs already, and what it watches was chosen when it was started",
            ));
        }
        TopFeed::Asked(work)
    } else {
        let (running, own) = RunningKernel::find_in(work)?;
        let collector = Collector::start(with_module(work, watch.options()?, output), running)?;
        TopFeed::Own(work, Box::new(collector), own.as_ref().map(kernel_id))
    };
    let mut terminal = ratatui::try_init().map_err(of_terminal)?;
    let shown = show(&mut terminal, &mut feed, every);
    ratatui::restore();
    for path in shown? {
        output.note(&format!("profile {}", path.display()));
    }
    Ok(Exit::Ok)
}

/// Runs the screen; returns the profiles that the user saved.
fn show(
    terminal: &mut DefaultTerminal,
    feed: &mut TopFeed,
    every: Duration,
) -> Result<Vec<PathBuf>, Failure> {
    let (mut state, mut kept) = (TopState::default(), Vec::new());
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
                TopAction::Quit => return Ok(kept),
                TopAction::Save => match feed.save() {
                    Ok(path) => {
                        state.say(format!("kept as {}", path.display()));
                        kept.push(path);
                    }
                    Err(failure) => state.say(failure.message),
                },
                TopAction::Nothing => {}
            }
        }
        terminal.draw(|frame| draw::draw(frame, &mut state)).map_err(of_terminal)?;
    }
}
