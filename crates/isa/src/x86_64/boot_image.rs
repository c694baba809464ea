//! The header of a bzImage.

/// Offset of the setup header's magic number (Documentation/arch/x86/boot.rst, "The Real-Mode
/// Kernel Header").
const MAGIC: usize = 0x202;
/// Offset of the pointer to the version string, which counts from [`SECTOR`].
const VERSION: usize = 0x20e;
const SECTOR: usize = 0x200;

/// Returns the release (`uname -r`) of the kernel in a bzImage, such as `6.12.117-kt`.
pub fn release(bytes: &[u8]) -> Result<String, &'static str> {
    if bytes.get(MAGIC..MAGIC + 4) != Some(b"HdrS") {
        return Err("it has no x86 boot header");
    }
    let pointer = match bytes.get(VERSION..VERSION + 2) {
        Some(&[low, high]) if (low, high) != (0, 0) => usize::from(u16::from_le_bytes([low, high])),
        _ => return Err("its header names no version"),
    };
    let text = bytes.get(pointer + SECTOR..).unwrap_or_default();
    let release: Vec<u8> = text.iter().copied().take_while(|byte| byte.is_ascii_graphic()).take(65).collect();
    let usable = |byte: &u8| byte.is_ascii_alphanumeric() || b".-+_~".contains(byte);
    // Linux has 64 characters for it (include/uapi/linux/utsname.h).
    if !release.first().is_some_and(u8::is_ascii_digit) || release.len() > 64 || !release.iter().all(usable) {
        return Err("its version is none that `uname -r` could say");
    }
    Ok(String::from_utf8_lossy(&release).into_owned())
}

/// Offset of the number of sectors before the decompression code; 0 stands for 4.
const SETUP_SECTORS: usize = 0x1f1;
/// Offset of position (relative to the decompression code) and size of the compressed kernel (same
/// document).
const PAYLOAD: usize = 0x248;

/// Returns the compressed kernel in a bzImage; `None` for other files, and for old ones that do not
/// tell its position.
pub fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    if bytes.get(MAGIC..MAGIC + 4) != Some(b"HdrS") {
        return None;
    }
    let setup = match bytes[SETUP_SECTORS] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let begin = ((setup + 1) * SECTOR).checked_add(word(PAYLOAD)?)?;
    bytes.get(begin..begin.checked_add(word(PAYLOAD + 4)?)?).filter(|payload| !payload.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packed_kernel_is_where_the_header_says() {
        let mut bytes = image(b"6.1");
        assert_eq!(payload(&bytes), None);
        bytes[SETUP_SECTORS] = 1;
        bytes[PAYLOAD] = 3;
        bytes[PAYLOAD + 4] = 2;
        bytes.extend(*b"abcdef");
        assert_eq!(payload(&bytes), Some(&b"de"[..]));
        for damaged in [&bytes[..0x404], &bytes[..0x24a], &bytes[1..], b""] {
            assert_eq!(payload(damaged), None);
        }
        bytes[PAYLOAD..PAYLOAD + 8].fill(0xff);
        assert_eq!(payload(&bytes), None);
    }

    fn image(version: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        bytes[VERSION..VERSION + 2].copy_from_slice(&0x100u16.to_le_bytes());
        bytes[0x300..0x300 + version.len()].copy_from_slice(version);
        bytes
    }

    #[test]
    fn the_release_is_the_first_word_of_the_version() {
        assert_eq!(release(&image(b"6.12.117-kt (k@k) #1 SMP\0")).unwrap(), "6.12.117-kt");
    }

    #[test]
    fn what_is_no_image_or_no_version_is_refused() {
        assert!(release(b"").is_err());
        assert!(release(&[0; 4096]).unwrap_err().contains("boot header"));
        assert!(release(&image(b"")[..0x2ff]).is_err());
        for bad in [&b"x"[..], b"", b"6.1/../../etc", b"6.1;rm", &[b'6'; 80]] {
            assert!(release(&image(bad)).is_err(), "{bad:?}");
        }
        let mut nowhere = image(b"6.1");
        nowhere[VERSION..VERSION + 2].copy_from_slice(&0xffffu16.to_le_bytes());
        assert!(release(&nowhere).is_err());
    }
}
