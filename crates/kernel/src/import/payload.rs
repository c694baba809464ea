//! The packed kernel in a bzImage.

use crate::inputs::packed::{unpack_by, Limit};
use crate::{Error, Result};
use flate2::read::GzDecoder;
use kerntune_isa::{GuestIsa, Isa};
use kerntune_work::IoContext;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Limit of an unpacked image in bytes; no kernel is larger.
const LIMIT: Limit = Limit { bytes: 1 << 30, of: "kernel" };
/// Programs that unpack what begins with these bytes, with their Debian packages: Linux's
/// `KERNEL_*` options except for gzip.
const PROGRAMS: [(&[u8], &str, &str); 6] = [
    (b"\xfd7zXZ\0", "xz", "xz-utils"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd"),
    (b"\x02\x21\x4c\x18", "lz4", "lz4"),
    (b"\x89LZO\0", "lzop", "lzop"),
    (b"BZh", "bzip2", "bzip2"),
    (b"\x5d\0\0", "lzma", "xz-utils"),
];
/// Bytes of the unpacked size, which Kbuild appends to everything but gzip.
const SIZE_BYTES: usize = 4;

/// Unpacks the kernel in a bzImage. The packed bytes are put into a file in `scratch` for the
/// program that unpacks them.
///
/// # Errors
/// An image of another kind; a program that is missing or fails.
pub(crate) fn unpack(image: &[u8], path: &Path, scratch: &Path) -> Result<Vec<u8>> {
    let refuse = |reason: String| Error::CannotImport { path: path.to_owned(), reason };
    let Some(packed) = GuestIsa::image_payload(image) else {
        return Err(refuse("it is no bootable image (bzImage) with a packed kernel".into()));
    };
    if packed.starts_with(b"\x1f\x8b") {
        let mut bytes = Vec::new();
        let read = GzDecoder::new(packed).take(LIMIT.bytes).read_to_end(&mut bytes);
        return read
            .map(|_| bytes)
            .map_err(|error| refuse(format!("the kernel in it cannot be unpacked: {error}")));
    }
    let Some((_, program, package)) = PROGRAMS.iter().find(|(begin, ..)| packed.starts_with(begin)) else {
        return Err(refuse("the kernel in it is packed in an unknown way".into()));
    };
    crate::tools::require(&[(program, package)])?;
    let file = scratch.join("packed");
    fs::write(&file, &packed[..packed.len().saturating_sub(SIZE_BYTES)]).at("write", &file)?;
    let input = File::open(&file).at("open", &file)?;
    let unpacked = unpack_by(program, input, &file, LIMIT)?;
    fs::remove_file(&file).at("delete", &file)?;
    unpacked.map_err(|reason| refuse(format!("the kernel in it: {reason}")))
}
