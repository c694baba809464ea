//! Difference between the running kernel's addresses and its linked ones (KASLR).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Link address of x86-64 kernels by default (`CONFIG_PHYSICAL_START`).
const LINKED_AT: u64 = 0xffff_ffff_8100_0000;
/// A slide is a multiple of `ALIGN` (`CONFIG_PHYSICAL_ALIGN`), and less than the size of the
/// kernel's mapping.
const ALIGN: u64 = 2 << 20;
const MAX_SLIDE: u64 = 1 << 30;
/// Maximum size of notes that are read, in bytes.
const NOTES_MAX: u64 = 1 << 20;

/// Returns the slide by `text`, the running kernel's first address: exact if the image's address
/// `linked` is given, else by the default link address. `None` if neither fits.
pub(crate) fn of_text(text: u64, linked: Option<u64>) -> Option<u64> {
    let slide = text.checked_sub(linked.unwrap_or(LINKED_AT))?;
    (slide % 4096 == 0 && slide < MAX_SLIDE && (linked.is_some() || slide % ALIGN == 0)).then_some(slide)
}

/// Returns the note that the kernel writes for crash dumps into `/proc/kcore`. Root can read it if
/// it is configured, and if lockdown does not forbid it.
pub(crate) fn note_of_kcore(path: &Path) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    let (at, size, count) = program_headers(&header)?;
    for number in 0..u64::from(count) {
        let mut row = [0; 56];
        file.read_exact_at(&mut row, at.checked_add(number.checked_mul(u64::from(size))?)?).ok()?;
        if row[..4] == 4_u32.to_le_bytes() {
            let word = |at: usize| Some(u64::from_le_bytes(row.get(at..at + 8)?.try_into().ok()?));
            let (offset, length) = (word(8)?, word(32)?.min(NOTES_MAX));
            let mut notes = vec![0; length as usize];
            file.read_exact_at(&mut notes, offset).ok()?;
            return vmcoreinfo(&notes).map(<[u8]>::to_vec);
        }
    }
    None
}

/// Returns offset, entry size and number of the program headers of a 64-bit little-endian ELF file.
fn program_headers(header: &[u8; 64]) -> Option<(u64, u16, u16)> {
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let is_elf = header[..6] == [0x7f, b'E', b'L', b'F', 2, 1] && half(54) == 56;
    let at = u64::from_le_bytes(header[32..40].try_into().ok()?);
    is_elf.then(|| (at, half(54), half(56)))
}

/// Returns the text of the note `VMCOREINFO` among the notes of an ELF file.
pub fn vmcoreinfo(notes: &[u8]) -> Option<&[u8]> {
    let mut rest = notes;
    while let Some((head, after)) = rest.split_first_chunk::<12>() {
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let padded = |size: usize| size.checked_next_multiple_of(4);
        let name = after.get(..word(0))?;
        let after = after.get(padded(word(0))?..)?;
        if name == b"VMCOREINFO\0" {
            return after.get(..word(4));
        }
        rest = after.get(padded(word(4))?..)?;
    }
    None
}

/// Parses `KERNELOFFSET=1f000000` of a `VMCOREINFO`, in hexadecimal digits.
pub fn slide_in_vmcoreinfo(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text.split(|byte| *byte == 0).next()?).ok()?;
    let digits = text.lines().find_map(|line| line.strip_prefix("KERNELOFFSET="))?;
    let digits = digits.trim();
    (!digits.starts_with('+')).then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slide_is_in_the_note_for_crash_dumps() {
        let mut notes = Vec::new();
        for (name, text) in
            [("CORE\0", &b"abcde"[..]), ("VMCOREINFO\0", b"OSRELEASE=6.12\nKERNELOFFSET=1f000000\n")]
        {
            for word in [name.len() as u32, text.len() as u32, 0] {
                notes.extend(word.to_le_bytes());
            }
            for bytes in [name.as_bytes(), text] {
                notes.extend(bytes);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        }
        assert_eq!(slide_in_vmcoreinfo(vmcoreinfo(&notes).unwrap()), Some(0x1f00_0000));
        assert_eq!(vmcoreinfo(&notes[..20]), None);
        assert_eq!(slide_in_vmcoreinfo(b"KERNELOFFSET=zz\n"), None);
    }

    #[test]
    fn the_first_address_tells_the_slide_where_it_can() {
        assert_eq!(of_text(LINKED_AT, None), Some(0));
        assert_eq!(of_text(0xffff_ffff_9a00_0000, None), Some(0x1900_0000));
        assert_eq!(of_text(0xffff_ffff_8100_1000, None), None);
        assert_eq!(of_text(0xffff_ffff_8200_1000, Some(0xffff_ffff_8200_0000)), Some(0x1000));
        assert_eq!(of_text(0x1000, None), None);
    }
}
