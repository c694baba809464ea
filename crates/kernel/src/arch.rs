//! Target architecture of a kernel, as Kbuild's `ARCH`. Everything that differs between the
//! architectures is in this file.

use crate::inputs::fragment;
use crate::{Error, ImportedSource, PatchSet, Result};
use kerntune_isa::{Isa, KbuildNames, X86_64};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Kbuild's names for a PC: image, paths and targets.
const KBUILD: KbuildNames = X86_64::KBUILD;

/// Architecture that a kernel is built for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arch {
    /// PC, real or virtual.
    #[default]
    X86_64,
    /// User-Mode Linux: the kernel is a process of the host, and `vmlinux` itself is the program.
    Um,
}

impl Arch {
    /// All architectures.
    pub const ALL: &'static [Arch] = &[Arch::X86_64, Arch::Um];

    /// Returns the name on the command line and in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => X86_64::NAMES.name,
            Arch::Um => "um",
        }
    }

    /// Checks whether this is the architecture used when none is given. Result keys and manifests then leave the
    /// architecture out, because they are older than the choice.
    pub fn is_default(&self) -> bool {
        *self == Arch::default()
    }

    /// Checks whether the kernel boots on a PC, real or virtual. User-Mode Linux runs as a process of the host.
    pub fn is_pc(self) -> bool {
        self == Arch::X86_64
    }

    /// Checks whether a machine can record the kernel's events. Only the emulator records, and it boots kernels for a
    /// PC; a User-Mode Linux kernel is tuned with the profile of a surrogate kernel.
    pub fn can_be_recorded(self) -> bool {
        self.is_pc()
    }

    /// Returns the file name of the bootable image in a kernel's directory.
    pub fn image(self) -> &'static str {
        match self {
            Arch::X86_64 => KBUILD.image,
            Arch::Um => "vmlinux",
        }
    }

    /// Returns the directory below `arch/` of the source that is compiled.
    pub fn source_directory(self) -> &'static str {
        match self {
            Arch::X86_64 => KBUILD.source,
            Arch::Um => "um",
        }
    }

    /// Returns the arguments for make's command line. Without `ARCH=` Kbuild takes the host's
    /// architecture.
    pub(crate) fn make_args(self) -> &'static [&'static str] {
        match self {
            Arch::X86_64 => &[],
            Arch::Um => &["ARCH=um"],
        }
    }

    /// Returns make's targets.
    pub(crate) fn targets(self) -> &'static [&'static str] {
        match self {
            Arch::X86_64 => &[KBUILD.image, "vmlinux"],
            Arch::Um => &["vmlinux"],
        }
    }

    /// Returns the files that make up a kernel, as pairs of path in the build directory and name in
    /// the result.
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

    /// Returns the path of the linker script that Kbuild generates, in the build directory.
    pub(crate) fn link_script(self) -> &'static str {
        match self {
            Arch::X86_64 => KBUILD.link_script,
            Arch::Um => "arch/um/kernel/vmlinux.lds",
        }
    }

    /// Returns the path of the `.cmd` file in which Kbuild records how it compiled `asm-offsets.c`.
    pub(crate) fn offsets_command(self) -> &'static str {
        match self {
            Arch::X86_64 => KBUILD.offsets_command,
            Arch::Um => "arch/um/kernel/.asm-offsets.s.cmd",
        }
    }

    /// Returns the fragment that kerntune merges over `make tinyconfig`.
    pub(crate) fn base_fragment(self) -> &'static str {
        match self {
            Arch::X86_64 => fragment::BASE,
            Arch::Um => fragment::UML,
        }
    }

    /// Returns the options that every kernel needs to run under kerntune.
    pub(crate) fn required_fragment(self) -> &'static str {
        match self {
            Arch::X86_64 => fragment::REQUIRED,
            Arch::Um => fragment::UML_REQUIRED,
        }
    }

    /// Returns the patches that a kernel of this source needs for kerntune's features; `None` if
    /// it needs none or there are none.
    ///
    /// # Errors
    /// As [`PatchSet::fitting`].
    pub(crate) fn patches(self, source: &ImportedSource) -> Result<Option<PatchSet>> {
        match self {
            Arch::X86_64 => Ok(None),
            // A kernel that is a process then counts arcs, and behaves like a kernel for a PC.
            Arch::Um => PatchSet::fitting("uml", source),
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
            crate::inputs::config::parse(arch.base_fragment(), "base").unwrap();
            crate::inputs::config::parse(arch.required_fragment(), "required").unwrap();
        }
        let error = "arm".parse::<Arch>().unwrap_err().to_string();
        assert!(error.contains("x86-64") && error.contains("um"), "{error}");
    }

    #[test]
    fn a_pc_is_meant_where_nothing_is_said() {
        assert!(Arch::X86_64.is_default() && !Arch::Um.is_default());
        assert!(Arch::X86_64.can_be_recorded() && !Arch::Um.can_be_recorded());
        assert!(Arch::X86_64.make_args().is_empty(), "kernels of before keep their names");
    }
}
