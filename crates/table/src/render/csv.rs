//! Comma-separated values, as RFC 4180 has them but for the ends of lines, which are those of Unix.

use crate::{TableRows, Value};

/// Renders a table: a line of keys, then all rows. Values are those of JSON, nested ones as JSON.
pub fn csv(table: &dyn TableRows) -> String {
    let specs = table.specs();
    let keys: Vec<_> = specs.iter().map(|spec| spec.key).filter(|key| !key.is_empty()).collect();
    let mut out = keys.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(",") + "\n";
    for row in table.records() {
        let Value::Record(members) = row else { continue };
        let cell = |key: &&str| {
            let value = members.iter().find(|(name, _)| name == key).map(|(_, value)| value);
            match value {
                None | Some(Value::Null) => String::new(),
                Some(Value::Text(text)) => quoted(text),
                Some(value) => quoted(&serde_json::to_string(value).unwrap_or_default()),
            }
        };
        out += &(keys.iter().map(cell).collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}
