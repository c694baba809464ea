//! Options that a source file depends on, from Kbuild's Makefiles
//! (Documentation/kbuild/makefiles.rst).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

/// Options that must all be set.
type OptionSet = BTreeSet<String>;

/// Limit of alternatives for a file; with more it counts as always compiled.
const MAX_ALTERNATIVES: usize = 16;

/// Conditions of source files. A file is compiled if one of its alternatives holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildConditions {
    files: BTreeMap<String, Vec<OptionSet>>,
}

impl BuildConditions {
    /// Reads the conditions of some files of a source tree, given by paths relative to it. `arch`
    /// is the directory below `arch/` that is compiled (`x86`).
    ///
    /// A file that no Makefile names in a known form has no condition.
    pub fn read<'a>(source: &Path, arch: &str, files: impl IntoIterator<Item = &'a str>) -> Self {
        let read = |directory: &str| {
            let text = |name: &str| fs::read(source.join(directory).join(name)).ok();
            let text = text("Kbuild").or_else(|| text("Makefile"))?;
            Some(parse(&String::from_utf8_lossy(&text), arch))
        };
        let mut makefiles =
            MakefileReader { read: &read, known: HashMap::new(), directories: HashMap::new() };
        let files = files.into_iter().map(|file| (file.to_string(), makefiles.file(file))).collect();
        Self { files }
    }

    /// Returns, for each option, the files that are not compiled without it.
    pub fn by_option(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut options: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (file, ways) in &self.files {
            let Some((first, others)) = ways.split_first() else { continue };
            for option in first.iter().filter(|option| others.iter().all(|way| way.contains(*option))) {
                options.entry(option).or_default().insert(file);
            }
        }
        options
    }

    /// Checks whether a file is compiled with these options.
    pub fn compiles(&self, file: &str, is_set: impl Fn(&str) -> bool) -> bool {
        let Some(ways) = self.files.get(file) else { return true };
        ways.iter().any(|way| way.iter().all(|option| is_set(option)))
    }

    /// Returns the options that a file's condition mentions.
    pub fn options_of(&self, file: &str) -> BTreeSet<&str> {
        self.files.get(file).into_iter().flatten().flatten().map(String::as_str).collect()
    }
}

/// The condition that always holds.
fn always() -> Vec<OptionSet> {
    vec![OptionSet::new()]
}

/// Returns the conjunction of two conditions.
fn both(one: &[OptionSet], other: &[OptionSet]) -> Vec<OptionSet> {
    let ways = one.iter().flat_map(|a| other.iter().map(|b| a.union(b).cloned().collect()));
    simple(ways.collect())
}

/// Removes alternatives that another one implies. With too many alternatives, the condition always
/// holds.
fn simple(ways: Vec<OptionSet>) -> Vec<OptionSet> {
    let mut kept: Vec<OptionSet> = Vec::new();
    for way in ways {
        if kept.iter().any(|other| other.is_subset(&way)) {
            continue;
        }
        kept.retain(|other| !way.is_subset(other));
        kept.push(way);
    }
    if kept.len() > MAX_ALTERNATIVES {
        always()
    } else {
        kept
    }
}

/// Assignment in a Makefile: target, condition and objects.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Assignment {
    /// `None`: objects and directories that are built. Otherwise the name, without `.o`, of the
    /// object that they are parts of.
    of: Option<String>,
    ways: Vec<OptionSet>,
    words: Vec<String>,
}

/// Parses the assignments that say what is built.
fn parse(text: &str, arch: &str) -> Vec<Assignment> {
    let text = text.replace("\\\n", " ").replace("$(SRCARCH)", arch).replace("$(ARCH)", arch);
    let mut lines = Vec::new();
    // Conditions of the open `if`s.
    let mut open: Vec<Vec<OptionSet>> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let word = line.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
        match word {
            "ifdef" | "ifeq" | "ifneq" | "ifndef" => open.push(asks(line)),
            "else" => {
                // Negated conditions are not followed.
                if let Some(last) = open.last_mut() {
                    *last = always();
                }
            }
            "endif" => drop(open.pop()),
            _ => {
                let Some((of, condition, words)) = assignment(line) else { continue };
                let ways = open.iter().fold(ways(condition), |ways, asked| both(&ways, asked));
                lines.push(Assignment { of, ways, words });
            }
        }
    }
    lines
}

