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
    has_rest: bool,
    /// For tables that can be null: true if they have rows.
    has_value: Option<bool>,
    title: (TextRole, String),
    rows: Vec<R>,
    foot: Vec<R>,
    columns: Columns<'a, R>,
    text_if: Box<dyn Fn(&R) -> bool + 'a>,
    rule: &'static str,
    rule_if: Box<dyn Fn(&R) -> bool + 'a>,
    is_spaced: bool,
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
            has_rest: true,
            has_value: None,
            title: (TextRole::Plain, String::new()),
            rows: rows.into_iter().collect(),
            foot: Vec::new(),
            columns,
            text_if: Box::new(|_| true),
            rule: "",
            rule_if: Box::new(|_| false),
            is_spaced: false,
        }
    }

    /// Creates a table that only texts have, with all rows.
    pub fn text_only(rows: impl IntoIterator<Item = R>, columns: Columns<'a, R>) -> Self {
        Self::new("", rows, columns).default_rows(usize::MAX)
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

    /// Makes the table null in JSON, and leaves it out of texts, unless `condition` holds.
    pub fn null_unless(mut self, condition: bool) -> Self {
        self.has_value = Some(condition);
        self
    }

    /// Leaves out the line on rows that a text does not have; [`crate::Document::rest`] adds one.
    pub fn without_rest(mut self) -> Self {
        self.has_rest = false;
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

    /// Leaves rows for which `condition` does not hold out of texts. JSON keeps them.
    pub fn text_if(mut self, condition: impl Fn(&R) -> bool + 'a) -> Self {
        self.text_if = Box::new(condition);
        self
    }

    /// Puts an empty line above each row in which the column of [`crate::Column::once`] has a new
    /// text, in texts.
    pub fn spaced(mut self) -> Self {
        self.is_spaced = true;
        self
    }

    /// Draws the line `rule` below each row for which `condition` holds, in texts.
    pub fn rule(mut self, rule: &'static str, condition: impl Fn(&R) -> bool + 'a) -> Self {
        (self.rule, self.rule_if) = (rule, Box::new(condition));
        self
    }

    fn text_rows(&self) -> impl Iterator<Item = &R> {
        self.rows.iter().filter(|row| (self.text_if)(row))
    }
}

impl<R> From<Table<'_, R>> for TextTable {
    fn from(table: Table<'_, R>) -> Self {
        let mut out = TextTable::new(heads(&table));
        let texts = |cells: Vec<TextCell>| cells.into_iter().map(|cell| cell.0).collect();
        out.rows = table.cells(table.shown()).into_iter().map(texts).collect();
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

    /// JSON can have null instead of the rows.
    fn is_nullable(&self) -> bool;

    /// JSON has null instead of the rows.
    fn is_null(&self) -> bool;

    /// Line above the table in texts; empty for none.
    fn title(&self) -> (TextRole, &str);

    /// Line below groups of rows, in place of rows without cells.
    fn rule(&self) -> &'static str;

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
        self.top.unwrap_or(self.default_rows).min(self.text_rows().count())
    }

    fn is_absent(&self) -> bool {
        self.key.is_empty() || self.is_optional && self.rows.is_empty()
    }

    fn records(&self) -> Vec<Value> {
        let rows = self.rows.iter().take(self.top.unwrap_or(usize::MAX));
        rows.map(|row| self.columns.to_record(row)).collect()
    }

    fn is_nullable(&self) -> bool {
        self.has_value.is_some()
    }

    fn is_null(&self) -> bool {
        self.has_value == Some(false)
    }

    fn title(&self) -> (TextRole, &str) {
        (self.title.0, self.title.1.as_str())
    }

    fn rule(&self) -> &'static str {
        self.rule
    }

    fn cells(&self, rows: usize) -> Vec<Vec<TextCell>> {
        let mut out = Vec::new();
        let heads = self.columns.specs().filter(|spec| spec.head.is_some());
        let once = heads.into_iter().position(|spec| spec.is_once);
        let mut last = None;
        for row in self.text_rows().take(rows).chain(&self.foot) {
            let mut cells = self.columns.cells(row);
            if let Some(TextCell(text, _)) = once.and_then(|at| cells.get_mut(at)) {
                if last.as_ref() == Some(text) {
                    text.clear();
                } else {
                    last = Some(text.clone());
                    out.extend((self.is_spaced && !out.is_empty()).then(Vec::new));
                }
            }
            out.push(cells);
            out.extend((self.rule_if)(row).then(Vec::new));
        }
        out
    }

    fn rest(&self) -> (&'static str, usize) {
        (self.noun, if self.has_rest { self.text_rows().count() - self.shown() } else { 0 })
    }

    fn is_hidden(&self) -> bool {
        self.is_hidden
            || self.is_null()
            || self.columns.specs().all(|spec| spec.head.is_none())
            || self.is_hidden_if_empty && self.text_rows().next().is_none()
    }

    fn has_gap(&self) -> bool {
        self.is_hidden_if_empty
    }
}

