//! Names where `/proc/kallsyms` shows no addresses (`kernel.kptr_restrict=2`): from the image of
//! this very kernel, or from a `System.map` that the kernel's own note for crash dumps confirms.

use crate::kallsyms::{Kallsyms, KernelSymbol};
use crate::slide::slide_in_vmcoreinfo;
use kerntune_kernel::Symbols;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Number of symbols of the note that must agree with a `System.map`.
const CONFIRMATIONS: usize = 3;

/// Functions at the addresses at which they run, with where they are from.
#[derive(Debug)]
pub(crate) struct FoundNames {
    pub symbols: Vec<KernelSymbol>,
    pub origin: String,
}

/// Finds the names of the kernel's image; those of modules remain unknown. `note` is the text of
/// `VMCOREINFO`, `command_line` that of the kernel. The image must have been found by the build id.
///
/// # Errors
/// The reason, for a reader.
pub(crate) fn names(
    image: Option<(&Path, &Symbols)>,
    note: Option<&[u8]>,
    command_line: &str,
    maps: &[PathBuf],
) -> Result<FoundNames, String> {
    let by_note = note.map(|note| slide_in_vmcoreinfo(note).ok_or("the note VMCOREINFO has no KERNELOFFSET"));
    let slide = match by_note {
        Some(slide) => slide?,
        None if command_line.split_whitespace().any(|word| word == "nokaslr") => 0,
        None => return Err("/proc/kcore is not readable, so that nothing says where the kernel runs".into()),
    };
    if let Some((path, symbols)) = image {
        let run = |function: &kerntune_kernel::KernelFunction| KernelSymbol {
            address: function.address.saturating_add(slide),
            name: function.name.clone(),
            is_global: true,
            module: None,
        };
        let symbols = symbols.functions().iter().map(run).collect();
        return Ok(FoundNames { symbols, origin: format!("{} (same build id)", path.display()) });
    }
    let mut reasons = Vec::new();
    for map in maps {
        let Ok(text) = fs::read(map) else { continue };
        let Some(note) = note else {
            reasons.push(format!("{} cannot be confirmed without /proc/kcore", map.display()));
            continue;
        };
        match of_map(&text, note, slide) {
            Ok(symbols) => {
                let origin = format!("{} (confirmed by VMCOREINFO)", map.display());
                return Ok(FoundNames { symbols, origin });
            }
            Err(reason) => reasons.push(format!("{} {reason}", map.display())),
        }
    }
    Err(match reasons.is_empty() {
        true => "there is neither an image with this build id nor a System.map of this release".into(),
        false => reasons.join("; "),
    })
}

/// Returns the files that may list the symbols of a release.
pub(crate) fn maps(root: &Path, release: &str) -> Vec<PathBuf> {
    let modules = ["lib/modules", "usr/lib/modules"];
    let mut maps = vec![root.join(format!("boot/System.map-{release}"))];
    maps.push(root.join(format!("usr/lib/debug/boot/System.map-{release}")));
    maps.extend(modules.map(|directory| root.join(directory).join(release).join("System.map")));
    maps
}

/// Returns the symbols of a map, moved by the slide, if the note's own symbols are where it says.
fn of_map(text: &[u8], note: &[u8], slide: u64) -> Result<Vec<KernelSymbol>, String> {
    let note = symbols_in_vmcoreinfo(note);
    let mut agree = 0_usize;
    for line in text.split(|byte| *byte == b'\n') {
        let Some((address, name)) = data_line(line) else { continue };
        match note.get(name) {
            Some(running) if address.wrapping_add(slide) == *running => agree += 1,
            // The note has addresses of variables' contents for some names.
            Some(_) | None => {}
        }
    }
    if agree < CONFIRMATIONS || agree * 2 < note.len() {
        return Err(format!("is of another build ({agree} of {} symbols agree)", note.len()));
    }
    let mut list = Kallsyms::parse(text, "System.map").map_err(|error| error.to_string())?;
    for symbol in &mut list.symbols {
        symbol.address = symbol.address.wrapping_add(slide);
    }
    Ok(list.symbols)
}

/// Parses a line of any kind: address and name.
fn data_line(line: &[u8]) -> Option<(u64, &str)> {
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    words.next()?;
    Some((address, words.next()?))
}

/// Parses the lines `SYMBOL(init_uts_ns)=ffffffff82c12340` of a `VMCOREINFO`.
pub fn symbols_in_vmcoreinfo(note: &[u8]) -> HashMap<&str, u64> {
    let text = note.split(|byte| *byte == 0).next().and_then(|text| std::str::from_utf8(text).ok());
    let pair = |line: &'_ str| -> Option<(usize, usize, u64)> {
        let rest = line.strip_prefix("SYMBOL(")?;
        let (name, digits) = rest.split_once(")=")?;
        Some((7, name.len(), u64::from_str_radix(digits.trim(), 16).ok()?))
    };
    let lines = text.unwrap_or_default().lines();
    lines.filter_map(|line| pair(line).map(|(at, size, address)| (&line[at..at + size], address))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of Linux 6.12 with KASLR.
    const NOTE: &[u8] = b"OSRELEASE=6.12.1\nSYMBOL(init_uts_ns)=ffffffff92c12340\nSYMBOL(swapper_pg_dir)=ffffffff92a10000\n\
        SYMBOL(_stext)=ffffffff91000000\nSYMBOL(vmap_area_list)=ffffffff92b00000\nKERNELOFFSET=10000000\n\0junk";
    const MAP: &str = "ffffffff81000000 T _stext\nffffffff81000100 T vfs_read\nffffffff81000200 t do_it\n\
        ffffffff82a10000 D swapper_pg_dir\nffffffff82c12340 D init_uts_ns\n";

    #[test]
    fn a_map_is_taken_where_the_kernels_own_note_confirms_it() {
        let dir = tempfile::tempdir().unwrap();
        let map = dir.path().join("System.map");
        fs::write(&map, MAP).unwrap();
        let found = names(None, Some(NOTE), "", std::slice::from_ref(&map)).unwrap();
        assert!(found.origin.contains("confirmed"), "{}", found.origin);
        let read = found.symbols.iter().find(|symbol| symbol.name == "vfs_read").unwrap();
        assert_eq!(read.address, 0xffff_ffff_9100_0100);
        fs::write(&map, MAP.replace("82c12340", "82c12380")).unwrap();
        let other = names(None, Some(NOTE), "", std::slice::from_ref(&map)).unwrap_err();
        assert!(other.contains("another build (2 of 4 symbols agree)"), "{other}");
        let unconfirmed = names(None, None, "quiet nokaslr", &[map]).unwrap_err();
        assert!(unconfirmed.contains("cannot be confirmed"), "{unconfirmed}");
    }

    #[test]
    fn without_a_note_or_a_list_the_reason_is_given() {
        assert!(names(None, None, "quiet", &[]).unwrap_err().contains("/proc/kcore"));
        assert!(names(None, Some(b"OSRELEASE=6.12\n"), "", &[]).unwrap_err().contains("KERNELOFFSET"));
        assert!(names(None, Some(NOTE), "", &maps(Path::new("/none"), "6.12"))
            .unwrap_err()
            .contains("neither"));
        assert!(symbols_in_vmcoreinfo(b"SYMBOL(x)=zz\nSYMBOL(\nSYMBOL(a=1\n\xff").is_empty());
    }
}