/// Parses the condition of `ifdef CONFIG_X`, `ifeq ($(CONFIG_X),y)` and `ifneq ($(CONFIG_X),)`.
fn asks(line: &str) -> Vec<OptionSet> {
    let words: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let named = |prefix: &str, suffix: &str| {
        let name = words.strip_prefix(prefix)?.strip_suffix(suffix)?;
        is_option(name).then(|| vec![OptionSet::from([name.to_string()])])
    };
    named("ifdefCONFIG_", "")
        .or_else(|| named("ifeq($(CONFIG_", "),y)"))
        .or_else(|| named("ifneq($(CONFIG_", "),)"))
        .unwrap_or_else(always)
}

fn is_option(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parses `obj-$(CONFIG_X) += a.o b/` into target, condition (`y`, `m`, `$(CONFIG_X)`) and objects.
fn assignment(line: &str) -> Option<(Option<String>, &str, Vec<String>)> {
    let (left, right) = line.split_once('=')?;
    let left = left.trim_end_matches([':', '+', '?']).trim();
    let (name, condition) = match left.find("-$(") {
        Some(at) => (&left[..at], &left[at + 1..]),
        None => left.rsplit_once('-')?,
    };
    let of = match name {
        // Variables in the Makefile of an architecture and at the top.
        "obj" | "lib" | "core" | "drivers" | "net" | "libs" | "virt" => None,
        _ => Some(name.to_string()),
    };
    let known = matches!(condition, "y" | "m" | "objs") || condition.starts_with("$(");
    if !known || name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    let words = right.split_whitespace().filter(|word| word.ends_with(".o") || word.ends_with('/'));
    Some((of, condition, words.map(String::from).collect()))
}

/// Parses `y`, `$(CONFIG_X)`, `$(or $(CONFIG_X),$(CONFIG_Y))`.
fn ways(condition: &str) -> Vec<OptionSet> {
    if !condition.starts_with("$(") {
        return always();
    }
    let names = condition
        .split("CONFIG_")
        .skip(1)
        .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>());
    let names: Vec<OptionSet> =
        names.filter(|name| is_option(name)).map(|name| OptionSet::from([name])).collect();
    if names.is_empty() {
        always()
    } else {
        names
    }
}

/// Makefiles by directory, each read once.
struct MakefileReader<'a> {
    read: &'a dyn Fn(&str) -> Option<Vec<Assignment>>,
    known: HashMap<String, Vec<Assignment>>,
    /// Conditions of directories.
    directories: HashMap<String, Vec<OptionSet>>,
}

impl MakefileReader<'_> {
    fn lines(&mut self, directory: &str) -> &[Assignment] {
        let read = self.read;
        self.known.entry(directory.to_string()).or_insert_with(|| read(directory).unwrap_or_default())
    }

    fn file(&mut self, path: &str) -> Vec<OptionSet> {
        let Some((stem, _)) = path.rsplit_once('.') else { return always() };
        for (directory, name) in above(stem) {
            if let Some(own) = self.object(directory, name, 0) {
                return both(&own, &self.directory(directory));
            }
        }
        match path.rsplit_once('/') {
            Some((directory, _)) => self.directory(directory),
            None => always(),
        }
    }

    /// Returns the condition for `name`.o in a directory's Makefile; `None` if it is not mentioned.
    fn object(&mut self, directory: &str, name: &str, depth: usize) -> Option<Vec<OptionSet>> {
        let object = format!("{name}.o");
        let lines: Vec<(Option<String>, Vec<OptionSet>)> = self
            .lines(directory)
            .iter()
            .filter(|line| line.words.contains(&object))
            .map(|line| (line.of.clone(), line.ways.clone()))
            .collect();
        let mut found = Vec::new();
        for (of, ways) in lines {
            match of {
                None => found.extend(ways),
                // Composite objects may nest; the depth limit ends cycles.
                Some(whole) if whole != name && depth < 4 => {
                    let whole = self.object(directory, &whole, depth + 1);
                    found.extend(whole.map_or_else(always, |whole| both(&ways, &whole)));
                }
                Some(_) => found.extend(always()),
            }
        }
        (!found.is_empty()).then(|| simple(found))
    }

    /// Returns the condition under which Kbuild enters a directory.
    fn directory(&mut self, path: &str) -> Vec<OptionSet> {
        if path.is_empty() {
            return always();
        }
        if let Some(known) = self.directories.get(path) {
            return known.clone();
        }
        let mut ways = None;
        for (parent, name) in above(path) {
            let word = format!("{name}/");
            let lines = self.lines(parent).iter().filter(|line| line.of.is_none());
            let found: Vec<OptionSet> =
                lines.filter(|line| line.words.contains(&word)).flat_map(|line| line.ways.clone()).collect();
            if !found.is_empty() {
                ways = Some(both(&simple(found), &self.directory(parent)));
                break;
            }
        }
        let ways = ways.unwrap_or_else(|| match path.rsplit_once('/') {
            // Not mentioned: the condition of the parent applies.
            Some((parent, _)) => self.directory(parent),
            None => always(),
        });
        self.directories.insert(path.to_string(), ways.clone());
        ways
    }
}

