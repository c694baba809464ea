//! Document: fields, lines of text, and tables.

use crate::number::grouped;
use crate::{ColumnSpec, Columns, Table, TableRows, TextRole, ToValue, Value};

/// Report as data, from which every form is rendered.
///
/// Parts are rendered in the order in which they are added. Fields are only in JSON and its
/// documentation, lines only in texts, tables in both.
pub struct Document<'a> {
    /// Name and version of the JSON form: `kerntune-functions/3`.
    pub schema: &'static str,
    /// Sentences on the report, for documentation.
    pub about: &'static str,
    /// Texts name what the report is of, so that they need no heading.
    pub names_its_subject: bool,
    pub(crate) parts: Vec<DocumentPart<'a>>,
    is_text_ended: bool,
}

/// Texts in which a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextDetail {
    /// All texts.
    Always,
    /// Texts without details.
    Brief,
    /// Texts with details ([`crate::Style::verbose`]).
    Verbose,
}

/// Field, text or table of a document.
pub(crate) enum DocumentPart<'a> {
    /// Member of the JSON document.
    Field(ColumnSpec, Value),
    /// Text that ends with a newline.
    Text(TextRole, String, TextDetail),
    Table(Box<dyn TableRows + 'a>),
}

impl<'a> Document<'a> {
    /// Creates an empty document.
    pub fn new(schema: &'static str, about: &'static str) -> Self {
        Self { schema, about, names_its_subject: false, parts: Vec::new(), is_text_ended: false }
    }

    /// Adds a JSON member.
    pub fn field<V: ToValue>(&mut self, key: &'static str, help: &'static str, value: V) {
        self.member(key, help, value, false);
    }

    /// Adds a JSON member that is left out if it is `None`.
    pub fn optional<V: ToValue>(&mut self, key: &'static str, help: &'static str, value: Option<V>) {
        self.member(key, help, value, true);
    }

    fn member<V: ToValue>(&mut self, key: &'static str, help: &'static str, value: V, is_optional: bool) {
        let spec = ColumnSpec { is_optional, ..ColumnSpec::new(key, help, V::TYPE) };
        self.parts.push(DocumentPart::Field(spec, value.to_value()));
    }

    /// Adds a JSON member that is a record.
    pub fn object<R>(&mut self, key: &'static str, help: &'static str, fields: Columns<R>, value: &R) {
        self.nested(ColumnSpec::new(key, help, Value::TYPE), fields, Some(value));
    }

    /// Adds a JSON member that is a record, null if it is `None`.
    pub fn nullable<R>(
        &mut self,
        key: &'static str,
        help: &'static str,
        fields: Columns<R>,
        value: Option<&R>,
    ) {
        self.nested(ColumnSpec::new(key, help, Option::<Value>::TYPE), fields, value);
    }

    /// Adds a JSON member that is a record, left out if it is `None`.
    pub fn record<R>(&mut self, key: &'static str, help: &'static str, fields: Columns<R>, value: Option<R>) {
        let spec = ColumnSpec { is_optional: true, ..ColumnSpec::new(key, help, Value::TYPE) };
        self.nested(spec, fields, value.as_ref());
    }

    fn nested<R>(&mut self, spec: ColumnSpec, fields: Columns<R>, value: Option<&R>) {
        let spec = ColumnSpec { fields: fields.specs().cloned().collect(), ..spec };
        self.parts.push(DocumentPart::Field(spec, value.map(|value| fields.to_record(value)).to_value()));
    }

    /// Adds the members of a record.
    pub fn fields<R>(&mut self, columns: &Columns<R>, record: &R) {
        self.parts
            .extend(columns.fields(record).into_iter().map(|(spec, value)| DocumentPart::Field(spec, value)));
    }

    /// Adds text as it is; lines end with a newline.
    pub fn text(&mut self, text: impl Into<String>) {
        self.painted(TextRole::Plain, text);
    }

    /// Adds a remark, less prominent than the rest.
    pub fn note(&mut self, text: &str) {
        self.painted(TextRole::Faint, format!("{text}\n"));
    }

    /// Adds text in the color of `role`.
    pub fn painted(&mut self, role: TextRole, text: impl Into<String>) {
        self.detailed(TextDetail::Always, role, text);
    }

    /// Adds text that only some texts have.
    pub fn detailed(&mut self, detail: TextDetail, role: TextRole, text: impl Into<String>) {
        if !self.is_text_ended {
            self.parts.push(DocumentPart::Text(role, text.into(), detail));
        }
    }

    /// Adds a line of a report's head: label and value.
    pub fn line(&mut self, label: &str, value: impl std::fmt::Display) {
        self.text(format!("{label:<20} = {value}\n"));
    }

    /// Ends the texts: what is added after it is only in JSON.
    pub fn end_text(&mut self) {
        self.is_text_ended = true;
    }

    /// Adds the line on so many `noun` that a text leaves out; none if there are no such.
    pub fn rest(&mut self, rest: usize, noun: &str) {
        if rest > 0 {
            self.painted(TextRole::Faint, rest_line(rest, noun));
        }
    }

    /// Adds a table.
    pub fn table<R: 'a>(&mut self, table: Table<'a, R>) {
        let table = if self.is_text_ended { table.only_if(false) } else { table };
        self.parts.push(DocumentPart::Table(Box::new(table)));
    }

    /// Returns the tables that JSON has, in order.
    pub fn tables(&self) -> impl Iterator<Item = &(dyn TableRows + 'a)> {
        self.parts.iter().filter_map(|part| match part {
            DocumentPart::Table(table) if !table.key().is_empty() => Some(&**table),
            DocumentPart::Table(_) | DocumentPart::Field(..) | DocumentPart::Text(..) => None,
        })
    }
}

/// Returns the line on so many `noun` that a text leaves out.
pub(crate) fn rest_line(rest: usize, noun: &str) -> String {
    let gap = if noun.is_empty() { "" } else { " " };
    format!("{} more{gap}{noun} (--top)\n", grouped(rest as u64))
}
