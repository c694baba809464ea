//! Checks of a Parquet file before the `parquet` crate reads it. That crate allocates as much as a
//! length field says, recurses as deep as a schema is nested, and panics on some damaged files.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

/// Bytes at the end of a file: the length of the footer and a magic number.
const TAIL: usize = 8;
/// Largest number of entries in a schema; ours have one for each column.
const SCHEMA_MAX: u64 = 256;
/// Deepest nesting of structures in a footer; Parquet's own has six levels.
const DEPTH_MAX: u32 = 16;
/// Largest page after decompression, in bytes; ours have at most a few MiB.
pub const PAGE_MAX: u64 = 64 << 20;
/// Largest ratio of decompressed to stored bytes, beyond [`PAGE_MAX`].
const GROWTH_MAX: u64 = 256;
/// Largest number of rows for each byte of the file, beyond [`ROWS_MIN`]. No two rows of a table
/// are alike, so each takes space.
const ROWS_FOR_A_BYTE: u64 = 64;
/// Number of rows that any file may have.
const ROWS_MIN: u64 = 1 << 16;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `read` and turns a panic in it into an error, without a message on standard error.
pub fn contained<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !CONTAINED.get() {
                others(info);
            }
        }));
    });
    CONTAINED.set(true);
    // The reader is dropped after a panic, and it has no other state.
    let done = catch_unwind(AssertUnwindSafe(read));
    CONTAINED.set(false);
    done.unwrap_or_else(|_| Err(general("it is damaged: its parts do not fit together")))
}

/// Checks the number of schema entries and the nesting of the footer.
pub fn check_footer(file: &[u8]) -> Result<()> {
    let footer = || {
        let end = file.len().checked_sub(TAIL)?;
        let length: [u8; 4] = file.get(end..end + 4)?.try_into().ok()?;
        file.get(end.checked_sub(u32::from_le_bytes(length) as usize)?..end)
    };
    let footer = footer().ok_or_else(|| general("its footer is outside of the file"))?;
    let mut schema = 0;
    let mut walk = ThriftReader { bytes: footer, at: 0 };
    // Field 2 of FileMetaData is the schema.
    let walked = walk.structure(0, &mut |field, value| {
        if let (2, ThriftField::List(entries)) = (field, value) {
            schema = schema.max(entries);
        }
    });
    match walked {
        Some(()) if schema <= SCHEMA_MAX => Ok(()),
        _ => Err(general("its footer is damaged")),
    }
}

/// Checks the number of rows, and the sizes in every page header.
pub fn check_pages(file: &Bytes, metadata: &ParquetMetaData) -> Result<()> {
    let bytes = file.len() as u64;
    let rows = u64::try_from(metadata.file_metadata().num_rows()).ok();
    let max = (bytes * ROWS_FOR_A_BYTE).max(ROWS_MIN);
    let rows = rows.filter(|rows| *rows <= max).ok_or_else(|| general("its number of rows is damaged"))?;
    let groups = metadata
        .row_groups()
        .iter()
        .try_fold(0u64, |sum, group| sum.checked_add(u64::try_from(group.num_rows()).ok()?));
    if groups != Some(rows) {
        return Err(general("its row groups do not have its rows"));
    }
    let mut grown = 0u64;
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let (start, length) = column.byte_range();
        let range = usize::try_from(start).ok().zip(usize::try_from(start.saturating_add(length)).ok());
        let chunk = range.and_then(|(start, end)| file.get(start..end));
        let chunk = chunk.ok_or_else(|| general("a column is outside of the file"))?;
        let sum = pages(chunk).ok_or_else(|| general("the header of a page is damaged"))?;
        grown = grown.saturating_add(sum);
        if grown > bytes.saturating_mul(GROWTH_MAX).saturating_add(PAGE_MAX) {
            return Err(general("its pages say that they are far larger than what they are made of"));
        }
    }
    Ok(())
}

/// Returns the total size of a column's pages after decompression, in bytes.
fn pages(chunk: &[u8]) -> Option<u64> {
    let (mut walk, mut sum) = (ThriftReader { bytes: chunk, at: 0 }, 0u64);
    while walk.at < chunk.len() {
        // Fields 2 and 3 of PageHeader are its size after and before decompression.
        let (mut after, mut before) = (None, None);
        walk.structure(0, &mut |field, value| match (field, value) {
            (2, ThriftField::Integer(size)) => after = u64::try_from(size).ok(),
            (3, ThriftField::Integer(size)) => before = u64::try_from(size).ok(),
            _ => {}
        })?;
        sum = sum.checked_add(after.filter(|size| *size <= PAGE_MAX)?)?;
        walk.skip(before?)?;
    }
    Some(sum)
}

