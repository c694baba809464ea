//! Declaration of a column.

use crate::columns::{Alignment, TextCell};
use crate::number::{figure, fixed, grouped};
use crate::{printable, share, DisplayUnit, TextRole, ToValue, TypeName, Value};

/// Function of a row.
type ColumnGetter<'a, R, V> = Box<dyn Fn(&R) -> V + 'a>;

/// Column of a table whose rows are of type `R`, or field of a record.
///
/// A column has a key, a head, or both: without a key it is not in JSON, without a head not in
/// text. Texts are formatted by type (counts in groups of digits, numbers with three digits, names
/// escaped) unless [`Column::unit`], [`Column::decimals`] or [`Column::text`] say otherwise.
pub struct Column<'a, R> {
    spec: ColumnSpec,
    get: ColumnGetter<'a, R, Value>,
    text: Option<ColumnGetter<'a, R, String>>,
    role: Option<ColumnGetter<'a, R, TextRole>>,
    applies: Option<ColumnGetter<'a, R, bool>>,
}

/// Properties of a column that do not depend on rows.
#[derive(Debug, Clone)]
pub struct ColumnSpec {
    /// Key in JSON and head in CSV; empty if the column is in neither.
    pub key: &'static str,
    /// Heading of one or more lines; `None` if the column is not in texts.
    pub head: Option<String>,
    /// Meaning and unit, as a sentence.
    pub help: &'static str,
    /// JSON type.
    pub type_name: TypeName,
    /// JSON leaves the member out if it is null.
    pub is_optional: bool,
    /// Columns of the records that the column holds, for documentation.
    pub fields: Vec<ColumnSpec>,
    pub(crate) format: CellFormat,
    pub(crate) alignment: Alignment,
    pub(crate) null: &'static str,
    pub(crate) zero: Option<&'static str>,
    pub(crate) is_once: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum CellFormat {
    ByType,
    Unit(DisplayUnit),
    Decimals(usize),
}

/// Columns of rows of type `R`, in order.
pub struct Columns<'a, R>(Vec<Column<'a, R>>);

