//! Where words go: results to standard output, progress and trouble to standard error.

use crate::exit::{Exit, Failure};
use crate::global::{Global, When};
use crate::pager;
use crate::progress::Shown;
use crate::stderr::say;
use crate::streams::check_standard_output;
use kerntune_report::{plain_table, printable_text, Style};
use kerntune_work::{NoProgress, Progress};
use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, OnceLock};

/// How to talk.
pub struct Output {
    quiet: bool,
    color: When,
    progress: Box<dyn Progress>,
    /// Why results could not be written: nothing is after that.
    unwritten: OnceLock<io::Error>,
    /// A pager, and what it is to show.
    paged: Option<(OsString, Mutex<String>)>,
}

impl Output {
    pub fn new(global: &Global) -> Self {
        let progress: Box<dyn Progress> =
            if global.quiet { Box::new(NoProgress) } else { Box::new(Shown::new(global.verbose)) };
        Self { quiet: global.quiet, color: global.color, progress, unwritten: OnceLock::new(), paged: None }
    }

    /// The same for results to read at leisure: a pager shows them, if they go to a terminal.
    pub fn paged(self, global: &Global) -> Self {
        let terminal = io::stdout().is_terminal() && !global.no_pager;
        let pager = terminal.then(pager::wanted).flatten();
        Self { paged: pager.map(|pager| (pager, Mutex::new(String::new()))), ..self }
    }

    /// Whom long work tells of its progress.
    pub fn progress(&self) -> &dyn Progress {
        self.progress.as_ref()
    }

    /// How reports are dressed.
    pub fn style(&self) -> Style {
        let terminal = io::stdout().is_terminal();
        let color = match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && std::env::var_os("NO_COLOR").is_none(),
        };
        Style { color, width: terminal.then(terminal_width).flatten() }
    }

    /// A result: text, or a JSON document.
    pub fn print(&self, text: &str) {
        if self.unwritten.get().is_some() {
            return;
        }
        let text = printable_text(text, self.style().color);
        if let Some((_, shown)) = &self.paged {
            if let Ok(mut shown) = shown.lock() {
                shown.push_str(&text);
                shown.push_str(if text.ends_with('\n') { "" } else { "\n" });
                return;
            }
        }
        if let Err(error) = write_out(&text) {
            self.fail(error);
        }
    }

    /// A result as JSON.
    pub fn json(&self, value: &impl serde::Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.print(&text),
            Err(error) => self.fail(error.into()),
        }
    }

    fn fail(&self, error: io::Error) {
        let _ = self.unwritten.set(error);
    }

    /// How the command ends, if `exit` is what it came to and everything was written.
    pub fn finish(&self, exit: Exit) -> Exit {
        self.progress.end();
        if let Some(text) = self.paged.as_ref().and_then(|(_, shown)| shown.lock().ok()) {
            if let Err(error) = self.show(&text) {
                self.fail(error);
            }
        }
        self.unwritten.get().map_or(exit, |error| unwritten(error, exit))
    }

    fn show(&self, text: &str) -> io::Result<()> {
        match &self.paged {
            _ if text.is_empty() => Ok(()),
            Some((pager, _)) if pager::show(pager, text)? => Ok(()),
            _ => write_out(text),
        }
    }

    /// A result as a plain table; columns whose head begins with `#` are numbers.
    pub fn table(&self, heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        self.print(&plain_table(heads, rows));
    }

    /// A remark for people.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    /// Something that a list leaves out. Said to the quiet, too: it is no remark on the work, but a hole in the result.
    pub fn damaged(&self, error: &dyn std::fmt::Display) {
        say(&format!("damaged: {error}"));
    }

    /// Says what is missing in the results, since something beside the profile's tables is damaged; how the command ends.
    pub fn left_out(&self, damage: &Failure, missing: &str) -> Exit {
        self.progress.end();
        say(&format!("kerntune: {}\nkerntune: so {missing}", damage.message));
        damage.exit
    }

    /// Why it failed.
    pub fn failure(&self, failure: &Failure) {
        self.progress.end();
        say(&format!("kerntune: {}", failure.message));
    }
}

fn write_out(text: &str) -> io::Result<()> {
    check_standard_output()?;
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    write!(out, "{text}{end}")?;
    out.flush()
}

/// How the command ends, if `exit` is what it came to and results could not be written: a result that nobody got is none. A
/// reader that went away wanted no more.
fn unwritten(error: &io::Error, exit: Exit) -> Exit {
    if error.kind() == ErrorKind::BrokenPipe {
        return exit;
    }
    say(&format!("kerntune: cannot write results to standard output: {error}"));
    match exit {
        Exit::Ok | Exit::Findings => Exit::Output,
        failed => failed,
    }
}

/// Says what clap found in the command line: help and version are results, all else is a usage error.
pub fn parsed(error: &clap::Error) -> Exit {
    let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
    let printed = match exit {
        Exit::Ok => check_standard_output(),
        _ => Ok(()),
    };
    match printed.and_then(|()| error.print()).and_then(|()| io::stdout().flush()) {
        Err(error) if exit == Exit::Ok => unwritten(&error, exit),
        _ => exit,
    }
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map(|size| size.ws_col.into()).filter(|&columns: &usize| columns > 0)
}
