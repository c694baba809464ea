//! Progress display: a bar on a terminal, lines elsewhere.

use crate::stderr::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kerntune_report::{printable, printable_text};
use kerntune_work::Progress;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Shows progress on standard error.
pub struct ProgressDisplay {
    verbose: bool,
    terminal: bool,
    current: Mutex<Option<ProgressStep>>,
}

struct ProgressStep {
    what: String,
    /// Last note that is not shown as a line of its own.
    note: String,
    status: String,
    bar: Option<ProgressBar>,
    started: Instant,
    /// Time of the last line about it, where there is no bar.
    said: Instant,
}

/// Time after which a log without a bar gets a line about a step that still runs.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

impl ProgressStep {
    fn new(what: &str, bar: Option<ProgressBar>) -> Self {
        let (note, status, started) = (String::new(), String::new(), Instant::now());
        Self { what: what.into(), note, status, bar, started, said: started }
    }

    /// Returns the bar's text: `measured on base (guest: rr): 1.24 s virtual`.
    fn message(&self) -> String {
        let mut text = self.what.clone();
        if !self.note.is_empty() {
            text += &format!(" ({})", self.note);
        }
        if !self.status.is_empty() {
            text += &format!(": {}", self.status);
        }
        printable(&text)
    }

    /// Returns a log's line about a step that still runs.
    fn sign_of_life(&self) -> String {
        let state = if self.status.is_empty() { String::new() } else { format!(": {}", self.status) };
        format!("  {} … {:.0} s so far{state}", self.what, self.started.elapsed().as_secs_f64())
    }
}

impl ProgressDisplay {
    pub fn new(verbose: bool) -> Self {
        Self { verbose, terminal: std::io::stderr().is_terminal(), current: Mutex::new(None) }
    }

    fn with(&self, work: impl FnOnce(&mut Option<ProgressStep>)) {
        if let Ok(mut current) = self.current.lock() {
            work(&mut current);
        }
    }
}

impl Progress for ProgressDisplay {
    fn begin(&self, what: &str, total: Option<u64>) {
        self.end();
        let bar = self.terminal.then(|| {
            let template = match total {
                Some(_) => "  {msg} {wide_bar:.dim} {pos}/{len}  {elapsed} elapsed, about {eta} left",
                None => "  {spinner} {msg}  {elapsed}",
            };
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_message(printable(what));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        if bar.is_none() {
            say(&format!("  {what} …"));
        }
        self.with(|current| *current = Some(ProgressStep::new(what, bar)));
    }

    fn at(&self, done: u64) {
        self.with(|current| match current {
            Some(ProgressStep { bar: Some(bar), .. }) => {
                if bar.length().is_some_and(|length| done > length) {
                    bar.set_length(done);
                }
                bar.set_position(done);
            }
            Some(step) if step.said.elapsed() >= SIGN_OF_LIFE => {
                step.said = Instant::now();
                say(&step.sign_of_life());
            }
            _ => {}
        });
    }

    fn status(&self, line: &str) {
        self.with(|current| {
            let Some(step) = current else { return };
            step.status = line.to_owned();
            if let Some(bar) = &step.bar {
                bar.set_message(step.message());
            }
        });
    }

    fn note(&self, line: &str) {
        let line = &printable(line);
        // Warnings are shown even without `--verbose`.
        let shown = self.verbose || line.starts_with("warning: ");
        self.with(|current| match current {
            Some(step @ ProgressStep { bar: Some(_), .. }) if !shown => {
                step.note.clone_from(line);
                if let Some(bar) = &step.bar {
                    bar.set_message(step.message());
                }
            }
            Some(ProgressStep { bar: Some(bar), .. }) => {
                bar.println(printable_text(&format!("    {line}"), false));
            }
            _ if shown => say(&format!("    {line}")),
            _ => {}
        });
    }

    fn end(&self) {
        self.with(|current| {
            if let Some(piece) = current.take() {
                if let Some(bar) = piece.bar {
                    bar.finish_and_clear();
                }
                let seconds = piece.started.elapsed().as_secs_f64();
                if self.verbose || seconds >= 10.0 {
                    say(&format!("  {}: {seconds:.0} s", piece.what));
                }
            }
        });
    }
}
