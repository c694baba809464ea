//! One table as a Parquet file in memory: the only module that uses the `parquet` crate for reading
//! and writing tables.

use crate::parquet_guard;
use crate::{
    Address, CallKind, EdgeKind, FunctionIndex, Instructions, ModelEvent, PathKind, SwitchKind, ThreadKind,
    Ticks, SCHEMA_VERSION,
};
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Key of the schema version in the metadata of each file.
const VERSION_KEY: &str = "schema_version";

/// Type of a column, as the documentation and other engines name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Unsigned integer of 32 bits.
    U32,
    /// Unsigned integer of 64 bits.
    U64,
    /// UTF-8 text.
    Text,
    /// UTF-8 text or null.
    OptionalText,
}

impl ColumnType {
    /// Returns the name in `docs/profile.md`.
    pub fn name(self) -> &'static str {
        match self {
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Text => "string",
            Self::OptionalText => "string, optional",
        }
    }

    fn parquet(self, name: &str) -> Result<Type> {
        let (physical, logical) = match self {
            Self::U32 => (PhysicalType::INT32, LogicalType::Integer { bit_width: 32, is_signed: false }),
            Self::U64 => (PhysicalType::INT64, LogicalType::Integer { bit_width: 64, is_signed: false }),
            Self::Text | Self::OptionalText => (PhysicalType::BYTE_ARRAY, LogicalType::String),
        };
        let repetition = if self == Self::OptionalText { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(name, physical)
            .with_logical_type(Some(logical))
            .with_repetition(repetition)
            .build()
    }
}

/// Rust type of a stored column value.
pub trait StoredType: Sized {
    const TYPE: ColumnType;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()>;
    fn read(column: ColumnReader, rows: usize) -> Result<Vec<Self>>;
}

/// Rust type of a field of a row, which is stored as [`Self::Stored`].
pub trait ColumnValue: Sized {
    type Stored: StoredType;
    fn store(&self) -> Self::Stored;
    /// Converts a stored value; returns `None` if the field has no such value.
    fn restore(stored: Self::Stored) -> Option<Self>;
}

/// Writer of a table, column by column.
pub struct ColumnWriter<'a, 'b> {
    group: &'a mut SerializedRowGroupWriter<'b, Vec<u8>>,
}

impl ColumnWriter<'_, '_> {
    /// Writes the next column.
    pub fn column<C: ColumnValue>(&mut self, cells: impl Iterator<Item = C::Stored>) -> Result<()> {
        let mut column = self.group.next_column()?.ok_or_else(|| general("more columns than declared"))?;
        C::Stored::write(cells.collect(), &mut column)?;
        column.close()
    }
}

/// Encodes a table with these columns as a file; `write` must write the columns in this order.
pub fn encode(
    table: &str,
    columns: &[(&str, ColumnType)],
    write: impl FnOnce(&mut ColumnWriter<'_, '_>) -> Result<()>,
) -> Result<Vec<u8>> {
    let fields =
        columns.iter().map(|(name, kind)| kind.parquet(name).map(Arc::new)).collect::<Result<Vec<_>>>()?;
    let schema: TypePtr = Arc::new(Type::group_type_builder(table).with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_key_value_metadata(Some(vec![KeyValue::new(VERSION_KEY.into(), SCHEMA_VERSION.to_string())]))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    write(&mut ColumnWriter { group: &mut group })?;
    group.close()?;
    file.into_inner()
}

/// Reader of a table's columns by name.
pub struct TableReader {
    file: SerializedFileReader<Bytes>,
}

impl TableReader {
    /// Opens a file. Rejects files of another version, and those that ask for more memory than
    /// their size allows.
    pub fn open(bytes: Bytes) -> Result<Self> {
        parquet_guard::check_footer(&bytes)?;
        let file = SerializedFileReader::new(bytes.clone())?;
        parquet_guard::check_pages(&bytes, file.metadata())?;
        let pairs = file.metadata().file_metadata().key_value_metadata();
        let version = pairs
            .and_then(|all| all.iter().find(|pair| pair.key == VERSION_KEY))
            .and_then(|pair| pair.value.clone())
            .unwrap_or_default();
        if version != SCHEMA_VERSION.to_string() {
            return Err(general(format!("schema version {version:?}, this kerntune reads {SCHEMA_VERSION}")));
        }
        Ok(Self { file })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        usize::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// Reads all values of a column.
    pub fn column<C: ColumnValue>(&self, name: &str) -> Result<std::vec::IntoIter<C>> {
        let index = (self.file.metadata().file_metadata().schema_descr().columns().iter())
            .position(|column| column.name() == name)
            .ok_or_else(|| general(format!("no column {name:?}")))?;
        let mut cells = Vec::with_capacity(self.rows());
        for group in 0..self.file.num_row_groups() {
            let group = self.file.get_row_group(group)?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            for stored in C::Stored::read(group.get_column_reader(index)?, rows)? {
                let cell = C::restore(stored)
                    .ok_or_else(|| general(format!("column {name:?} has a value of no meaning")))?;
                cells.push(cell);
            }
        }
        if cells.len() != self.rows() {
            return Err(general(format!("column {name:?} has {} of {} cells", cells.len(), self.rows())));
        }
        Ok(cells.into_iter())
    }
}

fn general(text: impl Into<String>) -> ParquetError {
    ParquetError::General(text.into())
}

/// Writes values of one of Parquet's own types; `levels` separates nulls from values.
fn write<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    column.typed::<T>().write_batch(values, levels, None).map(drop)
}

impl StoredType for u32 {
    const TYPE: ColumnType = ColumnType::U32;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let values: Vec<i32> = values.into_iter().map(|v| v as i32).collect();
        write::<Int32Type>(column, &values, None)
    }
    fn read(column: ColumnReader, rows: usize) -> Result<Vec<Self>> {
        let ColumnReader::Int32ColumnReader(mut column) = column else {
            return Err(general("a column is not of 32 bits"));
        };
        let mut values = Vec::with_capacity(rows);
        column.read_records(rows, None, None, &mut values)?;
        Ok(values.into_iter().map(|v| v as u32).collect())
    }
}

