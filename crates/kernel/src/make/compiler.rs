//! Compiler of a kernel: as the user names it, and as it was found.

use crate::make::build_tree::CWD;
use crate::make::llvm::{installed, major_in, LlvmTools};
use crate::{tools, Error, Result};
use kerntune_work::find_program;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::process::Command;
use std::str::FromStr;

/// Compiler flag for [`BuildRequest::movable`](crate::BuildRequest::movable).
pub(crate) const FUNCTION_SECTIONS: &str = "-ffunction-sections";

/// Compiler as the user names it: `gcc`, `gcc-13`, `/opt/gcc/bin/gcc`, `clang`, `clang-19`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// GCC with binutils.
    Gcc {
        /// Name on the PATH, or path. Kbuild gets it as `CC=`.
        program: String,
    },
    /// Clang with all LLVM tools.
    Clang {
        /// Suffix of the tools' names: `-19` for `clang-19`, `ld.lld-19`; empty for plain `clang`.
        llvm: String,
    },
}

impl Default for Compiler {
    fn default() -> Self {
        Compiler::Gcc { program: "gcc".into() }
    }
}

impl FromStr for Compiler {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let name = given.rsplit('/').next().unwrap_or(given);
        let bad = |reason| Error::UnusableFlag { what: "the compiler", value: given.to_string(), reason };
        if given.is_empty() || given.chars().any(|c| !(c.is_ascii_alphanumeric() || "/._-+".contains(c))) {
            return Err(bad("it is not the name of a program"));
        }
        match name.strip_prefix("clang") {
            Some(_) if name != given => {
                Err(bad("give clang by name (clang-19), with its directory on the PATH"))
            }
            Some(suffix) if suffix.is_empty() || suffix.starts_with('-') => {
                Ok(Compiler::Clang { llvm: suffix.to_string() })
            }
            Some(_) => Err(bad("it is neither clang nor clang-VERSION")),
            None => Ok(Compiler::Gcc { program: given.to_string() }),
        }
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program())
    }
}

/// Compiler that was found, as it goes into a kernel's id and manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompilerIdentity {
    /// Path of the program, with links resolved: `/usr/bin/x86_64-linux-gnu-gcc-12`.
    pub program: String,
    /// First line of `--version`.
    pub version: String,
}

impl CompilerIdentity {
    /// Returns the major number of the version; `None` if it says none.
    pub fn major(&self) -> Option<u32> {
        major_in(&self.version)
    }
}

impl Compiler {
    /// Returns the tools of the LLVM that a Clang is part of; `None` for GCC.
    pub fn llvm_tools(&self) -> Option<LlvmTools> {
        match self {
            Self::Clang { llvm } => Some(LlvmTools::with_suffix(llvm)),
            Self::Gcc { .. } => None,
        }
    }

    /// Returns the program `tool` of LLVM for a kernel of this compiler: Clang's own, else the newest
    /// that is installed.
    pub fn llvm_program(&self, tool: &str) -> String {
        match self.llvm_tools() {
            Some(tools) => tools.program(tool),
            None => installed(tool).into_iter().next().map_or_else(|| tool.to_owned(), |newest| newest.name),
        }
    }

    /// Returns the name of the program that compiles.
    pub fn program(&self) -> String {
        match self {
            Compiler::Gcc { program } => program.clone(),
            Compiler::Clang { llvm } => format!("clang{llvm}"),
        }
    }

    /// Returns make's arguments that select the compiler and set its current directory to [`CWD`].
    /// Only the compiler gets this `PWD`: a shell would accept it too and go wrong with the next
    /// `cd`. `through` is a wrapper program followed by a space, or empty.
    pub(crate) fn make_args(&self, through: &str) -> Vec<String> {
        let compiler = format!("CC=env PWD={CWD} {through}{}", self.program());
        match self.llvm_tools() {
            None => vec![compiler],
            Some(tools) => vec![format!("LLVM={}", tools.make_value()), compiler],
        }
    }

