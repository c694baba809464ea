//! Pages of a column, decompressed. The `parquet` crate makes a zstd context for each page, which
//! takes longer than to decompress a page of ours.

use crate::parquet_guard::PAGE_MAX;
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use zstd::zstd_safe::{get_error_name, DCtx};

thread_local! {
    static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// Reader of the pages of one column in one group of rows.
pub struct ColumnPages {
    /// Pages as they are stored.
    stored: SerializedPageReader<Bytes>,
    is_compressed: bool,
    /// Largest size of a page after decompression, in bytes.
    size_max: usize,
}

impl ColumnPages {
    /// Opens a column of a file that passed [`crate::parquet_guard`].
    pub fn open(file: &Arc<Bytes>, column: &ColumnChunkMetaData, rows: usize) -> Result<Self> {
        let is_compressed = match column.compression() {
            Compression::UNCOMPRESSED => false,
            Compression::ZSTD(_) => true,
            other => return Err(ParquetError::General(format!("it is compressed by {other}"))),
        };
        let size = u64::try_from(column.uncompressed_size()).unwrap_or(u64::MAX).min(PAGE_MAX);
        let stored = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        Ok(Self {
            stored: SerializedPageReader::new(file.clone(), &stored, rows, None)?,
            is_compressed,
            size_max: usize::try_from(size).unwrap_or(usize::MAX),
        })
    }

    /// Decompresses what follows the first `plain` bytes.
    fn decompress(&self, stored: &Bytes, plain: usize) -> Result<Bytes> {
        if !self.is_compressed || plain == stored.len() {
            return Ok(stored.clone());
        }
        let outside = || ParquetError::General("its levels are longer than its page".into());
        let mut bytes = Vec::with_capacity(self.size_max);
        decompress(stored.get(plain..).ok_or_else(outside)?, &mut bytes)?;
        if plain > 0 {
            bytes.splice(..0, stored.iter().copied().take(plain));
        }
        Ok(Bytes::from(bytes))
    }
}

/// Decompresses a frame into a buffer, up to its capacity.
fn decompress(frame: &[u8], buffer: &mut Vec<u8>) -> io::Result<()> {
    CONTEXT.with_borrow_mut(|context| {
        let context = match context {
            Some(context) => context,
            None => context.insert(DCtx::try_create().ok_or(ErrorKind::OutOfMemory)?),
        };
        context.decompress(buffer, frame).map(drop).map_err(|code| io::Error::other(get_error_name(code)))
    })
}

impl PageReader for ColumnPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(mut page) = self.stored.get_next_page()? else { return Ok(None) };
        match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => {
                *buf = self.decompress(buf, 0)?
            }
            Page::DataPageV2 {
                buf, is_compressed: true, def_levels_byte_len, rep_levels_byte_len, ..
            } => {
                let levels = def_levels_byte_len.saturating_add(*rep_levels_byte_len);
                *buf = self.decompress(buf, levels as usize)?;
            }
            Page::DataPageV2 { .. } => {}
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.stored.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.stored.skip_next_page()
    }
}

impl Iterator for ColumnPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fills_a_buffer_up_to_its_capacity() {
        let frame = zstd::encode_all(&[7; 1000][..], 3).unwrap();
        let mut buffer = Vec::with_capacity(1000);
        decompress(&frame, &mut buffer).unwrap();
        assert_eq!(buffer, [7; 1000]);
        let error = decompress(&frame, &mut Vec::with_capacity(999)).unwrap_err().to_string();
        assert!(error.contains("too small"), "{error}");
        assert!(decompress(&frame[..frame.len() / 2], &mut buffer).is_err());
        // An error leaves the context as good as before.
        decompress(&frame, &mut buffer).unwrap();
        assert_eq!(buffer, [7; 1000]);
    }
}
