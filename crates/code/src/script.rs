//! Bundles of ECMAScript modules: one script, which a page can have inside.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// For build scripts: generates `$OUT_DIR/NAME.js` for the module `src/FOLDER/NAME.js` and all that
/// it imports: one script without imports, in which each module is a function of its own. Comments
/// are left out, except those that begin with `//!`.
///
/// It understands a part of the language: `import { a, b } from "./path.js";`, `export const a` and
/// `export class a` at the begin of a line, and templates that end on their line.
///
/// # Panics
/// If a module cannot be read or has anything else, imports what another does not export, or
/// imports itself in a circle, so that the build fails.
pub fn script(folder: &str, name: &str) {
    let variable = |name| PathBuf::from(std::env::var_os(name).expect("cargo runs build scripts"));
    let directory = variable("CARGO_MANIFEST_DIR").join("src").join(folder);
    println!("cargo:rerun-if-changed={}", directory.display());
    let file = PathBuf::from(name).with_extension("js");
    let bundled = bundle(&file, &|path| fs::read_to_string(directory.join(path)));
    let text = bundled.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let target = variable("OUT_DIR").join(file);
    fs::write(&target, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", target.display()));
}

type ReadFile<'r> = &'r dyn Fn(&Path) -> std::io::Result<String>;

/// Bundles a module; `read` returns the text of a path.
fn bundle(entry: &Path, read: ReadFile) -> Result<String, String> {
    let mut bundle = Bundle { read, open: Vec::new(), done: HashSet::new(), text: String::new() };
    bundle.add(entry)?;
    Ok(bundle.text)
}

struct Bundle<'r> {
    read: ReadFile<'r>,
    /// Modules that are being added, each imported by the one before.
    open: Vec<PathBuf>,
    done: HashSet<PathBuf>,
    text: String,
}

impl Bundle<'_> {
    /// Adds a module after those that it imports; returns its exports.
    fn add(&mut self, path: &Path) -> Result<Vec<String>, String> {
        let at = |error: String| format!("{}: {error}", path.display());
        let text = (self.read)(path).map_err(|error| at(error.to_string()))?;
        let module = Module::parse(&text).map_err(at)?;
        if self.open.iter().any(|open| open == path) {
            return Err(at("imports itself in a circle".into()));
        }
        if self.done.contains(path) {
            return Ok(module.exports);
        }
        self.open.push(path.to_owned());
        let mut head = String::new();
        for (names, from) in &module.imports {
            let from = resolve(path, from);
            let exported = self.add(&from)?;
            if let Some(missing) = names.iter().find(|name| !exported.contains(name)) {
                return Err(at(format!("{} does not export {missing}", from.display())));
            }
            let _ = writeln!(head, "const {{ {} }} = {};", names.join(", "), identifier(&from));
        }
        self.open.pop();
        self.done.insert(path.to_owned());
        let (name, body, exports) = (identifier(path), &module.body, module.exports.join(", "));
        let _ = write!(self.text, "const {name} = (() => {{\n{head}{body}return {{ {exports} }};\n}})();\n");
        Ok(module.exports)
    }
}

/// Resolves an import relative to the module that has it.
fn resolve(importer: &Path, from: &str) -> PathBuf {
    let mut path = importer.parent().unwrap_or(Path::new("")).to_owned();
    for part in from.split('/') {
        match part {
            "." => {}
            ".." => {
                path.pop();
            }
            name => path.push(name),
        }
    }
    path
}

/// Returns the name of a module's exports in the bundle; no module uses names that begin with `$`.
fn identifier(path: &Path) -> String {
    let stem = path.with_extension("");
    let letters = stem.to_string_lossy().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("${letters}")
}

/// Module without its comments, imports and `export`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Module {
    /// Names, and the path from which they are imported.
    imports: Vec<(Vec<String>, String)>,
    exports: Vec<String>,
    body: String,
}

