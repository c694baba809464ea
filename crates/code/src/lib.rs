//! Identity of the code that computes a result.
//!
//! A stored result may be reused only by code that would compute the same. So the key of a result
//! contains a hash of the source of the crates that compute it. Each crate's build script computes
//! the hash:
//!
//! ```no_run
//! // build.rs
//! kerntune_code::emit();
//! // src/lib.rs
//! // pub const CODE: &str = env!("KERNTUNE_CODE");
//! ```
//!
//! Only tokens count: comments, documentation, layout and tests do not change results, so stored
//! results stay valid when they change. Start from [`emit`] in a build script and from [`of_files`]
//! in a test.
//!
//! Build scripts also use [`registry()`] and [`texts`], which generate code for the files of a
//! folder, and [`script()`], which makes one script of the modules of a page.

mod registry;
mod script;

pub use registry::{is_entry, registry, texts};
pub use script::script;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Sets `KERNTUNE_CODE` for the crate whose build script calls this: 16 hex digits over its source,
/// the source of all crates of this workspace that it depends on, and the versions of external
/// crates (`Cargo.lock`). `KERNTUNE_CODE_OWN` covers its own source alone.
///
/// # Panics
/// If the source of a crate cannot be read, so that the build fails.
pub fn emit() {
    let directory = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs build scripts"));
    let crates = crates_below(&directory);
    let mut all = TokenHash::default();
    for directory in &crates {
        println!("cargo:rerun-if-changed={}", directory.join("src").display());
        println!("cargo:rerun-if-changed={}", directory.join("Cargo.toml").display());
        all.text(&of_crate(directory));
    }
    if let Some(lock) = lock_file(&directory) {
        println!("cargo:rerun-if-changed={}", lock.display());
        all.text(&foreign_versions(&read(&lock)));
    }
    println!("cargo:rustc-env=KERNTUNE_CODE={}", all.finish());
    println!("cargo:rustc-env=KERNTUNE_CODE_OWN={}", of_crate(&directory));
}

/// Returns the hash of one crate's `src/`, without tests.
///
/// # Panics
/// If the source cannot be read.
pub fn of_crate(directory: &Path) -> String {
    let source = directory.join("src");
    let mut files = Vec::new();
    list(&source, &mut files);
    files.sort();
    of_files(&source, &files)
}