fn general(text: &str) -> ParquetError {
    ParquetError::General(text.into())
}

/// Value of a structure's field, as far as the checks need it.
enum ThriftField {
    Integer(i64),
    /// Number of elements.
    List(u64),
    Other,
}

/// Reader of Thrift's compact protocol (`doc/specs/thrift-compact-protocol.md` of Apache Thrift),
/// the encoding of Parquet's footer and page headers.
struct ThriftReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl ThriftReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(count).ok()?)?;
        self.at = Some(end).filter(|end| *end <= self.bytes.len())?;
        Some(())
    }

    fn variable(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.variable()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads a structure and calls `field` for its own fields, not for those of nested structures.
    fn structure(&mut self, depth: u32, field: &mut dyn FnMut(i16, ThriftField)) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            if head & 0x0f == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => i16::try_from(self.integer()?).ok()?,
                delta => id.checked_add(delta.into())?,
            };
            // A boolean field's type is its value.
            let value = match head & 0x0f {
                1 | 2 => ThriftField::Other,
                kind => self.value(kind, depth)?,
            };
            field(id, value);
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Option<ThriftField> {
        match kind {
            1..=3 => self.skip(1)?,
            4..=6 => return self.integer().map(ThriftField::Integer),
            7 => self.skip(8)?,
            8 => {
                let length = self.variable()?;
                self.skip(length)?;
            }
            9 => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.variable()?,
                    few => few.into(),
                };
                // An element takes at least one byte.
                if count > (self.bytes.len() - self.at) as u64 || depth > DEPTH_MAX {
                    return None;
                }
                for _ in 0..count {
                    self.value(head & 0x0f, depth + 1)?;
                }
                return Some(ThriftField::List(count));
            }
            12 => self.structure(depth + 1, &mut |_, _| {})?,
            // Sets and maps: Parquet has none.
            _ => return None,
        }
        Some(ThriftField::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let error = contained(|| -> Result<()> { panic!("in the library") }).unwrap_err().to_string();
        assert!(error.contains("its parts do not fit together"), "{error}");
        assert!(contained(|| Ok(7)).is_ok_and(|seven| seven == 7));
    }

    /// `FileMetaData` whose schema claims 2^31 - 1 elements: the library would allocate 300 GB.
    #[test]
    fn lengths_and_depths_are_looked_at_first() {
        let file = |footer: &[u8]| {
            let tail = [&(footer.len() as u32).to_le_bytes()[..], b"PAR1"].concat();
            check_footer(&[&b"PAR1"[..], footer, &tail].concat()).map_err(|error| error.to_string())
        };
        let bomb = [0x15, 0x02, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
        assert!(file(&bomb).unwrap_err().contains("its footer is damaged"));
        assert!(file(&[0x15, 0x02, 0x19, 0x1c, 0x00, 0x00]).is_ok());
        assert!(file(&[0x1c; 100]).is_err(), "deeper than anything of Parquet's");
        assert!(file(&[&[0x19, 0xfc, 0xac, 0x02][..], &[0; 301]].concat()).is_ok(), "300 of another list");
        assert!(file(&[&[0x29, 0xfc, 0xac, 0x02][..], &[0; 301]].concat()).is_err(), "300 columns");
        assert!(check_footer(b"PAR1").is_err() && check_footer(b"\xff\xff\xff\xffPAR1").is_err());
    }

    #[test]
    fn pages_that_ask_for_too_much_are_refused() {
        // Type, size after decompression, size before it, end; then that many bytes.
        let page = |after: u8| [&[0x15, 0, 0x15][..], &[after, 0x15, 4, 0, 9, 9]].concat();
        assert_eq!(pages(&[page(20), page(6)].concat()), Some(13));
        let giant = [0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 4, 0, 9, 9];
        assert_eq!(pages(&giant), None);
        assert_eq!(pages(&page(20)[..8]), None);
        assert_eq!(pages(&page(19)), None, "-10");
    }
}
