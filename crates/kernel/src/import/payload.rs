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
const LIMIT: Limit = Limit { bytes: 1 << 30, of: "kernel", read: "read kernel" };
/// Limit of an unpacked configuration in bytes.
const MAX_CONFIG_BYTES: u64 = 16 << 20;
/// Programs that unpack what begins with these bytes, with their Debian packages: all of Linux's
/// `KERNEL_*` options for x86 except for gzip.
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
        return Err(refuse("it is no bootable image (bzImage) with a kernel in it".into()));
    };
    if packed.starts_with(b"\x1f\x8b") {
        let mut bytes = Vec::new();
        let read = GzDecoder::new(packed).take(LIMIT.bytes).read_to_end(&mut bytes);
        return read
            .map(|_| bytes)
            .map_err(|error| refuse(format!("the kernel in it cannot be unpacked: {error}")));
    }
    if packed.starts_with(b"\x7fELF") {
        return Ok(packed.to_owned());
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

/// Returns the configuration in a bootable image (`CONFIG_IKCONFIG`), or `None` if it has none or
/// cannot be read or unpacked here.
pub fn embedded_config(image: &Path) -> Option<String> {
    let bytes = fs::read(image).ok()?;
    let scratch = tempfile::tempdir().ok()?;
    config(&unpack(&bytes, image, scratch.path()).ok()?)
}

/// Returns the configuration in an unpacked kernel (`CONFIG_IKCONFIG`): `kernel/configs.c` of Linux.
pub(crate) fn config(kernel: &[u8]) -> Option<String> {
    const BEGIN: &[u8] = b"IKCFG_ST\x1f\x8b";
    const GZIP_BYTES: usize = 2;
    let at = kernel.windows(BEGIN.len()).position(|bytes| bytes == BEGIN)? + BEGIN.len() - GZIP_BYTES;
    let mut text = String::new();
    GzDecoder::new(&kernel[at..]).take(MAX_CONFIG_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::test_image;
    use std::process::{Command, Stdio};

    /// Wraps a payload as the boot protocol has it.
    fn boot_image(packed: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x24c..0x250].copy_from_slice(&(packed.len() as u32).to_le_bytes());
        [image, packed.to_vec()].concat()
    }

    /// Packs the bytes as Kbuild does, the size behind them included. `None` without the program.
    fn packed_by(command: &str, bytes: &[u8], dir: &Path) -> Option<Vec<u8>> {
        let (from, to) = (dir.join("from"), dir.join("to"));
        fs::write(&from, bytes).unwrap();
        let mut words = command.split(' ');
        let mut program = Command::new(words.next().unwrap());
        program.args(words).stdin(File::open(&from).unwrap()).stdout(File::create(&to).unwrap());
        let end = program.stderr(Stdio::null()).status().ok()?;
        assert!(end.success(), "{command}");
        let size = (bytes.len() as u32).to_le_bytes();
        Some([fs::read(&to).unwrap(), size.to_vec()].concat())
    }

    #[test]
    fn the_configuration_in_a_kernel_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let packed = packed_by("gzip -n", b"CONFIG_SMP=y\n", dir.path()).unwrap();
        let kernel = [b"IKCFG_ST and IKCFG_ST", &packed[..], b"IKCFG_ED"].concat();
        assert_eq!(config(&kernel).unwrap(), "CONFIG_SMP=y\n");
        assert_eq!((config(&kernel[..40]), config(b"IKCFG_ST")), (None, None));
    }

    #[test]
    fn every_compression_of_linux_is_unpacked() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = test_image::image(test_image::KallsymsForm::Linux73);
        let unpack = |packed: &[u8]| unpack(&boot_image(packed), Path::new("vmlinuz"), dir.path());
        // scripts/Makefile.lib of Linux 7.3.
        for command in [
            "gzip -n -9",
            "xz --check=crc32 --x86 --lzma2=dict=1MiB",
            "zstd -22 --ultra",
            "lz4 -l -9 - -",
            "lzop -9",
            "bzip2 -9",
            "lzma -9",
        ] {
            let Some(packed) = packed_by(command, &kernel, dir.path()) else {
                println!("not tried, because the program is not here: {command}");
                continue;
            };
            let size = if command.starts_with("gzip") { SIZE_BYTES } else { 0 };
            let packed = &packed[..packed.len() - size];
            assert!(unpack(packed).unwrap() == kernel, "{command}");
            let cut = unpack(&packed[..packed.len() / 2]).unwrap_err().to_string();
            assert!(cut.contains("vmlinuz cannot be imported: the kernel in it"), "{command}: {cut}");
        }
        assert!(unpack(&kernel).unwrap() == kernel);
        let unknown = unpack(b"nothing known").unwrap_err().to_string();
        assert!(unknown.contains("in an unknown way"), "{unknown}");
    }
}
