//! Source trees in which a kernel was built, as PKGBUILDs and many users do: taken as a clean copy.
//!
//! Kbuild refuses to build elsewhere from a tree with a configuration in it. The tree itself stays as
//! it is. Products that are known by their names are not copied, and do not count for the identity
//! of the source. The source's own `make mrproper` removes the rest from the copy.

use crate::{Error, Result};
use kerntune_work::{ContentHash, IoContext, Job, Key, Progress, WorkDir};
use std::fs::{self, Metadata};
use std::os::unix::fs::{symlink, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Endings of files that a build makes anywhere.
const PRODUCTS: &[&str] = &[
    ".o", ".a", ".ko", ".cmd", ".d", ".mod", ".mod.c", ".order", ".dwo", ".gcno", ".gcda", ".su", ".symvers",
    ".dtb", ".asn1.c", ".asn1.h", ".lex.c", ".tab.c", ".tab.h", ".i", ".ll", ".bin", ".elf", ".so", ".dbg",
    ".gz", ".pyc",
];
/// Directories that a build makes, from the top or below `arch/NAME`.
const GENERATED: &[&str] = &["include/config", "include/generated"];
/// Other files at the top.
const TOP: &[&str] =
    &["System.map", "vmlinux", "vmlinux.unstripped", "vmlinux.map", ".config", ".config.old"];

/// File of the tree that counts as source.
struct SourceFile {
    path: PathBuf,
    meta: Metadata,
}

/// Applies the same test as Kbuild's `outputmakefile` rule.
///
/// # Errors
/// [`Error::DirtyTree`] with what a build in the tree left there.
pub(super) fn check_clean(dir: &Path) -> Result<()> {
    for found in [".config", "include/config", "arch/x86/include/generated", "arch/um/include/generated"] {
        if dir.join(found).exists() {
            return Err(Error::DirtyTree { dir: dir.to_owned(), found });
        }
    }
    Ok(())
}

/// Returns the directory of the clean copy, a result of `kind`, and its hash. A copy of the same files
/// is used again.
///
/// # Errors
/// [`Error::DirtyTree`] if `make mrproper` fails on the copy or leaves products; files that cannot be
/// copied.
pub(super) fn clean_copy(
    work: &WorkDir,
    kind: &'static str,
    tree: &Path,
    progress: &dyn Progress,
) -> Result<(PathBuf, String)> {
    let mut files = Vec::new();
    list(tree, Path::new(""), &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let line = |file: &SourceFile| {
        let (meta, name) = (&file.meta, file.path.display());
        format!("{name}\t{}\t{}.{:09}", meta.len(), meta.mtime(), meta.mtime_nsec())
    };
    let listing = ContentHash::new("source-files/1").list("files", files.iter().map(line)).finish();
    let key = Key::new("source-built-in-place/1", "")
        .field("tree", tree.as_os_str().as_encoded_bytes())
        .field("files", listing);
    let hash = key.id();
    if let Some(dir) = work.find(kind, &hash) {
        return Ok((dir, hash));
    }
    let staged = work.stage(kind, &key)?;
    if let Some(dir) = staged.already() {
        return Ok((dir, hash));
    }
    staged.clear()?;
    progress.begin(
        &format!("copy the source of {}, which was built in place", tree.display()),
        Some(files.len() as u64),
    );
    for (at, file) in (0..).zip(&files) {
        if at % 256 == 0 {
            progress.at(at);
        }
        copy(&tree.join(&file.path), &staged.path().join(&file.path), &file.meta)?;
    }
    progress.end();
    let mut make = Command::new("make");
    make.arg("-C")
        .arg(staged.path())
        .args(["--no-print-directory", "ARCH=x86_64", "mrproper"])
        .env("LC_ALL", "C");
    let (end, _) = Job::new(make).output()?;
    if !end.success() {
        check_clean(tree)?;
    }
    check_clean(staged.path()).or_else(|_| check_clean(tree))?;
    Ok((staged.publish()?, hash))
}

fn list(top: &Path, below: &Path, files: &mut Vec<SourceFile>) -> Result<()> {
    let directory = top.join(below);
    for entry in fs::read_dir(&directory).at("list", &directory)? {
        let entry = entry.at("list", &directory)?;
        let path = below.join(entry.file_name());
        let meta = entry.metadata().at("look at", top.join(&path))?;
        if is_product(&path) {
            continue;
        }
        if meta.is_dir() {
            list(top, &path, files)?;
        } else if meta.is_file() || meta.is_symlink() {
            files.push(SourceFile { path, meta });
        }
    }
    Ok(())
}

/// Checks whether a build made a file or directory, by its path in the tree.
fn is_product(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = path.to_string_lossy();
    let of_arch = text.strip_prefix("arch/").and_then(|rest| Some(rest.split_once('/')?.1));
    let is_generated = |text: &str| GENERATED.contains(&text);
    // Sources that have these endings, too: `tools/…/*.bin`, firmware, archives of tests.
    let is_source_part = text.starts_with("tools/") || text.starts_with("Documentation/");
    is_generated(&text)
        || of_arch.is_some_and(is_generated)
        || TOP.contains(&&*text)
        || name.starts_with(".tmp_")
        || text == ".git"
        || (!is_source_part
            && PRODUCTS.iter().any(|ending| name.ends_with(ending))
            && !name.ends_with("_shipped"))
}

fn copy(from: &Path, to: &Path, meta: &Metadata) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).at("create", parent)?;
    }
    if meta.is_symlink() {
        let target = fs::read_link(from).at("read", from)?;
        return Ok(symlink(target, to).at("link", to)?);
    }
    fs::copy(from, to).at("copy", from)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImportedSource, KernelSource};
    use kerntune_work::NoProgress;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_tree_that_was_built_in_is_copied_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("src");
        let makefile =
            "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\nmrproper:\n\trm -f leftover\n";
        write(&top.join("Makefile"), makefile);
        for (name, text) in [
            ("Kconfig", ""),
            ("kernel/fork.c", "int x;\n"),
            ("kernel/fork.o", "object"),
            (".config", "CONFIG_X=y\n"),
            ("include/generated/autoconf.h", "x"),
            ("arch/x86/include/generated/y.h", "x"),
            ("include/linux/fs.h", "x"),
            ("leftover", "x"),
        ] {
            write(&top.join(name), text);
        }
        let work = WorkDir::open(dir.path().join("work")).unwrap();
        let import = || ImportedSource::import(&work, &KernelSource::Directory(top.clone()), &NoProgress);
        let first = import().unwrap();
        assert!(first.dir() != top && first.version() == "6.12.117");
        for name in ["kernel/fork.c", "include/linux/fs.h"] {
            assert!(first.dir().join(name).is_file(), "{name}");
        }
        for name in
            ["kernel/fork.o", ".config", "include/generated", "arch/x86/include/generated", "leftover"]
        {
            assert!(!first.dir().join(name).exists(), "{name}");
            assert!(top.join(name).exists(), "{name}");
        }
        // What a build makes anew is no other source.
        fs::write(top.join("kernel/fork.o"), "another object").unwrap();
        assert_eq!(import().unwrap().hash(), first.hash());
        fs::write(top.join("kernel/fork.c"), "int longer;\n").unwrap();
        let other = import().unwrap();
        assert_ne!(other.hash(), first.hash());
        other.check_unchanged().unwrap();
    }
}
