//! Checks that the modules of a crate do not import each other in a circle, so that each can be
//! read after those that it uses.
//!
//! A module uses everything that its `use` declarations and its `crate::`, `super::` and `self::`
//! paths name; re-exported items count for the module that defines them. Modules are compared with
//! their siblings, each together with its descendants. Not counted: tests, uses between a module
//! and its descendants, and uses by `error`, as an error names types of every module and every
//! module names it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// Path from the crate's root.
type ModulePath = Vec<String>;
/// For each module the siblings that it uses, with the place of use.
type ModuleGraph = BTreeMap<ModulePath, BTreeMap<ModulePath, String>>;

#[derive(Default)]
struct CrateModules {
    modules: BTreeSet<ModulePath>,
    /// Target path of each name that a module's `use` declarations bring in.
    names: BTreeMap<(ModulePath, String), Vec<String>>,
    /// Module, the path that it names, and the file.
    paths: Vec<(ModulePath, Vec<String>, PathBuf)>,
}

impl CrateModules {
    fn file(&mut self, path: &Path, children: &Path, module: &ModulePath) {
        let text = fs::read_to_string(path).unwrap();
        let tokens =
            text.parse::<TokenStream>().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.modules.insert(module.clone());
        self.tokens(tokens, path, children, module);
    }

    fn tokens(&mut self, tokens: TokenStream, file: &Path, children: &Path, module: &ModulePath) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = &tokens[..];
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            let word = if let TokenTree::Group(_) = first { String::new() } else { first.to_string() };
            match (word.as_str(), first) {
                _ if word == "#" && rest.first().is_some_and(is_cfg_test) => {
                    let ends = |token: &TokenTree| is(token, ";") || is(token, "{}");
                    rest = &rest[rest.iter().position(ends).map_or(rest.len(), |end| end + 1)..];
                }
                ("mod", _) => {
                    let name = rest[0].to_string();
                    let child = [module.clone(), vec![name.clone()]].concat();
                    let (below, beside) = (children.join(&name), children.join(format!("{name}.rs")));
                    if let TokenTree::Group(body) = &rest[1] {
                        self.modules.insert(child.clone());
                        self.tokens(body.stream(), file, &below, &child);
                    } else if beside.is_file() {
                        self.file(&beside, &below, &child);
                    } else if below.is_dir() {
                        self.file(&below.join("mod.rs"), &below, &child);
                    }
                    rest = &rest[2..];
                }
                // A registry: its build script makes modules of the folder's files. Other includes
                // are data.
                ("include", _) if rest.first().is_some_and(|next| is(next, "!")) => {
                    let listed =
                        fs::read_dir(children).into_iter().flatten().flatten().map(|entry| entry.path());
                    for path in listed.filter(|path| kerntune_code::is_entry(path)) {
                        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                        self.file(&path, &children.join(&name), &[module.clone(), vec![name]].concat());
                    }
                }
                ("use", _) => {
                    let end = rest.iter().position(|token| is(token, ";")).unwrap_or(rest.len());
                    for (name, path) in imports(&rest[..end], &[]) {
                        self.paths.push((module.clone(), path.clone(), file.to_owned()));
                        self.names.insert((module.clone(), name), path);
                    }
                    rest = &rest[end..];
                }
                ("crate" | "super" | "self", _) if rest.first().is_some_and(|next| is(next, ":")) => {
                    let mut path = vec![first.to_string()];
                    while let [TokenTree::Punct(a), TokenTree::Punct(b), TokenTree::Ident(name), after @ ..] =
                        rest
                    {
                        if (a.as_char(), b.as_char()) != (':', ':') {
                            break;
                        }
                        path.push(name.to_string());
                        rest = after;
                    }
                    self.paths.push((module.clone(), path, file.to_owned()));
                }
                (_, TokenTree::Group(group)) => self.tokens(group.stream(), file, children, module),
                _ => {}
            }
        }
    }

    /// Returns the innermost module of this crate to which a path leads.
    fn resolve(&self, from: &ModulePath, path: &[String], hops: u32) -> Option<ModulePath> {
        let (first, mut rest) = path.split_first()?;
        let mut at = from.clone();
        match first.as_str() {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            _ => rest = path,
        }
        while let Some((name, after)) = rest.split_first() {
            let child = [at.clone(), vec![name.clone()]].concat();
            if name == "super" {
                at.pop();
            } else if self.modules.contains(&child) {
                at = child;
            } else if let Some(path) = self.names.get(&(at.clone(), name.clone())).filter(|_| hops > 0) {
                return self.resolve(&at, &[path, after].concat(), hops - 1).or(Some(at));
            } else {
                return (rest.len() < path.len()).then_some(at);
            }
            rest = after;
        }
        Some(at)
    }

    fn graph(&self) -> ModuleGraph {
        let mut graph = ModuleGraph::new();
        for (from, path, file) in &self.paths {
            let Some(to) = self.resolve(from, path, 9) else { continue };
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let is_error = from.last().is_some_and(|name| name == "error");
            if !is_error && common < from.len().min(to.len()) {
                let links = graph.entry(from[..=common].to_vec()).or_default();
                links.entry(to[..=common].to_vec()).or_insert_with(|| place(file, path));
            }
        }
        graph
    }
}

