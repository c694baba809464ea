//! Names of source files in builds other than kerntune's own.
//!
//! kerntune builds below the source tree, so that compilers are given `../kernel/fork.c`. Make in
//! the tree itself gives them `kernel/fork.c` and `./include/linux/fs.h`, make with a directory
//! elsewhere (`O=`) the absolute path. Compilers put these names into the profiles of static
//! functions.

use std::path::{Component, Path};

/// Prefix of names in kerntune's builds.
const BELOW: &str = "../";

/// Names of sources in a build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceNames {
    /// Absolute path of the source tree, for builds with a directory elsewhere.
    tree: Option<String>,
    main: MainNames,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum MainNames {
    #[default]
    InTree,
    Below,
    Absolute,
}

impl SourceNames {
    /// Names of a build in the source tree itself.
    pub fn in_tree() -> Self {
        Self::default()
    }

    /// Names of a build whose directory is directly below the source tree: `O=build`.
    pub fn below_tree() -> Self {
        Self { tree: None, main: MainNames::Below }
    }

    /// Names of a build elsewhere of the source tree `tree`. `None` if the path is not absolute or
    /// not UTF-8.
    pub fn elsewhere(tree: &Path) -> Option<Self> {
        Some(Self { tree: Some(absolute(tree)?), main: MainNames::Absolute })
    }

    /// Adds the names of a build elsewhere of the source tree `tree`; the main names stay.
    #[must_use]
    pub fn and_of(self, tree: &Path) -> Self {
        Self { tree: absolute(tree).or(self.tree), ..self }
    }

    /// Returns all names of a source file that kerntune's build calls `name`, the main one first. A
    /// file that the build makes itself has one name.
    pub fn of(&self, name: &str) -> Vec<String> {
        let Some(path) = name.strip_prefix(BELOW) else { return vec![name.to_string()] };
        let dotted = format!("./{path}");
        // Headers are found through `-I./include`, other files are named by make.
        let mut names = match is_searched(path) {
            true => vec![dotted, path.to_string()],
            false => vec![path.to_string(), dotted],
        };
        names.push(name.to_string());
        names.extend(self.tree.as_ref().map(|tree| format!("{tree}/{path}")));
        let first = match self.main {
            MainNames::InTree => 0,
            MainNames::Below => 2,
            MainNames::Absolute => names.len() - 1,
        };
        names.swap(0, first);
        names
    }
}

fn absolute(path: &Path) -> Option<String> {
    let plain = path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    plain.then(|| path.to_str()).flatten().map(|path| path.trim_end_matches('/').to_string())
}

/// Checks whether a file is in a directory of Kbuild's `-I` options.
fn is_searched(path: &str) -> bool {
    let of_arch = path.strip_prefix("arch/").and_then(|path| Some(path.split_once('/')?.1));
    of_arch.unwrap_or(path).starts_with("include/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_a_name_for_each_way_to_build() {
        let in_tree = SourceNames::in_tree();
        assert_eq!(in_tree.of("../kernel/fork.c"), ["kernel/fork.c", "./kernel/fork.c", "../kernel/fork.c"]);
        assert_eq!(in_tree.of("../include/linux/fs.h")[0], "./include/linux/fs.h");
        assert_eq!(in_tree.of("../arch/x86/include/asm/io.h")[0], "./arch/x86/include/asm/io.h");
        assert_eq!(in_tree.of("./include/generated/x.h"), ["./include/generated/x.h"]);
        assert_eq!(SourceNames::below_tree().of("../mm/slub.c")[0], "../mm/slub.c");
        let elsewhere = SourceNames::elsewhere(Path::new("/src/linux/")).unwrap();
        assert_eq!(elsewhere.of("../mm/slub.c")[0], "/src/linux/mm/slub.c");
        assert_eq!(elsewhere.of("../mm/slub.c").len(), 4);
        let both = in_tree.and_of(Path::new("/src"));
        assert_eq!((both.of("../a.c")[0].as_str(), both.of("../a.c")[3].as_str()), ("a.c", "/src/a.c"));
        assert_eq!(SourceNames::elsewhere(Path::new("src")), None);
        assert_eq!(SourceNames::elsewhere(Path::new("/a/../src")), None);
    }
}
