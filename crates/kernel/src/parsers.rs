//! Readers of this crate that have no other door: for tests with damaged input alone.

use crate::{build_id, config, offsets, sources, task};
use std::path::Path;

/// The linker's hash, of an ELF file and of notes.
pub fn build_id(bytes: &[u8]) {
    let _ = build_id::notes(bytes).ok().flatten().and_then(|notes| build_id::build_id(&notes));
    let _ = build_id::build_id(bytes);
}

/// Configurations, tables of source files, and what Kbuild and compilers leave for the layout of tasks.
pub fn text(text: &str) {
    let _ = config::parse(text, "attack");
    let _ = sources::Sources::parse(text, Path::new("attack"));
    let _ = task::redirect(text, Path::new("a.c"), Path::new("a.s"));
    let _ = task::TaskLayout::parse(text);
    let _ = offsets::read(text);
}

/// Checks the texts of a package, made of `kernel.json`, the release of an image and a configuration, with NUL between them.
///
/// # Panics
/// A text of the kernel got out of its line.
pub fn package(text: &str) {
    let mut parts = text.splitn(3, '\0');
    let [json, release, config] = [(); 3].map(|()| parts.next().unwrap_or_default());
    if let Ok(manifest) = serde_json::from_str(json) {
        crate::package::check_texts(&manifest, release, config);
    }
}