impl<R> Default for Columns<'_, R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, R> Columns<'a, R> {
    /// Creates a list without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column that JSON has as `key`.
    pub fn add<V: ToValue>(
        &mut self,
        key: &'static str,
        help: &'static str,
        get: impl Fn(&R) -> V + 'a,
    ) -> &mut Column<'a, R> {
        self.push(Column::new(key, help, get))
    }

    /// Adds a column that only texts have.
    pub fn text_only<V: ToValue>(
        &mut self,
        head: impl Into<String>,
        get: impl Fn(&R) -> V + 'a,
    ) -> &mut Column<'a, R> {
        self.add("", "", get).head(head)
    }

    /// Adds a column that only texts have: the share of `whole` in per cent.
    pub fn share(
        &mut self,
        head: impl Into<String>,
        whole: u64,
        get: impl Fn(&R) -> u64 + 'a,
    ) -> &mut Column<'a, R> {
        self.text_only(head, move |row| share(get(row), whole)).decimals(2)
    }

    /// Adds a column of records, each with the columns of `fields`, for JSON.
    pub fn records<S: 'a>(
        &mut self,
        key: &'static str,
        help: &'static str,
        fields: Columns<'a, S>,
        get: impl Fn(&R) -> Vec<S> + 'a,
    ) -> &mut Column<'a, R> {
        self.nested(key, help, fields, move |fields, row| -> Vec<Value> {
            get(row).iter().map(|inner| fields.to_record(inner)).collect()
        })
    }

    /// Adds a column of a record with the columns of `fields`, or null, for JSON.
    pub fn record<S: 'a>(
        &mut self,
        key: &'static str,
        help: &'static str,
        fields: Columns<'a, S>,
        get: impl Fn(&R) -> Option<S> + 'a,
    ) -> &mut Column<'a, R> {
        self.nested(key, help, fields, move |fields, row| get(row).map(|inner| fields.to_record(&inner)))
    }

    /// Adds a column of a record that each row has, with the columns of `fields`, for JSON.
    pub fn object<S: 'a>(
        &mut self,
        key: &'static str,
        help: &'static str,
        fields: Columns<'a, S>,
        get: impl Fn(&R) -> &S + 'a,
    ) -> &mut Column<'a, R> {
        self.nested(key, help, fields, move |fields, row| fields.to_record(get(row)))
    }

    /// Adds the columns of a part of the row.
    pub fn part<S: 'a>(&mut self, columns: Columns<'a, S>, get: impl Fn(&R) -> &S + Clone + 'a)
    where
        R: 'a,
    {
        self.0.extend(columns.0.into_iter().map(|column| column.of(get.clone())));
    }

    fn nested<S: 'a, V: ToValue>(
        &mut self,
        key: &'static str,
        help: &'static str,
        fields: Columns<'a, S>,
        get: impl Fn(&Columns<'a, S>, &R) -> V + 'a,
    ) -> &mut Column<'a, R> {
        let specs = fields.specs().cloned().collect();
        let column = self.add(key, help, move |row| get(&fields, row));
        column.spec.fields = specs;
        column
    }

    fn push(&mut self, column: Column<'a, R>) -> &mut Column<'a, R> {
        self.0.push(column);
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// Returns the columns' properties.
    pub fn specs(&self) -> impl Iterator<Item = &ColumnSpec> {
        self.0.iter().map(|column| &column.spec)
    }

    /// Converts a row to a record of the columns that have a key.
    pub fn to_record(&self, row: &R) -> Value {
        let members = self.0.iter().filter(|column| !column.spec.key.is_empty()).filter_map(|column| {
            let value = (column.get)(row);
            let is_absent = match &column.applies {
                Some(applies) => !applies(row),
                None => column.spec.is_optional && value == Value::Null,
            };
            (!is_absent).then_some((column.spec.key.into(), value))
        });
        Value::Record(members.collect())
    }

    /// Returns the displayed cells of a row, of the columns that have a head.
    pub(crate) fn cells(&self, row: &R) -> Vec<TextCell> {
        self.0.iter().filter(|column| column.spec.head.is_some()).map(|column| column.cell(row)).collect()
    }

    pub(crate) fn fields(&self, row: &R) -> Vec<(ColumnSpec, Value)> {
        let has_field = |column: &&Column<R>| {
            !column.spec.key.is_empty() && column.applies.as_ref().is_none_or(|applies| applies(row))
        };
        let field = |column: &Column<R>| {
            let is_optional = column.spec.is_optional && column.applies.is_none();
            (ColumnSpec { is_optional, ..column.spec.clone() }, (column.get)(row))
        };
        self.0.iter().filter(has_field).map(field).collect()
    }
}

impl<'a, R> Column<'a, R> {
    fn new<V: ToValue>(key: &'static str, help: &'static str, get: impl Fn(&R) -> V + 'a) -> Self {
        let spec = ColumnSpec::new(key, help, V::TYPE);
        Self { spec, get: Box::new(move |row| get(row).to_value()), text: None, role: None, applies: None }
    }

    /// Shows the column in texts under this heading.
    pub fn head(&mut self, head: impl Into<String>) -> &mut Self {
        self.spec.head = Some(head.into());
        self
    }

    /// Leaves the column out of texts unless `condition` holds. JSON keeps it.
    pub fn only_if(&mut self, condition: bool) -> &mut Self {
        if !condition {
            self.spec.head = None;
        }
        self
    }

    /// Displays ticks in this unit, and its name as a further line of the heading. Call it after
    /// [`Column::head`].
    pub fn unit(&mut self, unit: DisplayUnit) -> &mut Self {
        self.spec.format = CellFormat::Unit(unit);
        self.spec.head = self.spec.head.take().map(|head| match head.is_empty() {
            true => unit.name().into(),
            false => format!("{head}\n{}", unit.name()),
        });
        self
    }

    /// Displays so many digits after the point.
    pub fn decimals(&mut self, decimals: usize) -> &mut Self {
        self.spec.format = CellFormat::Decimals(decimals);
        self
    }

    /// Displays this text for null.
    pub fn null(&mut self, text: &'static str) -> &mut Self {
        self.spec.null = text;
        self
    }

    /// Displays this text for 0.
    pub fn zero(&mut self, text: &'static str) -> &mut Self {
        self.spec.zero = Some(text);
        self
    }

    /// Displays the text that `text` makes of a row; it must be printable.
    pub fn text(&mut self, text: impl Fn(&R) -> String + 'a) -> &mut Self {
        self.text = Some(Box::new(text));
        self
    }

    /// Colors the cell of a row by the role that `role` returns.
    pub fn role(&mut self, role: impl Fn(&R) -> TextRole + 'a) -> &mut Self {
        self.role = Some(Box::new(role));
        self
    }

    /// Displays the text of consecutive rows only in the first of them; at most one column.
    pub fn once(&mut self) -> &mut Self {
        self.spec.is_once = true;
        self
    }

    /// Aligns the cells' ends.
    pub fn right(&mut self) -> &mut Self {
        self.spec.alignment = Alignment::Right;
        self
    }

    /// Leaves the member out of JSON where it is null.
    pub fn optional(&mut self) -> &mut Self {
        self.spec.is_optional = true;
        self
    }

    /// Leaves the member out of JSON of rows for which `condition` does not hold; null stays.
    pub fn when(&mut self, condition: impl Fn(&R) -> bool + 'a) -> &mut Self {
        self.spec.is_optional = true;
        self.applies = Some(Box::new(condition));
        self
    }

    fn of<S: 'a>(self, get: impl Fn(&S) -> &R + Clone + 'a) -> Column<'a, S>
    where
        R: 'a,
    {
        let Self { spec, get: value, text, role, applies } = self;
        let (for_text, for_role, for_applies) = (get.clone(), get.clone(), get.clone());
        Column {
            spec,
            get: Box::new(move |row| value(get(row))),
            text: text.map(|text| Box::new(move |row: &S| text(for_text(row))) as _),
            role: role.map(|role| Box::new(move |row: &S| role(for_role(row))) as _),
            applies: applies.map(|applies| Box::new(move |row: &S| applies(for_applies(row))) as _),
        }
    }

    fn cell(&self, row: &R) -> TextCell {
        let text = self.text.as_ref().map_or_else(|| self.spec.display(&(self.get)(row)), |text| text(row));
        TextCell(text, self.role.as_ref().map_or(TextRole::Plain, |role| role(row)))
    }
}

