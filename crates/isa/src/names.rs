//! Names that other programs use for an instruction set.

/// Names of an instruction set.
#[derive(Debug)]
pub struct IsaNames {
    /// Name in texts.
    pub name: &'static str,
    /// QEMU's program for a whole machine.
    pub qemu: &'static str,
    /// Target name that QEMU passes to plugins.
    pub qemu_target: &'static str,
    /// Value of `$LIB` in Debian's ld.so.
    pub library_dir: &'static str,
    /// Value of `$PLATFORM` in ld.so.
    pub platform: &'static str,
    /// `e_machine` of ELF files.
    pub elf_machine: u16,
}

/// Kbuild's names in a build directory.
#[derive(Debug)]
pub struct KbuildNames {
    /// Directory below `arch/` that is compiled (`SRCARCH`).
    pub source: &'static str,
    /// Make target of the boot image.
    pub image: &'static str,
    /// Path of the boot image.
    pub image_path: &'static str,
    /// Linker script of `vmlinux`.
    pub link_script: &'static str,
    /// File with the command that compiled `asm-offsets.c`.
    pub offsets_command: &'static str,
    /// Objects whose targets generate everything that Kbuild generates, and the inputs of the boot
    /// code.
    pub prepared: [&'static str; 2],
}
