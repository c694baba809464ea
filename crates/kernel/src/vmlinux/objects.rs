//! Objects that a kernel was linked from, in link order, with their source files.

use crate::vmlinux::raw_symbols::{read, RawSymbol};
use kerntune_debuginfo::MappedFile;
use kerntune_work::IoContext;
use object::read::archive::ArchiveFile;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Object that was linked into a kernel.
pub(crate) struct LinkedObject {
    /// Source file, relative to the source tree: `net/ipv4/tcp.c`. A generated source is relative
    /// to the build directory.
    pub source: String,
    /// Code symbols, in the order of the symbol table.
    pub symbols: Vec<RawSymbol>,
}

/// Reads the objects of a finished build directory. Objects without ELF format (LLVM bitcode) or
/// without a known source are left out: a function's source file is helpful, but a build must not
/// fail for it.
///
/// # Errors
/// Existing files that cannot be read.
pub(crate) fn linked(build: &Path, source: &Path) -> crate::Result<Vec<LinkedObject>> {
    let mut objects = Vec::new();
    for name in members(build)? {
        let path = build.join(&name);
        let Some(source) = source_of(build, source, &name) else { continue };
        let Ok(file) = MappedFile::open(&path) else { continue };
        if let Ok((symbols, _)) = read(&file) {
            objects.push(LinkedObject { source, symbols });
        }
    }
    Ok(objects)
}

/// Returns the paths of linked objects, relative to the build directory: first those that are
/// always linked, then those of the libraries.
pub(crate) fn members(build: &Path) -> crate::Result<Vec<String>> {
    // Kernels before 6.1 have no archive of everything, but their topmost built-in.a is nearly
    // complete.
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

/// Returns the paths in a thin archive, relative to its directory. A full archive does not have
/// them.
fn thin_members(bytes: &[u8]) -> Vec<String> {
    let Ok(archive) = ArchiveFile::parse(bytes) else { return Vec::new() };
    if !archive.is_thin() {
        return Vec::new();
    }
    let members = archive.members().map_while(Result::ok);
    members.map(|member| String::from_utf8_lossy(member.name()).into_owned()).collect()
}

/// Normalizes a path: `lib/../net/./x.o` → `net/x.o`. `None` if it leads out of its directory.
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

/// Returns the source of `net/ipv4/tcp.o`: as Kbuild recorded it in `net/ipv4/.tcp.o.cmd`, else the
/// file of that name in the source tree.
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

/// Makes a path that Kbuild recorded relative to the tree that it is in.
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
