//! Checks that no unchecked text from a file becomes part of a path.
//!
//! A field of a `Deserialize` structure that is a `String` or a `PathBuf` may contain anything. It
//! must not be used in the argument of `join` or `with_file_name`, nor in a `format!` there: use
//! `kerntune_work`'s `Id`, `Hash`, `Label`, `PlainName` and `RelativePath`, which serde checks on
//! reading. Fields of other structures with the same name are listed in [`OTHERS`].

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Calls whose argument becomes part of a path.
const JOINS: [&str; 2] = ["join", "with_file_name"];

/// Fields that only share their name with one of a file, or are checked where they are used: file,
/// field, and reason.
const OTHERS: &[(&str, &str, &str)] = &[
    ("guard/src/check.rs", "baseline", "a path that users write into a guard.toml of theirs"),
    ("guard/src/project.rs", "baseline", "the same"),
    ("kernel/src/build/attempt.rs", "hash", "of a configuration that was just made, and of no file"),
    ("kernel/src/inputs/built_in_place.rs", "path", "as it was listed in the user's source tree"),
    ("matrix/src/resolve.rs", "tree", "a path that users write into a plan file of theirs"),
    (
        "optimize/src/gcc_pgo/proof.rs",
        "object",
        "of a sealed result; KVM's objects have `..` in their names, as Kbuild writes them",
    ),
    ("work/src/dir.rs", "id", "of a staged result, whose id was checked"),
    ("work/src/dir.rs", "kind", "of a staged result, which the caller names"),
];

#[derive(Default)]
struct NameFindings {
    /// Names of unchecked text fields of files, by the crate that reads them.
    fields: BTreeMap<String, BTreeSet<String>>,
    /// Fields in an argument of a join: crate, file, field.
    joined: BTreeSet<(String, String, String)>,
}

fn is(token: &TokenTree, text: &str) -> bool {
    !matches!(token, TokenTree::Group(_)) && token.to_string() == text
}

fn text(tokens: &[TokenTree]) -> String {
    tokens.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

impl NameFindings {
    fn file(&mut self, of: &str, path: &Path) {
        let text = fs::read_to_string(path).unwrap();
        let tokens = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.tokens(of, path, tokens);
    }

    fn tokens(&mut self, of: &str, path: &Path, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut attributes = String::new();
        for (at, token) in tokens.iter().enumerate() {
            let after = &tokens[at + 1..];
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    attributes += &after.first().map(ToString::to_string).unwrap_or_default();
                }
                TokenTree::Ident(word) if *word == "struct" => {
                    if attributes.contains("Deserialize") {
                        self.structure(of, after);
                    }
                    attributes.clear();
                }
                TokenTree::Ident(word)
                    if ["fn", "enum", "mod", "impl"].contains(&word.to_string().as_str()) =>
                {
                    // Test code is not part of the product.
                    if attributes.contains("cfg (test)") || attributes.contains("cfg(test)") {
                        return;
                    }
                    attributes.clear();
                }
                TokenTree::Ident(word) if JOINS.contains(&word.to_string().as_str()) => {
                    let is_call = at > 0 && is(&tokens[at - 1], ".");
                    if let (true, Some(TokenTree::Group(arguments))) = (is_call, after.first()) {
                        self.arguments(of, path, arguments.stream());
                    }
                }
                _ => {}
            }
            if let TokenTree::Group(group) = token {
                self.tokens(of, path, group.stream());
            }
        }
    }

    fn structure(&mut self, of: &str, after: &[TokenTree]) {
        let body = after.iter().take_while(|token| !is(token, ";")).find_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
            _ => None,
        });
        let fields: Vec<TokenTree> = body.into_iter().flatten().collect();
        let mut start = 0;
        let mut depth = 0;
        for at in 0..=fields.len() {
            if let Some(token) = fields.get(at) {
                depth += i32::from(is(token, "<")) - i32::from(is(token, ">"));
                if depth > 0 || !is(token, ",") {
                    continue;
                }
            }
            let field = &fields[start..at];
            start = at + 1;
            let Some(colon) = field.iter().position(|token| is(token, ":")) else { continue };
            let (before, kind) = (&field[..colon], text(&field[colon..]));
            let unchecked =
                ["String", "PathBuf"].iter().any(|word| kind.split(' ').any(|other| other == *word));
            if unchecked && !text(before).contains("checked_text") {
                let name = before.last().unwrap().to_string();
                self.fields.entry(of.to_owned()).or_default().insert(name);
            }
        }
    }

    fn arguments(&mut self, of: &str, path: &Path, arguments: TokenStream) {
        let tokens: Vec<TokenTree> = arguments.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.arguments(of, path, group.stream()),
                TokenTree::Ident(field) if at > 0 && is(&tokens[at - 1], ".") => {
                    let is_call = matches!(tokens.get(at + 1), Some(TokenTree::Group(_)));
                    if !is_call {
                        let file = path.display().to_string();
                        self.joined.insert((of.to_owned(), file, field.to_string()));
                    }
                }
                _ => {}
            }
        }
    }
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.contains("test") {
            found.push(path);
        }
    }
}

fn findings(crates: &Path) -> NameFindings {
    let mut findings = NameFindings::default();
    for entry in fs::read_dir(crates).unwrap() {
        let entry = entry.unwrap();
        let (name, source) = (entry.file_name().to_string_lossy().into_owned(), entry.path().join("src"));
        let mut files = Vec::new();
        if source.is_dir() {
            sources(&source, &mut files);
        }
        files.iter().for_each(|file| findings.file(&name, file));
    }
    findings
}

#[test]
fn no_text_of_a_file_is_part_of_a_path() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let findings = findings(&crates);
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for (of, file, field) in &findings.joined {
        if !findings.fields.get(of).is_some_and(|fields| fields.contains(field)) {
            continue;
        }
        let file = file.strip_prefix(&format!("{}/", crates.display())).unwrap_or(file);
        match OTHERS.iter().position(|(known, name, _)| *known == file && name == field) {
            Some(at) => drop(used.insert(at)),
            None => wrong.push(format!("{file}: `{field}`")),
        }
    }
    assert!(wrong.is_empty(), "joined to a path, and not checked:\n{}", wrong.join("\n"));
    assert_eq!(used.len(), OTHERS.len(), "OTHERS lists what is not there");
    assert!(findings.fields.len() > 10 && findings.joined.len() > 20);
}

#[test]
fn a_text_that_is_joined_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("one/src");
    fs::create_dir_all(&source).unwrap();
    let code = "#[derive(Debug, Deserialize)] pub struct Given { pub id: String, pub map: BTreeMap<String, u8>, pub hash: Hash, \
                #[serde(deserialize_with = \"checked_text::<_, Id>\")] pub name: String }\n\
                fn f(dir: &Path, a: &Given) { dir.join(format!(\"{}.json\", a.id)); dir.join(&a.hash); dir.join(&a.name); }\n";
    fs::write(source.join("lib.rs"), code).unwrap();
    let findings = findings(dir.path());
    let fields = &findings.fields["one"];
    assert!(fields.contains("id") && fields.contains("map"), "{fields:?}");
    assert!(!fields.contains("hash") && !fields.contains("name"), "{fields:?}");
    let joined: Vec<&str> = findings.joined.iter().map(|(.., field)| field.as_str()).collect();
    assert_eq!(joined, ["hash", "id", "name"]);
}
