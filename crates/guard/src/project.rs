//! `guard.toml` with what it names: workloads, rows, variants of kernels.

use crate::file::{Configuration, GuardFile, Guarded};
use crate::{Error, Result};
use kerntune_guest::{read_text, Suite, Workload};
use kerntune_tune::model::{self, Model};
use kerntune_work::IoContext;
use std::path::{Path, PathBuf};

/// A workload of the file with what is guarded of it.
#[derive(Debug, Clone)]
pub struct Work {
    /// As the file calls it.
    pub name: String,
    /// What runs: no more than the rows.
    pub workload: Workload,
    /// The rows; all that have operations if empty.
    pub rows: Vec<String>,
}

/// A configuration and a compiler: what else than the source makes a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The configuration.
    pub configuration: Configuration,
    /// The compiler.
    pub compiler: String,
}

/// The file, and all that it names.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its directory: relative paths begin here.
    pub dir: PathBuf,
    /// What it says.
    pub file: GuardFile,
    /// Its workloads.
    pub works: Vec<Work>,
    /// The front-end model of recordings. Figures do not depend on it; recordings that others made are found by it.
    pub model: Model,
}

impl Project {
    /// Reads a file. Workloads that it names without a path are looked for in `workloads/` beside it, in `dirs`, and among those
    /// that are shipped.
    ///
    /// # Errors
    /// A file that cannot be read, and everything that is wrong with it.
    pub fn load(path: &Path, dirs: &[PathBuf]) -> Result<Self> {
        let text = read_text("read", path)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let dir = parent.unwrap_or(Path::new(".")).to_owned();
        let dirs: Vec<PathBuf> = std::iter::once(dir.join("workloads")).chain(dirs.iter().cloned()).collect();
        let find = |name: &str| find(name, &dir, &dirs);
        let rows_of = |name: &str| {
            let workload = find(name).map_err(|error| error.to_string())?;
            workload.require_run("measured").map_err(|error| error.to_string())?;
            let rows = Suite::of(workload).map(|suite| suite.rows).unwrap_or_default();
            Ok(rows.into_iter().map(|row| row.name).collect())
        };
        let file = GuardFile::parse(&text, &rows_of)
            .map_err(|problems| Error::File { path: path.to_owned(), problems })?;
        let works = file.workloads.iter().map(|guarded| Ok(work(guarded, find(&guarded.name)?)));
        let works = works.collect::<Result<_>>()?;
        Ok(Self { dir, file, works, model: model::find(model::DEFAULT)? })
    }

    /// Every configuration with every compiler.
    pub fn variants(&self) -> Vec<Variant> {
        let of = |configuration: &Configuration| {
            let configuration = configuration.clone();
            let compilers = self.file.compilers.clone().into_iter();
            compilers.map(move |compiler| Variant { configuration: configuration.clone(), compiler })
        };
        self.file.configurations.iter().flat_map(of).collect()
    }

    /// The one variant of these names; a name may be left out where the file has but one.
    ///
    /// # Errors
    /// A name that the file does not have, or none where it has several.
    pub fn variant(&self, what: &'static str, names: [Option<&str>; 2]) -> Result<Variant> {
        let configurations = self.file.configurations.iter().map(|of| of.name.clone()).collect();
        let configuration = one(what, "configuration", names[0], configurations)?;
        let compiler = one(what, "compiler", names[1], self.file.compilers.clone())?;
        let found = self
            .variants()
            .into_iter()
            .find(|of| of.configuration.name == configuration && of.compiler == compiler);
        found.ok_or(Error::NotInFile { kind: "configuration", name: configuration, known: Vec::new() })
    }

    /// Where figures are kept that are to be committed; `named` instead of what the file says.
    pub fn baseline(&self, named: Option<&Path>) -> PathBuf {
        named.map_or_else(|| self.dir.join(&self.file.baseline), Path::to_owned)
    }

    /// The same with another git tree than the file's.
    ///
    /// # Errors
    /// A directory that is not there.
    pub fn with_tree(mut self, git: Option<&Path>) -> Result<Self> {
        if let Some(git) = git {
            self.file.git = Some(git.canonicalize().at("open git tree", git)?);
        }
        Ok(self)
    }

