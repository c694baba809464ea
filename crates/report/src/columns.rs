//! Aligned columns of text.

use crate::style::{printable, Role, Style};
use kerntune_compare::number::grouped;

/// Which side of its column a text stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Text with its role.
#[derive(Debug, Clone)]
pub(crate) struct Cell(pub String, pub Role);

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell(text, Role::Plain)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell(text.into(), Role::Plain)
    }
}

/// A plain table of anybody's texts; columns whose head begins with `#` are numbers, on the right side. What steers a terminal is
/// escaped.
pub fn plain_table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut columns = Columns::with(heads.iter().map(|head| match head.strip_prefix('#') {
        Some(number) => (number, Side::Right),
        None => (*head, Side::Left),
    }));
    for row in rows {
        columns.row_of(row.iter().map(|cell| printable(cell).into()).collect());
    }
    columns.render(Style::PLAIN)
}

/// A table under construction. The last column may be cut, the others never are.
pub(crate) struct Columns {
    heads: Vec<(Vec<String>, Side)>,
    rows: Vec<Vec<Cell>>,
}

impl Columns {
    /// Heads of one or more lines each.
    pub fn new<const N: usize>(heads: [(&str, Side); N]) -> Self {
        Self::with(heads)
    }

    /// The same where how many there are is not known beforehand.
    pub fn with<'a>(heads: impl IntoIterator<Item = (&'a str, Side)>) -> Self {
        let head = |(text, side): (&str, Side)| (text.split('\n').map(String::from).collect(), side);
        Self { heads: heads.into_iter().map(head).collect(), rows: Vec::new() }
    }

    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.row_of(cells.into());
    }

    pub fn row_of(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        self.rows.push(cells);
    }

    /// An empty line between groups.
    pub fn gap(&mut self) {
        self.rows.push(Vec::new());
    }

    /// An empty line, the lines, and how many rows there are beyond the first `top`; nothing of no rows.
    pub fn below(&self, all: usize, top: usize, style: Style) -> String {
        if all == 0 {
            return String::new();
        }
        let more = match all.saturating_sub(top) {
            0 => String::new(),
            more => style.paint(Role::Faint, &format!("{} more (--top)\n", grouped(more as u64))),
        };
        format!("\n{}{more}", self.render(style))
    }

    /// The lines, each with its newline.
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
                    // One-line heads stand on the last line.
                    let skipped = height - lines.len();
                    let text = line.checked_sub(skipped).and_then(|at| lines.get(at));
                    Cell(text.cloned().unwrap_or_default(), Role::Head)
                })
                .collect();
            self.line(&mut out, &cells, &widths, style);
        }
        for row in &self.rows {
            self.line(&mut out, row, &widths, style);
        }
        out
    }

    fn line(&self, out: &mut String, cells: &[Cell], widths: &[usize], style: Style) {
        let mut line = String::new();
        let (mut used, mut owed) = (0, 0);
        for (at, (Cell(text, role), (_, side))) in cells.iter().zip(&self.heads).enumerate() {
            let gap = if at == 0 { 0 } else { 2 };
            let pad = widths[at].saturating_sub(length(text));
            let before = gap + if *side == Side::Right { pad } else { 0 };
            owed += before;
            let last = at + 1 == cells.len();
            let text = match style.width {
                Some(width) if last => cut(text.trim_end(), width.saturating_sub(used + owed)),
                _ if last => text.trim_end().into(),
                _ => text.clone(),
            };
            if !text.is_empty() {
                // Spaces are written only when something follows: no line ends in them.
                line.extend(std::iter::repeat_n(' ', owed));
                line.push_str(&style.paint(*role, &text));
                used += owed + length(&text);
                owed = 0;
            }
            owed += if *side == Side::Left { pad } else { 0 };
        }
        out.push_str(&line);
        out.push('\n');
    }
}

/// A table as texts, for whoever shows it.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub heads: Vec<(String, Side)>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<T: Into<String>>(heads: impl IntoIterator<Item = (T, Side)>) -> Self {
        Self { heads: heads.into_iter().map(|(head, side)| (head.into(), side)).collect(), rows: Vec::new() }
    }

    /// A cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        self.rows.push(cells);
    }

    /// The table in aligned columns.
    pub fn columns(&self) -> Columns {
        let mut columns = Columns::with(self.heads.iter().map(|(head, side)| (head.as_str(), *side)));
        for row in &self.rows {
            columns.row_of(row.iter().map(|cell| cell.as_str().into()).collect());
        }
        columns
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// `text` in at most `width` columns, with an ellipsis where it was cut. Never to less than 8:
/// a terminal that narrow wraps.
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

    fn table() -> Columns {
        let mut table = Columns::new([("net\nus", Side::Right), ("%", Side::Right), ("name", Side::Left)]);
        table.row(["12,345.0".into(), "7.1".into(), "__tcp_transmit_skb".into()]);
        table.gap();
        table.row(["1".into(), "".into(), Cell("x".into(), Role::Good)]);
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
        let text = table().render(Style { color: false, width: Some(25) });
        assert!(text.contains("12,345.0  7.1  __tcp_tra…\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 25));
    }

    #[test]
    fn colour_does_not_move_anything() {
        let text = table().render(Style { color: true, width: None });
        assert!(text.contains("       1       \x1b[32mx\x1b[0m\n"), "{text}");
    }
}
