//! What a kernel is built to run on, as Kbuild's `ARCH`: all that differs between the two is said here.

use crate::{fragment, Error, PatchSet, Result};
use kerntune_isa::{Isa, KbuildNames, X86_64};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What Kbuild calls things for a PC.
const KBUILD: KbuildNames = X86_64::KBUILD;

/// What a kernel is built to run on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arch {
    /// A PC, real or virtual.
    #[default]
    X86_64,
    /// A process of the host: User-Mode Linux. Its kernel is `vmlinux` itself, a program.
    Um,
}

impl Arch {
    /// Every architecture.
    pub const ALL: &'static [Arch] = &[Arch::X86_64, Arch::Um];

    /// The name on the command line and in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => X86_64::NAMES.name,
            Arch::Um => "um",
        }
    }

    /// Whether it is the one that is meant where nothing is said: then nothing of it goes into names of results, which
    /// are older than the choice.
    pub fn is_default(&self) -> bool {
        *self == Arch::default()
    }

    /// The name of the file that is started, in a kernel's directory.
    pub fn image(self) -> &'static str {
        match self {
            Arch::X86_64 => KBUILD.image,
            Arch::Um => "vmlinux",
        }
    }

    /// The directory below `arch/` of the source that is compiled for it.
    pub fn source_directory(self) -> &'static str {
        match self {
            Arch::X86_64 => KBUILD.source,
            Arch::Um => "um",
        }
    }

    /// What goes on make's command line. Kbuild takes the host's architecture where nothing is said.
    pub(crate) fn make_args(self) -> &'static [&'static str] {
        match self {
            Arch::X86_64 => &[],
            Arch::Um => &["ARCH=um"],
        }
    }

    /// What make is asked for.
    pub(crate) fn targets(self) -> &'static [&'static str] {
        match self {
            Arch::X86_64 => &[KBUILD.image, "vmlinux"],
            Arch::Um => &["vmlinux"],
        }
    }

    /// What a kernel consists of: where it is in the build directory, and in the result.
    pub(crate) fn outputs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Arch::X86_64 => &[
                ("vmlinux", "vmlinux"),
                (KBUILD.image_path, KBUILD.image),
                ("System.map", "System.map"),
                (".config", "config"),
            ],
            Arch::Um => &[("vmlinux", "vmlinux"), ("System.map", "System.map"), (".config", "config")],
        }
    }

    /// Where Kbuild puts the linker script, in the build directory.
    pub(crate) fn link_script(self) -> &'static str {
        match self {
            Arch::X86_64 => KBUILD.link_script,
            Arch::Um => "arch/um/kernel/vmlinux.lds",
        }
    }

    /// Where Kbuild notes how it compiled `asm-offsets.c`.
    pub(crate) fn offsets_command(self) -> &'static str {
        match self {
            Arch::X86_64 => KBUILD.offsets_command,
            Arch::Um => "arch/um/kernel/.asm-offsets.s.cmd",
        }
    }

    /// The configuration that kerntune builds on top of `make tinyconfig`.
    pub(crate) fn base_fragment(self) -> &'static str {
        match self {
            Arch::X86_64 => fragment::BASE,
            Arch::Um => fragment::UML,
        }
    }

    /// What every kernel needs to run under kerntune.
    pub(crate) fn required_fragment(self) -> &'static str {
        match self {
            Arch::X86_64 => fragment::REQUIRED,
            Arch::Um => fragment::UML_REQUIRED,
        }
    }

    /// The patches without which a kernel of this version cannot do all that kerntune asks of it.
    pub(crate) fn patches(self, version: &str) -> Option<PatchSet> {
        match self {
            Arch::X86_64 => None,
            Arch::Um => PatchSet::uml(version),
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Arch {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let found = Self::ALL.iter().copied().find(|arch| arch.name() == given);
        found.ok_or_else(|| Error::UnknownArch { given: given.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_every_image_is_an_output() {
        for arch in Arch::ALL {
            assert_eq!(arch.name().parse::<Arch>().unwrap(), *arch);
            assert_eq!(serde_json::to_value(arch).unwrap(), arch.name());
            assert!(arch.outputs().iter().any(|(_, to)| *to == arch.image()));
            crate::config::parse(arch.base_fragment(), "base").unwrap();
            crate::config::parse(arch.required_fragment(), "required").unwrap();
        }
        let error = "arm".parse::<Arch>().unwrap_err().to_string();
        assert!(error.contains("x86-64") && error.contains("um"), "{error}");
    }

    #[test]
    fn a_pc_is_meant_where_nothing_is_said() {
        assert!(Arch::X86_64.is_default() && !Arch::Um.is_default());
        assert!(Arch::X86_64.make_args().is_empty(), "kernels of before keep their names");
    }
}
