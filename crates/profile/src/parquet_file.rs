//! One table as a Parquet file in memory: the only module that uses the `parquet` crate for reading
//! and writing tables.

use crate::page_reader::ColumnPages;
use crate::parquet_guard;
use crate::{
    Address, CallKind, EdgeKind, FunctionIndex, Instructions, ModelEvent, PathKind, SwitchKind, ThreadKind,
    Ticks, SCHEMA_VERSION,
};
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::column::reader::{get_column_reader, ColumnReader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
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
    /// A value that was read; texts are borrowed, since most become numbers.
    type Read<'a>;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()>;
    /// Reads values and calls `each` for each of them.
    fn read(column: ColumnReader, rows: usize, each: impl FnMut(Self::Read<'_>) -> Result<()>) -> Result<()>;
}

/// Rust type of a field of a row, which is stored as [`Self::Stored`].
pub trait ColumnValue: Sized {
    type Stored: StoredType;
    fn store(&self) -> Self::Stored;
    /// Converts a stored value; returns `None` if the field has no such value.
    fn restore(stored: <Self::Stored as StoredType>::Read<'_>) -> Option<Self>;
}

/// Writer of a table, column by column.
pub struct ColumnWriter<'a, 'b> {
    group: &'a mut SerializedRowGroupWriter<'b, Vec<u8>>,
}

impl ColumnWriter<'_, '_> {
    /// Writes the next column: the cells of rows `0..rows`. `cell` is no type parameter, since
    /// there are hundreds of columns, and the compiler would make all of this for each.
    pub fn column<C: ColumnValue>(&mut self, rows: usize, cell: &dyn Fn(usize) -> C::Stored) -> Result<()> {
        let mut column = self.group.next_column()?.ok_or_else(|| general("more columns than declared"))?;
        C::Stored::write((0..rows).map(cell).collect(), &mut column)?;
        column.close()
    }
}

/// Encodes a table with these columns as a file; `write` must write the columns in this order.
pub fn encode(
    table: &str,
    columns: &[(&str, ColumnType)],
    write: &dyn Fn(&mut ColumnWriter<'_, '_>) -> Result<()>,
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
    bytes: Arc<Bytes>,
    metadata: ParquetMetaData,
}

impl TableReader {
    /// Opens a file. Rejects files of another version, and those that ask for more memory than
    /// their size allows.
    pub fn open(bytes: Bytes) -> Result<Self> {
        parquet_guard::check_footer(&bytes)?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes)?;
        parquet_guard::check_pages(&bytes, &metadata)?;
        let pairs = metadata.file_metadata().key_value_metadata();
        let version = pairs
            .and_then(|all| all.iter().find(|pair| pair.key == VERSION_KEY))
            .and_then(|pair| pair.value.clone())
            .unwrap_or_default();
        if version != SCHEMA_VERSION.to_string() {
            return Err(general(format!("schema version {version:?}, this kerntune reads {SCHEMA_VERSION}")));
        }
        Ok(Self { bytes: Arc::new(bytes), metadata })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        usize::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// Reads all values of a column.
    pub fn column<C: ColumnValue>(&self, name: &str) -> Result<std::vec::IntoIter<C>> {
        let index = (self.metadata.file_metadata().schema_descr().columns().iter())
            .position(|column| column.name() == name)
            .ok_or_else(|| general(format!("no column {name:?}")))?;
        let mut cells = Vec::with_capacity(self.rows());
        for group in self.metadata.row_groups() {
            let rows = usize::try_from(group.num_rows()).unwrap_or(0);
            let column = group.columns().get(index).ok_or_else(|| general("a group lacks a column"))?;
            let pages = ColumnPages::open(&self.bytes, column, rows)?;
            let reader = get_column_reader(column.column_descr_ptr(), Box::new(pages));
            C::Stored::read(reader, rows, |stored| {
                let odd = || general(format!("column {name:?} has a value of no meaning"));
                cells.push(C::restore(stored).ok_or_else(odd)?);
                Ok(())
            })?;
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
    type Read<'a> = Self;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let values: Vec<i32> = values.into_iter().map(|v| v as i32).collect();
        write::<Int32Type>(column, &values, None)
    }
    fn read(
        column: ColumnReader,
        rows: usize,
        mut each: impl FnMut(Self::Read<'_>) -> Result<()>,
    ) -> Result<()> {
        let ColumnReader::Int32ColumnReader(mut column) = column else {
            return Err(general("a column is not of 32 bits"));
        };
        let mut values = Vec::with_capacity(rows);
        column.read_records(rows, None, None, &mut values)?;
        values.into_iter().try_for_each(|v| each(v as u32))
    }
}

impl StoredType for u64 {
    const TYPE: ColumnType = ColumnType::U64;
    type Read<'a> = Self;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let values: Vec<i64> = values.into_iter().map(|v| v as i64).collect();
        write::<Int64Type>(column, &values, None)
    }
    fn read(
        column: ColumnReader,
        rows: usize,
        mut each: impl FnMut(Self::Read<'_>) -> Result<()>,
    ) -> Result<()> {
        let ColumnReader::Int64ColumnReader(mut column) = column else {
            return Err(general("a column is not of 64 bits"));
        };
        let mut values = Vec::with_capacity(rows);
        column.read_records(rows, None, None, &mut values)?;
        values.into_iter().try_for_each(|v| each(v as u64))
    }
}

impl StoredType for String {
    const TYPE: ColumnType = ColumnType::Text;
    type Read<'a> = &'a str;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let values: Vec<ByteArray> = values.into_iter().map(|v| ByteArray::from(v.into_bytes())).collect();
        write::<ByteArrayType>(column, &values, None)
    }
    fn read(
        column: ColumnReader,
        rows: usize,
        mut each: impl FnMut(Self::Read<'_>) -> Result<()>,
    ) -> Result<()> {
        let ColumnReader::ByteArrayColumnReader(mut column) = column else {
            return Err(general("a column is not of text"));
        };
        let mut values = Vec::with_capacity(rows);
        column.read_records(rows, None, None, &mut values)?;
        values.iter().try_for_each(|value| each(value.as_utf8()?))
    }
}

impl StoredType for Option<String> {
    const TYPE: ColumnType = ColumnType::OptionalText;
    type Read<'a> = Option<&'a str>;
    fn write(values: Vec<Self>, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
        let values: Vec<ByteArray> =
            values.into_iter().flatten().map(|v| ByteArray::from(v.into_bytes())).collect();
        write::<ByteArrayType>(column, &values, Some(&levels))
    }
    fn read(
        column: ColumnReader,
        rows: usize,
        mut each: impl FnMut(Self::Read<'_>) -> Result<()>,
    ) -> Result<()> {
        let ColumnReader::ByteArrayColumnReader(mut column) = column else {
            return Err(general("a column is not of text"));
        };
        let (mut values, mut levels) = (Vec::new(), Vec::with_capacity(rows));
        column.read_records(rows, Some(&mut levels), None, &mut values)?;
        let mut values = values.iter();
        levels.into_iter().try_for_each(|level| match level {
            0 => each(None),
            _ => each(values.next().map(ByteArray::as_utf8).transpose()?),
        })
    }
}

/// Implements [`ColumnValue`] for types that are stored unchanged.
macro_rules! plain {
    ($($type:ty: $read:ty => $owned:expr),*) => {
        $(impl ColumnValue for $type {
            type Stored = Self;
            fn store(&self) -> Self { self.clone() }
            fn restore(stored: $read) -> Option<Self> { Some($owned(stored)) }
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
            fn restore(stored: &str) -> Option<Self> { Self::from_name(stored) }
        })*
    };
}

plain!(
    u32: u32 => std::convert::identity,
    u64: u64 => std::convert::identity,
    String: &str => str::to_owned,
    Option<String>: Option<&str> => |text: Option<&str>| text.map(str::to_owned)
);
wrapped!(Address(u64), FunctionIndex(u32), Instructions(u64), Ticks(u64));
named!(EdgeKind, CallKind, ModelEvent, PathKind, SwitchKind, ThreadKind);