impl StoredType for u64 {
    const TYPE: ColumnType = ColumnType::U64;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let values: Vec<i64> = values.into_iter().map(|v| v as i64).collect();
        write::<Int64Type>(column, &values, None)
    }
    fn read(column: ColumnReader, rows: usize) -> Result<Vec<Self>> {
        let ColumnReader::Int64ColumnReader(mut column) = column else {
            return Err(general("a column is not of 64 bits"));
        };
        let mut values = Vec::with_capacity(rows);
        column.read_records(rows, None, None, &mut values)?;
        Ok(values.into_iter().map(|v| v as u64).collect())
    }
}

impl StoredType for String {
    const TYPE: ColumnType = ColumnType::Text;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let values: Vec<ByteArray> = values.into_iter().map(|v| ByteArray::from(v.into_bytes())).collect();
        write::<ByteArrayType>(column, &values, None)
    }
    fn read(column: ColumnReader, rows: usize) -> Result<Vec<Self>> {
        let ColumnReader::ByteArrayColumnReader(mut column) = column else {
            return Err(general("a column is not of text"));
        };
        let mut values = Vec::with_capacity(rows);
        column.read_records(rows, None, None, &mut values)?;
        values.into_iter().map(text).collect()
    }
}

impl StoredType for Option<String> {
    const TYPE: ColumnType = ColumnType::OptionalText;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
        let values: Vec<ByteArray> =
            values.into_iter().flatten().map(|v| ByteArray::from(v.into_bytes())).collect();
        write::<ByteArrayType>(column, &values, Some(&levels))
    }
    fn read(column: ColumnReader, rows: usize) -> Result<Vec<Self>> {
        let ColumnReader::ByteArrayColumnReader(mut column) = column else {
            return Err(general("a column is not of text"));
        };
        let (mut values, mut levels) = (Vec::new(), Vec::with_capacity(rows));
        column.read_records(rows, Some(&mut levels), None, &mut values)?;
        let mut values = values.into_iter();
        let next = |level| match level {
            0 => Ok(None),
            _ => values.next().map(text).transpose(),
        };
        levels.into_iter().map(next).collect()
    }
}

fn text(bytes: ByteArray) -> Result<String> {
    bytes.as_utf8().map(str::to_owned)
}

/// Implements [`ColumnValue`] for types that are stored unchanged.
macro_rules! plain {
    ($($type:ty),*) => {
        $(impl ColumnValue for $type {
            type Stored = Self;
            fn store(&self) -> Self { self.clone() }
            fn restore(stored: Self) -> Option<Self> { Some(stored) }
        })*
    };
}

/// Implements [`ColumnValue`] for wrappers of a number.
macro_rules! wrapped {
    ($($type:ident($inner:ty)),*) => {
        $(impl ColumnValue for $type {
            type Stored = $inner;
            fn store(&self) -> $inner { self.0 }
            fn restore(stored: $inner) -> Option<Self> { Some(Self(stored)) }
        })*
    };
}

/// Implements [`ColumnValue`] for enums that are stored by name.
macro_rules! named {
    ($($type:ty),*) => {
        $(impl ColumnValue for $type {
            type Stored = String;
            fn store(&self) -> String { self.as_str().to_owned() }
            fn restore(stored: String) -> Option<Self> { Self::from_name(&stored) }
        })*
    };
}

plain!(u32, u64, String, Option<String>);
wrapped!(Address(u64), FunctionIndex(u32), Instructions(u64), Ticks(u64));
named!(EdgeKind, CallKind, ModelEvent, PathKind, SwitchKind, ThreadKind);
