//! Table: rows with the columns that are declared of them.

use crate::columns::{Alignment, TableBuilder, TextCell, TextTable};
use crate::{ColumnSpec, Columns, TextRole, Value};

/// Table of a document. Renderers see it as [`TableRows`], whatever its rows are.
pub struct Table<'a, R> {
    key: &'static str,
    help: &'static str,
    noun: &'static str,
    top: Option<usize>,
    default_rows: usize,
    is_hidden_if_empty: bool,
    is_optional: bool,
    is_hidden: bool,
    title: (TextRole, String),
    rows: Vec<R>,
    foot: Vec<R>,
    columns: Columns<'a, R>,
}

impl<'a, R> Table<'a, R> {
    /// Creates a table that JSON has as the array `key`; an empty key leaves it out of JSON.
    pub fn new(key: &'static str, rows: impl IntoIterator<Item = R>, columns: Columns<'a, R>) -> Self {
        Self {
            key,
            help: "",
            noun: "",
            top: None,
            default_rows: crate::DEFAULT_ROWS,
            is_hidden_if_empty: false,
            is_optional: false,
            is_hidden: false,
            title: (TextRole::Plain, String::new()),
            rows: rows.into_iter().collect(),
            foot: Vec::new(),
            columns,
        }
    }

    /// Describes the rows and their order in a sentence, for documentation.
    pub fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    /// Names the rows in the line on those that a text leaves out: `functions`.
    pub fn noun(mut self, noun: &'static str) -> Self {
        self.noun = noun;
        self
    }

    /// Limits the rows, in every form. Without a limit texts have [`crate::DEFAULT_ROWS`].
    pub fn top(mut self, top: Option<usize>) -> Self {
        self.top = top;
        self
    }

    /// Sets the number of rows that texts have without a limit.
    pub fn default_rows(mut self, rows: usize) -> Self {
        self.default_rows = rows;
        self
    }

    /// Leaves the table out of texts if it has no rows, and separates it with an empty line
    /// otherwise.
    pub fn hidden_if_empty(mut self) -> Self {
        self.is_hidden_if_empty = true;
        self
    }

    /// Leaves the table out of JSON, too, if it has no rows.
    pub fn optional(mut self) -> Self {
        self.is_optional = true;
        self.hidden_if_empty()
    }

    /// Leaves the table out of texts unless `condition` holds. JSON keeps it.
    pub fn only_if(mut self, condition: bool) -> Self {
        self.is_hidden = !condition;
        self
    }

    /// Puts a line above the table, in texts.
    pub fn title(mut self, role: TextRole, title: impl Into<String>) -> Self {
        self.title = (role, title.into());
        self
    }

    /// Adds rows that only texts have, below those that they show: totals.
    pub fn foot(mut self, rows: impl IntoIterator<Item = R>) -> Self {
        self.foot.extend(rows);
        self
    }
}

impl<R> From<Table<'_, R>> for TextTable {
    fn from(table: Table<'_, R>) -> Self {
        let mut out = TextTable::new(heads(&table));
        for cells in table.cells(table.shown()) {
            out.row(cells.into_iter().map(|cell| cell.0).collect());
        }
        out
    }
}

/// Table as renderers see it.
pub trait TableRows {
    /// Key in JSON; empty if JSON does not have the table.
    fn key(&self) -> &'static str;

    /// Sentence on the rows and their order.
    fn help(&self) -> &'static str;

    /// Columns in order.
    fn specs(&self) -> Vec<&ColumnSpec>;

    /// Number of rows in texts.
    fn shown(&self) -> usize;

    /// JSON leaves the table out.
    fn is_absent(&self) -> bool;

    /// Returns every row as a record of the columns that have a key.
    fn records(&self) -> Vec<Value>;

    /// Line above the table in texts; empty for none.
    fn title(&self) -> (TextRole, &str);

    /// Returns the displayed cells of so many rows and of the foot, of the columns that have a head.
    fn cells(&self, rows: usize) -> Vec<Vec<TextCell>>;

    /// Name of the rows, and number of those that a text leaves out.
    fn rest(&self) -> (&'static str, usize);

    /// Texts leave the table out.
    fn is_hidden(&self) -> bool;

    /// Texts separate the table with an empty line.
    fn has_gap(&self) -> bool;
}

impl<R> TableRows for Table<'_, R> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn specs(&self) -> Vec<&ColumnSpec> {
        self.columns.specs().collect()
    }

    fn shown(&self) -> usize {
        self.top.unwrap_or(self.default_rows).min(self.rows.len())
    }

    fn is_absent(&self) -> bool {
        self.key.is_empty() || self.is_optional && self.rows.is_empty()
    }

    fn records(&self) -> Vec<Value> {
        let rows = self.rows.iter().take(self.top.unwrap_or(usize::MAX));
        rows.map(|row| self.columns.to_record(row)).collect()
    }

    fn title(&self) -> (TextRole, &str) {
        (self.title.0, self.title.1.as_str())
    }

    fn cells(&self, rows: usize) -> Vec<Vec<TextCell>> {
        self.rows.iter().take(rows).chain(&self.foot).map(|row| self.columns.cells(row)).collect()
    }

    fn rest(&self) -> (&'static str, usize) {
        (self.noun, self.rows.len() - self.shown())
    }

    fn is_hidden(&self) -> bool {
        self.is_hidden || self.is_hidden_if_empty && self.rows.is_empty()
    }

    fn has_gap(&self) -> bool {
        self.is_hidden_if_empty
    }
}

/// Aligns the cells of `rows` rows under their headings.
pub(crate) fn aligned(table: &dyn TableRows, rows: usize) -> TableBuilder {
    let mut aligned = TableBuilder::with(heads(table));
    for cells in table.cells(rows) {
        aligned.row_of(cells);
    }
    aligned
}

/// Returns the headings of the columns that have one.
fn heads(table: &dyn TableRows) -> Vec<(&str, Alignment)> {
    table.specs().into_iter().filter_map(|spec| Some((spec.head.as_deref()?, spec.alignment))).collect()
}