/// Splits a path at each slash, from the last one on, into directory and rest; the top of the tree
/// is the empty directory.
fn above(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let places = path.rmatch_indices('/').map(|(at, _)| (&path[..at], &path[at + 1..]));
    places.chain([("", path)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn ways(gates: &BuildConditions, file: &str) -> Vec<Vec<String>> {
        gates.files[file].iter().map(|way| way.iter().cloned().collect()).collect()
    }

    #[test]
    fn files_hang_on_their_objects_and_on_the_directories_above() {
        let tree = tree(&[
            ("Kbuild", "obj-y += kernel/ arch/$(SRCARCH)/\nobj-$(CONFIG_NET) += net/\n"),
            ("arch/x86/Kbuild", "obj-y += mm/\nobj-$(CONFIG_PERF_EVENTS) += events/intel/\n"),
            ("arch/x86/events/intel/Makefile", "obj-y := core.o\n"),
            (
                "kernel/Makefile",
                "obj-y = fork.o # the first\nobj-$(CONFIG_A) += \\\n\tboth.o\nobj-$(CONFIG_B) += both.o\n",
            ),
            (
                "net/Makefile",
                "obj-$(CONFIG_X) += x.o\nx-y := one.o sub/two.o\nx-$(CONFIG_Y) += three.o\n\
                 ifdef CONFIG_Z\nobj-y += four.o\nelse\nobj-y += five.o\nendif\n\
                 obj-$(subst m,y,$(CONFIG_W)) += six.o\nobj-$(or $(CONFIG_P),$(CONFIG_Q)) += seven.o\n",
            ),
        ]);
        let files = [
            "kernel/fork.c",
            "kernel/both.c",
            "net/one.c",
            "net/sub/two.c",
            "net/three.c",
            "net/four.c",
            "net/five.c",
            "net/six.c",
            "net/seven.c",
            "net/unknown.c",
            "arch/x86/events/intel/core.c",
        ];
        let gates = BuildConditions::read(tree.path(), "x86", files);
        let is = |file: &str, expected: &[&[&str]]| assert_eq!(ways(&gates, file), expected, "{file}");
        is("kernel/fork.c", &[&[]]);
        is("kernel/both.c", &[&["A"], &["B"]]);
        is("net/one.c", &[&["NET", "X"]]);
        is("net/sub/two.c", &[&["NET", "X"]]);
        is("net/three.c", &[&["NET", "X", "Y"]]);
        is("net/four.c", &[&["NET", "Z"]]);
        is("net/five.c", &[&["NET"]]);
        is("net/six.c", &[&["NET", "W"]]);
        is("net/seven.c", &[&["NET", "P"], &["NET", "Q"]]);
        is("net/unknown.c", &[&["NET"]]);
        is("arch/x86/events/intel/core.c", &[&["PERF_EVENTS"]]);

        let by_option = gates.by_option();
        assert_eq!(
            by_option["X"].iter().copied().collect::<Vec<_>>(),
            ["net/one.c", "net/sub/two.c", "net/three.c"]
        );
        assert!(!by_option.contains_key("A") && !by_option.contains_key("P"), "either of two is not needed");
        assert!(gates.compiles("kernel/both.c", |option| option == "B"));
        assert!(!gates.compiles("kernel/both.c", |_| false) && gates.compiles("not/asked/for.c", |_| false));
        assert_eq!(gates.options_of("net/seven.c"), BTreeSet::from(["NET", "P", "Q"]));
    }

    #[test]
    fn a_part_of_itself_and_any_text_come_to_an_end() {
        let tree = tree(&[(
            "Kbuild",
            "a-y := b.o\nb-y := a.o\nendif\nelse\nifeq (\n= x.o\n-y = x.o\nobj- += x.o\n",
        )]);
        let gates = BuildConditions::read(tree.path(), "x86", ["a.c", "b.c", "x.c", "nothing"]);
        for file in ["a.c", "b.c", "x.c", "nothing"] {
            assert!(gates.compiles(file, |_| false), "{file}");
        }
    }
}
