//! Forms of a report: text, JSON, CSV, Markdown, HTML.

use crate::{html, Style};
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

/// Renders a report with `heading`, the line that names its profile.
pub fn render(document: &Document, form: ReportForm, heading: &str, style: Style) -> String {
    match form {
        ReportForm::Text => format!("{heading}\n\n{}", render::text(document, style)),
        ReportForm::Json => render::json(document),
        ReportForm::Csv => document.tables().map(render::csv).collect::<Vec<_>>().join("\n"),
        ReportForm::Markdown => format!("{}\n\n{}", printable(heading), render::markdown(document)),
        ReportForm::Html => html::document_page(heading, document),
    }
}
