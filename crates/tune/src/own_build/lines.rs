//! Commands that build a kernel with the files.

use kerntune_kernel::Compiler;
use kerntune_work::find_program;

/// Stands for the directory of the files, until it is known how a build names it.
pub(super) const PROFILES: &str = "@PROFILES@";

/// First Linux whose Kbuild has `CONFIG_AUTOFDO_CLANG`, and whose linker script places a section for
/// each function.
const FIRST_WITH_AUTOFDO: (u32, u32) = (6, 13);

/// Flags for objects with counts. Those of the compiler's messages come last, after Kbuild's.
const COUNTER_FLAGS: &str =
    "-fprofile-correction -fprofile-partial-training --param=max-inline-insns-auto=120 \
    -Wno-missing-profile -Wno-error=coverage-mismatch";

/// Flags by which Clang names places of machine code, for sources whose Kbuild does not add them.
const DISCRIMINATORS: &str =
    "-gmlt -fdebug-info-for-profiling -mllvm=-enable-fs-discriminator=true -mllvm=-improved-fs-discriminator=true";

/// Arguments of `make`, with lines of the configuration that they need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MakeLine {
    /// Variables for make's command line: name and value, in the syntax of make.
    pub variables: Vec<(&'static str, String)>,
    /// Lines of `.config`.
    pub config: Vec<&'static str>,
    /// Command to carry out once in the source tree.
    pub prepare: Option<String>,
}

/// Versions of lld that Debian's names of programs may end in.
const LLD_VERSIONS: std::ops::RangeInclusive<u32> = 13..=40;

/// Linker that an order is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderLinker {
    /// lld, which reads a list of symbols.
    Lld,
    /// GNU ld, or lld: both read a linker script.
    Script,
}

impl MakeLine {
    /// Returns the line for Clang's profile `file` and Linux `version` (`6.12.117`).
    pub fn afdo(file: &str, version: &str, compiler: &Compiler) -> Self {
        let mut line = Self::of(compiler);
        if is_since(version, FIRST_WITH_AUTOFDO) {
            line.config.push("CONFIG_AUTOFDO_CLANG=y");
            line.variables.push(("CLANG_AUTOFDO_PROFILE", file.into()));
        } else {
            line.variables.push(("KCFLAGS", format!("{DISCRIMINATORS} -fprofile-sample-use={file}")));
        }
        line
    }

    /// Returns the line for the files of Propeller that begin with `prefix`, and the profile `afdo` if
    /// the recorded kernel was compiled with one.
    pub fn propeller(prefix: &str, afdo: Option<&str>, compiler: &Compiler) -> Self {
        let mut line = Self::of(compiler);
        line.config.push("CONFIG_PROPELLER_CLANG=y");
        line.variables.push(("CLANG_PROPELLER_PROFILE_PREFIX", prefix.into()));
        if let Some(afdo) = afdo {
            line.config.push("CONFIG_AUTOFDO_CLANG=y");
            line.variables.push(("CLANG_AUTOFDO_PROFILE", afdo.into()));
        }
        line
    }

    /// Returns the line for GCC's counters in `directory`, whose file `objects` lists the objects.
    ///
    /// Kbuild expands the variable for each object. GCC looks for `kernel#fork.gcda`: the path of the
    /// object from the directory in which it works.
    pub fn counters(directory: &str, compiler: &Compiler) -> Self {
        let mut line = Self::of(compiler);
        let has_counts = format!("$(filter $(obj)/$(target-stem).o,$(file <{directory}/objects))");
        let flags = format!("-fprofile-use={directory} -fprofile-prefix-path=$(shell pwd) {COUNTER_FLAGS}");
        line.variables.push(("CFLAGS_KERNEL", format!("$(if {has_counts},{flags})")));
        line
    }

    /// Returns the line for an order of functions: `file` is the list of symbols for lld, or the part
    /// of a linker script. Linux is of this `version`.
    pub fn order(file: &str, linker: OrderLinker, version: &str, compiler: &Compiler) -> Self {
        let mut line = Self::of(compiler);
        line.variables.push(("KCFLAGS", "-ffunction-sections".into()));
        let places_all = is_since(version, FIRST_WITH_AUTOFDO);
        match linker {
            OrderLinker::Lld => {
                let lld = lld_of(compiler);
                let flags = format!("--symbol-ordering-file={file} --no-warn-symbol-ordering");
                line.variables.push(("LD", format!("{lld} {flags}")));
                line.prepare = (!places_all).then(|| linker_script_command(None, false));
            }
            OrderLinker::Script => {
                line.prepare = Some(linker_script_command(Some(file), places_all));
            }
        }
        line
    }

    fn of(compiler: &Compiler) -> Self {
        let variable = match compiler {
            Compiler::Clang { llvm } if llvm.is_empty() => Some(("LLVM", "1".into())),
            Compiler::Clang { llvm } => Some(("LLVM", llvm.clone())),
            Compiler::Gcc { program } if program == "gcc" => None,
            Compiler::Gcc { program } => Some(("CC", program.clone())),
        };
        Self { variables: variable.into_iter().collect(), ..Self::default() }
    }