    /// The git tree.
    ///
    /// # Errors
    /// None is named.
    pub fn tree(&self) -> Result<PathBuf> {
        self.file.git.as_ref().map(|git| self.dir.join(git)).ok_or(Error::NoTree)
    }
}

fn one(what: &'static str, kind: &'static str, name: Option<&str>, known: Vec<String>) -> Result<String> {
    match (name, &known[..]) {
        (Some(name), _) if known.iter().any(|known| known == name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Error::NotInFile { kind, name: name.to_owned(), known }),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(Error::Several { what, kind, names: known }),
    }
}

fn find(name: &str, dir: &Path, dirs: &[PathBuf]) -> Result<Workload, kerntune_guest::Error> {
    if name.contains('/') || name.ends_with(".toml") {
        return Workload::load(&dir.join(name));
    }
    Workload::find(name, dirs)
}

/// The workload with no more than what is guarded of it.
fn work(guarded: &Guarded, workload: Workload) -> Work {
    let (name, rows) = (guarded.name.clone(), guarded.rows.clone());
    let whole = rows.is_empty() && guarded.scale == 1.0;
    let workload = match Suite::of(workload.clone()).filter(|_| !whole) {
        None => workload,
        Some(suite) => {
            let asked = |row: &&kerntune_guest::SuiteRow| rows.is_empty() || rows.contains(&row.name);
            let chosen: Vec<_> = suite.rows.iter().filter(asked).collect();
            let scale = if suite.is_scalable() { guarded.scale } else { 1.0 };
            suite.restricted(&chosen, scale)
        }
    };
    Work { name, workload, rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn load(text: &str) -> Result<Project> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("guard.toml");
        fs::write(&path, text).unwrap();
        fs::write(
            dir.path().join("own.toml"),
            "[[measured.step]]\ncommand = [\"true\"]\nregion = \"own\"\noperations = 2\n",
        )
        .unwrap();
        Project::load(&path, &[])
    }

    #[test]
    fn only_the_rows_run_that_are_guarded() {
        let project = load("[[workload]]\nname = \"rr\"\nrows = [\"stat\", \"getpid\"]\nscale = 4\n[[workload]]\nname = \"own.toml\"\n").unwrap();
        let [rr, own] = &project.works[..] else { panic!() };
        let command = &rr.workload.measured.steps[0].command;
        assert!(command.windows(2).any(|pair| pair == ["--only", "stat,getpid"]), "{command:?}");
        assert!(command.windows(2).any(|pair| pair == ["--scale", "4"]), "{command:?}");
        assert_eq!((own.name.as_str(), own.rows.len()), ("own.toml", 0));
        assert_eq!(
            load("[[workload]]\nname = \"rr\"\n").unwrap().works[0].workload,
            Workload::find("rr", &[]).unwrap()
        );
    }

    #[test]
    fn one_variant_needs_no_name_and_several_do() {
        let one = load("[[workload]]\nname = \"rr\"\n").unwrap();
        assert_eq!(one.variant("bisect", [None, None]).unwrap(), one.variants()[0]);
        let two = load("compilers = [\"gcc\", \"clang-19\"]\n[[workload]]\nname = \"rr\"\n").unwrap();
        assert_eq!(two.variants().len(), 2);
        let error = two.variant("bisect", [None, None]).unwrap_err().to_string();
        assert!(error.contains("--compiler") && error.contains("clang-19"), "{error}");
        assert_eq!(two.variant("bisect", [Some("base"), Some("gcc")]).unwrap().compiler, "gcc");
        assert!(matches!(two.variant("bisect", [Some("x"), None]), Err(Error::NotInFile { .. })));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_file() {
        let error = load("[[workload]]\nname = \"own.toml\"\nrows = [\"x\"]\n").unwrap_err().to_string();
        assert!(
            error.contains("guard.toml:3:9: workload[0].rows: \"x\" is no row: there are own"),
            "{error}"
        );
        let error = load("[[workload]]\nname = \"none.toml\"\n").unwrap_err().to_string();
        assert!(error.contains("2:8: workload[0].name: "), "{error}");
    }
}
