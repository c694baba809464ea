//! LLVM's programs that make a sample profile from counts.

use crate::{Error, Result};
use kerntune_convert::autofdo::SampleProfile;
use kerntune_kernel::{Compiler, LlvmTools};
use kerntune_work::{IoContext, Job};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Recipe that these tools belong to.
pub(crate) const RECIPE: &str = "clang-autofdo";
/// Tools that make a profile.
pub(crate) const TOOLS: [&str; 2] = ["llvm-profgen", "llvm-profdata"];

/// `llvm-profgen` and `llvm-profdata` of the compiler's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProfileTools(LlvmTools);

impl ProfileTools {
    /// Returns the tools that belong to `compiler`.
    ///
    /// # Errors
    /// [`Error::Compiler`] if it is not Clang.
    pub fn of(compiler: &Compiler) -> Result<Self> {
        match compiler.llvm_tools() {
            Some(tools) => Ok(Self(tools)),
            None => {
                let (found, needs) = (compiler.program(), "Clang".into());
                Err(Error::Compiler { recipe: RECIPE, found, needs })
            }
        }
    }

    /// Returns the output of `--version` of both programs.
    ///
    /// # Errors
    /// [`Error::NoPrograms`] with all that cannot be run.
    pub fn versions(&self) -> Result<String> {
        let (mut printed, mut absent) = (String::new(), Vec::new());
        for name in TOOLS.map(|name| self.0.program(name)) {
            match Command::new(&name).arg("--version").output() {
                Ok(output) if output.status.success() => {
                    printed.push_str(&String::from_utf8_lossy(&output.stdout))
                }
                _ => absent.push(name),
            }
        }
        if absent.is_empty() {
            return Ok(printed);
        }
        Err(Error::NoPrograms { recipe: RECIPE, programs: absent, package: self.0.package("llvm-profgen") })
    }

    /// Makes the sample profile `output` for the image `vmlinux` from `counts`, which are in
    /// `llvm-profgen`'s unsymbolized form. Its messages go into `log`.
    pub fn profgen(
        &self,
        vmlinux: &Path,
        counts: &Path,
        output: &Path,
        log: &Path,
    ) -> Result<(), ToolFailure> {
        let mut command = Command::new(self.0.program("llvm-profgen"));
        command
            .arg(argument("--binary=", vmlinux))
            .arg(argument("--unsymbolized-profile=", counts))
            // Addresses as they are: with offsets from the first segment, the default, nothing
            // matches.
            .arg("--use-offset=0")
            .arg(argument("--output=", output));
        self.run(command, log)
    }

    /// Links the module `module` alone, with its code at the address `text`, to an image from which
    /// [`profgen`](Self::profgen) can read line tables. What it uses of the kernel stays undefined.
    pub fn link_module(
        &self,
        module: &Path,
        text: u64,
        output: &Path,
        log: &Path,
    ) -> Result<(), ToolFailure> {
        let mut command = Command::new(self.0.program("ld.lld"));
        command
            // Distances to what is undefined do not fit; nothing runs this image.
            .args(["--noinhibit-exec", "--unresolved-symbols=ignore-all", "--no-dynamic-linker", "-static"])
            .args(["--entry=0", &format!("-Ttext=0x{text:x}")])
            .arg("-o")
            .args([output, module]);
        self.run(command, log)
    }

    /// Adds up the sample profiles `profiles`.
    pub fn merge(&self, profiles: &[&PathBuf], output: &Path, log: &Path) -> Result<(), ToolFailure> {
        let mut command = Command::new(self.0.program("llvm-profdata"));
        command.args(["merge", "--sample", "--extbinary"]).args(profiles).arg(argument("--output=", output));
        self.run(command, log)
    }

    /// Reads a sample profile, by way of its text in `dir`.
    pub fn samples(&self, profile: &Path, dir: &Path) -> Result<SampleProfile, ToolFailure> {
        let path = dir.join("samples.txt");
        self.text(profile, &path, &dir.join("llvm-profdata.log"))?;
        let text = fs::read(&path).at("read", &path).map_err(|error| ToolFailure::NotRun(error.into()))?;
        SampleProfile::parse(&String::from_utf8_lossy(&text))
            .map_err(|reason| ToolFailure::NotRun(Error::BadSamples { file: path, reason }))
    }

    /// Writes the sample profile `profile` as text.
    fn text(&self, profile: &Path, output: &Path, log: &Path) -> Result<(), ToolFailure> {
        let mut command = Command::new(self.0.program("llvm-profdata"));
        command.args(["merge", "--sample", "--text"]).arg(profile).arg(argument("--output=", output));
        self.run(command, log)
    }

    fn run(&self, command: Command, log: &Path) -> Result<(), ToolFailure> {
        let program = command.get_program().to_string_lossy().into_owned();
        let (end, printed) = Job::new(command).output().map_err(|error| ToolFailure::NotRun(error.into()))?;
        fs::write(log, &printed).at("write", log).map_err(|error| ToolFailure::NotRun(error.into()))?;
        if end.success() {
            return Ok(());
        }
        // A crash prints pages; the cause is at the top.
        Err(ToolFailure::Ended { program, printed: printed.lines().take(8).collect::<Vec<_>>().join("\n") })
    }
}

/// Returns `--binary=` and a path, which may not be UTF-8.
fn argument(option: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(option);
    argument.push(path);
    argument
}

/// Failure of one of the programs.
pub(crate) enum ToolFailure {
    /// The program could not be run.
    NotRun(Error),
    /// The program ended with an error.
    Ended { program: String, printed: String },
}

impl ToolFailure {
    /// Converts the failure to an error about the counts of kernel `kernel`.
    pub fn on(self, kernel: &str) -> Error {
        match self {
            ToolFailure::NotRun(error) => error,
            ToolFailure::Ended { program, printed } => {
                Error::Program { program, kernel: kernel.to_string(), printed }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_programs_are_named_with_their_package() {
        let llvm = ProfileTools::of(&Compiler::Clang { llvm: "-99".into() }).unwrap();
        let error = llvm.versions().unwrap_err().to_string();
        assert!(error.contains("llvm-profgen-99 and llvm-profdata-99"), "{error}");
        assert!(error.ends_with(&kerntune_kernel::install_advice(&["llvm-99".into()])), "{error}");
        assert!(ProfileTools::of(&Compiler::default()).is_err());
    }
}
