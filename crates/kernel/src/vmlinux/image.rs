//! Check that the bootable image belongs to the `vmlinux` beside it.
//!
//! Symbols, lines and counts are read from `vmlinux`, and the machine runs `bzImage`. If the two
//! come from different links, every figure is attributed to wrong functions, and nothing fails.

use crate::{Arch, Error, Result};
use flate2::read::GzDecoder;
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_isa::{GuestIsa, Isa};
use kerntune_work::IoContext;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Limit of an unpacked image in bytes; no kernel is larger.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Returns the size of the bootable image in bytes, after checking that it contains the code of the
/// `vmlinux` beside it. Images that are not compressed by gzip are not checked.
///
/// # Errors
/// [`Error::OtherImage`]; files that cannot be read.
pub(crate) fn checked_bytes(arch: Arch, dir: &Path) -> Result<u64> {
    let path = dir.join(arch.image());
    let vmlinux = dir.join("vmlinux");
    let image = fs::read(&path).at("read", &path)?;
    // User-Mode Linux is its own image.
    let packed =
        GuestIsa::image_payload(&image).filter(|packed| path != vmlinux && packed.starts_with(&GZIP));
    if let Some(packed) = packed {
        let kernel = MappedFile::open(&vmlinux).at("read", &vmlinux)?;
        if !holds(packed, &kernel) {
            return Err(Error::OtherImage { image: path, vmlinux });
        }
    }
    Ok(image.len() as u64)
}

/// Checks whether the gzip data is this kernel.
fn holds(packed: &[u8], vmlinux: &[u8]) -> bool {
    let mut unpacked = Vec::new();
    let read = GzDecoder::new(packed).take(MAX_UNPACKED_BYTES).read_to_end(&mut unpacked);
    read.is_ok() && code(&unpacked).is_some_and(|code| Some(code) == self::code(vmlinux))
}

/// Returns name and bytes of each code section. Other sections are not compared, because the packed
/// kernel is stripped.
pub(crate) fn code(elf: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let text = Elf::parse_any(elf).ok()?.code_sections().ok()?.into_iter();
    let code: Vec<_> = text.map(|section| (section.name, section.data)).collect();
    Some(code).filter(|code| !code.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use flate2::Compression;
    use std::io::Write;
    use std::process::Command;

    fn elf(dir: &Path, gives: &str) -> Vec<u8> {
        let (source, object) = (dir.join("code.c"), dir.join("code.o"));
        fs::write(&source, format!("int gives(void) {{ return {gives}; }}\n")).unwrap();
        let made = Command::new("gcc").arg("-c").arg(&source).arg("-o").arg(&object).status().unwrap();
        assert!(made.success());
        fs::read(object).unwrap()
    }

    fn image(kernel: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(kernel).unwrap();
        let packed = packed.finish().unwrap();
        let mut image = vec![0; 0x400];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x24c..0x250].copy_from_slice(&(packed.len() as u32).to_le_bytes());
        image.extend(packed);
        image
    }

    #[test]
    fn another_kernels_image_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bzImage");
        let (one, two) = (elf(dir.path(), "1"), elf(dir.path(), "2"));
        fs::write(dir.path().join("vmlinux"), &one).unwrap();
        fs::write(&path, image(&one)).unwrap();
        let bytes = checked_bytes(Arch::X86_64, dir.path()).unwrap();
        assert_eq!(bytes, fs::metadata(&path).unwrap().len());

        let whole = image(&one);
        for other in [image(&two), image(b"no kernel"), whole[..whole.len() - 9].to_vec()] {
            let mut other = other;
            let length = (other.len() - 0x400) as u32;
            other[0x24c..0x250].copy_from_slice(&length.to_le_bytes());
            fs::write(&path, other).unwrap();
            let error = checked_bytes(Arch::X86_64, dir.path()).unwrap_err().to_string();
            assert!(error.contains("bzImage does not hold the code of"), "{error}");
        }
        // Compressed by another program, or no bzImage at all.
        fs::write(&path, "an image").unwrap();
        assert_eq!(checked_bytes(Arch::X86_64, dir.path()).unwrap(), 8);
        assert_eq!(checked_bytes(Arch::Um, dir.path()).unwrap(), one.len() as u64);
    }
}