    /// Adds the variables and configuration of another line. Flags of one variable are joined.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (name, value) in other.variables {
            match self.variables.iter_mut().find(|(there, _)| *there == name) {
                Some((_, there)) if *there == value => {}
                Some((_, there)) => *there = format!("{there} {value}"),
                None => self.variables.push((name, value)),
            }
        }
        for line in other.config {
            if !self.config.contains(&line) {
                self.config.push(line);
            }
        }
        Self { prepare: self.prepare.or(other.prepare), ..self }
    }

    /// Formats the arguments for a shell.
    pub fn shell(&self) -> String {
        let words = self.variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        words.collect::<Vec<_>>().join(" ")
    }

    /// Formats the arguments for a recipe of a makefile.
    pub fn makefile(&self) -> String {
        self.shell().replace('$', "$$")
    }
}

/// Returns the command that prepares the kernel's linker script in the source tree: with the functions
/// of `fragment` before all others, and with a place for the sections of other functions unless the
/// script has one (`places_all`).
pub fn linker_script_command(fragment: Option<&str>, places_all: bool) -> String {
    let before = fragment.map_or(String::new(), |file| format!("#include \"{file}\"\\n"));
    let after = if places_all { "" } else { "\\n*(.text.[0-9a-zA-Z_]*)" };
    format!("sed -i 's|^[[:space:]]*TEXT_TEXT$|{before}&{after}|' arch/x86/kernel/vmlinux.lds.S")
}

/// Returns the lld of Clang's version; for GCC, the newest one on the PATH.
fn lld_of(compiler: &Compiler) -> String {
    const NAME: &str = "ld.lld";
    let newest = || {
        let mut names =
            std::iter::once(NAME.to_string()).chain(LLD_VERSIONS.rev().map(|n| format!("{NAME}-{n}")));
        names.find(|name| find_program(name, &[]).is_some())
    };
    match compiler {
        Compiler::Clang { llvm } => format!("{NAME}{llvm}"),
        Compiler::Gcc { .. } => newest().unwrap_or_else(|| NAME.into()),
    }
}

/// Checks whether a version such as `6.12.117` or `7.0.0-rc3` is at least `first`. What has no number
/// counts as old.
fn is_since(version: &str, first: (u32, u32)) -> bool {
    let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= first,
        _ => false,
    }
}

/// Quotes a word for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match word.chars().all(plain) && !word.contains(PROFILES) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clang() -> Compiler {
        Compiler::Clang { llvm: "-19".into() }
    }

    #[test]
    fn lines_are_those_of_the_kernels_version() {
        let new = MakeLine::afdo("/p/kernel.afdo", "7.3.4", &clang());
        assert_eq!(new.shell(), "LLVM=-19 CLANG_AUTOFDO_PROFILE=/p/kernel.afdo");
        assert_eq!(new.config, ["CONFIG_AUTOFDO_CLANG=y"]);
        let old = MakeLine::afdo("/p/kernel.afdo", "6.12.117", &clang());
        assert!(old.shell().contains("KCFLAGS='-gmlt ") && old.config.is_empty(), "{old:?}");
        let both = new.and(MakeLine::propeller("/p/propeller", Some("/p/kernel.afdo"), &clang()));
        assert_eq!(
            both.shell(),
            "LLVM=-19 CLANG_AUTOFDO_PROFILE=/p/kernel.afdo CLANG_PROPELLER_PROFILE_PREFIX=/p/propeller"
        );
        assert_eq!(both.config.len(), 2);
    }

    #[test]
    fn counters_are_for_single_objects() {
        let line = MakeLine::counters("/p/gcda", &Compiler::default());
        assert!(
            line.shell().starts_with("CFLAGS_KERNEL='$(if $(filter $(obj)/$(target-stem).o,"),
            "{line:?}"
        );
        assert!(line.makefile().contains("$$(shell pwd)"));
        let gcc = MakeLine::counters("/p/gcda", &"gcc-14".parse().unwrap());
        assert!(gcc.shell().starts_with("CC=gcc-14 "));
    }

    #[test]
    fn old_linker_scripts_get_a_place_for_all_functions() {
        let old = MakeLine::order("/p/order.txt", OrderLinker::Lld, "6.12.1", &clang());
        assert!(old.prepare.unwrap().contains("TEXT_TEXT$|&\\n*(.text.[0-9a-zA-Z_]*)|'"));
        let new = MakeLine::order("/p/order.txt", OrderLinker::Lld, "7.3.4", &clang());
        assert_eq!(new.prepare, None);
        assert!(new
            .shell()
            .ends_with("LD='ld.lld-19 --symbol-ordering-file=/p/order.txt --no-warn-symbol-ordering'"));
        let script = MakeLine::order("/p/order.lds", OrderLinker::Script, "7.3.4", &Compiler::default());
        assert!(script.prepare.unwrap().contains("|#include \"/p/order.lds\"\\n&|'"));
        assert!(is_since("6.13-rc1", (6, 13)) && !is_since("mine", (6, 13)));
    }
}
