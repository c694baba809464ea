//! Where words go: results to standard output, progress and trouble to standard error.

use crate::args::{Global, When};
use crate::exit::Failure;
use crate::progress::Shown;
use comfy_table::{presets, CellAlignment, ContentArrangement, Table};
use kerntune_report::Style;
use kerntune_work::{NoProgress, Progress};
use std::io::{IsTerminal, Write};

/// How to talk.
pub struct Output {
    quiet: bool,
    color: When,
    progress: Box<dyn Progress>,
}

impl Output {
    pub fn new(global: &Global) -> Self {
        let progress: Box<dyn Progress> =
            if global.quiet { Box::new(NoProgress) } else { Box::new(Shown::new(global.verbose)) };
        Self { quiet: global.quiet, color: global.color, progress }
    }

    /// Whom long work tells of its progress.
    pub fn progress(&self) -> &dyn Progress {
        self.progress.as_ref()
    }

    /// How reports are dressed.
    pub fn style(&self) -> Style {
        let terminal = std::io::stdout().is_terminal();
        let color = match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && std::env::var_os("NO_COLOR").is_none(),
        };
        Style { color, width: terminal.then(terminal_width).flatten() }
    }

    /// A result.
    pub fn print(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let _ = write!(out, "{text}{end}").and_then(|()| out.flush());
    }

    /// A result as JSON.
    pub fn json(&self, value: &impl serde::Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.print(&text),
            Err(error) => self.note(&format!("kerntune: cannot write JSON: {error}")),
        }
    }

    /// A result as a plain table; columns whose head begins with `#` are numbers.
    pub fn table(&self, heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(heads.iter().map(|head| head.trim_start_matches('#')));
        for row in rows {
            table.add_row(row);
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if heads.get(at).is_some_and(|head| head.starts_with('#')) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self.print(&table.trim_fmt());
    }

    /// A remark for people.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// Why it failed.
    pub fn failure(&self, failure: &Failure) {
        self.progress.end();
        eprintln!("kerntune: {}", failure.message);
    }
}

fn terminal_width() -> Option<usize> {
    // SAFETY: a plain ioctl into a zeroed structure of the right type.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) == 0).then_some(size)
    };
    size.map(|s| s.ws_col.into()).filter(|&columns: &usize| columns > 0)
}

/// Rust ignores SIGPIPE and makes writing to a closed pipe an error; a command line tool ends.
pub fn die_quietly_on_closed_pipe() {
    // SAFETY: sets a signal to its default action before any thread is started.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