/// Returns the hash of files, including their names relative to `top`.
///
/// # Panics
/// If a file cannot be read.
pub fn of_files(top: &Path, files: &[PathBuf]) -> String {
    let mut hash = TokenHash::default();
    for file in files {
        let text = read(file);
        hash.text(&file.strip_prefix(top).unwrap_or(file).to_string_lossy());
        match text.parse::<TokenStream>() {
            Ok(tokens) => hash.tokens(tokens),
            // Not Rust, or newer Rust than the parser knows: every byte counts.
            Err(_) => hash.text(&text),
        }
    }
    hash.finish()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Lists the Rust files below a directory, without files that contain only tests.
fn list(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", directory.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_test = name == "tests" || name == "tests.rs" || name.ends_with("_tests.rs");
        if is_test {
            continue;
        }
        if path.is_dir() {
            list(&path, files);
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
}

/// Returns the directories of a crate and of all crates of the workspace that it depends on,
/// sorted.
fn crates_below(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![directory.to_owned()];
    let rooms = workspace(directory).join("crates");
    while let Some(directory) = open.pop() {
        if !found.insert(directory.clone()) {
            continue;
        }
        let manifest: toml::Table = read(&directory.join("Cargo.toml")).parse().expect("a Cargo.toml");
        let Some(toml::Value::Table(dependencies)) = manifest.get("dependencies") else { continue };
        let ours = dependencies.keys().filter_map(|name| name.strip_prefix("kerntune-"));
        open.extend(ours.map(|name| rooms.join(name)).filter(|path| path.is_dir()));
    }
    found
}

fn workspace(directory: &Path) -> PathBuf {
    let top = directory.ancestors().find(|path| path.join("Cargo.lock").is_file());
    top.unwrap_or(directory).to_owned()
}

fn lock_file(directory: &Path) -> Option<PathBuf> {
    Some(workspace(directory).join("Cargo.lock")).filter(|path| path.is_file())
}

/// Returns names and versions of the crates of a `Cargo.lock` that come from a registry.
fn foreign_versions(lock: &str) -> String {
    let Ok(lock) = lock.parse::<toml::Table>() else { return lock.to_owned() };
    let packages = lock.get("package").and_then(|packages| packages.as_array());
    let text = |package: &toml::Value, key: &str| {
        package.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let foreign = packages.into_iter().flatten().filter(|package| package.get("source").is_some());
    foreign.map(|package| format!("{} {}\n", text(package, "name"), text(package, "version"))).collect()
}

#[derive(Default)]
struct TokenHash(blake3::Hasher);

impl TokenHash {
    /// Adds a text with its length, so that consecutive texts are distinguishable.
    fn text(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    /// Adds tokens, without documentation and without code that is compiled for tests alone.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        let mut for_tests = false;
        while let Some(token) = tokens.next() {
            if let TokenTree::Punct(mark) = &token {
                if mark.as_char() == '#' {
                    if let Some(TokenTree::Punct(inner)) = tokens.peek() {
                        if inner.as_char() == '!' {
                            tokens.next();
                        }
                    }
                    match tokens.peek().map(attribute) {
                        Some(AttributeKind::Documentation) => {
                            tokens.next();
                            continue;
                        }
                        Some(AttributeKind::Test) => {
                            tokens.next();
                            for_tests = true;
                            continue;
                        }
                        _ => {}
                    }
                }
            }
            if for_tests {
                // The item ends with its body or with a semicolon.
                let ends = match &token {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    TokenTree::Punct(mark) => mark.as_char() == ';',
                    _ => false,
                };
                for_tests = !ends;
                continue;
            }
            match token {
                TokenTree::Group(group) => {
                    self.text(&format!("{:?}", group.delimiter()));
                    self.tokens(group.stream());
                    self.text("end");
                }
                other => self.text(&other.to_string()),
            }
        }
    }

    fn finish(&self) -> String {
        self.0.finalize().to_hex()[..16].to_string()
    }
}

enum AttributeKind {
    Documentation,
    Test,
    Other,
}

/// Classifies the group after a `#`.
fn attribute(token: &TokenTree) -> AttributeKind {
    let TokenTree::Group(group) = token else { return AttributeKind::Other };
    let text = group.stream().to_string().replace(char::is_whitespace, "");
    if text == "cfg(test)" {
        AttributeKind::Test
    } else if text.starts_with("doc=") {
        AttributeKind::Documentation
    } else {
        AttributeKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.rs");
        fs::write(&path, text).unwrap();
        of_files(directory.path(), &[path])
    }

    #[test]
    fn comments_layout_and_tests_do_not_count_and_code_does() {
        let plain = of("//! Doc.\n/// Says.\nfn f() -> u32 { 1 }\n");
        assert_eq!(of("fn f()->u32{ /* why */ 1 }"), plain);
        assert_eq!(of("fn f() -> u32 { 1 }\n#[cfg(test)]\nmod tests { fn g() {} }\n"), plain);
        assert_eq!(of("#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\nfn f() -> u32 { 1 }"), plain);
        assert_eq!(of("#[cfg(test)]\nuse super::*;\nfn f() -> u32 { 1 }"), plain);
        assert_ne!(of("fn f() -> u32 { 2 }"), plain);
        assert_ne!(of("#[inline]\nfn f() -> u32 { 1 }"), plain);
        assert_ne!(of("fn f() -> u32 { 1 }\nfn g() {}"), plain);
    }

    #[test]
    fn tokens_do_not_run_together() {
        assert_ne!(of("const A: &[&str] = &[\"a\", \"b\"];"), of("const A: &[&str] = &[\"a b\"];"));
        assert_ne!(of("fn f() { (a) b }"), of("fn f() { (a b) }"));
    }

    #[test]
    fn a_crate_stands_on_those_that_its_manifest_names() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let below = crates_below(&here.join("../analyze"));
        let names: Vec<_> = below.iter().filter_map(|path| path.file_name()).collect();
        assert!(names.contains(&"trace".as_ref()) && names.contains(&"profile".as_ref()), "{names:?}");
        assert!(!names.contains(&"cli".as_ref()), "{names:?}");
    }
}
