//! Output of the command: results to standard output, progress and errors to standard error. Start
//! from [`CliOutput`].

use crate::exit::{Exit, Failure};
use crate::global::{ColorMode, GlobalOptions};
use crate::pager;
use crate::progress::ProgressDisplay;
use crate::stderr::say;
use crate::streams::check_standard_output;
use kerntune_report::{plain_table, printable_text, Style};
use kerntune_work::{NoProgress, Progress};
use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, OnceLock};

/// Destination of results, progress and messages, according to the global options.
pub struct CliOutput {
    quiet: bool,
    verbose: bool,
    color: ColorMode,
    progress: Box<dyn Progress>,
    /// First error while writing results; nothing more is written after it.
    unwritten: OnceLock<io::Error>,
    /// The pager, and the results collected for it.
    paged: Option<(OsString, Mutex<String>)>,
}

impl CliOutput {
    /// Makes the output that the options ask for.
    pub fn new(global: &GlobalOptions) -> Self {
        let progress: Box<dyn Progress> =
            if global.quiet { Box::new(NoProgress) } else { Box::new(ProgressDisplay::new(global.verbose)) };
        let GlobalOptions { quiet, verbose, color, .. } = *global;
        Self { quiet, verbose, color, progress, unwritten: OnceLock::new(), paged: None }
    }

    /// Collects results for a pager, if standard output is a terminal.
    pub fn paged(self, global: &GlobalOptions) -> Self {
        let terminal = io::stdout().is_terminal() && !global.no_pager;
        let pager = terminal.then(pager::wanted).flatten();
        Self { paged: pager.map(|pager| (pager, Mutex::new(String::new()))), ..self }
    }

    /// Returns the progress display, which long work reports to.
    pub fn progress(&self) -> &dyn Progress {
        self.progress.as_ref()
    }

    /// Returns the style of text reports: color and width.
    pub fn style(&self) -> Style {
        let terminal = io::stdout().is_terminal();
        let color = match self.color {
            ColorMode::Always => true,
            ColorMode::Never => false,
            ColorMode::Auto => terminal && std::env::var_os("NO_COLOR").is_none(),
        };
        Style { color, width: terminal.then(terminal_width).flatten(), verbose: self.verbose }
    }

    /// Returns true if `--verbose` is given.
    pub fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Prints a result: text, or a JSON document.
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

    /// Prints a result as indented JSON.
    pub fn json(&self, value: &impl serde::Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.print(&text),
            Err(error) => self.fail(error.into()),
        }
    }

    fn fail(&self, error: io::Error) {
        let _ = self.unwritten.set(error);
    }

    /// Flushes all results, and returns the final exit status: `exit`, unless results could not be
    /// written.
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

    /// Prints a result as a plain table; columns whose head begins with `#` are numbers.
    pub fn table(&self, heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        self.print(&plain_table(heads, rows));
    }

    /// Prints a note on standard error, unless `--quiet` is given.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    /// Reports an entry that a list had to leave out. Printed even with `--quiet`, because the
    /// result is incomplete.
    pub fn damaged(&self, error: &dyn std::fmt::Display) {
        say(&format!("damaged: {error}"));
    }

    /// Reports results that are missing because of damage outside the profile's tables; returns the
    /// exit status for it.
    pub fn left_out(&self, damage: &Failure, missing: &str) -> Exit {
        self.progress.end();
        say(&format!("kerntune: {}\nkerntune: so {missing}", damage.message));
        damage.exit
    }

    /// Prints the error message of a failure.
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

/// Reports that results could not be written, and returns the exit status: [`Exit::Output`] instead
/// of success. A reader that closed the pipe is no error.
fn unwritten(error: &io::Error, exit: Exit) -> Exit {
    if error.kind() == ErrorKind::BrokenPipe {
        return exit;
    }
    say(&format!("kerntune: cannot write results to standard output: {error}"));
    match exit {
        Exit::Ok | Exit::Findings | Exit::Command(_) => Exit::Output,
        failed => failed,
    }
}

/// Prints clap's message and returns the exit status. Help and version are results; anything else
/// is a usage error, and `tip` follows its message.
pub fn print_clap_message(error: &clap::Error, tip: Option<String>) -> Exit {
    let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
    let printed = match exit {
        Exit::Ok => check_standard_output(),
        _ => Ok(()),
    };
    match printed.and_then(|()| error.print()).and_then(|()| io::stdout().flush()) {
        Err(error) if exit == Exit::Ok => unwritten(&error, exit),
        _ => {
            if let Some(tip) = tip {
                say(&tip);
            }
            exit
        }
    }
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map(|size| size.ws_col.into()).filter(|&columns: &usize| columns > 0)
}