impl Module {
    fn parse(text: &str) -> Result<Self, String> {
        let text = without_documentation(text)?;
        let mut module = Module::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let content = line.trim();
            if content.is_empty() || content.starts_with("//") && !content.starts_with("//!") {
                continue;
            }
            if line.starts_with("import") {
                let mut statement = line.to_owned();
                while !statement.ends_with(';') {
                    statement += lines.next().ok_or_else(|| not_understood(line))?;
                }
                module.imports.push(import(&statement).ok_or_else(|| not_understood(&statement))?);
                continue;
            }
            let is_other_import = ["import(", "import.", "import "].iter().any(|word| content.contains(word));
            if is_other_import || content.contains("export ") && !line.starts_with("export ") {
                return Err(not_understood(line));
            }
            if content.matches('`').count() % 2 != 0 {
                return Err(format!("a template that does not end on its line: {line}"));
            }
            let exported = content.strip_prefix("export ");
            if let Some(exported) = exported {
                module.exports.push(exported_name(exported).ok_or_else(|| not_understood(line))?);
            }
            module.body += exported.unwrap_or(content);
            module.body.push('\n');
        }
        Ok(module)
    }
}

fn not_understood(line: &str) -> String {
    format!("the bundler does not understand: {line}")
}

/// Removes comments that begin with `/**`.
fn without_documentation(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/**") {
        let line = before.rsplit('\n').next().unwrap_or("");
        if line.matches(['"', '\'', '`']).count() % 2 != 0 {
            return Err(format!("a comment within a text: {line}"));
        }
        let (_, end) = after.split_once("*/").ok_or("a comment without end")?;
        out += before;
        rest = end;
    }
    Ok(out + rest)
}

/// Parses `import { a, b } from "./path.js";`.
fn import(statement: &str) -> Option<(Vec<String>, String)> {
    let (names, from) = statement.strip_prefix("import {")?.split_once("} from \"./").or_else(|| {
        let (names, from) = statement.strip_prefix("import {")?.split_once("} from \"")?;
        from.starts_with("../").then_some((names, from))
    })?;
    let names: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
    let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let is_plain = names.iter().all(|name| is_name(name));
    (is_plain && !names.is_empty()).then_some((names, from.strip_suffix("\";")?.to_owned()))
}

/// Returns the name of `const a = …` or `class a …`.
fn exported_name(declaration: &str) -> Option<String> {
    let rest = ["const ", "class "].iter().find_map(|word| declaration.strip_prefix(word))?;
    let name = rest.split(' ').next()?;
    is_name(name).then(|| name.to_owned())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Result<String, String> {
        bundle(Path::new("main.js"), &|path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned()).ok_or(std::io::ErrorKind::NotFound.into())
        })
    }

    #[test]
    fn modules_come_after_what_they_import() {
        let bundled = of(&[
            ("main.js", "// @ts-check\nimport {\n  a,\n  B,\n} from \"./x/a.js\";\nimport { c } from \"./c.js\";\na(c, B);\n"),
            (
                "x/a.js",
                "import { c } from \"../c.js\";\n/** A function.\n * @param {number} n */\nexport const a = (n) => n + c;\n\
                 export class B {\n  n = /** @type {number} */ (1);\n}\n",
            ),
            ("c.js", "//! Somebody else's.\nexport const c = \"import\";\n"),
        ]);
        assert_eq!(
            bundled.unwrap(),
            "const $c = (() => {\n//! Somebody else's.\nconst c = \"import\";\nreturn { c };\n})();\n\
             const $x_a = (() => {\nconst { c } = $c;\nconst a = (n) => n + c;\nclass B {\nn =  (1);\n}\nreturn { a, B };\n})();\n\
             const $main = (() => {\nconst { a, B } = $x_a;\nconst { c } = $c;\na(c, B);\nreturn {  };\n})();\n"
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (text, reason) in [
            ("import a from \"./a.js\";", "does not understand"),
            ("import { a as b } from \"./a.js\";", "does not understand"),
            ("import { a } from \"a\";", "does not understand"),
            ("import { a } from \"./a.js\"", "does not understand"),
            ("import { b } from \"./a.js\";", "a.js does not export b"),
            ("import { a } from \"./none.js\";", "none.js: "),
            ("import { c } from \"./circle.js\";", "in a circle"),
            ("const a = await import(\"./a.js\");", "does not understand"),
            ("export let a = 1;", "does not understand"),
            ("export default 1;", "does not understand"),
            ("export { a };", "does not understand"),
            ("  export const a = 1;", "does not understand"),
            ("const a = `\n`;", "does not end on its line"),
            ("const a = \"/** */\";", "within a text"),
            ("/** a", "without end"),
        ] {
            let circle = "import { a } from \"./main.js\";\nexport const c = 1;\n";
            let error = of(&[("main.js", text), ("a.js", "export const a = 1;\n"), ("circle.js", circle)]);
            let error = error.expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
