//! Forms of a report: text, JSON, CSV, Markdown, HTML.

use crate::{html, Style, DEFAULT_ROWS};
use clap::ValueEnum;
use kerntune_table::{printable, render, Document};

/// Form in which a report is rendered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    /// Aligned columns for a terminal.
    #[default]
    Text,
    /// JSON document, see `docs/json.md`.
    Json,
    /// Comma-separated values of all tables, separated by empty lines, with JSON's keys as heads.
    Csv,
    /// Tables of GitHub's Markdown.
    Markdown,
    /// Self-contained page.
    Html,
}

impl ReportForm {
    /// Returns the row limit of a table: `top`, otherwise the default in text and Markdown, and none
    /// elsewhere.
    pub fn row_limit(self, top: Option<usize>) -> Option<usize> {
        let is_brief = matches!(self, ReportForm::Text | ReportForm::Markdown);
        top.or(is_brief.then_some(DEFAULT_ROWS))
    }
}

/// Renders a report. `heading` is the line that names its profile, which texts have unless they name
/// it themselves.
pub fn render(document: &Document, form: ReportForm, heading: &str, style: Style) -> String {
    match form {
        ReportForm::Text if document.names_its_subject => render::text(document, style),
        ReportForm::Text => format!("{heading}\n\n{}", render::text(document, style)),
        ReportForm::Json => render::json(document),
        ReportForm::Csv => document.tables().map(render::csv).collect::<Vec<_>>().join("\n"),
        ReportForm::Markdown => format!("{}\n\n{}", printable(heading), render::markdown(document)),
        ReportForm::Html => html::document_page(heading, document),
    }
}
