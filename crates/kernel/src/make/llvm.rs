//! LLVM's tools that belong to a Clang, and programs that are installed in several versions.

use kerntune_work::find_program;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// Tools of the LLVM that a Clang is part of.
///
/// A tool has the suffix of the compiler's name, or is in its directory. For plain `clang` it may
/// also have the compiler's version as suffix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlvmTools {
    /// Suffix of the compiler's name: `-19`, or empty.
    suffix: String,
    /// Directory of the compiler's program, with links resolved.
    directory: Option<PathBuf>,
}

impl LlvmTools {
    /// Returns the tools of the Clang whose program is `clang` with this suffix.
    pub(crate) fn with_suffix(suffix: &str) -> Self {
        let clang = find_program(&format!("clang{suffix}"), &[]);
        let directory = clang.and_then(|path| Some(path.canonicalize().ok()?.parent()?.to_owned()));
        Self { suffix: suffix.to_owned(), directory }
    }

    /// Returns the name by which to run `tool` (`llvm-profgen`): a name on the PATH, or a path in
    /// the compiler's directory. The name of an absent tool is the one that its package would have.
    pub fn program(&self, tool: &str) -> String {
        let named = format!("{tool}{}", self.suffix);
        let found = find_program(&named, &[]);
        let is_ours = |path: &PathBuf| match (path.canonicalize(), &self.directory) {
            (Ok(path), Some(ours)) => path.parent() == Some(ours),
            _ => false,
        };
        // A plain name may be of another version.
        if found.as_ref().is_some_and(|path| !self.suffix.is_empty() || is_ours(path)) {
            return named;
        }
        let versioned = self.major().map(|major| format!("{tool}-{major}"));
        let versioned = versioned.filter(|_| self.suffix.is_empty());
        if let Some(name) = versioned.as_ref().filter(|name| find_program(name, &[]).is_some()) {
            return name.clone();
        }
        let beside = self.directory.iter().map(|directory| directory.join(tool).display().to_string());
        if let Some(path) = beside.into_iter().find(|path| find_program(path, &[]).is_some()) {
            return path;
        }
        match found {
            Some(_) => named,
            None => versioned.unwrap_or(named),
        }
    }

    /// Returns the Debian package that has `tool`.
    pub fn package(&self, tool: &str) -> String {
        let package = match tool {
            "ld.lld" => "lld",
            "llvm-bolt" => "bolt",
            "clang" => "clang",
            _ => "llvm",
        };
        match self.major() {
            Some(major) => format!("{package}-{major}"),
            None => format!("{package}{}", self.suffix),
        }
    }

    /// Returns the first of `tools` that is absent, with the name of its program.
    pub fn absent(&self, tools: &[&str]) -> Vec<String> {
        let programs = tools.iter().map(|tool| self.program(tool));
        programs.filter(|program| find_program(program, &[]).is_none()).collect()
    }

    /// Returns the value of make's variable `LLVM`, by which Kbuild names all tools.
    pub(crate) fn make_value(&self) -> String {
        let lld = self.program("ld.lld");
        match lld.strip_prefix("ld.lld") {
            Some("") => "1".into(),
            Some(suffix) => suffix.to_owned(),
            None => lld.trim_end_matches("ld.lld").to_owned(),
        }
    }

    fn major(&self) -> Option<u32> {
        match self.suffix.strip_prefix('-') {
            Some(number) => number.parse().ok(),
            None => version_of("clang"),
        }
    }
}

/// Program that is installed under this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledProgram {
    /// Name on the PATH: `clang-22`, `gcc`.
    pub name: String,
    /// Major number of its version.
    pub major: u32,
}

/// Returns the installed versions of `program`: itself and `program-N` on the PATH, newest first;
/// names with a version before the plain one of the same version.
pub fn installed(program: &str) -> Vec<InstalledProgram> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let files = std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .filter_map(|directory| directory.read_dir().ok())
        .flat_map(|entries| entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()));
    let named: BTreeSet<(u32, String)> = files
        .filter_map(|name| Some((version_suffix(name.strip_prefix(program)?)?, name)))
        .filter(|(_, name)| find_program(name, &[]).is_some())
        .collect();
    let mut all: Vec<_> = named.into_iter().map(|(major, name)| InstalledProgram { name, major }).collect();
    if let Some(major) = version_of(program) {
        all.insert(0, InstalledProgram { name: program.to_owned(), major });
    }
    all.sort_by_key(|installed| installed.major);
    all.reverse();
    all
}

