//! What a bzImage says of itself.

/// Where the setup header says what it is (Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header").
const MAGIC: usize = 0x202;
/// Where it points to its version, less [`SECTOR`].
const VERSION: usize = 0x20e;
const SECTOR: usize = 0x200;

/// What `uname -r` says in the kernel of this bzImage, such as `6.12.117-kt`.
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

#[cfg(test)]
mod tests {
    use super::*;

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
