//! Typed access to TOML tables: remembers positions, collects all problems, and reports unknown
//! keys.

use crate::problem::meant;
use crate::Problem;
use std::ops::{Range, RangeInclusive};
use toml_edit::{Item, TableLike, Value};

/// A TOML text, and the problems found in it so far.
pub(crate) struct TomlSource<'t> {
    text: &'t str,
    problems: Vec<Problem>,
}

impl<'t> TomlSource<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, problems: Vec::new() }
    }

    /// Adds a problem; call [`HelpSlot::help`] on the result to add advice.
    pub fn problem(&mut self, span: Option<Range<usize>>, key: &str, message: String) -> HelpSlot<'_> {
        self.problems.push(Problem::at(self.text, span, key, message));
        HelpSlot(&mut self.problems)
    }

    pub fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    pub fn finish(self) -> Vec<Problem> {
        self.problems
    }
}

/// Adds advice to the last problem.
pub(crate) struct HelpSlot<'p>(&'p mut Vec<Problem>);

impl HelpSlot<'_> {
    pub fn help(self, help: impl Into<String>) {
        if let Some(problem) = self.0.last_mut() {
            problem.help = Some(help.into());
        }
    }
}

/// A value with its position.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub value: T,
    pub span: Option<Range<usize>>,
}

/// A list of strings, each with its position.
pub(crate) type LocatedList = Located<Vec<Located<String>>>;

/// A table. Each access marks its key as known; [`TableFields::finish`] reports the others.
pub(crate) struct TableFields<'a> {
    table: &'a dyn TableLike,
    path: String,
    span: Option<Range<usize>>,
    known: Vec<String>,
}

impl<'a> TableFields<'a> {
    pub fn new(table: &'a dyn TableLike, path: &str, span: Option<Range<usize>>) -> Self {
        Self { table, path: path.to_owned(), span, known: Vec::new() }
    }

    /// Returns the dotted path of a key of this table.
    pub fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Returns the position of the table.
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub fn keys(&self) -> Vec<String> {
        self.table.iter().map(|(key, _)| key.to_owned()).collect()
    }

    pub fn value_span(&self, key: &str) -> Option<Range<usize>> {
        self.table.get(key).and_then(Item::span).or_else(|| self.span())
    }

