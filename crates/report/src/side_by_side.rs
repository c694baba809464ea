//! Two profiles side by side: what they are of, and figures with their differences.

use kerntune_profile::{KernelId, Profile};
use kerntune_table::{Columns, Table, TextRole};

/// Builder of a table with a figure of two profiles in each row.
pub(crate) struct SideBySide {
    heads: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl SideBySide {
    /// Begins with what the profiles are of; `heads` are those of the columns after the first.
    pub fn new(heads: &'static [&'static str], profiles: [&Profile; 2], region: Option<&str>) -> Self {
        let mut table = Self { heads, rows: Vec::new() };
        table.row("profile", profiles.map(|profile| profile.manifest.id.clone()));
        let kernel = |profile: &Profile| {
            let KernelId { label, version, .. } = &profile.manifest.kernel;
            format!("{label} {version}")
        };
        table.row("kernel", profiles.map(kernel));
        table.row("workload", profiles.map(|profile| profile.manifest.workload.clone()));
        if let Some(region) = region {
            table.row("region", [region; 2].map(String::from));
        }
        table
    }

    /// Adds a row: its head, and a cell for each of the first columns.
    pub fn row<const N: usize>(&mut self, head: impl Into<String>, cells: [String; N]) {
        self.rows.push([head.into()].into_iter().chain(cells).collect());
    }

    /// Returns the table, for texts.
    pub fn into_table<'a>(self) -> Table<'a, Vec<String>> {
        let mut columns = Columns::<Vec<String>>::new();
        columns.text_only("", |row| row.first().cloned()).role(|_| TextRole::Head);
        for (at, head) in (1..).zip(self.heads) {
            columns.text_only(*head, move |row| row.get(at).cloned()).right();
        }
        Table::text_only(self.rows, columns)
    }
}

/// Returns the color of a change: less is better.
pub(crate) fn change_role(change: f64) -> TextRole {
    match change {
        less if less < 0.0 => TextRole::Good,
        more if more > 0.0 => TextRole::Bad,
        _ => TextRole::Plain,
    }
}
