//! Parts of the reports on papers of all kinds: each is declared once and has every form.

use kerntune_report::html::scroll;
use kerntune_table::columns::{Alignment, TableBuilder, TextCell, TextTable};
use kerntune_table::{number, printable, Style, TextRole};
use maud::{html, Markup};

/// Table or figure with its title.
pub(crate) struct PaperSection {
    pub title: String,
    /// Remark; may be empty.
    pub about: String,
    pub content: SectionContent,
}

/// Table or text of a [`PaperSection`].
pub(crate) enum SectionContent {
    Table(TextTable),
    /// Text of one of our reports.
    Figure(String),
}

impl PaperSection {
    pub fn text(&self, style: Style) -> String {
        let mut out = head(style, &self.title);
        out += &match &self.content {
            SectionContent::Table(table) => aligned(table).render(style),
            SectionContent::Figure(text) => text.clone(),
        };
        if !self.about.is_empty() {
            out += &line(style, TextRole::Faint, &self.about);
        }
        out
    }

    pub fn markdown(&self) -> String {
        let content = match &self.content {
            SectionContent::Table(TextTable { heads, rows }) => {
                let names: Vec<&str> = heads.iter().map(|(name, _)| name.as_str()).collect();
                markdown_table(&names.join(" | "), heads.iter().map(|(_, side)| *side), rows)
            }
            SectionContent::Figure(text) => {
                text.lines().map(|line| format!("    {line}").trim_end().to_string() + "\n").collect()
            }
        };
        section_markdown(&self.title, &self.about, &content)
    }

    pub fn page(&self) -> Markup {
        let content = match &self.content {
            SectionContent::Table(table) => page_table(table),
            SectionContent::Figure(text) => html! { pre { (text) } },
        };
        section_page(&self.title, &self.about, &scroll(&self.title, &content))
    }
}

/// Formats a signed percentage: `+11.8 %`.
pub(crate) fn percent(value: f64) -> String {
    format!("{} %", number::change(value, 1))
}

/// Renders a line of text.
pub(crate) fn line(style: Style, role: TextRole, text: &str) -> String {
    style.paint(role, &printable(text)) + "\n"
}

/// Renders the line above a part of a text, separated from the part before.
pub(crate) fn head(style: Style, title: &str) -> String {
    format!("\n{}", line(style, TextRole::Head, title))
}

fn aligned(table: &TextTable) -> TableBuilder {
    let mut out = TableBuilder::new(table.heads.iter().map(|(head, side)| (head.as_str(), *side)));
    let role = |at| if at == 0 { TextRole::Head } else { TextRole::Plain };
    for row in &table.rows {
        let cells = row.iter().enumerate();
        out.row(cells.map(|(at, text)| TextCell(printable(text), role(at))).collect());
    }
    out
}

/// Renders a part of a Markdown page.
pub(crate) fn section_markdown(title: &str, about: &str, content: &str) -> String {
    let about = if about.is_empty() { String::new() } else { format!("{}\n\n", plain(about)) };
    format!("\n## {}\n\n{about}{content}", plain(title))
}

/// Renders rows of cells below the line of `heads`.
pub(crate) fn markdown_table(
    heads: &str,
    sides: impl Iterator<Item = Alignment>,
    rows: &[Vec<String>],
) -> String {
    let rule = sides.map(|side| if side == Alignment::Right { "---:|" } else { "---|" });
    let mut out = format!("| {heads} |\n|{}\n", rule.collect::<String>());
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| plain(cell)).collect();
        out += &format!("| {} |\n", cells.join(" | "));
    }
    out
}

/// Renders a part of a page.
pub(crate) fn section_page(title: &str, about: &str, content: &Markup) -> Markup {
    html! {
        section {
            h2 { (title) }
            @if !about.is_empty() { p.quiet { (about) } }
            (content)
        }
    }
}

fn page_table(TextTable { heads, rows }: &TextTable) -> Markup {
    let is_text = |at: usize| heads[at].1 == Alignment::Left;
    html! {
        table.prose {
            thead {
                tr {
                    @for (at, (head, _)) in heads.iter().enumerate() {
                        th.text[is_text(at)].number[!is_text(at)] scope="col" { (head) }
                    }
                }
            }
            tbody {
                @for row in rows {
                    tr { @for (at, cell) in row.iter().enumerate() { td.text[is_text(at)] { (cell) } } }
                }
            }
        }
    }
}

/// Renders explanations of words as the end of a text.
pub(crate) fn legend_text(legend: &[(&str, &str)], style: Style) -> String {
    let width = legend.iter().map(|(word, _)| word.len() + 2).max().unwrap_or(0);
    let says = legend.iter().map(|(word, says)| format!("{word:<width$}{says}"));
    says.fold("\n".into(), |out, says| out + &line(style, TextRole::Faint, &says))
}

/// Renders the end of a Markdown page: explanations of words, the `commands` that reproduce it, and
/// the writer and the date, `written`.
pub(crate) fn how_markdown(legend: &[(&str, &str)], commands: &[String], written: &str) -> String {
    let mut out = "\n## How\n\n".to_string();
    for (word, says) in legend {
        out += &format!("- **{}**: {}\n", plain(word), plain(says));
    }
    out.push('\n');
    for command in commands {
        out += &format!("    {command}\n");
    }
    out + &format!("\nWritten by {}.\n", plain(written))
}

/// Renders explanations of words on a page.
pub(crate) fn legend_page(legend: &[(&str, &str)]) -> Markup {
    html! { dl.legend { @for (word, says) in legend { dt { (word) } dd { (says) } } } }
}

/// Returns `text` on one line with Markdown markup escaped.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '|' | '<' | '>' | '[' | ']' | '#' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
