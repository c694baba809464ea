//! `guard.toml` together with everything that it names: workloads, rows, variants of kernels.

use crate::file::{GuardFile, KernelConfiguration, WorkloadEntry};
use crate::{Error, Result};
use kerntune_guest::{read_text, Suite, Workload};
use kerntune_tune::model::{self, Model};
use kerntune_work::IoContext;
use std::path::{Path, PathBuf};

/// A workload of `guard.toml`, restricted to its guarded rows.
#[derive(Debug, Clone)]
pub struct GuardedWorkload {
    /// Name in `guard.toml`.
    pub name: String,
    /// The workload to run, with no more than the guarded rows.
    pub workload: Workload,
    /// Guarded rows; empty means all that have operations.
    pub rows: Vec<String>,
    /// Files in the guest that `guard check --program` guards, by name or path; empty means the
    /// programs of the measured steps.
    pub programs: Vec<String>,
}

/// A configuration and a compiler: with a source they make a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildVariant {
    /// Configuration of the kernel.
    pub configuration: KernelConfiguration,
    /// Compiler of the kernel.
    pub compiler: String,
}

/// A loaded `guard.toml` with its workloads.
#[derive(Debug, Clone)]
pub struct GuardProject {
    /// Directory of the file; relative paths start there.
    pub dir: PathBuf,
    /// Content of the file.
    pub file: GuardFile,
    /// Workloads of the file.
    pub works: Vec<GuardedWorkload>,
    /// Front-end model of recordings. Figures do not depend on it, but recordings of other commands
    /// can be reused only with the same model.
    pub model: Model,
}

impl GuardProject {
    /// Loads `guard.toml`. Workloads named without a path are searched in `workloads/` beside it,
    /// in `dirs`, and among those that come with kerntune.
    ///
    /// # Errors
    /// A file that cannot be read, or has problems; all of them are listed.
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

    /// Returns every combination of configuration and compiler.
    pub fn variants(&self) -> Vec<BuildVariant> {
        let of = |configuration: &KernelConfiguration| {
            let configuration = configuration.clone();
            let compilers = self.file.compilers.clone().into_iter();
            compilers.map(move |compiler| BuildVariant { configuration: configuration.clone(), compiler })
        };
        self.file.configurations.iter().flat_map(of).collect()
    }

    /// Returns the variant with these names of configuration and compiler; a name may be missing if
    /// the file has only one.
    ///
    /// # Errors
    /// An unknown name, or a missing one if the file has several.
    pub fn variant(&self, what: &'static str, names: [Option<&str>; 2]) -> Result<BuildVariant> {
        let configurations = self.file.configurations.iter().map(|of| of.name.clone()).collect();
        let configuration = one(what, "configuration", names[0], configurations)?;
        let compiler = one(what, "compiler", names[1], self.file.compilers.clone())?;
        let found = self
            .variants()
            .into_iter()
            .find(|of| of.configuration.name == configuration && of.compiler == compiler);
        found.ok_or(Error::NotInFile { kind: "configuration", name: configuration, known: Vec::new() })
    }

    /// Returns the path of the baseline file; `named` overrides the one in `guard.toml`.
    pub fn baseline(&self, named: Option<&Path>) -> PathBuf {
        named.map_or_else(|| self.dir.join(&self.file.baseline), Path::to_owned)
    }

    /// Replaces the git tree of the file.
    ///
    /// # Errors
    /// A directory that does not exist.
    pub fn with_tree(mut self, git: Option<&Path>) -> Result<Self> {
        if let Some(git) = git {
            self.file.git = Some(git.canonicalize().at("open git tree", git)?);
        }
        Ok(self)
    }

    /// Returns the path of the git tree.
    ///
    /// # Errors
    /// The file names none.
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

/// Restricts a workload to its guarded rows.
fn work(guarded: &WorkloadEntry, workload: Workload) -> GuardedWorkload {
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
    GuardedWorkload { name, workload, rows, programs: guarded.programs.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn load(text: &str) -> Result<GuardProject> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("guard.toml");
        fs::write(&path, text).unwrap();
        fs::write(
            dir.path().join("own.toml"),
            "[[measured.step]]\ncommand = [\"true\"]\nregion = \"own\"\noperations = 2\n",
        )
        .unwrap();
        GuardProject::load(&path, &[])
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
