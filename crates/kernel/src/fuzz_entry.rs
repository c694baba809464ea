//! Entry points for fuzzing: parsers of this crate that are otherwise private.

use crate::import::image_elf::ImageElf;
use crate::import::shipped::read_layouts;
use crate::import::{kallsyms, payload, symbol_table};
use crate::inputs::config;
use crate::kernels::{build_id, modules};
use crate::vmlinux::{offsets, source_map, task};
use kerntune_debuginfo::{BtfTypes, DwarfTypes, Elf, TypeId, TypeSource};
use std::path::Path;

/// Reads a build id from an ELF file and from notes.
pub fn build_id(bytes: &[u8]) {
    let _ = build_id::notes(bytes).and_then(|notes| build_id::build_id(&notes));
    let _ = build_id::build_id(bytes);
}

/// Reads the offsets in type information, and what names data.
pub fn btf(bytes: &[u8]) {
    let Ok(types) = BtfTypes::parse(bytes) else { return };
    let _ = (read_layouts(&types), types.enumerator("pid"));
    for kind in (0..16).map(TypeId) {
        let _ = (types.bytes(kind), types.type_name(kind), types.field(kind, 12));
    }
}

/// Reads the offsets and the source files in debug information.
pub fn debug_info(bytes: &[u8]) {
    let read = || read_layouts(&DwarfTypes::of(&Elf::parse(bytes)?.debug_info()?, &[])?);
    let _ = read();
    if let Ok(sources) = source_map::SourceMap::of_debug_info(bytes) {
        assert!(source_map::SourceMap::parse(&sources.text(), Path::new("attack")).is_ok());
    }
}

/// Reads configuration and symbols of an unpacked image, and adds the symbols to it.
pub fn image_symbols(bytes: &[u8]) {
    let _ = payload::config(bytes);
    let Ok(image) = ImageElf::parse(bytes) else { return };
    let Some(symbols) = kallsyms::find(&image) else { return };
    let _ = symbol_table::with_symbols(&image, &symbols);
}

/// Reads what a module says of itself.
pub fn module(bytes: &[u8]) {
    let _ = modules::ModuleInfo::parse(bytes);
}

/// Parses configurations, source maps, aliases of modules, and the files that Kbuild and compilers write for the task
/// layout.
pub fn text(text: &str) {
    let _ = config::parse(text, "attack");
    let _ = source_map::SourceMap::parse(text, Path::new("attack"));
    let _ = task::redirect(text, Path::new("a.c"), Path::new("a.s"));
    let _ = task::TaskLayout::parse(text);
    let _ = offsets::read(text);
    let _ = modules::aliases(text, "attack");
}

/// Checks the texts of a package. The input is `kernel.json`, the release of an image and a
/// configuration, separated by NUL.
///
/// # Panics
/// A text of the kernel breaks out of its line.
pub fn package(text: &str) {
    let mut parts = text.splitn(3, '\0');
    let [json, release, config] = [(); 3].map(|()| parts.next().unwrap_or_default());
    if let Ok(manifest) = serde_json::from_str(json) {
        crate::package::check_texts(&manifest, release, config);
    }
}
