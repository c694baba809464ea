//! Code path as text: one line per entry, in order of time.

use super::layout::{layout, TextRow};
use super::{summary, PathView};
use kerntune_table::{Style, TextRole};

/// Number of spaces per level.
const INDENT: usize = 2;

/// Renders summary, legend and path.
pub fn text(shown: &PathView, style: Style) -> String {
    let mut out = summary::head(shown, style);
    let rows = layout(shown);
    let min = rows.iter().filter_map(|row| row.level).min().unwrap_or(0);
    let digits =
        (shown.path.end_ns.saturating_sub(shown.path.begin_ns) / 1_000_000_000).max(1).to_string().len();
    for row in &rows {
        line(&mut out, row, shown.path.begin_ns, min, digits, style);
    }
    out + &summary::tail(shown, style)
}

fn line(out: &mut String, row: &TextRow, begin_ns: u64, min: u32, digits: usize, style: Style) {
    let time = row.time_ns.map_or(String::new(), |ns| clock(ns.saturating_sub(begin_ns), digits));
    let width = digits + 12;
    out.push_str(&style.paint(TextRole::Faint, &format!("{time:<width$}")));
    let indent = row.level.map_or(0, |level| level.saturating_sub(min) as usize * INDENT);
    out.push_str(&format!("  {:indent$}", ""));
    out.push_str(&style.paint(row.role, &row.text));
    out.push_str(&style.paint(TextRole::Faint, &row.figures));
    out.push('\n');
}

/// Formats McRae's clock with nanoseconds: `0:005 488 123`.
fn clock(ns: u64, digits: usize) -> String {
    let part = |per: u64| ns / per % 1_000;
    format!("{:>digits$}:{:03} {:03} {:03}", ns / 1_000_000_000, part(1_000_000), part(1_000), ns % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_that_of_figure_4_with_nanoseconds() {
        assert_eq!(clock(5_488_123, 1), "0:005 488 123");
        assert_eq!(clock(12_000_000_001, 2), "12:000 000 001");
        assert_eq!(clock(7, 2), " 0:000 000 007");
    }
}
