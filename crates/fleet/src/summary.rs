//! `profile.parquet`: what a profile says of itself as one row, for SQL. Written and never read by us.

use crate::{Error, Result};
use kerntune_profile::Manifest;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::path::Path;
use std::sync::Arc;

/// The file's name.
pub const FILE: &str = "profile.parquet";

/// The columns, and whether they are numbers (uint64) or text.
pub const COLUMNS: &[(&str, bool)] = &[
    ("kernel", false),
    ("version", false),
    ("machine", false),
    ("run", false),
    ("model", false),
    ("recorded", false),
    ("elapsed_ns", true),
    ("busy_ns", true),
    ("idle_ns", true),
    ("events", true),
    ("lost_events", true),
    ("exact", true),
    ("sampled", true),
    ("symbols", false),
];

/// A cell of the row.
enum Cell {
    Number(u64),
    Text(String),
}

/// The bytes of the file for a profile.
pub(crate) fn encode(manifest: &Manifest, path: &Path) -> Result<Vec<u8>> {
    bytes(&row(manifest)).map_err(|source| Error::Summary { path: path.to_owned(), source })
}

/// In the order of [`COLUMNS`].
fn row(m: &Manifest) -> [Cell; 14] {
    let text = |text: &str| Cell::Text(text.to_owned());
    [
        text(&m.kernel.label),
        text(&m.kernel.version),
        text(&m.machine),
        text(&m.run.to_string()),
        text(m.model.as_deref().unwrap_or_default()),
        text(&m.recorded),
        Cell::Number(m.elapsed_ns.get()),
        Cell::Number(m.busy_ns.get()),
        Cell::Number(m.idle_ns.get()),
        Cell::Number(m.events),
        Cell::Number(m.lost_events),
        Cell::Number(m.exact.into()),
        Cell::Number(m.sampled.is_some().into()),
        text(m.tables.get("symbols").map_or("", |file| file.blake3.as_str())),
    ]
}

fn bytes(row: &[Cell; 14]) -> Result<Vec<u8>, ParquetError> {
    let column = |&(name, is_number): &(&str, bool)| {
        let (physical, logical) = match is_number {
            true => (PhysicalType::INT64, LogicalType::Integer { bit_width: 64, is_signed: false }),
            false => (PhysicalType::BYTE_ARRAY, LogicalType::String),
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_logical_type(Some(logical))
            .with_repetition(Repetition::REQUIRED);
        column.build().map(Arc::new)
    };
    let fields = COLUMNS.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("profile").with_fields(fields).build()?);
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, properties)?;
    let mut group = file.next_row_group()?;
    for cell in row {
        let Some(mut column) = group.next_column()? else { break };
        match cell {
            Cell::Number(number) => {
                column.typed::<Int64Type>().write_batch(&[*number as i64], None, None)?;
            }
            Cell::Text(text) => {
                let text = ByteArray::from(text.as_bytes().to_vec());
                column.typed::<ByteArrayType>().write_batch(&[text], None, None)?;
            }
        }
        column.close()?;
    }
    group.close()?;
    file.into_inner()
}
