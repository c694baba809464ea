//! Aligned columns of text.

use crate::{printable, Style, TextRole};

/// Alignment of a column's texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// Begins are aligned: names.
    Left,
    /// Ends are aligned: numbers.
    Right,
}

/// Text with the role that selects its color.
#[derive(Debug, Clone)]
pub struct TextCell(pub String, pub TextRole);

impl From<String> for TextCell {
    fn from(text: String) -> Self {
        TextCell(text, TextRole::Plain)
    }
}

impl From<&str> for TextCell {
    fn from(text: &str) -> Self {
        TextCell(text.into(), TextRole::Plain)
    }
}

/// Renders a table of arbitrary texts. Columns whose head begins with `#` hold numbers and are
/// right-aligned. Control characters are escaped.
pub fn plain_table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut columns = TableBuilder::new(heads.iter().map(|head| match head.strip_prefix('#') {
        Some(number) => (number, Alignment::Right),
        None => (*head, Alignment::Left),
    }));
    for row in rows {
        columns.row(row.iter().map(|cell| printable(cell).into()).collect());
    }
    columns.render(Style::PLAIN)
}

/// Builder of a table with aligned columns. Only the last column is cut to the terminal's width.
pub struct TableBuilder {
    heads: Vec<(Vec<String>, Alignment)>,
    rows: Vec<Vec<TextCell>>,
    /// Line between groups.
    pub(crate) rule: &'static str,
}

impl TableBuilder {
    /// Creates a table with these heads, of one or more lines each.
    pub fn new<'a>(heads: impl IntoIterator<Item = (&'a str, Alignment)>) -> Self {
        let head = |(text, side): (&str, Alignment)| (text.split('\n').map(String::from).collect(), side);
        Self { heads: heads.into_iter().map(head).collect(), rows: Vec::new(), rule: "" }
    }

    /// Adds a row with one cell per column.
    pub fn row(&mut self, cells: Vec<TextCell>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        self.rows.push(cells);
    }

    /// Adds a line between groups, empty unless a rule was chosen.
    pub fn gap(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Renders all lines, each with its newline.
    pub fn render(&self, style: Style) -> String {
        let widths: Vec<usize> = self
            .heads
            .iter()
            .enumerate()
            .map(|(at, (lines, _))| {
                let head = lines.iter().map(|line| length(line)).max().unwrap_or(0);
                let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| length(&cell.0));
                cells.max().unwrap_or(0).max(head)
            })
            .collect();
        let mut out = String::new();
        let height = self.heads.iter().map(|(lines, _)| lines.len()).max().unwrap_or(0);
        for line in 0..height {
            let cells: Vec<_> = self
                .heads
                .iter()
                .map(|(lines, _)| {
                    // Heads of one line stand on the last head line.
                    let skipped = height - lines.len();
                    let text = line.checked_sub(skipped).and_then(|at| lines.get(at));
                    TextCell(text.cloned().unwrap_or_default(), TextRole::Head)
                })
                .collect();
            self.line(&mut out, &cells, &widths, style);
        }
        for row in &self.rows {
            match row.is_empty() {
                true => out += &format!("{}\n", self.rule),
                false => self.line(&mut out, row, &widths, style),
            }
        }
        out
    }

    fn line(&self, out: &mut String, cells: &[TextCell], widths: &[usize], style: Style) {
        let mut line = String::new();
        let (mut used, mut owed) = (0, 0);
        for (at, (TextCell(text, role), (_, side))) in cells.iter().zip(&self.heads).enumerate() {
            let gap = if at == 0 { 0 } else { 2 };
            let pad = widths[at].saturating_sub(length(text));
            let before = gap + if *side == Alignment::Right { pad } else { 0 };
            owed += before;
            let last = at + 1 == cells.len();
            let text = match style.width {
                Some(width) if last => cut(text.trim_end(), width.saturating_sub(used + owed)),
                _ if last => text.trim_end().into(),
                _ => text.clone(),
            };
            if !text.is_empty() {
                // Spaces are written only before a text, so that no line ends in them.
                line.extend(std::iter::repeat_n(' ', owed));
                line.push_str(&style.paint(*role, &text));
                used += owed + length(&text);
                owed = 0;
            }
            owed += if *side == Alignment::Left { pad } else { 0 };
        }
        out.push_str(&line);
        out.push('\n');
    }
}

/// Table of plain texts, to be rendered as text or HTML.
#[derive(Debug, Clone)]
pub struct TextTable {
    /// Heads with the alignment of their columns.
    pub heads: Vec<(String, Alignment)>,
    /// Rows with one cell per column.
    pub rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Creates a table without rows.
    pub fn new<T: Into<String>>(heads: impl IntoIterator<Item = (T, Alignment)>) -> Self {
        Self { heads: heads.into_iter().map(|(head, side)| (head.into(), side)).collect(), rows: Vec::new() }
    }

    /// Converts the table for rendering as text.
    pub fn columns(&self) -> TableBuilder {
        let mut columns = TableBuilder::new(self.heads.iter().map(|(head, side)| (head.as_str(), *side)));
        for row in &self.rows {
            columns.row(row.iter().map(|cell| cell.as_str().into()).collect());
        }
        columns
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Cuts `text` to `width` columns, with an ellipsis. Never cuts below 8 columns: on a terminal that
/// narrow, lines wrap.
fn cut(text: &str, width: usize) -> String {
    let width = width.max(8);
    if length(text) <= width {
        return text.into();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TableBuilder {
        let mut table = TableBuilder::new([
            ("net\nus", Alignment::Right),
            ("%", Alignment::Right),
            ("name", Alignment::Left),
        ]);
        table.row(vec!["12,345.0".into(), "7.1".into(), "__tcp_transmit_skb".into()]);
        table.gap();
        table.row(vec!["1".into(), "".into(), TextCell("x".into(), TextRole::Good)]);
        table
    }

    #[test]
    fn a_plain_table_has_numbers_on_the_right_and_nothing_that_steers() {
        let rows = [["a\nb", "1"], ["c", "100"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(plain_table(&["NAME", "#N"], rows), "NAME        N\na\\u000ab    1\nc         100\n");
    }

    #[test]
    fn columns_line_up_and_no_line_ends_in_spaces() {
        let expected =
            "     net\n      us    %  name\n12,345.0  7.1  __tcp_transmit_skb\n\n       1       x\n";
        assert_eq!(table().render(Style::PLAIN), expected);
    }

    #[test]
    fn the_last_column_is_cut_on_a_narrow_terminal() {
        let text = table().render(Style { width: Some(25), ..Style::PLAIN });
        assert!(text.contains("12,345.0  7.1  __tcp_tra…\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 25));
    }

    #[test]
    fn color_does_not_move_anything() {
        let text = table().render(Style { color: true, ..Style::PLAIN });
        assert!(text.contains("       1       \x1b[32mx\x1b[0m\n"), "{text}");
    }
}
