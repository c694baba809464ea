//! Screen of a stream of tags while it arrives: functions with calls and times on standard error.

use super::dump::DumpRecord;
use super::live_figures::LiveFigures;
use kerntune_command::say;
use kerntune_work::Progress;
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Interval of the screen, unless another one is asked for.
const SECOND: Duration = Duration::from_secs(1);
/// Rows of a terminal that does not say its size.
const USUAL_ROWS: usize = 24;
/// Lines of a screen that are no functions: the heading, the names of the columns, the foot.
const OTHER_LINES: usize = 3;
/// Functions in a summary without a terminal.
const SUMMARY_ROWS: usize = 10;

/// Shows the figures in intervals.
pub struct LiveScreen<'a> {
    figures: LiveFigures<'a>,
    interval: Duration,
    /// The whole screen is redrawn; otherwise there is a summary for each interval.
    terminal: bool,
    began: Instant,
    /// Time and records of the last view.
    shown: Option<(Instant, u64)>,
}

impl<'a> LiveScreen<'a> {
    /// Creates a screen if standard error is a terminal, or an interval is given.
    pub fn new(figures: LiveFigures<'a>, interval: Option<Duration>) -> Option<Self> {
        let terminal = io::stderr().is_terminal();
        let interval = match terminal {
            true => Some(interval.unwrap_or(SECOND)),
            false => interval,
        };
        Some(Self { figures, interval: interval?, terminal, began: Instant::now(), shown: None })
    }

    /// Adds records, and shows the figures if an interval has passed.
    pub fn add(&mut self, records: &[DumpRecord]) {
        self.figures.add(records);
        let (since, before) = self.shown.unwrap_or((self.began, 0));
        let passed = since.elapsed();
        if passed < self.interval {
            return;
        }
        let rate = (self.figures.records() - before) as f64 / passed.as_secs_f64();
        match self.terminal {
            true => self.draw(rate),
            false => say(self.figures.text(SUMMARY_ROWS).trim_end()),
        }
        self.shown = Some((Instant::now(), self.figures.records()));
    }

    fn draw(&self, rate: f64) {
        let rows = tcgetwinsize(io::stderr()).map_or(USUAL_ROWS, |size| usize::from(size.ws_row));
        let table = self.figures.text(rows.saturating_sub(OTHER_LINES + 1));
        let enter = if self.shown.is_none() { "\x1b[?1049h" } else { "" };
        // The other screen of the terminal, which keeps what was there before; from its upper left
        // corner, each line up to its end, and nothing below.
        let text = format!("{enter}\x1b[H{table}{rate:.0} records a second; Ctrl-C ends and imports\n");
        let text = text.replace('\n', "\x1b[K\r\n") + "\x1b[J";
        // A terminal that has gone ends the stream by a signal.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for LiveScreen<'_> {
    fn drop(&mut self) {
        if self.terminal && self.shown.is_some() {
            let _ = io::stderr().write_all(b"\x1b[?1049l");
        }
    }
}

/// Progress without a bar, which would be in the middle of the screen.
pub struct NotesOnly<'a>(pub &'a dyn Progress);

impl Progress for NotesOnly<'_> {
    fn begin(&self, _: &str, _: Option<u64>) {}
    fn at(&self, _: u64) {}
    fn note(&self, line: &str) {
        self.0.note(line);
    }
    fn end(&self) {}
}
