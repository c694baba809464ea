//! Documentation of a document's JSON form, as Markdown.

use crate::document::DocumentPart;
use crate::{ColumnSpec, Document, TypeName};

/// Renders the section of `docs/json.md` on a document: its fields, and the fields of its records
/// except those of the keys `elsewhere`, at any depth, which are described once for all documents.
/// Records with the same fields share a table.
pub fn docs(document: &Document, elsewhere: &[&str]) -> String {
    let mut out = format!("## `{}`\n\n{}\n\n", document.schema, document.about);
    let schema = format!("`{}`.", document.schema);
    let mut fields = vec![line("schema", "string", &schema)];
    let mut nested = Vec::new();
    for part in &document.parts {
        match part {
            DocumentPart::Text(..) => {}
            DocumentPart::Field(spec, _) => {
                fields.push(line(spec.key, &type_of(spec), spec.help));
                records(spec.key, &spec.fields, &mut nested);
            }
            DocumentPart::Table(table) if table.key().is_empty() => {}
            DocumentPart::Table(table) => {
                let type_name = TypeName { name: "array", is_nullable: table.is_nullable() };
                fields.push(line(table.key(), &type_name.to_string(), table.help()));
                let specs: Vec<ColumnSpec> = table.specs().into_iter().cloned().collect();
                records(table.key(), &specs, &mut nested);
            }
        }
    }
    out += &table_of("field", &fields);
    nested.retain(|(key, _)| !key.rsplit('.').next().is_some_and(|last| elsewhere.contains(&last)));
    while let Some((_, lines)) = nested.first().cloned() {
        let (same, rest): (Vec<_>, _) = nested.into_iter().partition(|(_, other)| *other == lines);
        nested = rest;
        let keys: Vec<String> = same.iter().map(|(key, _)| format!("`{key}`")).collect();
        out += "\n";
        out += &table_of(&format!("field of {}", keys.join(", ")), &lines);
    }
    out
}

fn type_of(spec: &ColumnSpec) -> String {
    let optional = if spec.is_optional { ", or absent" } else { "" };
    let type_name = match spec.is_optional {
        true => spec.type_name.name.to_owned(),
        false => spec.type_name.to_string(),
    };
    type_name + optional
}

/// Adds the tables of nested records, outer ones first.
fn records(key: &str, specs: &[ColumnSpec], out: &mut Vec<(String, Vec<String>)>) {
    let specs: Vec<_> = specs.iter().filter(|spec| !spec.key.is_empty()).collect();
    if specs.is_empty() {
        return;
    }
    out.push((key.into(), specs.iter().map(|spec| line(spec.key, &type_of(spec), spec.help)).collect()));
    for spec in specs {
        records(&format!("{key}.{}", spec.key), &spec.fields, out);
    }
}

fn line(key: &str, type_name: &str, help: &str) -> String {
    format!("| `{key}` | {type_name} | {} |\n", help.replace('|', "\\|"))
}

fn table_of(head: &str, lines: &[String]) -> String {
    format!("| {head} | type | meaning |\n|---|---|---|\n{}", lines.concat())
}