    fn get(&mut self, key: &str) -> Option<&'a Item> {
        self.known.push(key.to_owned());
        self.table.get(key)
    }

    /// Reports a missing key.
    fn need(&self, source: &mut TomlSource, key: &str) {
        if !self.has(key) {
            source.problem(self.span(), &self.key(key), "is missing".into());
        }
    }

    /// Reads a key with `read`, if the key is there.
    fn typed<T>(
        &mut self,
        source: &mut TomlSource,
        key: &str,
        wanted: &str,
        read: impl Fn(&'a Item) -> Option<T>,
    ) -> Option<Located<T>> {
        let item = self.get(key)?;
        let value = read(item);
        if value.is_none() {
            let message = format!("must be {wanted}, not {}", article(item.type_name()));
            source.problem(item.span(), &self.key(key), message);
        }
        Some(Located { value: value?, span: item.span() })
    }

    pub fn optional_string(&mut self, source: &mut TomlSource, key: &str) -> Option<Located<String>> {
        self.typed(source, key, "a string", |item| item.as_str().map(str::to_owned))
    }

    pub fn string(&mut self, source: &mut TomlSource, key: &str) -> Option<Located<String>> {
        self.need(source, key);
        self.optional_string(source, key)
    }

    pub fn boolean(&mut self, source: &mut TomlSource, key: &str) -> Option<Located<bool>> {
        self.typed(source, key, "true or false", Item::as_bool)
    }

    pub fn integer(
        &mut self,
        source: &mut TomlSource,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Option<Located<i64>> {
        let found = self.typed(source, key, "a whole number", Item::as_integer)?;
        if range.contains(&found.value) {
            return Some(found);
        }
        let message = format!("{} is not between {} and {}", found.value, range.start(), range.end());
        source.problem(found.span, &self.key(key), message);
        None
    }

    pub fn required_integer(
        &mut self,
        source: &mut TomlSource,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Option<Located<i64>> {
        self.need(source, key);
        self.integer(source, key, range)
    }

    /// Reads an optional list of strings.
    pub fn strings(&mut self, source: &mut TomlSource, key: &str) -> Vec<Located<String>> {
        self.optional_strings(source, key).unwrap_or_default()
    }

    pub fn required_strings(&mut self, source: &mut TomlSource, key: &str) -> Option<Vec<Located<String>>> {
        self.need(source, key);
        self.optional_strings(source, key)
    }

    fn optional_strings(&mut self, source: &mut TomlSource, key: &str) -> Option<Vec<Located<String>>> {
        let array = self.typed(source, key, "a list of strings", Item::as_array)?;
        Some(strings_of(source, &self.key(key), array.value))
    }

    /// Reads an optional list of lists of strings.
    pub fn string_lists(&mut self, source: &mut TomlSource, key: &str) -> Vec<LocatedList> {
        let Some(array) = self.typed(source, key, "a list of commands", Item::as_array) else {
            return Vec::new();
        };
        let mut lists = Vec::new();
        for value in array.value {
            match value.as_array() {
                Some(words) => lists
                    .push(Located { value: strings_of(source, &self.key(key), words), span: value.span() }),
                None => {
                    let message = format!(
                        "must hold commands, each a list of strings, not {}",
                        article(value.type_name())
                    );
                    source
                        .problem(value.span(), &self.key(key), message)
                        .help("for example [[\"program\", \"argument\"]]");
                }
            }
        }
        lists
    }

    /// Reads an optional table.
    pub fn table(&mut self, source: &mut TomlSource, key: &str) -> Option<TableFields<'a>> {
        let table = self.typed(source, key, "a table", Item::as_table_like)?;
        Some(TableFields::new(table.value, &self.key(key), table.span.or_else(|| self.key_span(key))))
    }

    /// Reads an optional list of tables, in either TOML notation.
    pub fn tables(&mut self, source: &mut TomlSource, key: &str) -> Vec<TableFields<'a>> {
        let name = self.key(key);
        let path = |index: usize| format!("{name}[{index}]");
        if let Some(tables) = self.table.get(key).and_then(Item::as_array_of_tables) {
            let all =
                tables.iter().enumerate().map(|(i, t)| TableFields::new(t, &path(i), t.span())).collect();
            self.known.push(key.to_owned());
            return all;
        }
        let wanted = format!("a list of tables ([[{name}]])");
        let Some(Located { value: array, .. }) = self.typed(source, key, &wanted, Item::as_array) else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for (index, value) in array.iter().enumerate() {
            match value.as_inline_table() {
                Some(table) => all.push(TableFields::new(table, &path(index), value.span())),
                None => {
                    let message = format!("must be a table, not {}", article(value.type_name()));
                    source.problem(value.span(), &path(index), message);
                }
            }
        }
        all
    }

    fn key_span(&self, key: &str) -> Option<Range<usize>> {
        self.table.key(key).and_then(|key| key.span())
    }

    /// Reports unknown keys.
    pub fn finish(&self, source: &mut TomlSource) {
        for (key, item) in self.table.iter() {
            if self.known.iter().any(|known| known == key) {
                continue;
            }
            let near = meant(key, self.known.iter().map(String::as_str));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", self.known.join(", ")),
            };
            source
                .problem(
                    self.key_span(key).or_else(|| item.span()),
                    &self.key(key),
                    "is not a known key".into(),
                )
                .help(help);
        }
    }
}

fn strings_of(source: &mut TomlSource, key: &str, array: &toml_edit::Array) -> Vec<Located<String>> {
    let mut all = Vec::new();
    for value in array {
        match value {
            Value::String(text) => all.push(Located { value: text.value().clone(), span: value.span() }),
            other => {
                let message = format!("must hold only strings, not {}", article(other.type_name()));
                source.problem(other.span(), key, message).help("put it in quotes");
            }
        }
    }
    all
}

fn article(type_name: &str) -> String {
    let vowel = type_name.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {type_name}", if vowel { "an" } else { "a" })
}
