//! `profile.parquet`: the manifest as one row, for SQL. kerntune never reads it.

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

/// Name of the file.
pub const FILE: &str = "profile.parquet";

/// Columns, and whether they are numbers (uint64) or text.
pub const COLUMNS: &[(&str, bool)] = &[
    ("kernel", false),
    ("version", false),
    ("machine", false),
    ("run", false),
    ("model", false),
    ("recorded", false),
    ("elapsed_ticks", true),
    ("busy_ticks", true),
    ("idle_ticks", true),
    ("events", true),
    ("lost_events", true),
    ("exact", true),
    ("sampled", true),
    ("symbols", false),
];

/// A value of the row.
enum SummaryCell {
    Number(u64),
    Text(String),
}

/// Encodes the row of a profile as a Parquet file.
pub(crate) fn encode(manifest: &Manifest, path: &Path) -> Result<Vec<u8>> {
    bytes(&row(manifest)).map_err(|source| Error::Summary { path: path.to_owned(), source })
}

/// Returns the values in the order of [`COLUMNS`].
fn row(m: &Manifest) -> [SummaryCell; 14] {
    let text = |text: &str| SummaryCell::Text(text.to_owned());
    [
        text(&m.kernel.label),
        text(&m.kernel.version),
        text(&m.machine),
        text(&m.run.to_string()),
        text(m.model.as_deref().unwrap_or_default()),
        text(&m.recorded),
        SummaryCell::Number(m.elapsed_ticks.get()),
        SummaryCell::Number(m.busy_ticks.get()),
        SummaryCell::Number(m.idle_ticks.get()),
        SummaryCell::Number(m.events),
        SummaryCell::Number(m.lost_events),
        SummaryCell::Number(m.exact.into()),
        SummaryCell::Number(m.sampled.is_some().into()),
        text(m.tables.get("symbols").map_or("", |file| file.blake3.as_str())),
    ]
}

fn bytes(row: &[SummaryCell; 14]) -> Result<Vec<u8>, ParquetError> {
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
            SummaryCell::Number(number) => {
                column.typed::<Int64Type>().write_batch(&[*number as i64], None, None)?;
            }
            SummaryCell::Text(text) => {
                let text = ByteArray::from(text.as_bytes().to_vec());
                column.typed::<ByteArrayType>().write_batch(&[text], None, None)?;
            }
        }
        column.close()?;
    }
    group.close()?;
    file.into_inner()
}