/// Aligns the cells of `rows` rows under their headings.
pub(crate) fn aligned(table: &dyn TableRows, rows: usize) -> TableBuilder {
    let mut aligned = TableBuilder::new(heads(table));
    aligned.rule = table.rule();
    for cells in table.cells(rows) {
        match cells.is_empty() {
            true => aligned.gap(),
            false => aligned.row(cells),
        }
    }
    aligned
}

/// Returns the headings of the columns that have one.
fn heads(table: &dyn TableRows) -> Vec<(&str, Alignment)> {
    table.specs().into_iter().filter_map(|spec| Some((spec.head.as_deref()?, spec.alignment))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{render, Document, Style};

    fn table<'a>() -> Table<'a, u64> {
        let mut columns = Columns::new();
        columns.add("count", "", |count: &u64| *count).head("n");
        Table::new("counts", [1, 2, 3, 4], columns)
    }

    fn rendered(table: Table<u64>) -> (String, String) {
        let mut document = Document::new("test/1", "");
        document.table(table);
        let json: String = render::json(&document).split_whitespace().collect();
        (render::text(&document, Style::PLAIN), json)
    }

    #[test]
    fn texts_can_have_other_rows_than_json() {
        let (text, json) = rendered(table().text_if(|count| *count != 2).top(Some(2)).noun("counts"));
        assert_eq!(text, "n\n1\n3\n1 more counts (--top)\n");
        assert_eq!(json, r#"{"schema":"test/1","counts":[{"count":1},{"count":2}]}"#);
        let (text, json) = rendered(table().top(Some(1)).foot([9]).without_rest());
        assert_eq!(text, "n\n1\n9\n");
        assert_eq!(json, r#"{"schema":"test/1","counts":[{"count":1}]}"#);
    }

    #[test]
    fn a_table_without_a_value_is_null() {
        let (text, json) = rendered(table().null_unless(false));
        assert_eq!((text.as_str(), json.as_str()), ("", r#"{"schema":"test/1","counts":null}"#));
    }

    #[test]
    fn groups_are_named_once() {
        let rows = || {
            let mut columns = Columns::new();
            columns.text_only("half", |count: &u64| (count / 3).to_string()).once();
            columns.text_only("n", |count| *count);
            Table::text_only([1, 2, 3, 4], columns)
        };
        assert_eq!(rendered(rows()).0, "half  n\n0     1\n      2\n1     3\n      4\n");
        assert_eq!(rendered(rows().spaced()).0, "half  n\n0     1\n      2\n\n1     3\n      4\n");
    }

    #[test]
    fn rules_divide_rows() {
        let table = table().title(TextRole::Head, "Counts").rule("--", |count| count % 2 == 0);
        assert_eq!(rendered(table).0, "Counts\nn\n1\n2\n--\n3\n4\n--\n");
    }
}
