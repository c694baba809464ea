//! The objects that a kernel was linked from, in link order, with the source file of each.

use crate::raw_symbols::{read, Raw};
use kerntune_work::IoContext;
use object::read::archive::ArchiveFile;
use object::ReadCache;
use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

/// One linked object.
pub(crate) struct Object {
    /// Its source from the top of the source tree: `net/ipv4/tcp.c`. A generated source is named
    /// from the top of the build directory.
    pub source: String,
    /// Its symbols in code, in the order of its symbol table.
    pub symbols: Vec<Raw>,
}

/// The objects of a finished build directory. What is no ELF object (LLVM bitcode) or has no source
/// that can be told is left out: a function's path is a help, never a reason to fail a build.
///
/// # Errors
/// Only of reading files that are there.
pub(crate) fn linked(build: &Path, source: &Path) -> crate::Result<Vec<Object>> {
    let mut objects = Vec::new();
    for name in members(build)? {
        let path = build.join(&name);
        let Some(source) = source_of(build, source, &name) else { continue };
        let Ok(file) = File::open(&path) else { continue };
        if let Ok((symbols, _)) = read(&ReadCache::new(file)) {
            objects.push(Object { source, symbols });
        }
    }
    Ok(objects)
}

/// Paths of the linked objects from the top of the build directory: those that are always linked,
/// then those of the libraries.
pub(crate) fn members(build: &Path) -> crate::Result<Vec<String>> {
    // Kernels before 6.1 have no archive of everything, but their topmost built-in.a is nearly that.
    let whole = ["vmlinux.a", "built-in.a"].map(|name| build.join(name));
    let mut archives: Vec<PathBuf> = whole.into_iter().filter(|path| path.is_file()).take(1).collect();
    archives.push(build.join("lib/lib.a"));
    let arch = build.join("arch");
    if let Ok(entries) = fs::read_dir(&arch) {
        let mut libraries: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path().join("lib/lib.a"))).collect();
        libraries.sort();
        archives.append(&mut libraries);
    }
    let mut names = Vec::new();
    for archive in archives.iter().filter(|path| path.is_file()) {
        let bytes = fs::read(archive).at("read", archive)?;
        let inside = archive.parent().and_then(|dir| dir.strip_prefix(build).ok()).unwrap_or(Path::new(""));
        names.extend(thin_members(&bytes).into_iter().filter_map(|name| plain(&inside.join(name))));
    }
    Ok(names)
}

/// Paths in a thin archive, from its own directory. A full archive does not say where its members
/// were built.
fn thin_members(bytes: &[u8]) -> Vec<String> {
    let Ok(archive) = ArchiveFile::parse(bytes) else { return Vec::new() };
    if !archive.is_thin() {
        return Vec::new();
    }
    let members = archive.members().map_while(Result::ok);
    members.map(|member| String::from_utf8_lossy(member.name()).into_owned()).collect()
}

/// `lib/../net/./x.o` → `net/x.o`; None if it leads out of the directory that it is in.
fn plain(path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The source of `net/ipv4/tcp.o`: what Kbuild noted in `net/ipv4/.tcp.o.cmd`, else the file of that
/// name in the source tree.
fn source_of(build: &Path, source: &Path, object: &str) -> Option<String> {
    let path = Path::new(object);
    let noted = path.with_file_name(format!(".{}.cmd", path.file_name()?.to_str()?));
    if let Ok(text) = fs::read_to_string(build.join(noted)) {
        let line = text.lines().find_map(|line| line.strip_prefix("source_")?.split_once(" := "));
        if let Some(name) = line.and_then(|(_, noted)| below(build, source, noted.trim())) {
            return Some(name);
        }
    }
    ["c", "S", "rs"].iter().find_map(|extension| {
        let candidate = path.with_extension(extension);
        source.join(&candidate).is_file().then(|| plain(&candidate)).flatten()
    })
}

/// A path as Kbuild writes it, from the top of the tree that it is in.
fn below(build: &Path, source: &Path, noted: &str) -> Option<String> {
    let noted = Path::new(noted);
    if noted.is_relative() {
        if let Some(inside) = plain(noted) {
            return Some(inside);
        }
    }
    let found = build.join(noted).canonicalize().ok()?;
    [source, build].iter().find_map(|top| plain(found.strip_prefix(top.canonicalize().ok()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(plain(Path::new("./lib/../net/./x.o")).as_deref(), Some("net/x.o"));
        assert_eq!(plain(Path::new("../x.o")), None);
        assert_eq!(plain(Path::new("/x.o")), None);
        assert_eq!(plain(Path::new("")), None);
    }

    #[test]
    fn a_source_is_what_kbuild_noted_or_the_file_of_that_name() {
        let dir = tempfile::tempdir().unwrap();
        let (build, source) = (dir.path().join("build"), dir.path().join("src"));
        for sub in ["build/fs", "build/gen", "src/fs/more"] {
            fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        for file in ["src/fs/a.c", "src/fs/b.S", "src/fs/more/d.c", "build/gen/g.c"] {
            fs::write(dir.path().join(file), "").unwrap();
        }
        let note = |object: &str, path: &str| {
            let text = format!("savedcmd_fs/x.o := gcc\n\nsource_fs/x.o := {path}\n\ndeps_fs/x.o := \\\n");
            fs::write(build.join(format!("fs/.{object}.o.cmd")), text).unwrap();
        };
        let absolute = source.join("fs/a.c");
        note("a", absolute.to_str().unwrap());
        note("d", "../src/fs/more/d.c");
        note("g", "gen/g.c");
        note("elsewhere", "/etc/passwd");
        let of = |object: &str| source_of(&build, &source, &format!("fs/{object}.o"));
        assert_eq!(of("a").as_deref(), Some("fs/a.c"));
        assert_eq!(of("b").as_deref(), Some("fs/b.S"), "no note");
        assert_eq!(of("d").as_deref(), Some("fs/more/d.c"));
        assert_eq!(of("g").as_deref(), Some("gen/g.c"), "generated");
        assert_eq!(of("elsewhere"), None);
    }
}
