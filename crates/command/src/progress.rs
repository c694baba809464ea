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
    bar: Option<ProgressBar>,
    started: Instant,
    /// Time of the last line about it, where there is no bar.
    said: Instant,
}

/// Time after which a log without a bar gets a line about a step that still runs.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

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
        let started = Instant::now();
        self.with(|current| *current = Some(ProgressStep { what: what.into(), bar, started, said: started }));
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
                say(&format!("  {} … {:.0} s so far", step.what, step.started.elapsed().as_secs_f64()));
            }
            _ => {}
        });
    }

    fn note(&self, line: &str) {
        let line = &printable(line);
        // Warnings are shown even without `--verbose`.
        let shown = self.verbose || line.starts_with("warning: ");
        self.with(|current| match current.as_ref().and_then(|piece| piece.bar.as_ref()) {
            Some(bar) if !shown => {
                if let Some(piece) = current.as_ref() {
                    bar.set_message(printable(&format!("{} ({line})", piece.what)));
                }
            }
            Some(bar) => bar.println(printable_text(&format!("    {line}"), false)),
            None if shown => say(&format!("    {line}")),
            None => {}
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
