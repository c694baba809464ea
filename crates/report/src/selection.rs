//! Arguments that restrict a report.

use clap::Args;

/// Arguments of every report: what it is restricted to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Selection {
    /// Show at most N rows of each table [default: 40 in text, all in JSON]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Show only what happened in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
}

impl Selection {
    /// Returns the rows that a text has of a table.
    pub(crate) fn shown<'a, R>(&self, rows: &'a [R]) -> &'a [R] {
        &rows[..self.top.unwrap_or(crate::DEFAULT_ROWS).min(rows.len())]
    }
}
