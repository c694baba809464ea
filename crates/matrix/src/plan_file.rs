//! The plan file, which describes a matrix (docs/matrix.md).

use crate::{CoreDemand, Error, Result};
use kerntune_guest::read_text;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A matrix, as its TOML file describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Name of the matrix; by default the file's name.
    #[serde(default)]
    pub name: String,
    /// Kernels and sources.
    #[serde(default)]
    pub kernel: Vec<KernelEntry>,
    /// Configurations of the kernels to build; empty means the source's own.
    #[serde(default)]
    pub configuration: Vec<ConfigurationEntry>,
    /// Compilers of the kernels to build; empty means gcc.
    #[serde(default)]
    pub compilers: Vec<String>,
    /// Recipes, with `none` for the untuned kernel; empty means only that.
    #[serde(default)]
    pub recipes: Vec<String>,
    /// Combinations that cannot be made become cells with the reason, instead of errors.
    #[serde(default)]
    pub refusals: bool,
    /// Names or files of workloads.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Name of the front-end model; `None` means the generic one.
    #[serde(default)]
    pub model: Option<String>,
    /// Commands of kerntune, one cell each.
    #[serde(default)]
    pub command: Vec<CommandEntry>,
    /// Directory of the file; relative paths start there.
    #[serde(skip)]
    pub directory: PathBuf,
}

/// A kernel that is already built, a source, or commits of a git tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelEntry {
    /// Name in cells.
    pub name: Option<String>,
    /// Label or beginning of the id of a kernel that is already built.
    pub built: Option<String>,
    /// Source to build, as `kernel build --source` takes it.
    pub source: Option<String>,
    /// Git tree of Linux.
    pub tree: Option<PathBuf>,
    /// Revisions of the tree, or ranges `A..B`: all commits after A up to B.
    #[serde(default)]
    pub commits: Vec<String>,
    /// Patches, in the order in which they apply.
    #[serde(default)]
    pub patches: Vec<PathBuf>,
    /// Complete configuration to start from.
    pub config: Option<PathBuf>,
}

/// A configuration, as its difference from the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigurationEntry {
    /// Name in cells.
    pub name: String,
    /// Lines of the configuration: `CONFIG_HZ_100=y`.
    #[serde(default)]
    pub set: Vec<String>,
    /// Configuration fragments, in order.
    #[serde(default)]
    pub fragments: Vec<PathBuf>,
    /// Flags for `KCFLAGS`.
    #[serde(default)]
    pub kcflags: Vec<String>,
}

/// A command of kerntune to run as a cell.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandEntry {
    /// Name of the cell.
    pub name: String,
    /// Arguments: `["bench", "run", "kbx", "--kernel", "base", "--json"]`.
    pub arguments: Vec<String>,
    /// Labels of the kernels that the arguments name; part of the task's key, and copied to the
    /// machine that runs it.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// Files that the command reads; part of the task's key.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// CPUs that the command occupies: `one` or `all`.
    #[serde(default = "all")]
    pub cores: CoreDemand,
}

fn all() -> CoreDemand {
    CoreDemand::All
}

impl PlanFile {
    /// Reads a plan file.
    ///
    /// # Errors
    /// A file that cannot be read or is invalid.
    pub fn load(path: &Path) -> Result<Self> {
        let text = read_text("read the plan", path)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut file = Self::parse(&text, path)?;
        file.directory = directory.unwrap_or(Path::new(".")).to_owned();
        if file.name.is_empty() {
            file.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Ok(file)
    }

    /// Parses a plan file's text; `path` is for messages.
    ///
    /// # Errors
    /// An invalid text, with the line; a matrix without cells.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let bad = |message: String| Error::PlanFile { path: path.to_owned(), message };
        let file: Self =
            toml::from_str(text).map_err(|error| bad(error.to_string().trim_end().to_owned()))?;
        let half = file.kernel.is_empty() != file.workloads.is_empty();
        if half || (file.kernel.is_empty() && file.command.is_empty()) {
            return Err(bad(
                "a matrix has kernels ([[kernel]]) and workloads, or commands ([[command]])".into()
            ));
        }
        for entry in &file.kernel {
            let ways = [entry.built.is_some(), entry.source.is_some(), entry.tree.is_some()];
            if ways.iter().filter(|given| **given).count() != 1 {
                return Err(bad("a [[kernel]] has one of `built`, `source` and `tree`".into()));
            }
            if entry.tree.is_some() == entry.commits.is_empty() {
                return Err(bad("`commits` says which of a `tree`, and is for nothing else".into()));
            }
            if entry.built.is_some() && (!entry.patches.is_empty() || entry.config.is_some()) {
                return Err(bad("a kernel that is `built` takes no patches and no config".into()));
            }
        }
        let configured = !file.configuration.is_empty() || !file.compilers.is_empty();
        if configured && file.kernel.iter().all(|entry| entry.built.is_some()) {
            return Err(bad(
                "configurations and compilers are for kernels that are to be built: none is".into()
            ));
        }
        let mut names: Vec<&str> = file.configuration.iter().map(|entry| entry.name.as_str()).collect();
        names.extend(file.command.iter().map(|entry| entry.name.as_str()));
        let odd = |name: &&&str| name.is_empty() || name.contains('/') || name.contains(char::is_whitespace);
        if let Some(name) = names.iter().find(odd) {
            return Err(bad(format!("the name {name:?} is empty, or has `/` or blanks in it")));
        }
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(bad(format!("the name {:?} is there twice", twice[0])));
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PlanFile> {
        PlanFile::parse(text, Path::new("plan.toml"))
    }

    #[test]
    fn a_matrix() {
        let text = "workloads = [\"rr\"]\nrecipes = [\"none\", \"gcc-pgo\"]\n\
             [[kernel]]\nsource = \"debian:6.12\"\n[[kernel]]\ntree = \"linux\"\ncommits = [\"v6.12..v6.12.3\"]\n\
             [[configuration]]\nname = \"hz100\"\nset = [\"CONFIG_HZ_100=y\"]\n";
        let file = parse(text).unwrap();
        assert_eq!((file.kernel.len(), file.recipes.len(), file.configuration.len()), (2, 2, 1));
    }

    #[test]
    fn mistakes_are_said() {
        let kernel = "workloads = [\"rr\"]\n[[kernel]]\n";
        for (text, words) in [
            ("", "a matrix has kernels"),
            ("workloads = [\"rr\"]", "a matrix has kernels"),
            ("nonsense = 1", "unknown field `nonsense`"),
            (&format!("{kernel}name = \"x\""), "one of `built`"),
            (&format!("{kernel}built = \"a\"\nsource = \"b\""), "one of `built`"),
            (&format!("{kernel}tree = \"a\""), "`commits`"),
            (&format!("{kernel}built = \"a\"\npatches = [\"p\"]"), "takes no patches"),
            (&format!("compilers = [\"gcc\"]\n{kernel}built = \"a\""), "none is"),
            (&format!("{kernel}source = \"a\"\n[[configuration]]\nname = \"a b\""), "blanks"),
            (&format!("{kernel}source = \"a\"\n{0}{0}", "[[configuration]]\nname = \"a\"\n"), "twice"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