    /// Returns make's argument that runs the compiler of Kbuild's own tools `through` a wrapper
    /// (see `make_args`). The compiler is the one that Kbuild takes by default.
    pub(crate) fn host_arg(&self, through: &str) -> String {
        match self {
            Compiler::Gcc { .. } => format!("HOSTCC={through}gcc"),
            Compiler::Clang { .. } => format!("HOSTCC={through}{}", self.program()),
        }
    }

    /// Finds the compiler and asks its version.
    ///
    /// # Errors
    /// [`Error::MissingTools`] with the packages to install, if it or a tool it needs is absent.
    pub fn identify(&self) -> Result<CompilerIdentity> {
        let program = self.program();
        match self {
            Compiler::Gcc { .. } => {
                let package = program.rsplit('/').next().unwrap_or("gcc");
                tools::require(&[(&program, package), ("ld", "binutils")])?;
            }
            Compiler::Clang { .. } => {
                let llvm = self.llvm_tools();
                let tools = llvm.iter().flat_map(|llvm| {
                    ["ld.lld", "llvm-nm"].map(|tool| (llvm.program(tool), llvm.package(tool)))
                });
                // Kbuild's host tools link with lld too; libelf's headers still come from the host.
                let wanted: Vec<_> = [(program.clone(), program.clone())].into_iter().chain(tools).collect();
                let wanted: Vec<_> = wanted.iter().map(|(name, of)| (name.as_str(), of.as_str())).collect();
                tools::require(&wanted)?;
            }
        }
        let path = find_program(&program, &[]).unwrap_or_else(|| program.clone().into());
        let out =
            Command::new(&path).arg("--version").env("LC_ALL", "C").output().map_err(|source| {
                kerntune_work::Error::Spawn { program: path.display().to_string(), source }
            })?;
        let version =
            String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().trim().to_string();
        if !out.status.success() || version.is_empty() {
            let reason = "it does not say its version (`--version`)";
            return Err(Error::UnusableFlag { what: "the compiler", value: program, reason });
        }
        let path = path.canonicalize().unwrap_or(path);
        Ok(CompilerIdentity { program: path.display().to_string(), version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install_advice;

    #[test]
    fn names_become_compilers() {
        let parse = |s: &str| s.parse::<Compiler>().unwrap();
        assert_eq!(parse("gcc"), Compiler::default());
        assert_eq!(parse("gcc-13").make_args(""), ["CC=env PWD=/proc/self/cwd gcc-13"]);
        assert_eq!(parse("clang-19"), Compiler::Clang { llvm: "-19".into() });
        assert_eq!(parse("clang-19").make_args(""), ["LLVM=-19", "CC=env PWD=/proc/self/cwd clang-19"]);
        assert_eq!(parse("clang").make_args("")[0], "LLVM=1");
        assert_eq!(parse("gcc").make_args("ccache "), ["CC=env PWD=/proc/self/cwd ccache gcc"]);
        assert_eq!(parse("gcc-13").host_arg("ccache "), "HOSTCC=ccache gcc");
        assert_eq!(parse("clang-19").host_arg("ccache "), "HOSTCC=ccache clang-19");
        assert_eq!(parse("clang-19").to_string(), "clang-19");
        for bad in ["", "gcc -m32", "/opt/bin/clang-19", "clang++", "gcc;id"] {
            assert!(bad.parse::<Compiler>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_host_compiler_has_an_identity() {
        let identity = Compiler::default().identify().unwrap();
        assert!(identity.program.starts_with('/'));
        assert!(identity.version.contains("gcc"), "{identity:?}");
    }

    #[test]
    fn a_compiler_without_a_version_names_no_kernel() {
        let error = "/bin/false".parse::<Compiler>().unwrap().identify().unwrap_err().to_string();
        assert!(error.contains("`/bin/false`") && error.contains("does not say its version"), "{error}");
    }

    #[test]
    fn a_missing_compiler_says_what_to_install() {
        let error = "gcc-99".parse::<Compiler>().unwrap().identify().unwrap_err();
        let advice =
            |packages: &[&str]| install_advice(&packages.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(error.to_string().contains(&advice(&["gcc-99"])), "{error}");
        let error = "clang-99".parse::<Compiler>().unwrap().identify().unwrap_err();
        assert!(error.to_string().contains(&advice(&["clang-99", "lld-99", "llvm-99"])), "{error}");
    }
}