/// Parses `-19`.
fn version_suffix(suffix: &str) -> Option<u32> {
    let number = suffix.strip_prefix('-')?;
    number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Asks a program for the major number of its version.
fn version_of(program: &str) -> Option<u32> {
    let path = find_program(program, &[])?;
    let output = Command::new(path).arg("--version").env("LC_ALL", "C").output().ok()?;
    major_in(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the major number of the first dotted version in a text: 19 of `Debian LLD 19.1.7`.
pub(crate) fn major_in(text: &str) -> Option<u32> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.')).find_map(|word| {
        let (major, rest) = word.split_once('.')?;
        major.parse().ok().filter(|_| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn tools(suffix: &str, directory: Option<&Path>) -> LlvmTools {
        LlvmTools { suffix: suffix.into(), directory: directory.map(Path::to_owned) }
    }

    #[test]
    fn tools_have_the_suffix_of_the_compiler() {
        let of = |name: &str| LlvmTools::with_suffix(name.strip_prefix("clang").unwrap());
        assert_eq!(of("clang-19").program("ld.lld"), "ld.lld-19");
        assert_eq!(of("clang-19").make_value(), "-19");
        let absent = of("clang-99");
        assert_eq!(absent.absent(&["llvm-nm", "ld.lld"]), ["llvm-nm-99", "ld.lld-99"]);
        let packages = ["ld.lld", "llvm-profgen", "llvm-bolt", "clang"].map(|tool| absent.package(tool));
        assert_eq!(packages, ["lld-99", "llvm-99", "bolt-99", "clang-99"]);
    }

    #[test]
    fn tools_without_the_suffix_are_in_the_compilers_directory() {
        let dir = tempfile::tempdir().unwrap();
        let lld = dir.path().join("ld.lld");
        fs::write(&lld, "").unwrap();
        fs::set_permissions(&lld, fs::Permissions::from_mode(0o755)).unwrap();
        for suffix in ["-98", ""] {
            let tools = tools(suffix, Some(dir.path()));
            if suffix.is_empty() && find_program("ld.lld", &[]).is_some() {
                continue;
            }
            assert_eq!(tools.program("ld.lld"), lld.display().to_string());
            assert_eq!(tools.make_value(), format!("{}/", dir.path().display()));
        }
        assert_eq!(tools("-98", Some(dir.path())).program("llvm-nm"), "llvm-nm-98");
        assert_eq!(tools("", None).make_value(), "1", "Kbuild names what is missing");
    }

    #[test]
    fn installed_versions_are_sorted_by_number() {
        let all = installed("clang");
        assert!(all.iter().any(|clang| clang.name == "clang-19" && clang.major == 19), "{all:?}");
        assert!(all.windows(2).all(|pair| pair[0].major >= pair[1].major), "{all:?}");
        assert!(installed("gcc").iter().any(|gcc| gcc.name == "gcc"));
        assert_eq!(installed("no-such-program"), []);
        assert_eq!(["-19", "-", "-19x", "++-19", ""].map(version_suffix), [Some(19), None, None, None, None]);
    }

    #[test]
    fn versions_are_read_from_what_programs_print() {
        for (text, major) in [
            ("Debian clang version 19.1.7 (3~deb12u1)", Some(19)),
            ("LLVM (http://llvm.org/):\n  Debian LLVM version 22.1.8\n", Some(22)),
            ("gcc-14 (Debian 14.2.0-19) 14.2.0", Some(14)),
            ("gcc (GCC) 15.0.1 20250418 (experimental)", Some(15)),
            ("Ubuntu clang version 20.1.2 (0ubuntu1)", Some(20)),
            ("clang version 21.0.0git (https://github.com/llvm/llvm-project)", Some(21)),
            ("no version.", None),
        ] {
            assert_eq!(major_in(text), major, "{text}");
        }
    }
}