impl ColumnSpec {
    /// Creates the properties of a column without a head.
    pub(crate) fn new(key: &'static str, help: &'static str, type_name: TypeName) -> Self {
        let alignment = match type_name.name {
            "integer" | "number" => Alignment::Right,
            _ => Alignment::Left,
        };
        Self {
            key,
            head: None,
            help,
            type_name,
            is_optional: false,
            fields: Vec::new(),
            format: CellFormat::ByType,
            alignment,
            null: "",
            zero: None,
            is_once: false,
        }
    }

    fn display(&self, value: &Value) -> String {
        let unit = |value: u64| match self.format {
            CellFormat::Unit(unit) => unit.format(value),
            CellFormat::ByType | CellFormat::Decimals(_) => grouped(value),
        };
        match value {
            Value::Null => self.null.into(),
            Value::Count(0) if self.zero.is_some() => self.zero.unwrap_or_default().into(),
            Value::Count(value) => unit(*value),
            Value::Integer(value) => {
                let size = u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX);
                format!("{}{}", if *value < 0 { "-" } else { "" }, unit(size))
            }
            Value::Number(value) => match self.format {
                CellFormat::Decimals(decimals) => fixed(*value, decimals),
                CellFormat::ByType | CellFormat::Unit(_) => figure(*value),
            },
            Value::Bool(value) => if *value { "yes" } else { "no" }.into(),
            Value::Text(text) => printable(text),
            Value::List(values) => {
                values.iter().map(|value| self.display(value)).collect::<Vec<_>>().join(", ")
            }
            Value::Record(_) => String::new(),
        }
    }
}
