//! Registries: folders in which each file adds an entry.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// For build scripts: generates `$OUT_DIR/NAME.rs` for the folder `src/FOLDER`, where NAME is the
/// last part of FOLDER. It has each file as a public module, `ENTRIES`, a list of the `ENTRY` of
/// each file in the order of their names, and a macro `entries!` that passes all names to another
/// macro (`path_length PathLength,`). The folder's `mod.rs` defines the type of an entry and
/// includes the generated file:
///
/// ```text
/// include!(concat!(env!("OUT_DIR"), "/reports.rs"));
/// ```
///
/// # Panics
/// If the folder cannot be read, so that the build fails.
pub fn registry(folder: &str) {
    let variable = |name| PathBuf::from(std::env::var_os(name).expect("cargo runs build scripts"));
    let directory = variable("CARGO_MANIFEST_DIR").join("src").join(folder);
    println!("cargo:rerun-if-changed={}", directory.display());
    let name = directory.file_name().expect("a folder's name").to_owned();
    let target = variable("OUT_DIR").join(name).with_extension("rs");
    fs::write(&target, source(&directory))
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", target.display()));
}

/// Generates the modules of a folder, and the list of their entries.
fn source(directory: &Path) -> String {
    let listed = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let listed = listed.unwrap_or_else(|error| panic!("cannot list {}: {error}", directory.display()));
    let mut files: Vec<PathBuf> =
        listed.iter().map(fs::DirEntry::path).filter(|path| is_entry(path)).collect();
    files.sort();
    let (mut modules, mut entries, mut names) = (String::new(), String::new(), String::new());
    for file in &files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let _ = writeln!(modules, "#[path = {file:?}]\npub mod {name};");
        let _ = writeln!(entries, "    &{name}::ENTRY,");
        let _ = writeln!(names, "{name} {},", camel_case(&name));
    }
    format!(
        "{modules}\n/// What the files of this folder add.\n#[allow(dead_code)]\npub static ENTRIES: &[&Entry] = &[\n{entries}];\n\n\
         #[allow(unused_macros)]\nmacro_rules! entries {{ ($then:ident) => {{ $then! {{\n{names}}} }} }}\n"
    )
}

/// Converts `path_length` to `PathLength`.
fn camel_case(name: &str) -> String {
    let capitalised = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').filter(|word| !word.is_empty()).map(capitalised).collect()
}

/// For build scripts: generates `$OUT_DIR/FOLDER.rs` for a folder of data at the top of the
/// workspace. It is an expression with the names and texts of the folder's `.toml` files, in the
/// order of their names:
///
/// ```text
/// const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/data/cpu-models.rs"));
/// ```
///
/// # Panics
/// If the folder cannot be read, so that the build fails.
pub fn texts(folder: &str) {
    let variable = |name| PathBuf::from(std::env::var_os(name).expect("cargo runs build scripts"));
    let crate_directory = variable("CARGO_MANIFEST_DIR");
    let directory = crate::workspace(&crate_directory).join(folder);
    println!("cargo:rerun-if-changed={}", directory.display());
    let target = variable("OUT_DIR").join(folder).with_extension("rs");
    let written = fs::create_dir_all(target.parent().unwrap_or(Path::new(".")));
    written
        .and_then(|()| fs::write(&target, listing(&directory)))
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", target.display()));
}

/// Generates the expression with names and texts of the `.toml` files of a folder.
fn listing(directory: &Path) -> String {
    let listed = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let listed = listed.unwrap_or_else(|error| panic!("cannot list {}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = listed.iter().map(fs::DirEntry::path).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let entry = |file: &PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        format!("    ({name:?}, include_str!({file:?})),\n")
    };
    format!("&[\n{}]\n", files.iter().map(entry).collect::<String>())
}

/// Checks whether a file of a registry's folder is an entry: all but `mod.rs` and tests are.
pub fn is_entry(file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.extension().is_some_and(|end| end == "rs")
        && stem != "mod"
        && stem != "tests"
        && !stem.ends_with("_tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_module_and_an_entry() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["mod.rs", "b.rs", "a.rs", "a_tests.rs", "notes.md"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let source = source(directory.path());
        let at = |text: &str| source.find(text).unwrap_or_else(|| panic!("no {text} in {source}"));
        assert!(at("pub mod a;") < at("pub mod b;") && at("&a::ENTRY") < at("&b::ENTRY"));
        assert!(at("a A,") < at("b B,"));
        assert_eq!(camel_case("l1i_misses"), "L1iMisses");
        for name in ["zen4.toml", "generic.toml"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let listed = listing(directory.path());
        assert!(listed.find("(\"generic\", include_str!(").unwrap() < listed.find("zen4").unwrap());
        assert!(!listed.contains("notes"), "{listed}");
        assert!(!source.contains("mod mod") && !source.contains("a_tests") && !source.contains("notes"));
    }
}
