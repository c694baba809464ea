//! The programs of LLVM that make a sample profile of counts.

use crate::{Error, Result};
use kerntune_kernel::Compiler;
use kerntune_work::{IoContext, Job};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The recipe that these tools are for.
pub(crate) const RECIPE: &str = "clang-autofdo";

/// `llvm-profgen` and `llvm-profdata` of the compiler's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Llvm {
    /// What follows the programs' names: `-19`.
    suffix: String,
}

impl Llvm {
    /// Those that go with `compiler`.
    ///
    /// # Errors
    /// [`Error::Compiler`] if it is none of LLVM's.
    pub fn of(compiler: &Compiler) -> Result<Self> {
        match compiler {
            Compiler::Clang { llvm } => Ok(Self { suffix: llvm.clone() }),
            Compiler::Gcc { program } => {
                let (found, needs) = (program.clone(), "Clang".into());
                Err(Error::Compiler { recipe: RECIPE, found, needs })
            }
        }
    }

    fn program(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    /// What each program says of its version.
    ///
    /// # Errors
    /// [`Error::NoPrograms`] with all that cannot be run.
    pub fn versions(&self) -> Result<String> {
        let (mut said, mut absent) = (String::new(), Vec::new());
        for name in ["llvm-profgen", "llvm-profdata"].map(|name| self.program(name)) {
            match Command::new(&name).arg("--version").output() {
                Ok(output) if output.status.success() => {
                    said.push_str(&String::from_utf8_lossy(&output.stdout))
                }
                _ => absent.push(name),
            }
        }
        if absent.is_empty() {
            return Ok(said);
        }
        Err(Error::NoPrograms { recipe: RECIPE, programs: absent, package: self.program("llvm") })
    }

    /// Makes the sample profile `output` of `counts`, which `llvm-profgen` wants in its unsymbolized form, for
    /// the image `vmlinux`. What it says goes into `log`.
    pub fn profgen(&self, vmlinux: &Path, counts: &Path, output: &Path, log: &Path) -> Result<(), Failed> {
        let mut command = Command::new(self.program("llvm-profgen"));
        command
            .arg(argument("--binary=", vmlinux))
            .arg(argument("--unsymbolized-profile=", counts))
            // Addresses as they are; with offsets from the first segment, its default, nothing matches.
            .arg("--use-offset=0")
            .arg(argument("--output=", output));
        self.run(command, log)
    }

    /// Writes the sample profile `profile` as text.
    pub fn text(&self, profile: &Path, output: &Path, log: &Path) -> Result<(), Failed> {
        let mut command = Command::new(self.program("llvm-profdata"));
        command.args(["merge", "--sample", "--text"]).arg(profile).arg(argument("--output=", output));
        self.run(command, log)
    }

    fn run(&self, command: Command, log: &Path) -> Result<(), Failed> {
        let program = command.get_program().to_string_lossy().into_owned();
        let (end, said) = Job::new(command).output().map_err(|error| Failed::NotRun(error.into()))?;
        fs::write(log, &said).at("write", log).map_err(|error| Failed::NotRun(error.into()))?;
        if end.success() {
            return Ok(());
        }
        // A crash prints pages; what matters is at the top.
        Err(Failed::Ended { program, said: said.lines().take(8).collect::<Vec<_>>().join("\n") })
    }
}

/// `--binary=` and a path, which need not be text.
fn argument(option: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(option);
    argument.push(path);
    argument
}

/// Why there is no result.
pub(crate) enum Failed {
    /// Nothing was run.
    NotRun(Error),
    /// It ended with an error.
    Ended { program: String, said: String },
}

impl Failed {
    /// As an error about the counts of kernel `kernel`.
    pub fn on(self, kernel: &str) -> Error {
        match self {
            Failed::NotRun(error) => error,
            Failed::Ended { program, said } => Error::Program { program, kernel: kernel.to_string(), said },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_programs_are_named_with_their_package() {
        let llvm = Llvm::of(&Compiler::Clang { llvm: "-99".into() }).unwrap();
        let error = llvm.versions().unwrap_err().to_string();
        assert!(error.contains("llvm-profgen-99 and llvm-profdata-99"), "{error}");
        assert!(error.ends_with("run `apt-get install llvm-99`"), "{error}");
        assert!(Llvm::of(&Compiler::default()).is_err());
    }
}
