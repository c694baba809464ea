//! Dependencies between options, from Kconfig files (Documentation/kbuild/kconfig-language.rst).
//!
//! Conditions are not evaluated; that is Kconfig's job (`make olddefconfig`). Only the names that
//! an option mentions are read, to explain why Kconfig dropped something.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Dependencies between options, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kconfig {
    /// Options named in an option's dependencies, its own and those of enclosing blocks.
    needs: BTreeMap<String, BTreeSet<String>>,
    /// Options that select or imply an option.
    selected_by: BTreeMap<String, BTreeSet<String>>,
    /// Options with a prompt, which a user can set.
    with_prompt: BTreeSet<String>,
    /// Options with a default.
    by_default: BTreeSet<String>,
}

impl Kconfig {
    /// Reads the Kconfig files of a tree; of the architectures only `arch`.
    pub fn read(source: &Path, arch: &str) -> Self {
        let mut all = Self::default();
        let mut directories = vec![source.to_owned()];
        while let Some(directory) = directories.pop() {
            let is_other = directory.parent() == Some(&source.join("arch")) && !directory.ends_with(arch);
            if is_other || directory.ends_with("scripts/kconfig") {
                continue;
            }
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => directories.push(entry.path()),
                    Ok(kind)
                        if kind.is_file() && entry.file_name().to_string_lossy().starts_with("Kconfig") =>
                    {
                        all.add(&String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default()));
                    }
                    _ => {}
                }
            }
        }
        all
    }

    /// Adds one file. Blocks that enclose the whole file in another one (`if NET`, `source
    /// "net/Kconfig"`) are not followed.
    fn add(&mut self, text: &str) {
        let text = text.replace("\\\n", " ");
        // Conditions of the enclosing menus and `if`s; true for an `if`.
        let mut around: Vec<(bool, BTreeSet<String>)> = Vec::new();
        let mut option: Option<String> = None;
        let mut help: Option<usize> = None;
        for line in text.lines() {
            let indent = line.chars().take_while(|c| c.is_whitespace()).count();
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // A help text is everything indented further than its keyword.
            match help {
                Some(of) if indent > of => continue,
                _ => help = None,
            }
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            match word {
                "help" | "---help---" => help = Some(indent),
                "config" | "menuconfig" => {
                    let name = rest.trim().to_string();
                    let outer = around.iter().flat_map(|(_, names)| names.iter().cloned());
                    self.needs.entry(name.clone()).or_default().extend(outer);
                    option = Some(name);
                }
                "if" => {
                    around.push((true, names(rest)));
                    option = None;
                }
                "menu" | "choice" => {
                    around.push((false, BTreeSet::new()));
                    option = None;
                }
                "endif" | "endmenu" | "endchoice" => {
                    around.pop();
                    option = None;
                }
                "source" | "comment" | "mainmenu" => option = None,
                "depends" | "visible" => {
                    let named = names(rest);
                    match (&option, around.last_mut()) {
                        (Some(option), _) => self.needs.entry(option.clone()).or_default().extend(named),
                        (None, Some((false, names))) => names.extend(named),
                        _ => {}
                    }
                }
                "select" | "imply" => {
                    let selected = rest.split_whitespace().next().unwrap_or_default().to_string();
                    if let Some(option) = &option {
                        self.selected_by.entry(selected).or_default().insert(option.clone());
                    }
                }
                "bool" | "tristate" | "prompt" | "string" | "int" | "hex" if rest.contains(['"', '\'']) => {
                    self.with_prompt.extend(option.clone());
                }
                // Default value: `def_bool NET`, `default y if NET`.
                "def_bool" | "def_tristate" | "default" => {
                    if let Some(option) = &option {
                        self.by_default.insert(option.clone());
                        self.needs.entry(option.clone()).or_default().extend(names(rest));
                    }
                }
                _ => {}
            }
        }
    }

    /// Checks whether an option exists only for those that select it: it has no prompt and no
    /// default.
    pub fn is_helper(&self, option: &str) -> bool {
        let is_set = self.with_prompt.contains(option) || self.by_default.contains(option);
        self.selected_by.contains_key(option) && !is_set
    }

    /// Checks whether an option has a prompt, so that a user can set it.
    pub fn has_prompt(&self, option: &str) -> bool {
        self.with_prompt.contains(option)
    }

    /// Checks whether an option is known and has no prompt.
    pub fn is_fixed(&self, option: &str) -> bool {
        self.needs.contains_key(option) && !self.has_prompt(option)
    }

    /// Returns the options that select or imply `option`.
    pub fn selectors<'a>(&'a self, option: &str) -> impl Iterator<Item = &'a str> {
        self.selected_by.get(option).into_iter().flatten().map(String::as_str)
    }

    /// Returns the options that `option` depends on: those in its conditions and defaults, and
    /// those that select it.
    pub fn above<'a>(&'a self, option: &str) -> impl Iterator<Item = &'a str> {
        let [needs, by] = [&self.needs, &self.selected_by].map(|map| map.get(option).into_iter().flatten());
        needs.chain(by).map(String::as_str)
    }
}

/// Returns the options that an expression mentions.
fn names(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.chars().any(|c| c.is_ascii_uppercase()) && *word == word.to_uppercase())
        .map(String::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_whom() {
        let mut all = Kconfig::default();
        all.add(
            "menuconfig NET\n\tbool \"Networking\"\n\tselect NLATTR\n\thelp\n\t  depends on NOTHING\n\n\t  config NO\n\
             if NET\nmenu \"Things\"\n\tdepends on PCI && \\\n\t\tMMU\n\
             config A\n\ttristate \"a\"\n\tdepends on B || !C\n\timply D if E\nendmenu\nendif\n\
             config F\n\tdef_bool A && $(success,test -x x)\nconfig D\n\tbool\nconfig NLATTR\n\tbool\n\tdefault y\n",
        );
        let helpers = ["NET", "A", "D", "F", "NLATTR", "NO"].map(|option| all.is_helper(option));
        assert_eq!(helpers, [false, false, true, false, false, false]);
        let above = |option: &str| all.above(option).collect::<BTreeSet<_>>();
        assert_eq!(above("A"), ["B", "C", "MMU", "NET", "PCI"].into());
        assert_eq!((above("NLATTR"), above("D")), (["NET"].into(), ["A"].into()));
        assert_eq!((above("F"), above("NO"), above("NET")), (["A"].into(), [].into(), [].into()));
        let asked = ["NET", "A", "D", "F", "NLATTR", "NO"].map(|option| all.has_prompt(option));
        assert_eq!(asked, [true, true, false, false, false, false]);
        let fixed = ["NET", "D", "F", "NO"].map(|option| all.is_fixed(option));
        assert_eq!(fixed, [false, true, true, false]);
        assert_eq!((all.selectors("D").count(), all.selectors("A").count()), (1, 0));
    }
}