/// Returns the file, and the first line with the path's last name.
fn place(file: &Path, path: &[String]) -> String {
    let (text, name) = (fs::read_to_string(file).unwrap(), path.last().unwrap());
    let has = |line: &str| !line.trim_start().starts_with("//") && line.contains(name);
    format!("{}:{}", file.display(), 1 + text.lines().position(has).unwrap_or(0))
}

/// Checks for a punctuation mark, or a group in such brackets.
fn is(token: &TokenTree, mark: &str) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && mark == "{}",
        TokenTree::Punct(punct) => mark.starts_with(punct.as_char()),
        _ => false,
    }
}

fn is_cfg_test(attribute: &TokenTree) -> bool {
    matches!(attribute, TokenTree::Group(_)) && attribute.to_string().replace(' ', "") == "[cfg(test)]"
}

/// Returns the names that a `use` declaration brings in, each with its path.
fn imports(tokens: &[TokenTree], before: &[String]) -> Vec<(String, Vec<String>)> {
    let mut path = before.to_vec();
    let mut name = None;
    for (i, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let parts = inner.split(|token| is(token, ","));
                return parts.flat_map(|part| imports(part, &path)).collect();
            }
            TokenTree::Ident(word) if word == "as" => {
                name = Some(tokens[i + 1].to_string());
                break;
            }
            TokenTree::Ident(word) if word != "self" || path.is_empty() => path.push(word.to_string()),
            _ => {}
        }
    }
    let Some(last) = path.last().cloned().filter(|_| !tokens.is_empty()) else { return Vec::new() };
    let is_glob = tokens.last().is_some_and(|token| is(token, "*"));
    vec![(name.unwrap_or(if is_glob { "*".to_owned() } else { last }), path)]
}

/// Returns the shortest circle through each link, from its first module on, with the place of each
/// link.
fn circles(graph: &ModuleGraph) -> BTreeSet<String> {
    let links = |module: &ModulePath| graph.get(module).into_iter().flatten();
    let mut found = BTreeSet::new();
    for (from, to) in graph.iter().flat_map(|(from, links)| links.keys().map(move |to| (from, to))) {
        let mut ways = BTreeMap::from([(to, vec![from, to])]);
        let mut open = VecDeque::from([to]);
        while let Some(here) = open.pop_front().filter(|_| !ways.contains_key(from)) {
            for (next, _) in links(here) {
                if !ways.contains_key(next) {
                    ways.insert(next, [ways[here].clone(), vec![next]].concat());
                    open.push_back(next);
                }
            }
        }
        let Some(way) = ways.get(from).filter(|way| way.iter().min() == Some(&from)) else { continue };
        let names: Vec<String> = way.iter().map(|module| module.join("/")).collect();
        let places: Vec<&str> = way.windows(2).map(|link| graph[link[0]][link[1]].as_str()).collect();
        found.insert(format!("{} ({})", names.join(" -> "), places.join(", ")));
    }
    found
}

fn circles_of(root: &Path) -> BTreeSet<String> {
    let mut read = CrateModules::default();
    read.file(root, root.parent().unwrap(), &Vec::new());
    circles(&read.graph())
}

#[test]
fn no_crate_has_a_circle_of_modules() {
    let top = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    let crates = fs::read_dir(top.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let sources = crates.map(|path| path.join("src"));
    let roots: Vec<PathBuf> = sources
        .flat_map(|src| [src.join("lib.rs"), src.join("main.rs")])
        .filter(|root| root.is_file())
        .collect();
    assert!(roots.len() > 15, "{roots:?}");
    let found: Vec<String> = roots.iter().flat_map(|root| circles_of(root)).collect();
    assert!(found.is_empty(), "modules import each other in circles:\n{}", found.join("\n"));
}

#[test]
fn circles_are_found_through_re_exports_and_by_folder_and_not_in_tests() {
    let of = |files: &[(&str, &str)]| {
        let top = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = top.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = circles_of(&top.path().join("lib.rs")).into_iter().collect::<Vec<_>>().join("; ");
        found.replace(&format!("{}/", top.path().display()), "")
    };
    let root = ("lib.rs", "mod a; mod b; mod error; pub use b::{inner::B as C}; pub use error::Error;");
    let inner = ("b/mod.rs", "pub mod inner;");
    let (one, other) =
        (("a.rs", "\nuse crate::{C, Error};"), ("b/inner.rs", "fn f() { g(super::super::a::A) }"));
    let error = ("error.rs", "enum Error { A(crate::a::A) }");
    assert_eq!(of(&[root, one, inner, other, error]), "a -> b -> a (a.rs:2, b/inner.rs:1)");
    // Tests, ancestors, descendants and `error` cannot be part of a circle.
    for other in
        ["#[cfg(test)]\nmod tests { use crate::a::A; }", "use super::*; mod x { use super::super::Y; }"]
    {
        assert_eq!(of(&[root, one, inner, ("b/inner.rs", other), error]), "");
    }
    let far = [
        ("b.rs", "use crate::c::d;"),
        ("c/mod.rs", "mod d; mod e;"),
        ("c/d.rs", ""),
        ("c/e.rs", "use crate::a;"),
    ];
    let three =
        [&[("lib.rs", "mod a; mod b; mod c;"), ("a.rs", "fn f() { self::g(crate::b::h()) }")], &far[..]]
            .concat();
    assert_eq!(of(&three), "a -> b -> c -> a (a.rs:1, b.rs:1, c/e.rs:1)");
}
