//! Data into a page: JSON, zlib, base64. What comes out has no character that means anything in
//! HTML, whatever names the data holds.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use flate2::write::ZlibEncoder;
use flate2::Compression;
use serde::Serialize;
use std::io::Write;

/// The packed document.
pub(super) fn pack(document: &impl Serialize) -> std::io::Result<String> {
    Ok(text(&bytes(document, 6)?))
}

/// Packed bytes as text.
pub(super) fn text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The same as bytes. `level` is zlib's: what is packed for each question is to be there soon.
pub(super) fn bytes(document: &impl Serialize, level: u32) -> std::io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    {
        let mut buffered = std::io::BufWriter::with_capacity(1 << 16, &mut encoder);
        serde_json::to_writer(&mut buffered, document)?;
        buffered.flush()?;
    }
    encoder.finish()
}
