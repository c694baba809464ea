//! JSON document.

use crate::document::DocumentPart;
use crate::{Document, Value};

/// Renders the fields and tables of a document, indented, with a newline at its end.
pub fn json(document: &Document) -> String {
    let mut members = vec![("schema".into(), Value::Text(document.schema.into()))];
    for part in &document.parts {
        match part {
            DocumentPart::Field(spec, Value::Null) if spec.is_optional => {}
            DocumentPart::Field(spec, value) => members.push((spec.key.into(), value.clone())),
            DocumentPart::Table(table) if !table.is_absent() => {
                let rows = if table.is_null() { Value::Null } else { Value::List(table.records()) };
                members.push((table.key().into(), rows));
            }
            DocumentPart::Table(_) | DocumentPart::Text(..) => {}
        }
    }
    // Writing to a string fails only for maps whose keys are not strings.
    serde_json::to_string_pretty(&Value::Record(members)).unwrap_or_default() + "\n"
}
