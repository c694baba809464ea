//! Packing of data into a page: JSON, zlib, base64. The result has no character with a meaning in
//! HTML, whatever names the data contains.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use flate2::write::ZlibEncoder;
use flate2::Compression;
use serde::Serialize;
use std::io::Write;

/// Packs a document as text.
pub(super) fn pack(document: &impl Serialize) -> std::io::Result<String> {
    Ok(text(&bytes(document, 6)?))
}

/// Encodes packed bytes as text.
pub(super) fn text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Packs a document as bytes. `level` is zlib's: low for answers, which must be fast.
pub(super) fn bytes(document: &impl Serialize, level: u32) -> std::io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    {
        let mut buffered = std::io::BufWriter::with_capacity(1 << 16, &mut encoder);
        serde_json::to_writer(&mut buffered, document)?;
        buffered.flush()?;
    }
    encoder.finish()
}
